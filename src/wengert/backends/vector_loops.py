"""Loops in C over arrays of floats, of which an uncompiled installation has none.

`vector_loops.pyx` beside this file is the compiled form.
"""

from __future__ import annotations

from typing import Any


def vector_loop(key: str) -> Any:
    """The loop of an operator, or of a gradient rule by its argument; None as there is none."""
    return None
