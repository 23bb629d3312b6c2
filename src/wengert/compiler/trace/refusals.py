"""Why a function cannot be traced, with the line of the program where that shows."""

from __future__ import annotations

import functools
import linecache
import sys
from typing import Any

from ...core import PACKAGE_FOLDER


class TraceError(RuntimeError):
    """The function cannot be traced; the message shows the line of the program."""


class SharedMemory(TraceError):
    """The function uses that tensors share memory in a way which a graph cannot express."""


class Effect(TraceError):
    """The function changes something besides its results and the elements of tensors."""


def where() -> str:
    """The line of the program that is running, outside of this package."""
    frame: Any = sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE_FOLDER):
        frame = frame.f_back
    if frame is None:
        return ""
    return _line(frame.f_code.co_filename, frame.f_lineno)


@functools.lru_cache(256)
def _line(name: str, line: int) -> str:
    return f"{name}:{line}: {linecache.getline(name, line).strip()}"
