"""Batching: what an operator does to tensors that have a batch dimension out of its sight.

A batch rule is ``rule(operator, args, dims) -> (result, dim)``. `args` are the operator's arguments
in schema order with physical tensors; `dims` holds, for each argument, the position of the batch
dimension or None (a list of those for a list of tensors). The result is physical too; `dim` says
where its batch dimension is (None: it has none), one for all results or one each.

Rules are written in operators, so that they are differentiated and batched again by the levels
below. `rules.py` has those that many operators share, the other modules those of one kind of
operators.
"""

from __future__ import annotations

from typing import Any

from ..dtypes import can_cast, from_numpy
from ..levels import Level, unbatched_target
from .moving import at_front
from .rules import Rewriting, fallback


def call_batched(operator: Any, args: tuple, dims: tuple, level: Level) -> tuple[Any, Any]:
    """An operator on batched arguments by its rule, or one example at a time."""
    return (operator.batch_rule or fallback)(operator, args, dims)


def write_batched(operator: Any, args: tuple, dims: tuple, level: Level) -> None:
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
    result, dim = rule(functional, args, dims)
    target = at_front(args[0], dims[0])
    if not (operator.casts_freely or can_cast(result.dtype, target.dtype)):
        source, goal = from_numpy(result.array.dtype), from_numpy(target.array.dtype)
        raise RuntimeError(
            f"result type {source.scalar_name} can't be cast to the desired output type "
            f"{goal.scalar_name}"
        )
    target.copy_(at_front(result, dim))
