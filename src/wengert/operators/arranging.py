"""Copies in another arrangement: flipped, rolled, turned, repeated."""

from __future__ import annotations

import operator as python_operator
from typing import Any

from ..backends import meta
from ..backends.geometry import int_sequence, wrap_dim, wrap_dims
from ..backends.layout import empty_in_order
from ..core.dtypes import from_numpy
from ..core.errors import dimension_error, shape_text
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..transforms.batching import views as batched
from ..transforms.batching.moving import at_front
from ..transforms.batching.rules import along, dynamic_shape
from . import shapes
from .copying import pack
from .declare import linear, nondifferentiable
from .getitem import refuse_meta
from .views import expand, flatten, reshape, unsqueeze

__all__ = ["flip", "fliplr", "flipud", "repeat", "repeat_interleave", "roll", "rot90", "tile"]

# Reversed and shifted ----------------------------------------------------------------------------


def _flip(xp: Any, x: Any, dims: tuple[int, ...]) -> Any:
    places = wrap_dims(dims, x.ndim)
    out = empty_in_order(x, x.dtype)
    out[...] = xp.flip(x, places if x.ndim else ())
    return out


flip: Operator = linear(
    "flip(Tensor self, int[] dims) -> Tensor",
    _flip,
    lambda g, dims: flip.call((g, dims)),
    shape=shapes.as_first,
    batch=along("dims", empty_means_all=False),
    doc="The elements in reverse order along the given dimensions.",
)


def fliplr(input: Tensor) -> Tensor:
    """The columns in reverse order."""
    if input.array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip.call((input, (1,)))


def flipud(input: Tensor) -> Tensor:
    """The rows in reverse order."""
    if input.array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip.call((input, (0,)))


def _roll(xp: Any, x: Any, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    if not shifts:
        raise RuntimeError("`shifts` required: roll() was given none")
    if len(shifts) != len(dims) and not (len(shifts) == 1 and not dims):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
        )
    if dims and not x.ndim:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    if not dims:
        return xp.roll(xp.asarray(x, order="C"), shifts[0])
    return xp.roll(xp.asarray(x, order="C"), shifts, tuple([wrap_dim(dim, x.ndim) for dim in dims]))


roll_: Operator = linear(
    "roll(Tensor self, int[] shifts, int[] dims=[]) -> Tensor",
    _roll,
    lambda g, shifts, dims: roll_.call((g, tuple([-n for n in shifts]), dims)),
    shape=shapes.as_first,
    batch=batched.roll,
    doc="The elements shifted along dimensions; those pushed out come in at the other end.",
)


def roll(input: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    """The elements shifted along dimensions, or, without any given, in flattened order."""
    places = () if dims is None else int_sequence("roll", "dims", (dims,))
    return roll_.call((input, int_sequence("roll", "shifts", (shifts,)), places))


def _rot90(xp: Any, x: Any, k: int, dims: tuple[int, ...]) -> Any:
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if x.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {x.ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == x.ndim:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    first, second = [wrap_dim(dim, x.ndim) for dim in dims]
    out = empty_in_order(x, x.dtype)
    if k % 2:
        out = out.swapaxes(first, second)
    out[...] = xp.rot90(x, k, (first, second))
    return out


def _rotated_shape(x: Any, k: int, dims: tuple[int, ...]) -> tuple[int, ...]:
    return x.shape if k % 2 == 0 else x.swapaxes(*dims).shape


rot90: Operator = linear(
    "rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
    _rot90,
    lambda g, k, dims: rot90.call((g, -k, dims)),
    shape=_rotated_shape,
    batch=batched.rot90,
    doc="The tensor turned `k` times by a right angle, from the first to the second dimension.",
)

# Repeated ----------------------------------------------------------------------------------------


def _repeated_shape(x: Any, repeats: tuple[int, ...]) -> tuple[int, ...]:
    if len(repeats) < x.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            f"tensor: got {len(repeats)} and {x.ndim}"
        )
    padded = (1,) * (len(repeats) - x.ndim) + x.shape
    shape = tuple([n * size for n, size in zip(repeats, padded, strict=True)])
    for n in shape:
        if n < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {n}: {shape_text(shape)}"
            )
    return shape


def _repeat(xp: Any, x: Any, repeats: tuple[int, ...]) -> Any:
    shapes.check_size(_repeated_shape(x, repeats), x.dtype.itemsize)
    return xp.asarray(xp.tile(x, repeats), order="C")


