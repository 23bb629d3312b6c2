"""Windows for spectra: hann_window and its kind, by formulas that `wengert.signal` shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends.casting import retype
from ..core import dtypes
from ..core.size import whole
from ..dispatch.overridable import Overridable
from .declare import OPTIONS, Blank, maker

# Formulas: arrays of doubles of `n` samples, the first and last of which are mirror images.


def general_cosine(n: int, coefficients: Any) -> Any:
    """A sum of cosines with alternating signs, of no, one, two ... periods."""
    phase = 2 * np.pi * np.arange(n) / max(n - 1, 1)
    return sum((-1) ** k * a * np.cos(k * phase) for k, a in enumerate(coefficients))


def bartlett(n: int) -> Any:
    """A triangle that begins and ends with zero."""
    return 1 - np.abs(2 * np.arange(n) / max(n - 1, 1) - 1)


def kaiser(n: int, beta: float) -> Any:
    """The window of which the largest part of the energy is in the main lobe, nearly."""
    place = 2 * np.arange(n) / max(n - 1, 1) - 1
    return np.i0(beta * np.sqrt(np.maximum(1 - place * place, 0))) / np.i0(beta)


#: Weights of the cosines of windows that are sums of them.
HANN = (0.5, 0.5)
HAMMING = (0.54, 0.46)
BLACKMAN = (0.42, 0.5, 0.08)
NUTTALL = (0.3635819, 0.4891775, 0.1365995, 0.0106411)


def sampled(n: int, periodic: bool, formula: Callable[[int], Any]) -> Any:
    """Samples of a formula; `periodic` ones lack the last, which would be the first again."""
    if n < 2:
        return np.ones(n)
    return formula(n + 1)[:-1] if periodic else formula(n)


def _window(blank: Blank, window_length: Any, periodic: bool, formula: Callable) -> Any:
    name = blank.function
    count = whole(name, "window_length", window_length)
    if count < 0:
        raise RuntimeError(
            f"{name} requires non-negative window_length, got window_length={count}"
        )
    kind = blank.dtype()
    if kind.category != dtypes.FLOATING:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {kind.scalar_name}")
    return blank.moved(retype(sampled(count, periodic, formula), kind))


def _declared(*schemas: str) -> Callable[[Callable[..., Any]], Overridable]:
    """A maker with or without being told whether the window is `periodic`."""
    name = schemas[0]
    texts = [f"{name}(int window_length, *, {OPTIONS}) -> Tensor"] + [
        f"{name}.{overload}, *, {OPTIONS}) -> Tensor"
        for overload in ("periodic(int window_length, bool periodic", *schemas[1:])
    ]
    declare = maker(*texts, without=("out",))
    return lambda kernel: Overridable(declare(kernel), name=name)


@_declared("hann_window")
def hann_window(blank: Blank, window_length: int, periodic: bool = True) -> Any:
    """The raised cosine, from zero up to one and down, `periodic` or symmetric."""
    return _window(blank, window_length, periodic, lambda n: general_cosine(n, HANN))


@_declared(
    "hamming_window",
    "periodic_alpha(int window_length, bool periodic, float alpha",
    "periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta",
)
def hamming_window(
    blank: Blank,
    window_length: int,
    periodic: bool = True,
    alpha: float = HAMMING[0],
    beta: float = HAMMING[1],
) -> Any:
    """The cosine of height `beta` raised by `alpha`, which does not reach zero."""
    return _window(blank, window_length, periodic, lambda n: general_cosine(n, (alpha, beta)))


@_declared("blackman_window")
def blackman_window(blank: Blank, window_length: int, periodic: bool = True) -> Any:
    """A sum of three cosines with low side lobes, `periodic` or symmetric."""
    return _window(blank, window_length, periodic, lambda n: general_cosine(n, BLACKMAN))


@_declared("bartlett_window")
def bartlett_window(blank: Blank, window_length: int, periodic: bool = True) -> Any:
    """The triangle from zero up to one and down, `periodic` or symmetric."""
    return _window(blank, window_length, periodic, bartlett)


@_declared("kaiser_window", "beta(int window_length, bool periodic, float beta")
def kaiser_window(
    blank: Blank, window_length: int, periodic: bool = True, beta: float = 12.0
) -> Any:
    """The window of Kaiser, whose main lobe is the wider and whose others are lower with `beta`."""
    return _window(blank, window_length, periodic, lambda n: kaiser(n, beta))
