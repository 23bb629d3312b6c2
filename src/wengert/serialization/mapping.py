"""How files are mapped into memory."""

from __future__ import annotations

import mmap
from typing import Any

#: Changes of mapped tensors stay in this process; with MAP_SHARED they change the file.
_flags = mmap.MAP_PRIVATE


def get_default_mmap_options() -> int:
    """How ``load(..., mmap=True)`` maps a file: ``mmap.MAP_PRIVATE`` unless set otherwise."""
    return _flags


class set_default_mmap_options:
    """Sets how files are mapped, at once; as a context manager, until the end of its block."""

    def __init__(self, flags: int) -> None:
        global _flags
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected "
                f"mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}"
            )
        self.before = _flags
        _flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        global _flags
        _flags = self.before


def mapped(path: Any) -> mmap.mmap:
    """A file as memory that can be written to, by copy on write unless the options say shared."""
    shared = _flags == mmap.MAP_SHARED
    with open(path, "r+b" if shared else "rb") as file:
        return mmap.mmap(
            file.fileno(), 0, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        )
