"""Determinants, and their signs and logarithms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends import meta, systems
from ..core.tensor import Tensor
from ..return_types import linalg_slogdet
from ..transforms.batching.rules import leading
from .declare import primitive
from .linalg_kernels import check_square, into, real_dtype
from .linalg_solving import inverse_of
from .pointwise import log, where

__all__ = []


def _det(xp: Any, a: Any) -> Any:
    check_square("linalg.det", a)
    found = systems.determinants(a, False)
    return xp.asarray(xp.linalg.det(a)) if found is None else found


def _det_meta(a: Any) -> Any:
    check_square("linalg.det", a)
    return meta.empty(a.shape[:-2], a.dtype)


def _cofactors(xp: Any, a: Any) -> Any:
    """The gradient of the determinant, conj(det A) A^-H, which exists for singular matrices too."""
    det = xp.linalg.det(a)
    singular = (det == 0)[..., None, None]
    if not singular.any().item():
        return xp.conj(det)[..., None, None] * _adjoint(xp, xp.linalg.inv(a))
    u, s, vh = xp.linalg.svd(xp.where(singular, a, xp.eye(a.shape[-1], dtype=a.dtype)))
    others = xp.where(xp.eye(s.shape[-1], dtype=bool), 1, s[..., None, :]).prod(-1)
    phase = xp.conj(xp.linalg.det(u) * xp.linalg.det(vh))[..., None, None]
    regular = xp.where(singular, xp.eye(a.shape[-1], dtype=a.dtype), a)
    return xp.where(
        singular,
        phase * ((u * others[..., None, :]) @ vh),
        xp.conj(det)[..., None, None] * _adjoint(xp, xp.linalg.inv(regular)),
    ).astype(a.dtype, copy=False)


def _adjoint(xp: Any, x: Any) -> Any:
    return xp.conj(x.swapaxes(-1, -2))


def on_matrices(x: Tensor) -> Tensor:
    """Numbers, one for each matrix, in the shape in which they multiply matrices."""
    return x.unsqueeze(-1).unsqueeze(-1)


def _trace_of_product(x: Tensor, y: Tensor) -> Tensor:
    """The sum of the elementwise products of matrices, the first conjugated."""
    return (x.conj() * y).sum((-2, -1))


def _cofactors_gradient(g: Tensor, A: Tensor, out: Tensor) -> Tensor:
    adjoint = inverse_of(A).mH
    return on_matrices(_trace_of_product(g, out)) * adjoint - adjoint @ g.mH @ out


def _cofactors_tangent(t: Tensor, A: Tensor, out: Tensor) -> Tensor:
    adjoint = inverse_of(A).mH
    return on_matrices(_trace_of_product(adjoint, t).conj()) * out - out @ t.mH @ adjoint


_cofactor_matrices = primitive(
    "_linalg_cofactors(Tensor A) -> Tensor",
    _cofactors,
    _cofactors_gradient,
    lambda tangents, A, out: _cofactors_tangent(tangents["A"], A, out),
    widens=False,
    meta=lambda a: meta.empty(a.shape, a.dtype),
    batch=leading,
    cost="slow",
    doc="The gradients of determinants.",
)

det = primitive(
    "linalg_det(Tensor A) -> Tensor",
    _det,
    lambda g, A: on_matrices(g) * _cofactor_matrices.call1(A),
    lambda tangents, A: _trace_of_product(_cofactor_matrices.call1(A), tangents["A"]),
    widens=False,
    meta=_det_meta,
    batch=leading,
    name="LinalgDetBackward0",
    public="",
    aliases={"input": "A"},
    cost="slow",
    doc="Determinants of square matrices.",
)


def _slogdet(xp: Any, a: Any) -> Any:
    check_square("linalg.slogdet", a)
    sign, size = systems.determinants(a, True) or xp.linalg.slogdet(a)
    return xp.asarray(sign), xp.asarray(size)


def _slogdet_meta(a: Any) -> Any:
    check_square("linalg.slogdet", a)
    shape = a.shape[:-2]
    return meta.empty(shape, a.dtype), meta.empty(shape, real_dtype(a.dtype))


def _slogdet_gradient(g: list, A: Tensor, sign: Tensor) -> Tensor | None:
    by_sign, by_size = g
    weight = by_size
    if A.is_complex() and by_sign is not None:
        turned = (by_sign.conj() * sign).imag * -1j
        weight = turned if by_size is None else by_size + turned
    return None if weight is None else on_matrices(weight) * inverse_of(A).mH


def _slogdet_tangent(t: Tensor, A: Tensor, sign: Tensor) -> tuple:
    rate = _trace_of_product(inverse_of(A).mH, t)
    if not A.is_complex():
        return sign * 0, rate
    return rate.imag * 1j * sign, rate.real


slogdet_operator = primitive(
    "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
    _slogdet,
    lambda g, A, out0: _slogdet_gradient(g, A, out0),
    lambda tangents, A, out0: _slogdet_tangent(tangents["A"], A, out0),
    undefined=True,
    widens=False,
    meta=_slogdet_meta,
    batch=leading,
    name="LinalgSlogdetBackward0",
    public="",
    aliases={"input": "A"},
    cost="slow",
    doc="Signs of determinants, and the logarithms of their absolute values.",
)


def logdet(input: Tensor) -> Tensor:
    """The logarithms of determinants; NaN where a real one is negative."""
    sign, size = slogdet_operator.call1(input)
    if input.is_complex():
        return log(sign) + size
    return where(sign == -1, np.nan, size)


def slogdet(A: Tensor, *, out: Any = None) -> Any:
    """Signs of determinants, and the logarithms of their absolute values."""
    return into("linalg_slogdet", linalg_slogdet(slogdet_operator.call1(A)), out)
