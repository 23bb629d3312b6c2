"""Convolutions of pictures, all of which are left to NumPy.

`window_loops.pyx` beside this file is the compiled form; an extension module wins at import.
"""

from __future__ import annotations

from typing import Any


def gather(*given: Any) -> bool:
    """Declined: NumPy multiplies views of the windows."""
    return False


def weigh(*given: Any) -> bool:
    """Declined: NumPy multiplies views of the windows."""
    return False


def spread(*given: Any) -> bool:
    """Declined: NumPy adds up windows, one place of the kernel after the other."""
    return False
