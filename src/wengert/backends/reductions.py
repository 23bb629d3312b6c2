"""Reductions by loops in C, of which an uncompiled installation has none.

`reductions.pyx` beside this file is the compiled form.
"""

from __future__ import annotations

from typing import Any

SUM, SQUARES, LARGEST, LEAST, PRODUCT = range(5)


def reduce_all(x: Any, is_mean: bool) -> Any:
    """The sum of all elements, or their mean; None where NumPy has to do it."""
    return None


def reduce(kind: int, x: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    """The reduction of an array over neighbouring dimensions; None where NumPy has to do it."""
    return None
