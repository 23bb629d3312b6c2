"""Fourier transforms of windowed pieces of a signal, and the signal made of them again."""

from __future__ import annotations

import warnings
from typing import Any

from ..backends import meta
from ..core.tensor import Tensor
from ..transforms.batching.rules import elementwise
from .complex import view_as_real
from .declare import linear
from .fourier import FULL, NONE, ROOT, c2c, c2r, prepared, r2c
from .nn import constant_pad_nd
from .padding import continued
from .strides import add_windows, unfold

__all__ = ["istft", "stft"]


def _check_covering(xp: Any, envelope: Any) -> Any:
    if envelope.size and bool((abs(envelope).min() < 1e-11).item()):
        raise RuntimeError(
            "istft(): window overlap add min is zero: the windows do not cover every sample of the "
            "signal, so it cannot be found again"
        )
    return envelope.copy()


_covering = linear(
    "_covering(Tensor self) -> Tensor",
    _check_covering,
    lambda g: g,
    meta=lambda envelope: meta.empty(envelope.shape, envelope.dtype),
    batch=elementwise,
    raises="values",
    doc="The sum of squared windows, refused where it is zero.",
)


def _prepared_window(
    name: str, window: Tensor | None, like: Tensor, n_fft: int, length: int, mismatch: str
) -> Tensor:
    """The window in the middle of `n_fft` samples, of ones if none is given."""
    if window is None:
        warnings.warn(
            f"{name}: A window was not provided. A rectangular window will be applied, which is "
            "known to cause spectral leakage; give window=hann_window(n_fft) or another, or "
            "window=ones(n_fft) for the rectangular one",
            UserWarning,
            stacklevel=5,
        )
        window = like.new_ones((length,), dtype=like.dtype.to_real())
    elif window.array.shape != (length,):
        raise RuntimeError(f"{name}: {mismatch}, but got window with size {list(window.shape)}")
    before = (n_fft - length) // 2
    if length < n_fft:
        window = constant_pad_nd(window, (before, n_fft - length - before))
    return window


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The Fourier transforms of pieces of `n_fft` samples, `hop_length` apart, of a signal.

    Each piece is multiplied by a window first. If `center`, the signal is continued on both sides
    by `pad_mode`, so that pieces are centred at every multiple of `hop_length`. Frequencies are the
    dimension before the last, pieces the last.
    """
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if center and input.array.ndim in (1, 2):
        signal = input if input.array.ndim == 2 else input.unsqueeze(0)
        half = n_fft // 2
        if pad_mode == "constant":
            signal = constant_pad_nd(signal, (half, half))
        else:
            signal = continued(signal, 1, half, half, pad_mode)
        input = signal if input.array.ndim == 2 else signal.squeeze(0)
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    _check_stft(input, n_fft, hop, length, return_complex, window)
    window = _prepared_window(
        "stft", window, input, n_fft, length,
        f"expected a 1D window tensor of size equal to win_length={length}",
    )  # fmt: skip
    is_complex = input.is_complex() or window.is_complex()
    half_only = not is_complex if onesided is None else onesided
    if is_complex and half_only:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if align_to_window:
        before = (n_fft - length) // 2
        input = constant_pad_nd(input, (before, n_fft - length - before))
    pieces = prepared(unfold(input, -1, n_fft, hop) * window, False)
    scale = ROOT if normalized else NONE
    dims = (pieces.array.ndim - 1,)
    if is_complex:
        found = c2c.call((pieces, dims, scale, True))
    else:
        found = r2c.call((pieces, dims, scale, half_only))
    found = found.transpose(-1, -2).clone()  # a result of its own, no view
    return found if return_complex or is_complex and return_complex is None else _pairs(found)


def _pairs(found: Tensor) -> Tensor:
    warnings.warn(
        "stft with return_complex=False is deprecated: view_as_real of the complex result is the "
        "same",
        UserWarning,
        stacklevel=5,
    )
    return view_as_real(found)


def _check_stft(
    x: Tensor, n_fft: int, hop: int, length: int, return_complex: bool | None, window: Any
) -> None:
    text = f"stft(Tensor of shape {list(x.array.shape)}, {n_fft=}, hop_length={hop}, " \
           f"win_length={length}) : expected "  # fmt: skip
    is_complex = x.is_complex() or (isinstance(window, Tensor) and window.is_complex())
    if return_complex is None and not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs: give "
            "return_complex=True"
        )
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(text + "a tensor of floating point or complex values")
    if x.array.ndim not in (1, 2):
        raise RuntimeError(text + "a 1D or 2D tensor")
    samples = x.array.shape[-1]
    if not 0 < n_fft <= samples:
        raise RuntimeError(text + f"0 < n_fft < {samples}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(text + f"hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise RuntimeError(text + f"0 < win_length <= n_fft, but got win_length={length}")


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal that stft() has transformed with the same arguments, by least squares.

    Pieces are added where they overlap and divided by the sum of the squared windows; `length` is
    that of the signal, if it is not to be what the pieces show.
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    half_only = _check_istft(input, n_fft, hop, width, onesided, return_complex)
    window = _prepared_window(
        "istft", window, input, n_fft, width,
        "Invalid window shape. window has to be 1D and length of `win_length`",
    )  # fmt: skip
    if window.is_complex() and not return_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    spectra = (input.unsqueeze(0) if input.array.ndim == 2 else input).transpose(-1, -2)
    scale = ROOT if normalized else FULL
    if return_complex:
        pieces = c2c.call((spectra, (2,), scale, False))
    else:  # of the transform of a real signal, half is enough
        half = spectra if half_only else spectra.narrow(2, 0, n_fft // 2 + 1)
        pieces = c2r.call((half, (2,), scale, n_fft))
    batch, count = pieces.array.shape[:2]
    whole = n_fft + hop * (count - 1)
    signal = add_windows.call((pieces * window, (batch, whole), 1, n_fft, hop))
    squares = (window * window).expand((1, count, n_fft))
    envelope = add_windows.call((squares, (1, whole), 1, n_fft, hop))
    start = n_fft // 2 if center else 0
    if length is not None:
        end = start + length
    else:
        end = whole - n_fft // 2 if center else whole
    shown = min(end, whole) - start
    signal, envelope = signal.narrow(1, start, shown), envelope.narrow(1, start, shown)
    signal = signal / _covering.call1(envelope)
    if end > whole:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded "
            "with zeros in the tail. Please check your center and hop_length settings.",
            UserWarning,
            stacklevel=4,
        )
        signal = constant_pad_nd(signal, (0, end - whole))
    return signal.squeeze(0) if input.array.ndim == 2 else signal


def _check_istft(
    x: Tensor, n_fft: int, hop: int, width: int, onesided: bool | None, return_complex: bool
) -> bool:
    """Refuse what no stft() gives; whether the transforms are halves."""
    if not x.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with "
            "return_complex=True."
        )
    shape = x.array.shape
    text = f"istft(Tensor of shape {list(shape)}, {n_fft=}, hop_length={hop}, " \
           f"win_length={width}) : "  # fmt: skip
    if not x.array.size:
        raise RuntimeError(text + "input tensor cannot be empty.")
    if x.array.ndim not in (2, 3):
        raise RuntimeError(text + f"expected a tensor with 2 or 3 dimensions, but got {x.ndim}")
    half_only = n_fft != shape[-2] if onesided is None else onesided
    expected = n_fft // 2 + 1 if half_only else n_fft
    if shape[-2] != expected:
        what = "n_fft / 2 + 1 when onesided=True" if half_only else "n_fft when onesided=False"
        raise RuntimeError(
            text + "expected the frequency dimension (the one before the last) of the input tensor "
            f"to match {what}, but got {shape[-2]}"
        )
    if not 0 < hop <= width:
        raise RuntimeError(text + "expected 0 < hop_length <= win_length")
    if not 0 < width <= n_fft:
        raise RuntimeError(text + "expected 0 < win_length <= n_fft")
    if return_complex and half_only:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    return half_only
