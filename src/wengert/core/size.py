"""The shape of a tensor as a tuple that prints and counts like PyTorch's."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from .spelling import spelled


class Size(tuple):
    """A tuple of dimension lengths."""

    __module__ = "wengert"
    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = ()) -> Size:
        return size_of([_length(i, value) for i, value in enumerate(sizes)])

    def numel(self) -> int:
        """The number of elements of such a shape."""
        count = 1
        for n in self:
            count *= n
        return count

    def __getitem__(self, index: Any) -> Any:
        value = tuple.__getitem__(self, index)
        return size_of(value) if isinstance(index, slice) else value

    def __add__(self, other: Any) -> Any:
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(tuple.__add__(other, self))

    def __mul__(self, count: Any) -> Any:
        return size_of(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"{spelled('Size')}([{', '.join(map(str, self))}])"

    def __reduce__(self) -> tuple:
        return (Size, (tuple(self),))


def size_of(lengths: Iterable[int]) -> Size:
    """A Size of numbers that need no check."""
    return tuple.__new__(Size, lengths)


def _length(position: int, value: Any) -> int:
    if type(value) is int:
        return value
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"wengert.Size() takes an iterable of 'int' (item {position} is "
            f"'{type(value).__name__}')"
        ) from None


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes broadcast to; a number stands for one dimension.

    >>> import wengert
    >>> wengert.broadcast_shapes((2, 1), (3,))
    wengert.Size([2, 3])
    """
    sizes = [Size((shape,)) if isinstance(shape, int) else Size(shape) for shape in shapes]
    result = [1] * max([len(size) for size in sizes], default=0)
    for place, size in enumerate(sizes):
        for i in range(-1, -len(size) - 1, -1):
            if size[i] < 0:
                raise RuntimeError(
                    f"Trying to create tensor with negative dimension ({size[i]}): ({size[i]})"
                )
            if result[i] == 1:
                result[i] = size[i]
            elif size[i] not in (1, result[i]):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {size[i]} at {i}! Argument "
                    f"{place} has shape {tuple(size)}, those before it broadcast to {result}"
                )
    return size_of(result)


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
    if type(given) is tuple:  # the usual case, told by a loop without calls
        for extent in given:
            if type(extent) is not int or extent < 0:
                break
        else:
            return given
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
