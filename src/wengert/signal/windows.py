"""Windows of `M` samples: ``wengert.signal.windows.hann(64, sym=False)``.

A window is symmetric, or one period of a longer function if `sym` is False, as spectra need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.layouts import strided
from ..core.tensor import Tensor
from ..creation import windows as _formulas
from ..creation.factories import tensor as _tensor

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
    "general_hamming", "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


def _window(
    name: str,
    M: int,
    sym: bool,
    formula: Callable[[int], Any],
    dtype: dtypes.dtype | None,
    layout: Any,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    """The samples of a formula as a tensor."""
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    kind = dtypes.get_default_dtype() if dtype is None else dtype
    if kind not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {kind}")
    values = _formulas.sampled(M, not sym, formula)
    return _tensor(values, dtype=kind, device=device, requires_grad=requires_grad)


def _positive(what: str, value: float) -> None:
    if value <= 0:
        raise ValueError(f"{what} must be positive, got: {value} instead.")


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: dtypes.dtype | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """One at `center`, the middle if it is not given, falling by e every `tau` samples."""
    _positive("Tau", tau)
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def formula(n: int) -> Any:
        middle = (n - 1) / 2 if center is None else center
        return np.exp(-np.abs(np.arange(n) - middle) / tau)

    return _window("exponential", M, sym, formula, dtype, layout, device, requires_grad)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: dtypes.dtype | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The positive half of a sine, at the middle of each sample."""

    def formula(n: int) -> Any:
        return np.sin(np.pi * (np.arange(n) + 0.5) / n)

    return _window("cosine", M, sym, formula, dtype, layout, device, requires_grad)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: dtypes.dtype | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The bell curve with a standard deviation of `std` samples, one in the middle."""
    _positive("Standard deviation", std)

    def formula(n: int) -> Any:
        return np.exp(-(((np.arange(n) - (n - 1) / 2) / std) ** 2) / 2)

    return _window("gaussian", M, sym, formula, dtype, layout, device, requires_grad)


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: dtypes.dtype | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The window of Kaiser; `beta` trades the width of the main lobe for the height of others."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _window(
        "kaiser", M, sym, lambda n: _formulas.kaiser(n, beta), dtype, layout, device, requires_grad
    )


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: dtypes.dtype | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The triangle from zero to one and back to zero."""
    return _window("bartlett", M, sym, _formulas.bartlett, dtype, layout, device, requires_grad)


def general_cosine(
    M: int,
    *,
    a: Iterable,
    sym: bool = True,
    dtype: dtypes.dtype | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A sum of cosines of no, one, two ... periods with the weights `a` and alternating signs."""
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    return _window(
        "general_cosine", M, sym, lambda n: _formulas.general_cosine(n, weights), dtype, layout,
        device, requires_grad,
    )  # fmt: skip


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: dtypes.dtype | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A cosine of height ``1 - alpha`` raised by `alpha`."""
    return general_cosine(
        M, a=(alpha, 1 - alpha), sym=sym, dtype=dtype, layout=layout, device=device,
        requires_grad=requires_grad,
    )  # fmt: skip


def _sum_of_cosines(name: str, weights: tuple[float, ...], doc: str) -> Callable[..., Tensor]:
    """A window that is a sum of cosines with given weights."""

    def window(
        M: int,
        *,
        sym: bool = True,
        dtype: dtypes.dtype | None = None,
        layout: Any = strided,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        return general_cosine(
            M, a=weights, sym=sym, dtype=dtype, layout=layout, device=device,
            requires_grad=requires_grad,
        )  # fmt: skip

    window.__name__ = window.__qualname__ = name
    window.__doc__ = doc
    return window


hann = _sum_of_cosines(
    "hann", _formulas.HANN, "The raised cosine, from zero to one and back to zero."
)
hamming = _sum_of_cosines(
    "hamming", _formulas.HAMMING, "A raised cosine that does not reach zero."
)
blackman = _sum_of_cosines(
    "blackman", _formulas.BLACKMAN, "A sum of three cosines, with low side lobes."
)
nuttall = _sum_of_cosines(
    "nuttall", _formulas.NUTTALL, "A sum of four cosines, with the lowest side lobes."
)
