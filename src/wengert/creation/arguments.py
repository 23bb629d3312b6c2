"""What all functions that make tensors share: sizes, types, memory, `out=` and `requires_grad=`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.placement import of_array, transfer
from ..core.arrays import is_level, made_here
from ..core.tensor import Tensor, wrap
from ..dispatch.out import check_out, resize_out
from ..dispatch.overlap import check_not_overlapping
from ..tape.leaves import require_grad

#: What may write into an expanded tensor, whose elements share memory.
_FILLING = frozenset(("empty", "eye", "full", "ones", "randperm", "zeros"))


def finish(
    function: str, array: Any, out: Tensor | None, requires_grad: bool, warn: bool = False
) -> Tensor:
    """The tensor to return for `array`, which is copied into `out` if that is given."""
    result = made_here(wrap(array)) if out is None else write_out(function, out, array, warn)
    return require_grad(result, requires_grad)


def write_out(function: str, out: Tensor, array: Any, warn: bool = False) -> Tensor:
    """Put the values of `array` into `out`, which takes over the shape."""
    check_out(function, out)
    if function not in _FILLING:
        check_not_overlapping(function, out.array)
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


def first_argument(
    function: str, name: str, args: tuple, keywords: dict[str, Any]
) -> tuple[Any, tuple]:
    """The argument that comes first or is given by its name, and the others by position."""
    if name in keywords:
        if args:
            raise TypeError(f"{function}() got multiple values for argument '{name}'")
        return keywords.pop(name), args
    if not args:
        raise TypeError(f"{function}() missing 1 required positional argument: '{name}'")
    return args[0], args[1:]
