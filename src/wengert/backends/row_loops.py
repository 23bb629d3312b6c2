"""Fused loops over rows, of which an uncompiled installation has none.

`row_loops.pyx` beside this file is the compiled form. Each function answers None for operands that
it does not suit; NumPy then computes the result.
"""

from __future__ import annotations

from typing import Any


def _none(*args: Any) -> Any:
    return None


softmax = log_softmax = logsumexp = cumsum = _none
softmax_gradient = log_softmax_gradient = _none
layer_norm = layer_norm_gradient = layer_norm_weight = _none


def add_rows(out: Any, rows: Any, values: Any) -> bool:
    """Add rows of values to those of an array that are listed; False as NumPy has to do it."""
    return False
