"""Memory layouts and memory formats that programs name; all memory here is dense and strided."""

from __future__ import annotations

from typing import Any

from .spelling import spelled


class _Named:
    """An object that a program knows by its name in the package."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return spelled(self.name)

    def __reduce__(self) -> str:
        return self.name


class layout(_Named):
    """How the elements of a tensor are stored."""

    __module__ = "wengert"
    __slots__ = ()


class memory_format(_Named):
    """The order of the dimensions in memory that a new tensor shall have."""

    __module__ = "wengert"
    __slots__ = ()


strided = layout("strided")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
#: The dimensions from the outermost to the innermost in memory; channels are the second one.
CHANNELS_LAST = {channels_last: (0, 2, 3, 1), channels_last_3d: (0, 2, 3, 4, 1)}


def check_options(layout: Any, pin_memory: bool) -> None:
    """Refuse a storage that does not exist: sparse layouts and pinned memory."""
    if layout is not None and layout is not strided:
        raise TypeError(f"argument 'layout' must be None or wengert.strided, not {layout!r}")
    if pin_memory:
        raise RuntimeError("pin_memory=True is not supported: arrays live in ordinary memory")


def channel_order(memory_format: Any, ndim: int) -> tuple[int, ...] | None:
    """The order of dimensions in memory where channels are the innermost; None for other formats.

    A tensor of another number of dimensions than the format is for is refused.
    """
    order = CHANNELS_LAST.get(memory_format)
    if order is not None and len(order) != ndim:
        raise RuntimeError(
            f"required rank {len(order)} tensor to use {memory_format.name} format, got one of "
            f"rank {ndim}"
        )
    return order


def inverse_order(order: tuple[int, ...]) -> tuple[int, ...]:
    """The order that undoes a permutation of dimensions."""
    return tuple([order.index(d) for d in range(len(order))])


def is_in_order(memory_format: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether strides, in elements, are those of a channels-last format without gaps."""
    order = CHANNELS_LAST[memory_format]
    if len(order) != len(shape):
        return False
    expected = 1
    for dim in reversed(order):
        if shape[dim] != 1 and strides[dim] != expected:
            return False
        expected *= max(shape[dim], 1)
    return True


def keeps_order(memory_format: Any) -> bool:
    """Whether a copy keeps the order of dimensions of its source, which is the default."""
    if memory_format is None or memory_format is preserve_format:
        return True
    if memory_format is contiguous_format:
        return False
    raise RuntimeError(
        "unsupported memory format: expected wengert.contiguous_format or "
        f"wengert.preserve_format here, got {memory_format!r}"
    )
