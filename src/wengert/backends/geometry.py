"""Dimensions, sizes and memory: what the kernels of views and of joined tensors compute with."""

from __future__ import annotations

import operator as python_operator
from typing import Any

from ..core.arrays import LevelArray, WrapperArray, plain_array
from ..core.errors import broadcast_error, dimension_error, shape_text
from ..core.ndarrays import ndarrays
from ..core.tensor import Tensor
from .backend import backend_of
from .numpy import ndarray

_ALL = slice(None)

# Arguments ---------------------------------------------------------------------------------------


def wrap_dim(dim: int, ndim: int) -> int:
    """`dim` counted from the front; a tensor without dimensions is treated as if it had one."""
    count = ndim or 1
    if not -count <= dim < count:
        raise dimension_error(dim, ndim)
    return dim + count if dim < 0 else dim


def wrap_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    """Several dimensions counted from the front, none of them twice."""
    wrapped: list[int] = []
    for dim in dims:
        dim = wrap_dim(dim, ndim)
        if dim in wrapped:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
        wrapped.append(dim)
    return tuple(wrapped)


def int_sequence(function: str, name: str, given: tuple, keyword: Any = None) -> tuple[int, ...]:
    """Ints given as separate arguments, as one sequence, or by keyword."""
    if keyword is not None:
        if given:
            raise TypeError(f"{function}() got multiple values for argument '{name}'")
        given = (keyword,)
    elif not given:
        raise TypeError(f'{function}() missing 1 required positional arguments: "{name}"')
    items = given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
    result = []
    for position, item in enumerate(items):
        if type(item) is not int:
            if isinstance(item, bool) or not hasattr(item, "__index__"):
                raise TypeError(
                    f"{function}(): argument '{name}' must be tuple of ints, but found element of "
                    f"type {type(item).__name__} at pos {position}"
                )
            item = python_operator.index(item)
        result.append(item)
    return tuple(result)


def overload_number(dims: tuple[int, ...] | None) -> int:
    """0 for no dimensions, 1 for one, 2 for several: how the names of nodes count overloads."""
    return 0 if dims is None else min(abs(len(dims) - 1), 1) + 1


# Shapes and parts --------------------------------------------------------------------------------


