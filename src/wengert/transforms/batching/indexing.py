"""Rules of indexing: tensors of indices for dimensions, gathering and scattering, masks.

Indices that are the same for all examples leave the batch dimension alone. Indices of their own
for each example are joined by the number of the example as one more index.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.registry import apply, operator_named
from ...core.tensor import Tensor
from .moving import (
    at_front,
    batch_size,
    cast,
    flattened,
    iota,
    moved,
    normal_dim,
    padded,
    rank_of,
    reshaped,
    sample_of,
    shape_of,
    with_batch,
)
from .rules import Rewriting, Rule, broadcast, dynamic_shape, each_example

_MASKS = "bu"


def _is_mask(index: Tensor) -> bool:
    kind = index.array.dtype
    return kind.kind in _MASKS and kind.itemsize == 1


# index, index_put and their gradients ------------------------------------------------------------


class Key:
    """A list of indices for dimensions, None for a whole one, brought to physical form.

    `rank` is that of the indices broadcast together, `first` the number of whole dimensions before
    them, `covered` the number of dimensions they take up. Indices that do not follow each other are
    `apart`: what they select comes first in the result.
    """

    def __init__(self, indices: list, dims: Any, size: int, like: Tensor) -> None:
        each = dims if type(dims) is list else [None] * len(indices)
        self.batched = any(d is not None for d in each)
        for index, dim in zip(indices, each, strict=True):
            if dim is not None and _is_mask(index):
                raise dynamic_shape("indexing with a mask")
        if self.batched:
            indices, each = _without_masks(indices, each)
        used = [(i, d) for i, d in zip(indices, each, strict=True) if i is not None]
        self.rank = max([1 if _is_mask(i) else rank_of(i, d) for i, d in used])
        self.covered = sum([i.array.ndim if _is_mask(i) else 1 for i, _ in used])
        places = [n for n, index in enumerate(indices) if index is not None]
        self.first = places[0]
        self.apart = places[-1] - places[0] >= len(places)
        if self.batched:
            # A padded index has the batch dimension, and after it as many as the longest index.
            self.indices = [
                i if i is None or d is None else padded(i, d, self.rank)
                for i, d in zip(indices, each, strict=True)
            ]
            self.examples = iota(size, like, self.rank)

    def inserts(self) -> bool:
        """Whether indices with the number of the example come out in another place."""
        return self.batched and not self.apart and self.first > 0


def _without_masks(indices: list, dims: list) -> tuple[list, list]:
    """Masks that all examples share as indices of their true elements."""
    out: list = []
    places: list = []
    for index, dim in zip(indices, dims, strict=True):
        if index is not None and _is_mask(index):
            found = apply("argwhere", index).unbind(1)
            out += found
            places += [None] * len(found)
        else:
            out.append(index)
            places.append(dim)
    return out, places


def index(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    x, indices = args
    key = Key(indices, dims[1], batch_size(args, dims), x)
    if not key.batched:
        out = operator.call((at_front(x, dims[0]), [None, *indices]))
        return out, key.rank if key.apart else 0
    if dims[0] is None:
        return operator.call((x, key.indices)), 0 if key.apart else key.first
    out = operator.call((at_front(x, dims[0]), [key.examples, *key.indices]))
    if key.inserts():
        # (batch, indices, first, others) to (batch, first, indices, others)
        out = _exchanged(out, key.rank, key.first)
    return out, 0


def _exchanged(x: Tensor, count: int, other: int) -> Tensor:
    """`x` in which `count` dimensions after the first one change places with the `other` next."""
    middle, end = 1 + count, 1 + count + other
    order = (0, *range(middle, end), *range(1, middle), *range(end, x.array.ndim))
    return apply("permute", x, order)


def index_sum(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """index() summed to the size of what had been broadcast to its result."""
    x, indices, shape = args
    place = _batched_mask(indices, dims[1])
    if place is None:
        found, dim = index(operator_named("index"), (x, indices), dims[:2])
        found = at_front(found, dim)
    else:
        # All that a mask selects is added up to one.
        size = batch_size(args, dims)
        x = with_batch(x, dims[0], size)
        mask, _ = _mask_and_shape(indices, dims[1], x.array.ndim - 1, shape, size)
        covered = tuple(range(1 + place, 1 + place + rank_of(indices[place], dims[1][place])))
        found = apply("where", mask, x, 0).sum(covered).unsqueeze(1 + place)
    extra = found.array.ndim - 1 - len(shape)
    if extra:
        found = found.sum(tuple(range(1, 1 + extra)))
    return found.sum_to_size((found.array.shape[0], *shape)), 0


def _put_arguments(
    x_rank: int, indices: list, index_dims: Any, values: Tensor, dim: Any, size: int
) -> tuple[list, Tensor]:
    """The key into a batched tensor, and values in the shape of what it selects there."""
    key = Key(indices, index_dims, size, values)
    rank = key.rank + x_rank - key.covered
    if not key.batched:
        if key.apart:
            # What a key selects is (indices, batch, others).
            values = padded(values, dim, rank)
            if dim is None:
                values = apply("unsqueeze", values, key.rank)
            else:
                order = (*range(1, key.rank + 1), 0, *range(key.rank + 1, rank + 1))
                values = apply("permute", values, order)
        elif dim is not None:
            values = padded(values, dim, rank)
        return [None, *indices], values
    if dim is not None or (key.inserts() and values.array.ndim > rank - key.rank - key.first):
        values = padded(values, dim, rank)
        if dim is None:
            values = apply("unsqueeze", values, 0)
        if key.inserts():
            values = _exchanged(values, key.first, key.rank)
    return [key.examples, *key.indices], values


def index_backward(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    g, shape, indices = args
    size = batch_size(args, dims)
    g, dim = (g, dims[0]) if dims[0] is not None else (with_batch(g, None, size), 0)
    key, values = _put_arguments(len(shape), indices, dims[2], g, dim, size)
    return operator.call((values, (size, *shape), key)), 0


def _index_put_rewritten(operator: Any, args: tuple, dims: tuple) -> tuple[tuple, int] | None:
    x, indices, values, accumulate = args
    if _batched_mask(indices, dims[1]) is not None:
        return None
    size = batch_size(args, dims)
    rank = rank_of(x, dims[0])
    key, values = _put_arguments(rank, indices, dims[1], values, dims[2], size)
    return (with_batch(x, dims[0], size), key, values, accumulate), 0


def _batched_mask(indices: list, dims: Any) -> int | None:
    """The place of a mask that is each example's own."""
    if type(dims) is list:
        for i, (each, dim) in enumerate(zip(indices, dims, strict=True)):
            if dim is not None and _is_mask(each):
                return i
    return None


