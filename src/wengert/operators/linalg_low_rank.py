"""Approximations by random projections, and a few eigenpairs of large matrices by iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends import meta
from ..core.tensor import Tensor
from ..creation.random import randn
from ..dispatch.operator import Operator
from ..transforms.batching.rules import leading
from .declare import composite, primitive
from .diagonals import diag_embed
from .joining import cat
from .linalg_kernels import check_floating, check_shape_square, real_dtype
from .linalg_least_squares import qr
from .linalg_solving import solve
from .linalg_spectral import svd
from .pointwise import where

__all__ = ["lobpcg", "pca_lowrank", "svd_lowrank"]

# Random projections -------------------------------------------------------------------------------


def _basis(A: Tensor, q: int, niter: int) -> Tensor:
    """Orthonormal columns that nearly span those of `A`: of random combinations, refined."""
    noise = randn(A.array.shape[-1], q, dtype=A.dtype, device=A.device)
    basis = qr(A @ noise)[0]
    for _ in range(niter):
        basis = qr(A.mH @ basis)[0]
        basis = qr(A @ basis)[0]
    return basis


@composite(public="function")
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and V of the `q` largest singular values of ``A - M``, nearly.

    Columns are projected on `q` random combinations of them, refined `niter` times.
    """
    check_floating("svd_lowrank", A.array)
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    m, n = A.array.shape[-2:]
    if M is not None:
        A = A - M.expand(A.array.shape)
    turned = A.mH if m < n else A
    basis = _basis(turned, q, niter)
    u, s, vh = svd(basis.mH @ turned, full_matrices=False)
    u, v = basis @ u, vh.mH
    return (v, s, u) if m < n else (u, s, v)


