"""Sums of products that are rounded once, as processors compute them."""

from __future__ import annotations

from typing import Any

import numpy as np


def fused(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` rounded once, of float32 or float64 in `a`."""
    if a.dtype == np.float32:
        exact = a.astype(np.float64) * np.asarray(b, np.float64)
        return (exact + np.asarray(c, np.float64)).astype(np.float32)
    with np.errstate(all="ignore"):
        product, error = _product(a, np.float64(b))
        total = product + c
        virtual = total - product
        rest = (product - (total - virtual)) + (c - virtual)
        exact = total + (rest + error)
    return np.where(np.isfinite(exact), exact, total)


def _product(a: Any, b: Any) -> tuple[Any, Any]:
    """A product of float64 and what rounding took from it (Dekker's algorithm)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _halves(x: Any) -> tuple[Any, Any]:
    """Two numbers of half as many digits that sum up to `x`."""
    large = x * 134217729.0  # 2**27 + 1
    high = large - (large - x)
    return high, x - high
