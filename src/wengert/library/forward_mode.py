"""Tangents of the results of a custom operator, by the forward rule that was registered for it."""

from __future__ import annotations

from typing import Any

from ..backends.allocation import zeros_for
from ..core.dtypes import is_differentiable
from ..core.state import ThreadState, call_user
from ..core.tensor import Tensor
from ..tape.tangents import set_tangent, tangent_of
from .node import OperatorNode, new_operator_node, set_up


def tangents_of(operator: Any, args: tuple) -> list | None:
    """The tangents of the positional arguments in their structure, None if there is none at all."""
    tangents = [
        [tangent_of(item) for item in value] if type(value) is list else tangent_of(value)
        for value in args[: operator.positional]
    ]
    present = any(
        any(t is not None for t in item) if type(item) is list else item is not None
        for item in tangents
    )
    return tangents if present else None


def push_tangents(
    operator: Any,
    state: ThreadState,
    args: tuple,
    out: Any,
    tangents: list,
    node: OperatorNode | None,
) -> None:
    """Give the results their tangents; `node` is the ctx, if the call was recorded."""
    if operator.jvp is None:
        raise RuntimeError(
            f"Trying to use forward AD with {operator.name} that does not support it because no "
            "forward rule was registered. Use register_jvp to add one."
        )
    if node is None:
        node = new_operator_node(operator, state, args, operator.no_output)
        if operator.setup_context is not None:
            set_up(operator, state, node, args, out)
        if node.saved_for_forward is None:
            node.saved_for_forward = node.to_save
    if not node.keeps_undefined:
        tangents = [_with_zeros(v, t) for v, t in zip(args, tangents, strict=False)]
    pushed = call_user(operator.jvp, node, *tangents)
    _attach(operator, out, pushed)


def _with_zeros(value: Any, tangent: Any) -> Any:
    if type(value) is list:
        return [_with_zeros(v, t) for v, t in zip(value, tangent, strict=True)]
    if tangent is None and isinstance(value, Tensor) and is_differentiable(value.array.dtype):
        return zeros_for(value.array.shape, value.array.dtype, value.array)
    return tangent


def _attach(operator: Any, out: Any, pushed: Any) -> None:
    outs = out if isinstance(out, tuple) else (out,)
    found = pushed if isinstance(pushed, tuple) else (pushed,)
    if len(outs) != len(found):
        raise RuntimeError(
            f"the forward rule of {operator.name} returned {len(found)} tangents for {len(outs)} "
            "results"
        )
    for value, tangent in zip(outs, found, strict=True):
        if type(value) is list and type(tangent) is list:
            for item, part in zip(value, tangent, strict=True):
                _set(operator, item, part)
        else:
            _set(operator, value, tangent)


def _set(operator: Any, value: Any, tangent: Any) -> None:
    if tangent is None:
        return
    if not isinstance(value, Tensor) or not isinstance(tangent, Tensor):
        raise RuntimeError(
            f"the forward rule of {operator.name} returned a {type(tangent).__name__} as the "
            f"tangent of a {type(value).__name__}"
        )
    if tangent.array.shape != value.array.shape:
        raise RuntimeError(
            f"the forward rule of {operator.name} returned a tangent of shape "
            f"{list(tangent.array.shape)} for a result of shape {list(value.array.shape)}"
        )
    set_tangent(value, tangent)