@composite(public="function")
def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and V of the `q` main components of the rows of `A`, nearly, see `svd_lowrank`.

    The mean of the rows is subtracted first if `center`. `q` is six at most if it is not given.
    """
    m, n = A.array.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)


# Eigenpairs ---------------------------------------------------------------------------------------


def _orthonormal(xp: Any, s: Any, b: Any) -> Any:
    """Columns that span what those of `s` span, orthonormal in the product that `b` gives."""
    s = s / xp.maximum(xp.linalg.norm(s, axis=-2, keepdims=True), np.finfo(s.dtype).tiny)
    weights, vectors = xp.linalg.eigh(s.conj().T @ (s if b is None else b @ s))
    kept = weights > weights[-1] * weights.size * np.finfo(weights.dtype).eps * 10
    return s @ (vectors[:, kept] / xp.sqrt(weights[kept]))


def _ritz(xp: Any, a: Any, basis: Any, k: int, largest: bool) -> tuple[Any, Any]:
    """The best approximations of `k` eigenpairs in the space that a basis spans."""
    values, vectors = xp.linalg.eigh(basis.conj().T @ a @ basis)
    chosen = slice(None, -k - 1, -1) if largest else slice(None, k)
    return values[chosen], basis @ vectors[:, chosen]


def _iterated(
    xp: Any, a: Any, b: Any, preconditioner: Any, x: Any, niter: int, tol: float, largest: bool
) -> tuple[Any, Any]:
    """A few eigenpairs of one matrix: the best in the span of guess, residual and last step."""
    k = x.shape[-1]
    size = xp.linalg.norm(a), 1.0 if b is None else xp.linalg.norm(b)
    values, x = _ritz(xp, a, _orthonormal(xp, x, b), k, largest)
    step = None
    for _ in range(niter):
        weighted = x if b is None else b @ x
        residual = a @ x - weighted * values
        bound = xp.linalg.norm(x) * (size[0] + xp.linalg.norm(values) * size[1])
        if not xp.linalg.norm(residual) > tol * bound:
            break
        direction = residual if preconditioner is None else preconditioner @ residual
        parts = [x, direction] if step is None else [x, direction, step]
        basis = _orthonormal(xp, xp.concatenate(parts, -1), b)
        values, found = _ritz(xp, a, basis, k, largest)
        step = found - x @ (weighted.conj().T @ found)
        x = found
    return values, x


def _eigenpairs(
    xp: Any, a: Any, b: Any, preconditioner: Any, x: Any, niter: int, tol: float, largest: bool
) -> Any:
    *batch, n, k = x.shape
    others = [
        None if y is None else xp.broadcast_to(y, (*batch, n, n)).reshape(-1, n, n)
        for y in (b, preconditioner)
    ]
    a, x = xp.broadcast_to(a, (*batch, n, n)).reshape(-1, n, n), x.reshape(-1, n, k)
    values, vectors = xp.empty((len(x), k), real_dtype(a.dtype)), xp.empty(x.shape, a.dtype)
    for i in range(len(x)):
        b_i, p_i = (None if y is None else y[i] for y in others)
        values[i], vectors[i] = _iterated(xp, a[i], b_i, p_i, x[i], niter, tol, largest)
    return values.reshape(*batch, k), vectors.reshape(*batch, n, k)


def _eigenpairs_meta(a: Any, b: Any, preconditioner: Any, x: Any, *rest: Any) -> Any:
    shape = x.shape
    return meta.empty((*shape[:-2], shape[-1]), real_dtype(a.dtype)), meta.empty(shape, a.dtype)


def _elsewhere(A: Tensor, E: Tensor, X: Tensor, right: Tensor) -> Tensor:
    """For each eigenpair the y of ``(A - e) y = right`` in what is orthogonal to all vectors."""
    n, k = X.array.shape[-2:]
    shifted = A.unsqueeze(-3) - diag_embed(E.to(A.dtype).unsqueeze(-1).expand(
        (*E.array.shape, n)))
    vectors = X.unsqueeze(-3).expand((*E.array.shape, n, k))
    zeros = A.new_zeros((*E.array.shape, k, k))
    matrix = cat([cat([shifted, vectors], -1), cat([vectors.mH, zeros], -1)], -2)
    wanted = cat([right.mT, A.new_zeros((*E.array.shape, k))], -1)
    return solve(matrix, wanted.unsqueeze(-1)).squeeze(-1).narrow(-1, 0, n).mT


def _between(E: Tensor) -> Tensor:
    """The inverse differences of eigenvalues, zero where they coincide."""
    difference = E.unsqueeze(-2) - E.unsqueeze(-1)
    same = difference == 0
    return where(same, 0, 1 / where(same, 1, difference))


def _refuse_other_product(B: Tensor | None) -> None:
    if B is not None:
        raise ValueError("lobpcg.backward does not support backward with B != I yet.")


def _gradient(g: list, A: Tensor, B: Tensor | None, E: Tensor, X: Tensor) -> Tensor | None:
    _refuse_other_product(B)
    by_values, by_vectors = g
    inner = None if by_values is None else diag_embed(by_values.to(A.dtype))
    if by_vectors is None:
        return None if inner is None else X @ inner @ X.mH
    turned = _between(E) * (X.mH @ by_vectors)
    inner = turned if inner is None else inner + turned
    return (X @ inner - _elsewhere(A, E, X, by_vectors)) @ X.mH


def _tangent(t: Tensor, A: Tensor, B: Tensor | None, E: Tensor, X: Tensor) -> tuple:
    _refuse_other_product(B)
    moved = t @ X
    inner = X.mH @ moved
    rates = inner.diagonal(0, -2, -1)
    change = X @ (_between(E) * inner) - _elsewhere(A, E, X, moved)
    return (rates.real if rates.is_complex() else rates), change


_eigen: Operator = primitive(
    "_lobpcg(Tensor A, Tensor? B, Tensor? iK, Tensor X, int niter, float tol, bool largest) -> "
    "(Tensor, Tensor)",
    _eigenpairs,
    {"A": lambda g, A, B, out0, out1: _gradient(g, A, B, out0, out1), "B": None, "iK": None,
     "X": None},
    lambda tangents, A, B, out0, out1: _tangent(tangents["A"], A, B, out0, out1),
    widens=False,
    meta=_eigenpairs_meta,
    batch=leading,
    undefined=True,
    name="LOBPCGAutogradFunctionBackward",
    cost="slow",
    doc="A few of the largest or smallest eigenpairs of symmetric matrices, by iteration.",
)  # fmt: skip


@composite(public="function")
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: dict | None = None,
    ortho_fparams: dict | None = None,
    ortho_bparams: dict | None = None,
) -> tuple[Tensor, Tensor]:
    """The `k` largest eigenvalues of a symmetric A, or smallest unless `largest`, and vectors.

    They solve ``A x = e B x``. `X` has first guesses in its columns, random ones if it is not
    given; `iK` times a residual is the direction of a step; `niter` bounds the number of steps,
    -1 and None mean a thousand, which end when residuals are below `tol`. Both methods,
    "basic" and "ortho", orthonormalise each basis.
    """
    for name, value in (
        ("tracker", tracker), ("ortho_iparams", ortho_iparams), ("ortho_fparams", ortho_fparams),
        ("ortho_bparams", ortho_bparams),
    ):  # fmt: skip
        if value is not None:
            raise NotImplementedError(
                f"lobpcg: {name} steers the inside of PyTorch's implementation, and this one has "
                "no such steps; leave it out"
            )
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: method must be 'basic' or 'ortho', got {method!r}")
    check_floating("lobpcg", A.array)
    check_shape_square("lobpcg", A.array.shape)
    rows = A.array.shape[-1]
    k = (1 if X is None else X.array.shape[-1]) if k is None else k
    if rows < 3 * k:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={rows}) is smaller "
            f"than 3 x the number of requested eigenpairs (={k})"
        )
    if X is None:
        count = k if n is None else n
        X = randn(*A.array.shape[:-1], count, dtype=A.dtype, device=A.device)
    elif X.array.shape[:-1] != A.array.shape[:-1]:
        raise RuntimeError(
            f"lobpcg: X must have the rows and the batch of A, of shape "
            f"{list(A.array.shape)}, but it has shape {list(X.array.shape)}"
        )
    if X.array.shape[-1] < k:
        raise RuntimeError(f"lobpcg: X must have {k} columns or more, but has {X.array.shape[-1]}")
    steps = 1000 if niter is None or niter < 0 else niter
    bound = float(np.finfo(A.array.dtype).eps) ** 0.5 if tol is None else float(tol)
    values, vectors = _eigen.call((A, B, iK, X, steps, bound, largest is not False))
    return values.narrow(-1, 0, k), vectors.narrow(-1, 0, k)
