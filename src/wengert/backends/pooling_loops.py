"""The largest elements of windows of pictures, all of which are left to NumPy.

`pooling_loops.pyx` beside this file is the compiled form; an extension module wins at import.
"""

from __future__ import annotations

from typing import Any


def largest(
    x: Any,
    kernel: tuple[int, ...],
    sizes: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
) -> Any:
    """Declined: NumPy compares views of the elements of windows."""
    return None


def spread(g: Any, indices: Any, size: tuple[int, ...]) -> Any:
    """Declined: NumPy adds elements at places."""
    return None
