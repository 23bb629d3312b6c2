"""Memory layouts and memory formats that programs name; all memory here is dense and strided."""

from __future__ import annotations

from typing import Any


class _Named:
    """An object that a program knows by its name in the package."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"wengert.{self.name}"

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


def check_options(layout: Any, pin_memory: bool) -> None:
    """Refuse a storage that does not exist: sparse layouts and pinned memory."""
    if layout is not None and layout is not strided:
        raise TypeError(f"argument 'layout' must be None or wengert.strided, not {layout!r}")
    if pin_memory:
        raise RuntimeError("pin_memory=True is not supported: arrays live in ordinary memory")


def keeps_order(memory_format: Any) -> bool:
    """Whether a copy keeps the order of dimensions of its source, which is the default."""
    if memory_format is None or memory_format is preserve_format:
        return True
    if memory_format is contiguous_format:
        return False
    raise RuntimeError(
        "unsupported memory format: expected wengert.contiguous_format or "
        f"wengert.preserve_format, got {memory_format!r}"
    )
