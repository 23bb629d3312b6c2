"""The mark on the array of a tensor whose class overrides functions or operators.

The short ways to a kernel look at the type of an array and go no further if it is not NumPy's own.
So such a tensor carries its array under another type: every call on it takes the long way, where
overrides are looked up, and calls on other tensors do not have to ask.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .tensor import Tensor, wrap


class SubclassArray(np.ndarray):
    """The array of a tensor whose class overrides; its elements are those of an ordinary array."""


class WrapperArray(np.ndarray):
    """The array of a tensor that holds no elements: a shape, strides and a dtype.

    What the tensor stands for is known to its class only, through `__torch_dispatch__`.
    """

    place: Any
    start: int

    def __array_finalize__(self, source: Any) -> None:
        self.place = getattr(source, "place", None)
        self.start = getattr(source, "start", 0)

    def _refuse(self, *args: Any, **options: Any) -> NoReturn:
        raise unreadable_wrapper("reading or writing elements")

    __array_ufunc__ = __array_function__ = _refuse
    __getitem__ = __setitem__ = _refuse
    astype = copy = tolist = _refuse


def unreadable_wrapper(action: str) -> RuntimeError:
    """The refusal of what needs the memory of a tensor that has none."""
    return RuntimeError(
        f"{action} is not supported for tensor subclasses without memory of their own: Cannot "
        "access data pointer of Tensor that doesn't have storage. Its class has to handle the "
        "operator in __torch_dispatch__"
    )


def wrapper_array(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any, place: Any, start: int = 0
) -> WrapperArray:
    """An array without elements; strides are in bytes."""
    array = as_strided(np.empty(1, dtype), shape, strides).view(WrapperArray)
    array.place, array.start = place, start
    return array


def mark(array: Any) -> Any:
    """An array as a tensor of such a class carries it; only NumPy's own needs the mark."""
    return np.ndarray.view(array, SubclassArray) if type(array) is np.ndarray else array


def unmarked(array: Any) -> Any:
    """The ordinary array behind a mark."""
    return np.ndarray.view(array, np.ndarray) if type(array) is SubclassArray else array


def unmarked_arguments(args: tuple) -> tuple:
    """The arguments as kernels take them: plain tensors in place of those whose arrays are marked.

    The memory is the same, so that a kernel may write to it.
    """
    return tuple([_unmarked_argument(value) for value in args])


def _unmarked_argument(value: Any) -> Any:
    if isinstance(value, Tensor):
        return wrap(unmarked(value.array)) if type(value.array) is SubclassArray else value
    return [_unmarked_argument(item) for item in value] if type(value) is list else value
