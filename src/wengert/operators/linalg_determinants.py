"""Determinants, and their signs and logarithms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..backends import meta, systems
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..return_types import linalg_slogdet
from ..transforms.batching.rules import leading
from .declare import primitive
from .diagonals import diag_embed
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


#: Below this share of the product of its rows' lengths a determinant is nearly zero.
_NEARLY_SINGULAR = 1e-5
_MOST_ROWS = 10  # of a singular matrix whose determinant is differentiated three times


def _along(xp: Any, a: Any, t: Any) -> Any:
    """How cofactors change along `t`, by the inverse, or by singular values where there is none."""
    det = xp.linalg.det(a)
    lengths = xp.sqrt((xp.abs(a) ** 2).sum(-1)).prod(-1)
    singular = (xp.abs(det) <= _NEARLY_SINGULAR * lengths)[..., None, None]
    regular = xp.where(singular, xp.eye(a.shape[-1], dtype=a.dtype), a)
    b = _adjoint(xp, xp.linalg.inv(regular))
    trace = (b * xp.conj(t)).sum((-2, -1))[..., None, None]
    out = xp.conj(det)[..., None, None] * (trace * b - b @ _adjoint(xp, t) @ b)
    if singular.any().item():
        out = xp.where(singular, _along_singular(xp, a, t), out)
    return out.astype(a.dtype, copy=False)


def _along_singular(xp: Any, a: Any, t: Any) -> Any:
    """The change in the frame of singular vectors, where it is a sum of products of values."""
    u, s, vh = xp.linalg.svd(a)
    turned = _adjoint(xp, u) @ t @ _adjoint(xp, vh)
    others = _products_of_others(xp, s).astype(a.dtype, copy=False)
    diagonal = xp.diagonal(turned, axis1=-2, axis2=-1)
    total = (others @ xp.conj(diagonal)[..., None])[..., 0]
    inner = xp.where(
        xp.eye(s.shape[-1], dtype=bool), total[..., None, :], -others * _adjoint(xp, turned)
    )
    phase = xp.conj(xp.linalg.det(u) * xp.linalg.det(vh))[..., None, None]
    return phase * (u @ inner @ vh)


def _products_of_others(xp: Any, s: Any) -> Any:
    """For each two of the values the product of all others, zero on the diagonal.

    It is that of those before the first, between the two, and after the second.
    """
    n = s.shape[-1]
    one = xp.ones_like(s[..., :1])
    before = xp.cumprod(xp.concatenate([one, s[..., :-1]], axis=-1), axis=-1)
    after = xp.cumprod(xp.concatenate([one, s[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    row, column = xp.arange(n)[:, None], xp.arange(n)[None, :]
    steps = xp.where(column > row + 1, xp.roll(s, 1, -1)[..., None, :], 1)
    between = xp.cumprod(steps, axis=-1)
    upper = xp.where(column > row, before[..., :, None] * between * after[..., None, :], 0)
    return upper + upper.swapaxes(-1, -2)


def _third(A: Tensor, t: Tensor, g: Tensor) -> Tensor:
    """The third derivative of the determinant, by the inverse where there is one."""
    still = A.detach()
    lengths = (still.abs() ** 2).sum(-1).sqrt().prod(-1)
    singular = on_matrices(det.call1(still).abs() <= _NEARLY_SINGULAR * lengths)
    unit = diag_embed(A.new_ones((A.array.shape[-1],)))
    regular = where(singular, unit, A)
    b = inverse_of(regular).mH
    by_t, by_g = (on_matrices(_trace_of_product(x, b)) for x in (t, g))
    through_t, through_g = b @ t.mH @ b, b @ g.mH @ b
    both = on_matrices(_trace_of_product(t, through_g))
    by_inverse = on_matrices(det.call1(regular).conj()) * (
        (by_g * by_t - both) * b
        - by_g * through_t
        - by_t * through_g
        + through_g @ t.mH @ b
        + through_t @ g.mH @ b
    )
    return where(singular, _third_by_products(A, t, g, unit), by_inverse)


def _third_by_products(A: Tensor, t: Tensor, g: Tensor, unit: Tensor) -> Tensor:
    """The third derivative by Faddeev's and LeVerrier's products, without a division by values.

    The adjugate's recursion is differentiated along both directions. It loses digits for each row,
    so that larger matrices without an inverse have no third derivative.
    """
    n = A.array.shape[-1]
    if n > _MOST_ROWS:
        return A * math.nan
    zero = A * 0
    m, m_t, m_g, m_both = unit + zero, zero, zero, zero
    for k in range(1, n):
        m, m_t, m_g, m_both = (
            x - on_matrices(x.diagonal(0, -2, -1).sum(-1)) / k * unit
            for x in (
                A @ m, t @ m + A @ m_t, g @ m + A @ m_g, t @ m_g + g @ m_t + A @ m_both,
            )
        )  # fmt: skip
    return (m_both if n % 2 else -m_both).mH


def _along_tangent(tangents: dict, A: Tensor, t: Tensor) -> Tensor:
    parts = []
    if "A" in tangents:
        parts.append(_third(A, t, tangents["A"]))
    if "t" in tangents:
        parts.append(_cofactors_along.call((A, tangents["t"])))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


_cofactors_along: Operator = primitive(
    "_linalg_cofactors_along(Tensor A, Tensor t) -> Tensor",
    _along,
    {
        "A": lambda g, A, t: _third(A, t, g),
        "t": lambda g, A: _cofactors_along.call((A, g)),
    },
    lambda tangents, A, t: _along_tangent(tangents, A, t),
    widens=False,
    meta=lambda a, t: meta.empty(a.shape, a.dtype),
    batch=leading,
    cost="slow",
    doc="How the gradients of determinants change along matrices.",
)

_cofactor_matrices = primitive(
    "_linalg_cofactors(Tensor A) -> Tensor",
    _cofactors,
    lambda g, A: _cofactors_along.call((A, g)),
    lambda tangents, A: _cofactors_along.call((A, tangents["A"])),
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
