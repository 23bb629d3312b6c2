"""Fourier transforms, all of which are left to SciPy.

`fourier_loops.pyx` beside this file is the compiled form; an extension module wins at import.
"""

from __future__ import annotations

from typing import Any


def transformed(x: Any, axes: tuple[int, ...], backward: bool, scale: float) -> Any:
    """Declined: SciPy transforms complex numbers."""
    return None


def halved(x: Any, axes: tuple[int, ...], scale: float, whole: bool) -> Any:
    """Declined: SciPy transforms real numbers."""
    return None


def restored(x: Any, axes: tuple[int, ...], length: int, scale: float) -> Any:
    """Declined: SciPy transforms halves of transforms."""
    return None


def convolved(
    x: Any, kind: int, length: int, backward: bool, scale: float, table: Any
) -> Any:
    """Declined: SciPy transforms rows of any length."""
    return None
