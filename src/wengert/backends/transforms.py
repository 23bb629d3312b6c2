"""Fourier transforms of NumPy arrays by loops of our own or by SciPy's pocketfft.

Contiguous arrays along lengths that are powers of two are transformed in C, and so are rows of
lengths with a large prime factor, where that is quicker. Others are pocketfft's, called without
SciPy's public functions, which take several times as long as a short transform itself. Where the
function below them is not found, or an array is empty or unaligned, the public ones serve.
"""

from __future__ import annotations

import math
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from scipy import fft

from ..core.pool import thread_count
from . import fourier_loops

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


#: Kinds of `fourier_loops.convolved`.
_COMPLEX, _HALF, _WHOLE, _RESTORED = range(4)


@lru_cache(64)
def _is_convolved(length: int) -> bool:
    """Whether a transform of this length is a convolution of a power of two places.

    That is measured to be quicker where a prime factor is large, unless the power of two is far
    from what is needed.
    """
    rest, factor = length, 2
    while factor * factor <= rest:
        if rest % factor:
            factor += 1
        else:
            rest //= factor
    return rest >= 100 and rest * rest > length and 2 * _places(length) < 3 * (2 * length - 1)


def _places(length: int) -> int:
    """The power of two of places that a convolution of rows with a chirp needs."""
    return 1 << (2 * length - 2).bit_length()


@lru_cache(32)
def _chirps(length: int, dtype: Any) -> Any:
    """What Bluestein's way multiplies by: real and imaginary parts of a chirp, and those of the
    transform of its inverse."""
    size, places = _places(length), np.arange(length)
    wave = np.exp(-1j * np.pi * (places * places % (2 * length)) / length)
    inverse = np.zeros(size, complex)
    inverse[:length] = wave.conj()
    inverse[size - length + 1 :] = wave[:0:-1].conj()
    turned = np.fft.fft(inverse) / size
    return np.concatenate([wave.real, wave.imag, turned.real, turned.imag]).astype(dtype)


def _convolved(
    x: Any, axes: tuple[int, ...], kind: int, length: int, forward: bool, scale: float
) -> Any:
    """The transform of rows as a convolution, or None where that is not for this length."""
    if axes != (x.ndim - 1,) or not x.size or not _is_convolved(length):
        return None
    single = x.dtype.itemsize == (8 if x.dtype.kind == "c" else 4)
    table = _chirps(length, np.float32 if single else np.float64)
    return fourier_loops.convolved(x, kind, length, not forward, scale, table)


def _threads(x: Any) -> int:
    return thread_count() if x.size >= LARGE else 1


def _factor(x: Any, axes: tuple[int, ...], forward: bool, norm: str, last: int = 0) -> float:
    """By what a transform is multiplied, `last` the length of its last axis if it is another."""
    code = _SCALES[forward, norm]
    if not code:
        return 1.0
    count = math.prod([x.shape[axis] for axis in axes])
    if last:
        count = count // x.shape[axes[-1]] * last
    return 1 / count if code == 2 else 1 / math.sqrt(count)


def _is_plain(x: Any) -> bool:
    return pocketfft is not None and x.size > 0 and x.flags.aligned and x.dtype.isnative


def fftn(x: Any, axes: tuple[int, ...], norm: str) -> Any:
    """The transform along axes, of real or complex numbers."""
    scale, is_complex = _factor(x, axes, True, norm), x.dtype.kind == "c"
    if is_complex:
        found = fourier_loops.transformed(x, axes, False, scale)
    else:
        found = fourier_loops.halved(x, axes, scale, True)
    if found is None:
        kind = _COMPLEX if is_complex else _WHOLE
        found = _convolved(x, axes, kind, x.shape[axes[-1]], True, scale)
    if found is not None:
        return found
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
    scale = _factor(x, axes, False, norm)
    found = fourier_loops.transformed(x, axes, True, scale)
    if found is None:
        found = _convolved(x, axes, _COMPLEX, x.shape[axes[-1]], False, scale)
    if found is not None:
        return found
    if not _is_plain(x):
        return fft.ifftn(x, axes=axes, norm=norm)
    return pocketfft.c2c(x, axes, False, _SCALES[False, norm], None, _threads(x))


def rfftn(x: Any, axes: tuple[int, ...], norm: str) -> Any:
    """Half of the transform of real numbers."""
    scale = _factor(x, axes, True, norm)
    found = fourier_loops.halved(x, axes, scale, False)
    if found is None:
        found = _convolved(x, axes, _HALF, x.shape[axes[-1]], True, scale)
    if found is not None:
        return found
    if not _is_plain(x):
        return fft.rfftn(x, axes=axes, norm=norm)
    return pocketfft.r2c(x, axes, True, _SCALES[True, norm], None, _threads(x))


def irfftn(x: Any, sizes: list[int], axes: tuple[int, ...], norm: str) -> Any:
    """The real numbers of which half a transform is given, whose last axis had the last size."""
    factor = _factor(x, axes, False, norm, sizes[-1])
    found = fourier_loops.restored(x, axes, sizes[-1], factor)
    if found is None and x.shape[axes[-1]] == sizes[-1] // 2 + 1:
        found = _convolved(x, axes, _RESTORED, sizes[-1], False, factor)
    if found is not None:
        return found
    if not _is_plain(x):
        return fft.irfftn(x, sizes, axes=axes, norm=norm)
    return pocketfft.c2r(x, axes, sizes[-1], False, _SCALES[False, norm], None, _threads(x))
