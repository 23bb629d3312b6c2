"""Steps of an optimizer on other parameters and another state than its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..core.tensor import Tensor
from .optimizer import Optimizer

_NAME = "swap_in_optimizer_params_and_state"


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Let the optimizer work on given parameters and a given state, of the form of `state_dict`.

    The parameters stand in the order of those of the optimizer, whose own are back afterwards.
    Tensors of the given state are changed in place.
    """
    if not optimizer.state:
        raise RuntimeError(f"{_NAME} requires initialized optimizer state.")
    own = optimizer.param_groups, optimizer.state
    given = list(swapin_parameters.values())
    if len(given) != sum(len(group["params"]) for group in own[0]):
        raise RuntimeError(
            f"{_NAME} requires the explicit parameter state to match optimizer.param_groups "
            "ordering."
        )
    packed = swapin_optim_state["param_groups"]
    if len(packed) != len(own[0]):
        raise RuntimeError(
            "swapin_optim_state has a different number of parameter groups than the live optimizer."
        )
    of_number = dict(zip((n for group in packed for n in group["params"]), given, strict=True))
    optimizer.param_groups = [
        {**group, "params": [of_number[number] for number in group["params"]]} for group in packed
    ]
    state: defaultdict[Any, Any] = defaultdict(dict)
    for number, entries in swapin_optim_state["state"].items():
        state[of_number[number]] = dict(entries)
    optimizer.state = state
    try:
        yield
    finally:
        optimizer.param_groups, optimizer.state = own