def inferred(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """`shape` with its -1 replaced, after checking that it has `size` elements."""
    known = 1
    unknown = -1
    for i, n in enumerate(shape):
        if n >= 0:
            known *= n
        elif n != -1:
            raise RuntimeError(
                f"invalid shape dimension {n} at index {i} of shape {shape_text(shape)}"
            )
        elif unknown >= 0:
            raise RuntimeError("only one dimension can be inferred")
        else:
            unknown = i
    if unknown < 0 and known == size:
        return shape
    if unknown >= 0 and known and size % known == 0:
        return shape[:unknown] + (size // known,) + shape[unknown + 1 :]
    if unknown >= 0 and known == size == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {shape_text(shape)} because the "
            "unspecified dimension size -1 can be any value and is ambiguous"
        )
    raise RuntimeError(f"shape '{shape_text(shape)}' is invalid for input of size {size}")


def broadcast_shape(function: str, arrays: list) -> tuple[int, ...]:
    """The shape that all of `arrays` broadcast to."""
    shape: list[int] = [1] * max([a.ndim for a in arrays], default=0)
    for array in arrays:
        for i, n in enumerate(array.shape, len(shape) - array.ndim):
            if shape[i] == 1:
                shape[i] = n
            elif n not in (1, shape[i]):
                raise broadcast_error(function, tuple(arrays), ValueError(shape_text(array.shape)))
    return tuple(shape)


def at(dim: int, index: Any) -> tuple:
    """The key that applies `index` to dimension `dim`; the result is an array even without dims."""
    return (_ALL,) * dim + (index, Ellipsis)


def diagonal_view(x: Any, offset: int, dim1: int, dim2: int) -> Any:
    """The diagonal of two dimensions as a writable view, with its own dimension last."""
    first, second = wrap_dim(dim1, x.ndim), wrap_dim(dim2, x.ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = x.shape[first], x.shape[second]
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    if offset and length:
        x = x[at(first, slice(-offset, None)) if offset < 0 else at(second, slice(offset, None))]
    others = [i for i in range(x.ndim) if i not in (first, second)]
    shape = (*[x.shape[i] for i in others], length)
    strides = (*[x.strides[i] for i in others], x.strides[first] + x.strides[second])
    return strided(x, shape, strides)


# Memory ------------------------------------------------------------------------------------------


def owner_of(x: Any) -> Any:
    """The array whose memory `x` looks at."""
    owner = below = x
    while (below := getattr(below, "base", None)) is not None:
        if hasattr(below, "dtype"):
            owner = below
    return owner


def address_of(x: Any) -> int:
    """Where the first element of an array is."""
    if isinstance(x, ndarray):
        return x.__array_interface__["data"][0]
    return backend_of(x).address(x)


def may_share_memory(one: Any, other: Any) -> bool:
    """Whether the stretches of memory that two arrays span have bytes in common."""
    backend = backend_of(one)
    return backend is backend_of(other) and backend.may_share_memory(one, other)


def offset_of(x: Any) -> int:
    """How many elements after the start of its memory an array begins."""
    if type(x) is LevelArray:
        value = plain_array(x.value)
        # over another class than NumPy's, the array of a level is a placeholder
        seen = x if isinstance(value, ndarray) else value
        return x.level.offset_of(x, _begin(seen))
    return _begin(x)


def _begin(x: Any) -> int:
    return (address_of(x) - address_of(owner_of(x))) // x.dtype.itemsize


def memory_size(owner: Any) -> int:
    """How many bytes of memory an array has, gaps included."""
    item = owner.dtype.itemsize
    return item * span(owner.shape, tuple([s // item for s in owner.strides]))


def memory_as(x: Any, shape: tuple[int, ...]) -> Any:
    """The memory from the first element of an array on in another shape, None if it is short."""
    if type(x) is not ndarray and (isinstance(x, ndarray) or backend_of(x).shape_only):
        return None
    owner = owner_of(x)
    strides: tuple[int, ...] = ()
    step = x.dtype.itemsize
    for n in reversed(shape):
        strides = (step, *strides)
        step *= max(n, 1)
    if 0 not in shape and step > memory_size(owner) - (address_of(x) - address_of(owner)):
        return None
    return strided(x, shape, strides)


def strided(x: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Any:
    """A view of the memory of `x` that begins `offset` after it; strides and offset in bytes."""
    if type(x) is ndarray and x.size:
        # Ten times as fast as as_strided, but only memory without gaps can be used so.
        if x.flags.c_contiguous and not offset:
            view = _within(x, 0, x.dtype, shape, strides)
            if view is not None:
                return view
        owner = owner_of(x)
        if owner.flags.forc:
            start = address_of(x) - address_of(owner) + offset
            view = _within(owner, start, x.dtype, shape, strides)
            if view is not None:
                view.flags.writeable = x.flags.writeable
                return view
    return backend_of(x).strided(x, shape, strides, offset)


def _within(memory: Any, start: int, dtype: Any, shape: tuple, strides: tuple) -> Any:
    """A view that begins `start` bytes into an array, None if it leaves the array's elements."""
    try:
        return ndarray(shape, dtype, memory, start, strides)
    except ValueError:
        return None


def view_shape(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` with another shape over the same memory, or None where a copy would be needed."""
    if x.flags.c_contiguous:
        return x.reshape(shape)
    return backend_of(x).view_shape(x, shape)


def same_elements(fresh: Tensor, view: Tensor) -> bool:
    """Whether a view that was made again is the same; without memory, as far as can be told."""
    if isinstance(fresh.array, ndarray) and ndarrays.same_view(fresh.array, view.array):
        return True
    a, b = plain_array(fresh), plain_array(view)
    if type(a) is not type(b) or (a.shape, a.strides) != (b.shape, b.strides):
        return False
    if type(a) is WrapperArray:
        return a.start == b.start
    return not isinstance(a, ndarray) and address_of(a) == address_of(b)


def sliced(x: Any, dim: int, start: int | None, end: int | None, step: int) -> Any:
    """A range of one dimension. Unlike NumPy's, an empty one begins where it was asked for."""
    indices = slice(start, end, step)
    part = x[at(dim, indices)]
    if part.size:
        return part
    begin = indices.indices(x.shape[dim])[0]
    strides = (*x.strides[:dim], x.strides[dim] * step, *x.strides[dim + 1 :])
    return strided(x, part.shape, strides, begin * x.strides[dim])


def span(size: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """How many elements of memory lie between the first and the last one, both included."""
    if 0 in size:
        return 0
    return 1 + sum([(n - 1) * s for n, s in zip(size, stride, strict=True)])


def may_overlap(size: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """False if no two indices can mean the same place in memory."""
    reach = 0
    for s, n in sorted(zip(stride, size, strict=True)):
        if n > 1:
            if s <= reach:
                return True
            reach += (n - 1) * s
    return False


def seen_from(x: Any, size: Any, stride: Any, storage_offset: int | None) -> tuple:
    """A size, strides and start counted from the first element of `x`, and the strides of `x`."""
    size, stride = tuple(size), tuple(stride)
    if len(size) != len(stride):
        raise RuntimeError(
            f"mismatch in length of strides and shape: as_strided() got size {shape_text(size)} "
            f"and stride {shape_text(stride)}"
        )
    if any(s < 0 for s in stride):
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got strides: "
            f"{shape_text(stride)}"
        )
    if storage_offset is not None and storage_offset < 0:
        raise RuntimeError(f"as_strided(): invalid storage offset {storage_offset}")
    offset = 0 if storage_offset is None else storage_offset - offset_of(x)
    return size, stride, offset, tuple([s // x.dtype.itemsize for s in x.strides])