def _mask_and_shape(
    indices: list, dims: list, rank: int, shape: tuple[int, ...], size: int
) -> tuple[Tensor, tuple[int, ...]]:
    """A mask of each example's own, with as many dimensions as the tensor it is for.

    Values of `shape` are the same for all that the mask selects; the second result is their shape
    for broadcasting. Values that are not would have to be as many as each mask has true elements.
    """
    place = _batched_mask(indices, dims)
    assert place is not None
    mask = at_front(indices[place], dims[place])
    covered = mask.array.ndim - 1
    rest = rank - place - covered
    full = (1,) * (place + 1 + rest - len(shape)) + shape
    others = [each for i, each in enumerate(indices) if i != place and each is not None]
    if others or len(full) > place + 1 + rest or full[place] != 1:
        raise dynamic_shape("indexing with a mask")
    mask = reshaped(mask, (size, *(1,) * place, *mask.array.shape[1:], *(1,) * rest))
    return cast(mask, np.dtype(bool)), full[:place] + (1,) * covered + full[place + 1 :]


def _put_by_mask(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """One value, or one row of them, wherever a mask of each example's own is true."""
    x, indices, values, accumulate = args
    size = batch_size(args, dims)
    shape = shape_of(values, dims[2])
    mask, shape = _mask_and_shape(indices, dims[1], rank_of(x, dims[0]), shape, size)
    if dims[2] is not None:
        values, shape = at_front(values, dims[2]), (size, *shape)
    values = reshaped(values, shape)
    x = with_batch(x, dims[0], size)
    if accumulate:
        return x + apply("where", mask, values, 0), 0
    return apply("where", mask, values, x), 0


index_put = Rewriting(_index_put_rewritten, _put_by_mask)


# Along one dimension -----------------------------------------------------------------------------


def _with_dim(x: Tensor, dim: int | None, size: int) -> Tensor:
    """`x` with a batch dimension in front of at least one other."""
    x = with_batch(x, dim, size)
    return apply("view", x, (size, 1)) if x.array.ndim == 1 else x


def _along(operator: Any, args: tuple, dims: tuple) -> tuple[tuple, int]:
    """Gathering and scattering with an index for each element."""
    size = batch_size(args, dims)
    values = [
        _with_dim(v, d, size) if isinstance(v, Tensor) else v
        for v, d in zip(args, dims, strict=True)
    ]
    position = operator.schema.names["dim"]
    values[position] = normal_dim(args[position], rank_of(args[0], dims[0])) + 1
    return tuple(values), 0


def gather(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """The result has the shape of the index."""
    out = operator.call(_along(operator, args, dims)[0])
    if rank_of(args[2], dims[2]) == 0:
        out = reshaped(out, out.array.shape[:1])
    return out, 0


def gather_backward(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    g, shape, dim, index = args
    size = batch_size(args, dims)
    g, index = _with_dim(g, dims[0], size), _with_dim(index, dims[3], size)
    out = operator.call((g, (size, *(shape or (1,))), normal_dim(dim, len(shape)) + 1, index))
    return (out if shape else reshaped(out, (size,))), 0


def _scatter_rewritten(operator: Any, args: tuple, dims: tuple) -> tuple[tuple, int] | None:
    if rank_of(args[0], dims[0]) == 0 and not operator.mutates:
        return None
    return _along(operator, args, dims)


def _scatter_into_scalar(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    out = operator.call(_along(operator, args, dims)[0])
    return reshaped(out, out.array.shape[:1]), 0


scatter = Rewriting(_scatter_rewritten, _scatter_into_scalar)


def _each_element(index: Tensor, dim: int, shape: tuple[int, ...]) -> Tensor:
    """Indices of slices, one row per example, as indices of all elements of `shape`."""
    ones = [1] * len(shape)
    ones[0], ones[dim] = index.array.shape[0], index.array.shape[1]
    return apply("expand", reshaped(index, tuple(ones)), shape, False)


def index_select(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    x, dim, index = args
    rank = rank_of(x, dims[0])
    dim = normal_dim(dim, rank)
    if dims[2] is None and rank:
        batch = dims[0]
        return operator.call((x, dim + (dim >= batch), index)), batch
    size = batch_size(args, dims)
    if dims[0] is None and rank:
        index = _with_dim(index, dims[2], size)
        found = operator.call((x, dim, reshaped(index, (index.array.size,))))
        shape = found.array.shape
        return reshaped(found, (*shape[:dim], *index.array.shape, *shape[dim + 1 :])), dim
    if rank_of(index, dims[2]) > 1 or (not rank and shape_of(index, dims[2]) not in ((), (1,))):
        one, places = [np.zeros(shape_of(args[i], dims[i]), args[i].array.dtype) for i in (0, 2)]
        operator.kernel(np, one, dim, places)
    rows, index = _with_dim(x, dims[0], size), _with_dim(index, dims[2], size)
    shape = rows.array.shape
    shape = (*shape[: dim + 1], index.array.shape[1], *shape[dim + 2 :])
    out = apply("gather", rows, dim + 1, _each_element(index, dim + 1, shape), False)
    return (out if rank else reshaped(out, (size,))), 0


def slices(scatter: str) -> Rule:
    """index_add and index_copy: slices of a source added or written, here element by element."""

    def rule(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
        x, dim, index, source, *options = args
        size = batch_size(args, dims)
        rank = rank_of(x, dims[0])
        dim = normal_dim(dim, rank)
        rows, parts = _with_dim(x, dims[0], size), _with_dim(source, dims[3], size)
        if dims[2] is None:
            out = operator.call((rows, dim + 1, index, parts, *options))
            return (out if rank else reshaped(out, (size,))), 0
        if options and options[0] != 1:
            parts = cast(parts * options[0], parts.array.dtype)
        index = _with_dim(index, dims[2], size)
        places = _each_element(index, dim + 1, parts.array.shape)
        extra = (None,) if scatter == "scatter" else ()
        out = apply(scatter, rows, dim + 1, places, parts, *extra)
        return (out if rank else reshaped(out, (size,))), 0

    return rule


def _index_fill_rewritten(operator: Any, args: tuple, dims: tuple) -> tuple[tuple, int] | None:
    x, dim, index, value = args
    if dims[2] is not None or dims[3] is not None or rank_of(x, dims[0]) == 0:
        return None
    return (at_front(x, dims[0]), normal_dim(dim, rank_of(x, dims[0])) + 1, index, value), 0


def _index_fill_each(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    x, dim, index, value = args
    size = batch_size(args, dims)
    rank = rank_of(x, dims[0])
    rows = _with_dim(x, dims[0], size)
    if isinstance(value, Tensor):
        value = cast(value, x.array.dtype)
    else:
        value = apply("fill", x.new_empty(()), value)
    indices = [None] * normal_dim(dim, rank) + [index]
    places = [None] * (len(indices) - 1) + [dims[2]]
    put = operator_named("index_put")
    out, _ = put.batch_rule(put, (rows, indices, value, False), (0, places, dims[3], None))
    return (out if rank else reshaped(out, (size,))), 0


index_fill = Rewriting(_index_fill_rewritten, _index_fill_each)


def embedding(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """The rows of a table; tables of several examples lie side by side or below each other."""
    weight, indices, padding, scaled, sparse = args
    if dims[0] is None:
        return operator.call(args), dims[1]
    if rank_of(weight, dims[0]) != 2:
        raise RuntimeError("'weight' must be 2-D")
    if dims[1] is None:
        return _side_by_side(operator, moved(weight, dims[0], 1), args[1:])
    if padding >= 0:
        # One row of each table gets no gradient, and the operator knows of one row only.
        return each_example(operator, args, dims)
    weight, indices = at_front(weight, dims[0]), at_front(indices, dims[1])
    size, rows, width = weight.array.shape
    # A wrong index must stay wrong where the rows of the next table follow.
    valid = (indices >= 0) & (indices < rows)
    numbers = iota(size, weight, indices.array.ndim - 1) * rows
    places = cast(apply("where", valid, indices + numbers, -1), indices.array.dtype)
    table = reshaped(weight, (size * rows, width))
    return operator.call((table, places, padding, scaled, sparse)), 0


def _side_by_side(operator: Any, weight: Tensor, rest: tuple) -> tuple[Any, Any]:
    """One list of indices for all tables, the batch dimension of which is the second."""
    rows, size, width = weight.array.shape
    out = operator.call((reshaped(weight, (rows, size * width)), *rest))
    return apply("_unsafe_view", out, (*out.array.shape[:-1], size, width)), out.array.ndim - 1


# Masks -------------------------------------------------------------------------------------------


def _masked_fill_rewritten(operator: Any, args: tuple, dims: tuple) -> tuple[tuple, int] | None:
    if dims[2] is not None:
        return None
    x, mask, value = args
    rank = max(rank_of(x, dims[0]), rank_of(mask, dims[1]))
    x = padded(x, dims[0], rank) if dims[0] is not None else x
    mask = padded(mask, dims[1], rank) if dims[1] is not None else mask
    return (x, mask, value), 0


def _masked_fill_each(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """A value for each example is selected by where()."""
    x, mask, value = args
    if mask.array.dtype.kind != "b" or rank_of(value, dims[2]):
        operator.kernel(np, *[sample_of(v, d) for v, d in zip(args, dims, strict=True)])
    value = cast(value, x.array.dtype)
    return broadcast("where", (mask, value, x), (dims[1], dims[2], dims[0]))


masked_fill = Rewriting(_masked_fill_rewritten, _masked_fill_each)


def masked_select(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """With one mask for all examples, the same elements of each of them."""
    x, mask = args
    if dims[1] is not None:
        raise dynamic_shape("masked_select()")
    if mask.array.dtype.kind != "b":
        operator.kernel(np, np.zeros(()), np.zeros((), mask.array.dtype))
    shape = np.broadcast_shapes(shape_of(x, dims[0]), mask.array.shape)
    x = padded(x, dims[0], len(shape))
    x = apply("expand", x, (x.array.shape[0], *shape), False)
    return apply("index", x, [None, apply("expand", mask, shape, False)]), 0


def masked_scatter(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """Each true element of a mask takes that element of the source whose turn it is."""
    x, mask, source = args
    if mask.array.dtype.kind != "b" or source.array.dtype != x.array.dtype:
        operator.kernel(np, *[np.zeros(1, v.array.dtype) for v in args])
    size = batch_size(args, dims)
    shape = np.broadcast_shapes(shape_of(x, dims[0]), shape_of(mask, dims[1]))
    whole = []
    for value, dim in ((x, dims[0]), (mask, dims[1])):
        value = padded(with_batch(value, dim, size), 0, len(shape))
        whole.append(apply("expand", value, (size, *shape), False))
    x, mask = whole
    if 0 in shape:
        return x.clone(), 0
    turns = flattened(mask, 0)
    turns = apply("where", turns, turns.cumsum(1) - 1, 0)
    picked = apply("gather", flattened(with_batch(source, dims[2], size), 0), 1, turns, False)
    return apply("where", mask, reshaped(picked, (size, *shape)), x), 0


# Positions in the flattened tensor ---------------------------------------------------------------


def _from_front(index: Tensor, length: int) -> Tensor:
    """Positions that may count from the end, counted from the front."""
    return apply("where", index < 0, index + length, index)


def take(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    x, index = args
    if dims[0] is None:
        return operator.call(args), dims[1]
    rows = flattened(x, dims[0])
    if dims[1] is None:
        return apply("index", rows, [None, index]), 0
    places = _from_front(flattened(index, dims[1]), rows.array.shape[1])
    out = apply("gather", rows, 1, places, False)
    return reshaped(out, (rows.array.shape[0], *shape_of(index, dims[1]))), 0


def _put_rewritten(operator: Any, args: tuple, dims: tuple) -> tuple[tuple, int]:
    """All examples are one tensor, in which the positions of each begin where the last ended."""
    x, index, source, accumulate = args
    size = batch_size(args, dims)
    x = with_batch(x, dims[0], size)
    length = x.array.size // size if size else 0
    index = with_batch(index, dims[1], size)
    places = _from_front(index, length) + iota(size, x, index.array.ndim - 1) * length
    return (x, places, with_batch(source, dims[2], size), accumulate), 0


put = Rewriting(_put_rewritten)


def one_hot(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    if args[1] <= 0:
        raise RuntimeError(
            "When vmap-ing one_hot, please provide an explicit positive num_classes argument: the "
            "values of each example would decide the shape of the result"
        )
    return operator.call(args), dims[0]
