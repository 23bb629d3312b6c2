"""Small real matrices, all of which are left to NumPy.

`systems.pyx` beside this file is the compiled form; an extension module wins at import.
"""

from __future__ import annotations

from typing import Any


def solved(a: Any, b: Any) -> Any:
    """Declined: NumPy solves equations and computes inverses."""
    return None


def determinants(a: Any, logarithmic: bool) -> Any:
    """Declined: NumPy computes determinants."""
    return None


def cholesky(a: Any) -> Any:
    """Declined: NumPy computes Cholesky factors."""
    return None


def factored(a: Any) -> Any:
    """Declined: LAPACK computes LU factors."""
    return None


def spectra(a: Any, upper: bool, with_vectors: bool) -> Any:
    """Declined: NumPy computes eigenvalues and eigenvectors."""
    return None
