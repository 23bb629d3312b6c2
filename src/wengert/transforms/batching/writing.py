"""In-place operators on batched arguments: by the rule of the operator that they are forms of."""

from __future__ import annotations

from typing import Any

from ...core.arrays import is_level
from ...core.dtypes import can_cast, from_numpy
from ...core.errors import shape_text
from ...core.state import thread_state
from ...core.tensor import Tensor
from .moving import at_front, shape_of, unbatched_target
from .rules import Rewriting, fallback


def write_batched(operator: Any, args: tuple, dims: tuple) -> None:
    """An in-place operator on batched arguments: the first one's memory is changed."""
    if dims[0] is None:
        raise unbatched_target(operator.name)
    functional = operator.functional
    rule = functional.batch_rule or fallback
    if isinstance(rule, Rewriting):
        rewritten = rule.rewrite(operator, args, dims)
        if rewritten is not None:
            operator.call(rewritten[0])
            return
    value = args[0]
    # A rule may save what is about to be overwritten.
    saved = value.clone() if is_level(value) or thread_state().recording() else value
    result, dim = rule(functional, (saved, *args[1:]), dims)
    _check_fits(operator, result, shape_of(result, dim), value, shape_of(value, dims[0]))
    at_front(value, dims[0]).copy_(at_front(result, dim))


def _check_fits(operator: Any, result: Tensor, shape: tuple, target: Tensor, room: tuple) -> None:
    """Refuse a result that is larger than its target, or of a higher kind of type."""
    if shape != room:
        raise RuntimeError(
            f"output with shape {shape_text(room)} doesn't match the broadcast shape "
            f"{shape_text(shape)}"
        )
    source, goal = from_numpy(result.array.dtype), from_numpy(target.array.dtype)
    if not (operator.casts_freely or can_cast(source, goal)):
        raise RuntimeError(
            f"result type {source.scalar_name} can't be cast to the desired output type "
            f"{goal.scalar_name}"
        )
