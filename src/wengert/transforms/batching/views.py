"""Rules of views, whose results are views too, and of what lays elements out anew."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backends.geometry import inferred, span, wrap_dim
from ...core.registry import apply
from .moving import at_front, flattened, normal_dim, rank_of, reshaped, shape_of
from .rules import Rule


def in_place(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """Operators that look at one element after the other: the batch dimension stays."""
    return operator.call(args), dims[0]


def in_front(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """Operators that leave leading dimensions alone."""
    return operator.call((at_front(args[0], dims[0]), *args[1:])), 0


def matrices(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """A rule for views of tensors that have at least two dimensions."""
    rank = rank_of(args[0], dims[0])
    if rank < 2:
        operator.kernel(np, np.empty((1,) * rank), *args[1:])
    return in_front(operator, args, dims)


# Other shapes ------------------------------------------------------------------------------------


def to_size(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """view(self, size) and its relatives."""
    x = at_front(args[0], dims[0])
    count = 1
    for n in x.array.shape[1:]:
        count *= n
    return operator.call((x, (x.array.shape[0], *inferred(args[1], count)), *args[2:])), 0


def expand(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    x, size = at_front(args[0], dims[0]), args[1]
    length, *shape = x.array.shape
    extra = len(size) - len(shape)
    if extra < 0 or any(n < 0 for n in size[:extra]):
        operator.kernel(np, np.empty(shape), *args[1:])
    if extra:
        x = apply("view", x, (length, *(1,) * extra, *shape))
    return operator.call((x, (length, *size), *args[2:])), 0


def repeat(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    x, repeats = at_front(args[0], dims[0]), args[1]
    length, *shape = x.array.shape
    extra = len(repeats) - len(shape)
    if extra < 0:
        operator.kernel(np, np.empty(shape), repeats)
    if extra:
        x = apply("view", x, (length, *(1,) * extra, *shape))
    return operator.call((x, (1, *repeats))), 0


def squeeze(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    x, batch = args[0], dims[0]
    shape = shape_of(x, batch)
    given = range(len(shape)) if args[1] is None else args[1]
    wrapped = [wrap_dim(d, len(shape)) for d in given]
    ones = [d for d in wrapped if shape and shape[d] == 1]
    places = tuple([d + (d >= batch) for d in ones])
    return operator.call((x, places)), batch - sum(p < batch for p in places)


def unsqueeze(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    x = at_front(args[0], dims[0])
    return operator.call((x, wrap_dim(args[1], x.array.ndim) + 1)), 0


def reinterpreted(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """A rule for taking memory as another type, which may change the last dimension."""
    x = at_front(args[0], dims[0])
    if x.array.ndim == 1:
        operator.kernel(np, np.empty((), x.array.dtype), *args[1:])
    return operator.call((x, *args[1:])), 0


# Other orders of the dimensions ------------------------------------------------------------------


def permute(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """One permutation brings the batch dimension to the front as well."""
    x, batch = args[0], dims[0]
    order = [wrap_dim(d, x.array.ndim - 1) for d in args[1]]
    return operator.call((x, (batch, *[d + (d >= batch) for d in order]))), 0


def transpose(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    x, batch = args[0], dims[0]
    rank = rank_of(x, batch)
    first, second = [wrap_dim(d, rank) for d in args[1:]]
    if not rank:
        return apply("alias", x), batch
    return operator.call((x, first + (first >= batch), second + (second >= batch))), batch


def matrix_transpose(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """t(self) of a matrix or of less."""
    x, batch = args[0], dims[0]
    rank = rank_of(x, batch)
    if rank > 2:
        operator.kernel(np, np.empty((1,) * rank))
    if rank < 2:
        return apply("alias", x), batch
    return apply("transpose", x, int(batch == 0), 2 - int(batch == 2)), batch


# Parts -------------------------------------------------------------------------------------------


def parts(removes: bool) -> Rule:
    """Operators that take a tensor apart along `dim`, which the parts have no more if `removes`."""

    def rule(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
        x, batch = args[0], dims[0]
        rank = rank_of(x, batch)
        if not rank:
            operator.kernel(np, np.empty((), x.array.dtype), *args[1:])
        position = operator.schema.names["dim"]
        dim = wrap_dim(args[position], rank)
        dim += dim >= batch
        out = operator.call((*args[:position], dim, *args[position + 1 :]))
        return out, batch - int(removes and dim < batch)

    return rule


def diagonal(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    x, offset, dim1, dim2 = args
    rank = rank_of(x, dims[0])
    first, second = wrap_dim(dim1, rank), wrap_dim(dim2, rank)
    return operator.call((at_front(x, dims[0]), offset, first + 1, second + 1)), 0


def diag_embed(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    x, offset, dim1, dim2 = args
    x = at_front(x, dims[0])
    if x.array.ndim == 1:
        operator.kernel(np, np.empty(()), *args[1:])
    first, second = wrap_dim(dim1, x.array.ndim), wrap_dim(dim2, x.array.ndim)
    return operator.call((x, offset, first + 1, second + 1)), 0


def roll(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    x, shifts, places = args
    rank = rank_of(x, dims[0])
    if places and not rank:
        operator.kernel(np, np.empty(()), *args[1:])
    if places:
        shifted = tuple([normal_dim(d, rank) + 1 for d in places])
        return operator.call((at_front(x, dims[0]), shifts, shifted)), 0
    if len(shifts) != 1:
        operator.kernel(np, np.empty(()), *args[1:])
    rows = operator.call((flattened(x, dims[0]), shifts, (1,)))
    return reshaped(rows, at_front(x, dims[0]).array.shape), 0


def rot90(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    x, k, plane = args
    rank = rank_of(x, dims[0])
    if rank < 2 or len(plane) != 2:
        operator.kernel(np, np.empty((1,) * rank), k, plane)
    shifted = tuple([normal_dim(d, rank) + 1 for d in plane])
    return operator.call((at_front(x, dims[0]), k, shifted)), 0


# Strides -----------------------------------------------------------------------------------------


def as_strided(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """Every example is seen with the same strides, from the same distance to its first element."""
    x, size, stride, offset, layout = args
    x = at_front(x, dims[0])
    length, *shape = x.array.shape
    step, *steps = [s // x.array.itemsize for s in x.array.strides]
    if any(n != 1 and a != b for n, a, b in zip(shape, steps, layout, strict=True)):
        # Another layout than the operator counts on, as a tangent has: it will make a copy.
        step = max(span(tuple(shape), layout), 1)
    return operator.call((x, (length, *size), (step, *stride), offset, (step, *layout))), 0


def restride(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    x, size, stride, offset, new_size, new_stride, new_offset = args
    x = at_front(x, dims[0])
    length = x.array.shape[0]
    step = max(offset + span(size, stride), new_offset + span(new_size, new_stride))
    old = ((length, *size), (step, *stride), offset)
    return operator.call((x, *old, (length, *new_size), (step, *new_stride), new_offset)), 0


def unfold(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    x, dimension, size, step = args
    x = at_front(x, dims[0])
    if x.array.ndim > 1:
        return operator.call((x, wrap_dim(dimension, x.array.ndim - 1) + 1, size, step)), 0
    wrap_dim(dimension, 0)
    windows = operator.call((apply("view", x, (*x.array.shape, 1)), 1, size, step))
    return apply("select", windows, 1, 0), 0


def unfold_backward(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    g, sizes, dim, size, step = args
    g = at_front(g, dims[0])
    if not sizes:
        return g.sum(1), 0
    sizes = (g.array.shape[0], *sizes)
    return operator.call((g, sizes, wrap_dim(dim, len(sizes) - 1) + 1, size, step)), 0
