"""Fourier transforms of NumPy arrays by SciPy's pocketfft, called without what surrounds it.

SciPy's public functions take several times as long as a short transform itself. Where the function
below them is not found, or an array is empty or unaligned, the public ones serve.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from scipy import fft

from ..core.pool import thread_count

try:
    pocketfft: Any = import_module("scipy.fft._pocketfft.pypocketfft")
except ImportError:  # another version of SciPy
    pocketfft = None

#: From so many elements on, several threads transform one array.
LARGE = 1 << 16
#: The numbers that pocketfft has for scales: none, by the root of the length, by the length.
_SCALES = {
    (True, "backward"): 0, (True, "ortho"): 1, (True, "forward"): 2,
    (False, "backward"): 2, (False, "ortho"): 1, (False, "forward"): 0,
}  # fmt: skip


def _threads(x: Any) -> int:
    return thread_count() if x.size >= LARGE else 1


def _is_plain(x: Any) -> bool:
    return pocketfft is not None and x.size > 0 and x.flags.aligned and x.dtype.isnative


def fftn(x: Any, axes: tuple[int, ...], norm: str) -> Any:
    """The transform along axes, of real or complex numbers."""
    if not _is_plain(x):
        return fft.fftn(x, axes=axes, norm=norm)
    if x.size >= LARGE and x.dtype.kind == "f" and axes == (x.ndim - 1,):
        return _mirrored(x, axes, norm)
    return pocketfft.c2c(x, axes, True, _SCALES[True, norm], None, _threads(x))


def _mirrored(x: Any, axes: tuple[int, ...], norm: str) -> Any:
    """The transform of real rows: half of it is computed, and the other half its mirror image."""
    length = x.shape[-1]
    middle = length // 2 + 1
    out = np.empty(x.shape, np.result_type(x.dtype, np.complex64))
    pocketfft.r2c(x, axes, True, _SCALES[True, norm], out[..., :middle], _threads(x))
    np.conjugate(out[..., (length + 1) // 2 - 1 : 0 : -1], out=out[..., middle:])
    return out


def ifftn(x: Any, axes: tuple[int, ...], norm: str) -> Any:
    """The inverse transform along axes."""
    if not _is_plain(x):
        return fft.ifftn(x, axes=axes, norm=norm)
    return pocketfft.c2c(x, axes, False, _SCALES[False, norm], None, _threads(x))


def rfftn(x: Any, axes: tuple[int, ...], norm: str) -> Any:
    """Half of the transform of real numbers."""
    if not _is_plain(x):
        return fft.rfftn(x, axes=axes, norm=norm)
    return pocketfft.r2c(x, axes, True, _SCALES[True, norm], None, _threads(x))


def irfftn(x: Any, sizes: list[int], axes: tuple[int, ...], norm: str) -> Any:
    """The real numbers of which half a transform is given, whose last axis had the last size."""
    if not _is_plain(x):
        return fft.irfftn(x, sizes, axes=axes, norm=norm)
    return pocketfft.c2r(x, axes, sizes[-1], False, _SCALES[False, norm], None, _threads(x))
