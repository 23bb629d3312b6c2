"""Batches of copies: into another order of memory, and over what a tensor held before."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.registry import operator_named
from ...core.tensor import Tensor
from .moving import at_front, batch_size, padded, rank_of, shape_of, with_batch
from .rules import Rewriting


def in_order(operator: Any, args: tuple, dims: tuple) -> tuple[Any, int]:
    """A copy whose dimensions have a given order; the batch is the outermost."""
    order = (0, *[d + 1 for d in args[1]])
    return operator.call((at_front(args[0], dims[0]), order)), 0


def _copy_rewritten(operator: Any, args: tuple, dims: tuple) -> tuple[tuple, int]:
    target, source, non_blocking = args
    if not isinstance(source, Tensor):
        return args, dims[0]
    rank = rank_of(target, dims[0])
    if rank_of(source, dims[1]) > rank:  # refused, in terms of what the function sees
        seen = np.empty(shape_of(target, dims[0]))
        operator.functional.kernel(np, seen, np.empty(shape_of(source, dims[1])), non_blocking)
    target = with_batch(target, dims[0], batch_size(args, dims))
    if dims[1] is not None:
        source = padded(source, dims[1], rank)
    return (target, source, non_blocking), 0


def _fill_rewritten(operator: Any, args: tuple, dims: tuple) -> tuple[tuple, int] | None:
    return (args, dims[0]) if dims[1] is None else None


def _fill_each(operator: Any, args: tuple, dims: tuple) -> tuple[Any, int]:
    """A value for each example: a copy."""
    target = with_batch(args[0], dims[0], batch_size(args, dims))
    value = padded(args[1], dims[1], target.array.ndim - 1)
    return operator_named("copy").call((target, value, False)), 0


copy = Rewriting(_copy_rewritten)
fill = Rewriting(_fill_rewritten, _fill_each)
