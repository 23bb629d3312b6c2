"""What all functions that make tensors share: sizes, types, memory, `out=` and `requires_grad=`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.casting import dtype_of
from ..backends.placement import of_array, transfer
from ..core import dtypes
from ..core.arrays import is_level, made_here
from ..core.tensor import Tensor, wrap
from ..dispatch.out import check_out, resize_out
from ..tape.leaves import require_grad


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


def check_tensor(function: str, argument: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{function}(): argument '{argument}' must be Tensor, not {type(value).__name__}"
        )

