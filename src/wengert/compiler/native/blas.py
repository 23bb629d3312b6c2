"""Products of matrices of the library that NumPy is linked with, found by name."""

from __future__ import annotations

import ctypes
import functools
import glob
import os
from typing import Any

import numpy as np

from ...core.scalar.expressions import Unsupported

#: Names of the two products, and the bits of their integers.
_NAMES = (
    ("scipy_cblas_sgemm64_", "scipy_cblas_dgemm64_", 64),
    ("cblas_sgemm64_", "cblas_dgemm64_", 64),
    ("scipy_cblas_sgemm", "scipy_cblas_dgemm", 32),
    ("cblas_sgemm", "cblas_dgemm", 32),
)


_THREADS = tuple(
    (f"{prefix}openblas_get_num_threads{suffix}", f"{prefix}openblas_set_num_threads{suffix}")
    for prefix in ("scipy_", "")
    for suffix in ("64_", "")
)


@functools.cache
def _found() -> tuple[int, int, int, Any] | None:
    """The addresses of both products, the bits of their integers, and the library."""
    folder = os.path.dirname(np.__file__)
    places = [
        *glob.glob(os.path.join(folder + ".libs", "*openblas*")),
        *glob.glob(os.path.join(folder, ".dylibs", "*openblas*")),
    ]
    for place in places:
        try:
            library = ctypes.CDLL(place)
        except OSError:
            continue
        for single, double, bits in _NAMES:
            if hasattr(library, single) and hasattr(library, double):
                addresses = [
                    ctypes.cast(getattr(library, name), ctypes.c_void_p).value
                    for name in (single, double)
                ]
                return addresses[0] or 0, addresses[1] or 0, bits, library
    return None


@functools.cache
def thread_setting() -> tuple[int, int]:
    """Addresses of what gets and sets the number of BLAS's threads; zeros if not found."""
    found = _found()
    library = found[3] if found is not None else None
    for get, put in _THREADS:
        if hasattr(library, get) and hasattr(library, put):
            addresses = [
                ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
                for name in (get, put)
            ]
            return addresses[0], addresses[1]
    return 0, 0


def is_found() -> bool:
    return _found() is not None


def require() -> None:
    """Raise where there is no product to call; the operator is then called as it is."""
    if not is_found():
        raise Unsupported("NumPy's BLAS was not found")


def address(kind: str) -> int:
    found = _found()
    assert found is not None
    return found[kind == "f64"]


def integer_bits() -> int:
    found = _found()
    assert found is not None
    return found[2]
