"""The shape of a tensor as a tuple that prints and counts like PyTorch's."""

from __future__ import annotations

from typing import Any


class Size(tuple):
    """A tuple of dimension lengths."""

    __module__ = "wengert"
    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of such a shape."""
        count = 1
        for n in self:
            count *= n
        return count

    def __getitem__(self, index: Any) -> Any:
        value = tuple.__getitem__(self, index)
        return Size(value) if isinstance(index, slice) else value

    def __add__(self, other: Any) -> Any:
        return Size(tuple.__add__(self, other))

    def __mul__(self, count: Any) -> Any:
        return Size(tuple.__mul__(self, count))

    def __repr__(self) -> str:
        return f"wengert.Size([{', '.join(map(str, self))}])"

    def __reduce__(self) -> tuple:
        return (Size, (tuple(self),))