def _repeat_backward(g: Tensor, shape: tuple[int, ...], repeats: tuple[int, ...]) -> Tensor:
    """The sum over all copies of each element."""
    if not repeats:
        return g
    padded = (1,) * (len(repeats) - len(shape)) + shape
    pairs = [n for pair in zip(repeats, padded, strict=True) for n in pair]
    total = reshape(g, tuple(pairs)).sum(tuple(range(0, len(pairs), 2)))
    return reshape(total, shape)


repeat = linear(
    "repeat(Tensor self, int[] repeats) -> Tensor",
    _repeat,
    lambda g, self_shape, repeats: _repeat_backward(g, self_shape, repeats),
    meta=lambda x, repeats: meta.empty(_repeated_shape(x, repeats), x.dtype),
    batch=batched.repeat,
    doc="Copies of the tensor side by side, so many along each dimension.",
    public="method",
)


def tile(input: Tensor, *repeats: Any, dims: Any = None) -> Tensor:
    """Copies of the tensor side by side; leading dimensions may be left out of `dims`."""
    counts = int_sequence("tile", "dims", repeats, dims)
    return repeat.call((input, (1,) * (input.array.ndim - len(counts)) + counts))


def repeat_interleave(
    input: Tensor,
    repeats: Any = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Each element, or each part along `dim`, several times in a row.

    Called with a tensor of counts only, the index of each count that many times.
    """
    if repeats is None:
        return _repeated.call((input, None, output_size, 0))
    if not isinstance(repeats, Tensor):
        if not hasattr(repeats, "__index__"):
            raise TypeError(
                "repeat_interleave(): argument 'repeats' must be int or Tensor, not "
                f"{type(repeats).__name__}"
            )
        return _repeat_alike(input, python_operator.index(repeats), dim, output_size)
    if dim is None:
        input, dim = flatten(input), 0
    dim = wrap_dim(dim, input.array.ndim)
    indices = _repeated.call((repeats, input.array.shape[dim], output_size, 0))
    return input.index_select(dim, indices)


def _repeat_alike(input: Tensor, repeats: int, dim: int | None, output_size: int | None) -> Tensor:
    if dim is None:
        input, dim = flatten(input), 0
    shape = input.array.shape
    if not shape:
        raise dimension_error(dim + 1, 0)
    dim = wrap_dim(dim, len(shape))
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    _check_output_size(shape[dim] * repeats, output_size)
    wide = expand.call(
        (unsqueeze.call((input, dim + 1)), (*shape[: dim + 1], repeats, *shape[dim + 1 :]), False)
    )
    return flatten(pack.call1(wide), dim, dim + 1)


def _repeated_indices(
    xp: Any, counts: Any, length: int | None, output_size: int | None, leading: int
) -> Any:
    """The index of each of `counts`, that many times; one count alone serves for all.

    Dimensions in front, `leading` of them, are examples, which need the same total.
    """
    shape = counts.shape[leading:]
    if counts.dtype.name not in ("int32", "int64"):
        raise NotImplementedError(
            "repeat_interleave(): not implemented for repeats of type "
            f"'{from_numpy(counts.dtype).scalar_name}': they must be int32 or int64"
        )
    if len(shape) > 1:
        raise RuntimeError(
            "repeat_interleave only accept 1D vector as repeat, but got repeats of shape "
            f"{shape_text(shape)}"
        )
    if (counts < 0).any().item():
        raise RuntimeError("repeats can not be negative")
    rows = counts if shape else counts[..., None]
    if length is not None and rows.shape[-1] == 1:
        rows = xp.broadcast_to(rows, (*rows.shape[:-1], length))
    if length is not None and rows.shape[-1] != length:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{rows.shape[-1]} and input.size(dim) = {length}"
        )
    totals = rows.sum(-1)
    total = totals.max().item() if totals.size else 0
    if (totals != total).any().item():
        raise dynamic_shape("repeat_interleave()")
    _check_output_size(total, output_size)
    ordinal = xp.broadcast_to(xp.arange(rows.shape[-1], dtype=counts.dtype), rows.shape)
    return ordinal.reshape(-1).repeat(rows.reshape(-1)).reshape((*rows.shape[:-1], total))


def _repeated_batched(operator: Any, args: tuple, dims: tuple) -> tuple[Any, int]:
    counts, length, output_size, leading = args
    return operator.call((at_front(counts, dims[0]), length, output_size, leading + 1)), 0


_repeated = nondifferentiable(
    "_repeated_indices(Tensor repeats, int? length, int? output_size, int leading) -> Tensor",
    _repeated_indices,
    meta=refuse_meta("repeat_interleave"),
    batch=_repeated_batched,
    raises="values",
    doc="Each index as often as its count says.",
)


def _check_output_size(total: int, output_size: int | None) -> None:
    if output_size is not None and output_size != total:
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {total} but got {output_size}"
        )
