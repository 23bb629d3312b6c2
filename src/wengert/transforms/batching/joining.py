"""Rules of joining tensors. Those without a batch dimension are repeated without being copied."""

from __future__ import annotations

from typing import Any

from ...backends.geometry import wrap_dim
from ...core.registry import operator_named
from .moving import all_batched, batch_size, cast, common_dtype, rank_of, reshaped, with_batch


def cat(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """Tensors that are to be passed over lend the others their type."""
    tensors, dim, sizes = args
    if -1 in sizes:
        goal = common_dtype(tensors, dims[0])
        kept = [i for i, n in enumerate(sizes) if n >= 0]
        tensors = [cast(tensors[i], goal) for i in kept]
        size = batch_size(args, dims)
        rows = [with_batch(x, dims[0][i], size) for x, i in zip(tensors, kept, strict=True)]
        return operator.call((rows, dim + 1, tuple([sizes[i] for i in kept]))), 0
    rows = all_batched(args, dims)[0]
    return operator.call((rows, dim + 1, sizes)), 0


def stack(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    dim = wrap_dim(args[1], rank_of(args[0][0], dims[0][0]) + 1)
    return operator.call((all_batched(args, dims)[0], dim + 1)), 0


def block_diag(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """Each matrix gets zeros on both sides, and the rows are joined."""
    tensors, heights, widths = args[:3]
    size, total = batch_size(args, dims), sum(widths)
    goal = common_dtype(tensors, dims[0])
    pad, join = operator_named("constant_pad_nd").call, operator_named("_cat").call
    rows = []
    column = 0
    for i, x in enumerate(tensors):
        block = reshaped(with_batch(cast(x, goal), dims[0][i], size), (size, heights[i], widths[i]))
        after = total - column - widths[i]
        rows.append(pad((block, (column, after), 0)))
        column += widths[i]
    return join((rows, 1, tuple(heights))), 0
