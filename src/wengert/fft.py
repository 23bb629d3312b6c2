"""Fourier transforms: ``wengert.fft.rfft(signal)``.

All take the length `n` or lengths `s` to which the input is cut or padded by zeros, the dimensions,
and `norm`: "backward" scales the inverse, "forward" the transform, "ortho" both by the root.
"""

from __future__ import annotations

from typing import Any

from .core import dtypes
from .core.layouts import strided as _strided
from .core.tensor import Tensor
from .creation.factories import tensor as _tensor
from .dispatch.out import copy_to_out
from .dispatch.overridable import Overridable
from .operators import fourier as _fourier

_Sizes = int | list[int] | tuple[int, ...] | None

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2",
    "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2",
    "rfftfreq", "rfftn",
]  # fmt: skip


def _into(name: str, result: Tensor, out: Tensor | None) -> Tensor:
    if out is None:
        return result
    if isinstance(out, Tensor) and out.is_complex() and not result.is_complex():
        raise RuntimeError(
            f"{name[4:]} expects a floating point output tensor, but got {out.dtype.scalar_name}"
        )
    return copy_to_out(name, result, out)


def _length(n: int | None) -> Any:
    return None if n is None else (n,)


def _line(input: Tensor, dim: int) -> int:
    return _fourier.one_dim(input, dim)


def _real(name: str, input: Tensor) -> Tensor:
    if input.is_complex():
        raise RuntimeError(
            f"{name} expects a real input tensor, but got {input.dtype.scalar_name}"
        )
    return input


def _hermitian(name: str, x: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    """The transform of a half of a Hermitian tensor."""
    return _fourier.restored(name, x, s, dim, _fourier.reversed_norm(norm), conjugated=True)


def fft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The Fourier transform along one dimension."""
    return _into("fft_fft", _fourier.transformed_line(input, n, dim, norm, True), out)


def fft2(
    input: Tensor,
    s: _Sizes = None,
    dim: Any = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The Fourier transform along two dimensions."""
    return _into("fft_fft2", _fourier.transformed(input, s, dim, norm, True), out)


def fftn(
    input: Tensor,
    s: _Sizes = None,
    dim: _Sizes = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The Fourier transform along some or all dimensions."""
    return _into("fft_fftn", _fourier.transformed(input, s, dim, norm, True), out)


def ifft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse Fourier transform along one dimension."""
    return _into("fft_ifft", _fourier.transformed_line(input, n, dim, norm, False), out)


def ifft2(
    input: Tensor,
    s: _Sizes = None,
    dim: Any = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse Fourier transform along two dimensions."""
    return _into("fft_ifft2", _fourier.transformed(input, s, dim, norm, False), out)


def ifftn(
    input: Tensor,
    s: _Sizes = None,
    dim: _Sizes = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse Fourier transform along some or all dimensions."""
    return _into("fft_ifftn", _fourier.transformed(input, s, dim, norm, False), out)


def rfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The half of the Fourier transform of a real tensor along one dimension."""
    result = _fourier.halved("rfftn", _real("rfft", input), _length(n), _line(input, dim), norm)
    return _into("fft_rfft", result, out)


def rfft2(
    input: Tensor,
    s: _Sizes = None,
    dim: Any = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The half of the Fourier transform of a real tensor along two dimensions."""
    return _into("fft_rfft2", _fourier.halved("rfftn", input, s, dim, norm), out)


def rfftn(
    input: Tensor,
    s: _Sizes = None,
    dim: _Sizes = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The half of the Fourier transform of a real tensor along some or all dimensions."""
    return _into("fft_rfftn", _fourier.halved("rfftn", input, s, dim, norm), out)


def irfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The real tensor whose Fourier transform along one dimension is given by a half."""
    result = _fourier.restored("irfftn", input, _length(n), _line(input, dim), norm)
    return _into("fft_irfft", result, out)


def irfft2(
    input: Tensor,
    s: _Sizes = None,
    dim: Any = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The real tensor whose Fourier transform along two dimensions is given by a half."""
    return _into("fft_irfft2", _fourier.restored("irfftn", input, s, dim, norm), out)


def irfftn(
    input: Tensor,
    s: _Sizes = None,
    dim: _Sizes = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The real tensor whose Fourier transform along some or all dimensions is given by a half."""
    return _into("fft_irfftn", _fourier.restored("irfftn", input, s, dim, norm), out)


def hfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The real transform along one dimension of a Hermitian tensor, given by a half."""
    result = _hermitian("hfftn", input, _length(n), _line(input, dim), norm)
    return _into("fft_hfft", result, out)


def hfft2(
    input: Tensor,
    s: _Sizes = None,
    dim: Any = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The real transform along two dimensions of a Hermitian tensor, given by a half."""
    return _into("fft_hfft2", _hermitian("hfftn", input, s, dim, norm), out)


def hfftn(
    input: Tensor,
    s: _Sizes = None,
    dim: _Sizes = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The real transform along some or all dimensions of a Hermitian tensor, given by a half."""
    return _into("fft_hfftn", _hermitian("hfftn", input, s, dim, norm), out)


def ihfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The half of the inverse Fourier transform along one dimension of a real tensor."""
    real, line = _real("ihfft", input), _line(input, dim)
    result = _fourier.halved_inverse("ihfftn", real, _length(n), line, norm)
    return _into("fft_ihfft", result, out)


def ihfft2(
    input: Tensor,
    s: _Sizes = None,
    dim: Any = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The half of the inverse Fourier transform along two dimensions of a real tensor."""
    return _into("fft_ihfft2", _fourier.halved_inverse("ihfftn", input, s, dim, norm), out)


def ihfftn(
    input: Tensor,
    s: _Sizes = None,
    dim: _Sizes = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The half of the inverse Fourier transform along some or all dimensions of a real tensor."""
    return _into("fft_ihfftn", _fourier.halved_inverse("ihfftn", input, s, dim, norm), out)


def fftshift(input: Tensor, dim: _Sizes = None) -> Tensor:
    """The tensor with its zero frequencies moved to the middle."""
    return _fourier.rolled_by_half(input, dim, False)


def ifftshift(input: Tensor, dim: _Sizes = None) -> Tensor:
    """What fftshift() has moved, moved back."""
    return _fourier.rolled_by_half(input, dim, True)


def _frequencies(n: int, d: float, half: bool, out: Any, options: dict[str, Any]) -> Tensor:
    if options.pop("layout", None) not in (None, _strided):
        raise RuntimeError("fftfreq(): only strided tensors are supported")
    requires_grad = options.pop("requires_grad", False)
    dtype = options.pop("dtype", None) or dtypes.get_default_dtype()
    result = _tensor(_fourier.frequencies(n, d, half), dtype=dtype, **options)
    if out is not None:
        return copy_to_out("rfftfreq" if half else "fftfreq", result, out)
    return result.requires_grad_(requires_grad)


def fftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, **options: Any) -> Tensor:
    """The frequencies that the elements of fft() of `n` samples, `d` apart, stand for."""
    return _frequencies(n, d, False, out, options)


def rfftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, **options: Any) -> Tensor:
    """The frequencies that the elements of rfft() of `n` samples, `d` apart, stand for."""
    return _frequencies(n, d, True, out, options)


def _make_overridable() -> None:
    """Let classes and modes override what is defined above."""
    for name in __all__:
        globals()[name] = Overridable(globals()[name], module=__name__, name=name)


_make_overridable()
