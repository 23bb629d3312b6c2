"""What all functions that make tensors share: sizes, types, memory, `out=` and `requires_grad=`."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..backends.layout import empty_in_order
from ..core import dtypes
from ..core.devices import CPU, device, of_array, require_cupy, transfer
from ..core.layouts import keeps_order
from ..core.tensor import Tensor, wrap
from ..dispatch.levels import is_level, made_here
from ..dispatch.out import check_out, resize_out
from .conversion import dtype_of, require_grad


def parse_size(function: str, sizes: tuple[Any, ...], size: Any = None) -> tuple[int, ...]:
    """The shape given as ints, as one sequence, or as the keyword `size`."""
    given: Any = sizes
    if size is not None:
        if sizes:
            raise TypeError(f"{function}() got multiple values for argument 'size'")
        given = size
    elif not sizes:
        raise TypeError(f'{function}() missing 1 required positional arguments: "size"')
    elif len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        given = sizes[0]
    elif isinstance(sizes[0], (tuple, list)):
        raise TypeError(f"{function}() takes 1 positional argument but {len(sizes)} were given")
    try:
        shape = tuple([_dimension(each) for each in given])
    except TypeError:
        raise TypeError(
            f"{function}(): argument 'size' must be tuple of ints, {_first_non_int(given)}"
        ) from None
    for extent in shape:
        if extent < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {extent}: {list(shape)}"
            )
    return shape


def _dimension(given: Any) -> int:
    if type(given) is int:
        return given
    if isinstance(given, bool):
        raise TypeError
    return operator.index(given)


def _first_non_int(given: Any) -> str:
    if not isinstance(given, (tuple, list)):
        return f"not {type(given).__name__}"
    for position, each in enumerate(given):
        try:
            _dimension(each)
        except TypeError:
            return f"but found element of type {type(each).__name__} at pos {position}"
    return "not nested"


def sequence_size(function: str, size: Any) -> tuple[int, ...]:
    """The shape, where only a sequence is allowed."""
    if isinstance(size, int):
        raise TypeError(f"{function}(): argument 'size' must be tuple of ints, not int")
    return parse_size(function, (), size)


def choose_dtype(
    dtype: Any, out: Tensor | None = None, default: dtypes.dtype | None = None
) -> dtypes.dtype:
    """The type of the result: that of `out`, or the one asked for, or `default`."""
    kind = None if dtype is None else dtypes.as_dtype(dtype)
    if out is not None:
        if kind is not None and kind is not dtype_of(out):
            raise RuntimeError(
                f"dtype {kind.scalar_name} does not match dtype of out parameter "
                f"({dtype_of(out).scalar_name})"
            )
        return dtype_of(out)
    return kind or default or dtypes.get_default_dtype()


def new_array(shape: tuple[int, ...], kind: dtypes.dtype, place: device) -> Any:
    """An uninitialised array on a device."""
    if place.type == "cpu":
        return np.empty(shape, kind.numpy)
    if place.type == "meta":
        from ..backends import meta

        return meta.empty(shape, kind.numpy)
    cupy = require_cupy()
    with cupy.cuda.Device(place.index):
        return cupy.empty(shape, kind.numpy)


def new_array_like(
    source: Any, kind: dtypes.dtype, place: device, memory_format: Any = None
) -> Any:
    """An uninitialised array with the shape and, by default, the order of dimensions of another."""
    keep = keeps_order(memory_format)
    here = of_array(source)
    if place.type == "cpu" and here is CPU:
        if keep:
            return empty_in_order(source, kind.numpy)
        return np.empty_like(source, kind.numpy, "C", False)
    if place.type == "meta" and keep:
        from ..backends import meta

        return meta.like(source, kind.numpy)
    return new_array(source.shape, kind, place)


def finish(
    function: str, array: Any, out: Tensor | None, requires_grad: bool, warn: bool = False
) -> Tensor:
    """The tensor to return for `array`, which is copied into `out` if that is given."""
    result = made_here(wrap(array)) if out is None else write_out(function, out, array, warn)
    return require_grad(result, requires_grad)


def write_out(function: str, out: Tensor, array: Any, warn: bool = False) -> Tensor:
    """Put the values of `array` into `out`, which takes over the shape."""
    check_out(function, out)
    place = of_array(out.array)
    if is_level(out):
        out.copy_(wrap(array))
        return out
    if out.array.shape != array.shape:
        resize_out(out, array.shape, 5 if warn else None)
    if place.type != "meta":
        out.array[...] = transfer(array, place)
    out.bump(function)
    return out


def number(function: str, argument: str, value: Any) -> Any:
    """A Python number from a number or from a tensor that holds one and needs no gradient."""
    if isinstance(value, Tensor) and value.array.ndim == 0 and not value.requires():
        return value.item()
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, (int, float, complex)):
        raise TypeError(
            f"{function}(): argument '{argument}' must be Number, not {type(value).__name__}"
        )
    return value


def whole(function: str, argument: str, value: Any) -> int:
    """An int from anything that is one, a 0-d integer tensor included."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"{function}(): argument '{argument}' must be int, not {type(value).__name__}"
        ) from None


def check_tensor(function: str, argument: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{function}(): argument '{argument}' must be Tensor, not {type(value).__name__}"
        )


def fill(array: Any, value: Any) -> Any:
    """`array` with every element set; a shape-only array has none."""
    if of_array(array).type != "meta":
        array.fill(value)
    return array
