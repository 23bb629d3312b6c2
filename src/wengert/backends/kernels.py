"""Kernels in C of operators and gradient rules, of which an uncompiled installation has none.

`kernels.pyx` beside this file is the compiled form.
"""

from __future__ import annotations

from typing import Any


def native_loop(key: str) -> Any:
    """What computes the operator or rule of this key on plain arrays; None if nothing does."""
    return None
