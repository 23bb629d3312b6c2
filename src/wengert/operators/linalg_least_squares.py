"""Orthogonal factors, pseudo-inverses and least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends import meta
from ..backends.backend import has_elements, is_array
from ..core.dtypes import finfo, from_numpy
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..return_types import linalg_lstsq, linalg_qr
from ..transforms.batching.rules import leading
from .declare import primitive
from .diagonals import diag_embed, tril
from .joining import cat
from .linalg_kernels import (
    check_matrices,
    check_same_type,
    check_square,
    columns,
    equations,
    into,
    meta_columns,
    real_dtype,
)
from .linalg_solving import solve_triangular
from .views import as_own

__all__ = []

# QR -----------------------------------------------------------------------------------------------


def _check_mode(a: Any, mode: str) -> None:
    check_matrices("linalg.qr", a)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), "
            "'r', or 'complete'"
        )


def _qr(xp: Any, a: Any, mode: str) -> Any:
    _check_mode(a, mode)
    if mode == "r":
        return xp.empty((0,), a.dtype), columns(xp.linalg.qr(a, "r"))
    q, r = xp.linalg.qr(a, mode)
    return columns(q), columns(r)


def _qr_meta(a: Any, mode: str) -> Any:
    _check_mode(a, mode)
    *batch, m, n = a.shape
    k = m if mode == "complete" else min(m, n)
    r = meta_columns((*batch, k, n), a.dtype)
    if mode == "r":
        return meta.empty((0,), a.dtype), r
    return meta_columns((*batch, m, k), a.dtype), r


def _check_differentiable(mode: str, Q: Tensor, R: Tensor) -> None:
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please "
            "use linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."
        )
    if mode == "complete" and Q.array.shape[-2] > R.array.shape[-1]:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
        )


def _over(x: Tensor, R: Tensor) -> Tensor:
    """The product of `x` with the inverse of an upper triangular R."""
    return solve_triangular.call((R, x, True, False, False))


def _real_diagonal(x: Tensor) -> Tensor:
    diagonal = x.diagonal(0, -2, -1)
    return diag_embed(diagonal.real.to(x.dtype) if x.is_complex() else diagonal)


def _qr_gradient(g: list, mode: str, Q: Tensor, R: Tensor) -> Tensor | None:
    _check_differentiable(mode, Q, R)
    by_q, by_r = g
    if by_q is None and by_r is None:
        return None
    m, n = Q.array.shape[-2], R.array.shape[-1]
    if m >= n:
        return _tall_gradient(by_q, by_r, Q, R)
    right = None
    if by_r is not None:
        # The columns after the first m are Q^H times those of A, without constraint.
        rest = by_r.narrow(-1, m, n - m)
        through = Q @ (R.narrow(-1, m, n - m) @ rest.mH)
        by_q = through if by_q is None else by_q + through
        right = Q @ rest
        by_r = by_r.narrow(-1, 0, m)
    left = _tall_gradient(by_q, by_r, Q, R.narrow(-1, 0, m))
    if right is None:
        right = left.new_zeros((*left.array.shape[:-1], n - m))
    return cat([left, right], -1)


def _tall_gradient(by_q: Any, by_r: Any, Q: Tensor, R: Tensor) -> Tensor:
    inner: Any = 0
    if by_r is not None:
        inner = R @ by_r.mH
    if by_q is not None:
        inner = inner - by_q.mH @ Q
    lower = tril(inner, -1)
    product = Q @ (lower + lower.mH + _real_diagonal(inner))
    if by_q is not None:
        product = by_q + product
    return solve_triangular.call((R.mH, product, False, False, False))


def _qr_tangent(t: Tensor, mode: str, Q: Tensor, R: Tensor) -> tuple:
    _check_differentiable(mode, Q, R)
    m, n = t.array.shape[-2:]
    if m >= n:
        return _tall_tangent(t, Q, R)
    dq, du = _tall_tangent(t.narrow(-1, 0, m), Q, R.narrow(-1, 0, m))
    rest = dq.mH @ (Q @ R.narrow(-1, m, n - m)) + Q.mH @ t.narrow(-1, m, n - m)
    return dq, cat([du, rest], -1)


def _tall_tangent(t: Tensor, Q: Tensor, R: Tensor) -> tuple[Tensor, Tensor]:
    scaled = _over(t, R)
    inner = Q.mH @ scaled
    lower = tril(inner, -1)
    turning = lower - lower.mH
    if inner.is_complex():
        turning = turning + diag_embed(inner.diagonal(0, -2, -1).imag * 1j)
    return scaled - Q @ (inner - turning), (inner - turning) @ R


def _qr_batched(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    found, dim = leading(operator, args, dims)
    return found, ((None, dim) if args[1] == "r" else dim)


_qr_operator = primitive(
    'linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)',
    _qr,
    lambda g, mode, out0, out1: _qr_gradient(g, mode, out0, out1),
    lambda tangents, mode, out0, out1: _qr_tangent(tangents["A"], mode, out0, out1),
    widens=False,
    meta=_qr_meta,
    batch=_qr_batched,
    undefined=True,
    name="LinalgQrBackward0",
    public="",
    cost="slow",
    doc="Matrices as products of orthogonal and upper triangular ones.",
)


def qr(A: Tensor, mode: str = "reduced", *, out: Any = None) -> Any:
    """``A = Q R`` with orthonormal columns in Q and an upper triangular R.

    Q is square if `mode` is ``complete``, and empty if it is ``r``.
    """
    return into("linalg_qr", linalg_qr(_qr_operator.call((A, mode))), out)


# Pseudo-inverses ----------------------------------------------------------------------------------


def _check_pinv(a: Any, hermitian: bool) -> None:
    if a.ndim < 2 or a.dtype.kind not in "fc" or a.dtype.itemsize == 2:
        raise RuntimeError(
            f"linalg.pinv({from_numpy(a.dtype).scalar_name}{{{list(a.shape)}}}): expected a tensor "
            "with 2 or more dimensions of float, double, cfloat or cdouble types"
        )
    if hermitian:
        check_square("linalg.pinv", a)


def tolerance(xp: Any, a: Any, largest: Any, atol: Any, rtol: Any) -> Any:
    """What counts as zero among singular values, of which the `largest` are given."""
    if rtol is None:
        known = atol is not None and not (isinstance(atol, (int, float)) and atol <= 0)
        rtol = 0.0 if known else max(a.shape[-2:]) * finfo(from_numpy(a.dtype)).eps
    limit = largest * _as_column(rtol)
    return limit if atol is None else xp.maximum(limit, _as_column(atol))


def _as_column(value: Any) -> Any:
    return value[..., None] if is_array(value) else value


def _pinv(xp: Any, a: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    _check_pinv(a, hermitian)
    *batch, m, n = a.shape
    if not a.size:
        return xp.zeros((*batch, n, m), a.dtype)
    if hermitian:
        values, u = xp.linalg.eigh(a)
        size, vh = xp.abs(values), xp.conj(u.swapaxes(-1, -2))
    else:
        u, values, vh = xp.linalg.svd(a, False)
        size = values
    limit = tolerance(xp, a, size.max(-1, keepdims=True), atol, rtol)
    inverse = xp.where(size > limit, 1 / xp.where(size > limit, values, 1), 0).astype(a.dtype)
    product = (xp.conj(vh.swapaxes(-1, -2)) * inverse[..., None, :]) @ xp.conj(
        u.swapaxes(-1, -2)
    )
    return xp.ascontiguousarray(product)


def _pinv_meta(a: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    _check_pinv(a, hermitian)
    return meta.empty((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)


def _pinv_gradient(g: Tensor, A: Tensor, out: Tensor) -> Tensor:
    adjoint, turned = out.mH, g.mH
    beside = turned @ out
    return (
        (beside - A @ (out @ beside)) @ adjoint
        + adjoint @ (out @ turned - (out @ turned) @ out @ A)
        - adjoint @ g @ adjoint
    )


def _pinv_tangent(t: Tensor, A: Tensor, out: Tensor) -> Tensor:
    adjoint, turned = out.mH, t.mH
    inner = out @ adjoint @ turned
    outer = turned @ adjoint @ out
    return inner - inner @ A @ out + outer - out @ A @ outer - out @ t @ out


_pinv_operator = primitive(
    "linalg_pinv(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) "
    "-> Tensor",
    _pinv,
    {
        "self": lambda g, self, out: _pinv_gradient(g, self, out),
        "atol": None,
        "rtol": None,
    },
    lambda tangents, self, out: _pinv_tangent(tangents["self"], self, out),
    widens=False,
    meta=_pinv_meta,
    batch=leading,
    name="LinalgPinvBackward0",
    public="",
    cost="slow",
    doc="Pseudo-inverses of matrices.",
)


def as_tolerance(value: Any, like: Tensor) -> Tensor | None:
    """A tolerance as a tensor of real numbers."""
    if value is None or isinstance(value, Tensor):
        return value
    dtype = from_numpy(real_dtype(like.array.dtype)) if like.array.dtype.kind in "fc" else None
    return like.new_full((), value, dtype=dtype)


def pinv(
    A: Tensor,
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """The pseudo-inverses of matrices; singular values up to the tolerance count as zero.

    The tolerance is the larger one of `atol` and `rtol` times the largest singular value. `rcond`
    is the older name of `rtol`.
    """
    rtol = rcond if rtol is None else rtol
    found = _pinv_operator.call((A, as_tolerance(atol, A), as_tolerance(rtol, A), hermitian))
    return into("linalg_pinv", found, out, False)


# Least squares ------------------------------------------------------------------------------------

_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _check_least_squares(a: Any, b: Any) -> None:
    for x in (a, b):
        if x.dtype.kind not in "fc" or x.dtype.itemsize == 2:
            raise RuntimeError("This function doesn't handle types other than float and double")
    check_same_type("torch.linalg.lstsq", a, b)
    if a.shape[-2] != b.shape[-2]:
        raise RuntimeError("torch.linalg.lstsq: input.size(-2) should match other.size(-2)")


def _least_squares(xp: Any, a: Any, b: Any, rcond: float) -> Any:
    _check_least_squares(a, b)
    u, values, vh = xp.linalg.svd(a, False)
    largest = values.max(-1, keepdims=True) if values.shape[-1] else values
    kept = values > largest * rcond
    inverse = xp.where(kept, 1 / xp.where(kept, values, 1), 0).astype(a.dtype)
    inner = inverse[..., None] * (xp.conj(u.swapaxes(-1, -2)) @ b)
    found = xp.conj(vh.swapaxes(-1, -2)) @ inner
    return columns(found), kept.sum(-1), values


def _least_squares_meta(a: Any, b: Any, rcond: float) -> Any:
    _check_least_squares(a, b)
    *_, m, n = a.shape
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return (
        meta_columns((*batch, n, b.shape[-1]), a.dtype),
        meta.empty(a.shape[:-2], np.dtype(np.int64)),
        meta.empty((*a.shape[:-2], min(m, n)), real_dtype(a.dtype)),
    )


def _pseudo_inverse(A: Tensor, rcond: float) -> Tensor:
    return _pinv_operator.call((A, None, as_tolerance(rcond, A), False))


def _lstsq_tangent(tangents: dict, self: Tensor, b: Tensor, rcond: float) -> tuple:
    inverse = _pseudo_inverse(self, rcond)
    out: Any = 0
    if "self" in tangents:
        out = _pinv_tangent(tangents["self"], self, inverse) @ b
    if "b" in tangents:
        out = out + inverse @ tangents["b"]
    return out, None, None


_lstsq_operator: Operator = primitive(
    "_linalg_lstsq(Tensor self, Tensor b, float rcond) "
    "-> (Tensor solution, Tensor rank, Tensor singular_values)",
    _least_squares,
    {
        "self": lambda g, self, b, rcond: _pinv_gradient(
            g[0] @ b.mH, self, _pseudo_inverse(self, rcond)
        ),
        "b": lambda g, self, rcond: _pseudo_inverse(self, rcond).mH @ g[0],
    },
    _lstsq_tangent,
    nondifferentiable_outputs=(1, 2),
    widens=False,
    meta=_least_squares_meta,
    batch=equations,
    name="LinalgLstsqBackward0",
    cost="slow",
    doc="Solutions with the least squares of what remains.",
)


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """The X with the least norm of ``A X - B``; the sums of its squares, the rank of A, its values.

    As in PyTorch each of the last three is empty where the `driver` does not find it.
    """
    if driver is not None and driver not in _DRIVERS:
        raise RuntimeError(
            "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    if A.array.ndim < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if B.array.ndim < 1:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    driver = driver or "gelsy"
    m, n = A.array.shape[-2:]
    is_vector = A.array.ndim == B.array.ndim + 1 and B.array.shape == A.array.shape[:-1]
    right = B.unsqueeze(-1) if is_vector else B
    if rcond is None:
        rcond = finfo(A.dtype).eps * max(m, n) if A.array.dtype.kind in "fc" else 0.0
    solution, rank, values = _lstsq_operator.call((A, right, float(rcond)))
    if m > n and driver != "gelsy":
        left_over = A @ solution - right
        residuals = (left_over.conj() * left_over).sum(-2)
        residuals = residuals.real if residuals.is_complex() else residuals
        if _has_low_rank(rank, n):
            residuals = values.new_empty((0,))
    else:
        residuals = values.new_empty((0,))
    if is_vector:
        solution = as_own(solution, solution.array.shape[:-1])
    if driver == "gels":
        rank = rank.new_empty((0,))
    if driver in ("gels", "gelsy"):
        values = values.new_empty((0,))
    return linalg_lstsq(solution, residuals, rank, values)


def _has_low_rank(rank: Tensor, full: int) -> bool:
    """Whether some of the ranks are known here to be below `full`."""
    return has_elements(rank.array) and (rank.array < full).any().item()
