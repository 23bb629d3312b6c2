"""The mark on the array of a tensor whose class overrides functions or operators.

The short ways to a kernel look at the type of an array and go no further if it is not NumPy's own.
So such a tensor carries its array under another type: every call on it takes the long way, where
overrides are looked up, and calls on other tensors do not have to ask.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .registry import operator_named
from .state import thread_state
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
    array = placeholder(shape, strides, dtype).view(WrapperArray)
    array.place, array.start = place, start
    return array


def placeholder(shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> Any:
    """A NumPy array of these sizes, strides in bytes and dtype, without elements to speak of."""
    return as_strided(np.empty(1, dtype), shape, strides)


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


class LevelArray(np.ndarray):
    """The array of a tensor at a level: no elements of its own, only `value` has them."""

    value: Tensor
    level: Any
    dim: int | None

    def copy(self, order: Any = "C") -> LevelArray:
        return self.level.call(thread_state(), operator_named("clone"), (wrap(self),))

    def __array_ufunc__(self, *args: Any, **options: Any) -> NoReturn:
        raise unreadable(self)

    def __array_function__(self, *args: Any, **options: Any) -> NoReturn:
        raise unreadable(self)

    def __getitem__(self, index: Any) -> NoReturn:
        raise unreadable(self)

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise unreadable(self)

    def astype(self, *args: Any, **options: Any) -> NoReturn:
        raise unreadable(self)

    def tolist(self) -> NoReturn:
        raise unreadable(self)


def unreadable(array: LevelArray) -> RuntimeError:
    """The refusal of reading the elements of a level tensor as those of an array."""
    return RuntimeError(
        f"Cannot access data pointer of Tensor that doesn't have storage: inside "
        f"{array.level.kind}, a tensor stands for a value of the transform. Use the library's "
        "operators on it"
    )


def is_level(t: Tensor) -> bool:
    """Whether a tensor belongs to a transform."""
    return type(t.array) is LevelArray


def plain_array(t: Tensor) -> Any:
    """The array of a tensor below all transforms."""
    while type(t.array) is LevelArray:
        t = t.array.value
    return t.array


def has_class(t: Tensor) -> bool:
    """Whether the tensor below all transforms is of a class that overrides functions."""
    return type(plain_array(t)) in (SubclassArray, WrapperArray)


def is_batched(t: Tensor) -> bool:
    """Whether a tensor has one value per example of some vmap."""
    while type(t.array) is LevelArray:
        if t.array.dim is not None:
            return True
        t = t.array.value
    return False


def alive(value: Any) -> Any:
    """What stands for a tensor whose transform has ended: that of grad or jvp is a value by then.

    One of vmap has a value for each example, that of a trace has none; they stay as they are, and
    are refused. So does what is no tensor; of a list, the tensors in it count.
    """
    if type(value) is list:
        return [alive(item) for item in value]
    while isinstance(value, Tensor) and type(value.array) is LevelArray:
        level = value.array.level
        if level.number or not level.differentiates:
            break
        value = value.array.value
    return value


def has_ended(t: Tensor) -> bool:
    """Whether a tensor, or what it stands for, belongs to a transform that has ended."""
    while type(t.array) is LevelArray:
        if not t.array.level.number:
            return True
        t = t.array.value
    return False


def made_here(t: Tensor) -> Tensor:
    """A tensor that a function has just created, as a tensor of the innermost transform."""
    return made_inside(t, thread_state().levels)


def made_inside(out: Any, levels: list) -> Any:
    """New tensors, made of what is outside `levels`, as tensors of the innermost of these.

    In-place operations inside grad and jvp need their target at that level.
    """
    if isinstance(out, (tuple, list)):
        items = [made_inside(item, levels) for item in out]
        return items if type(out) is list else tuple(items)
    if isinstance(out, Tensor):
        for level in levels:
            out = level.made(out)
    return out
