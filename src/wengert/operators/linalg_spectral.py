"""Eigenvalues and eigenvectors, singular values and vectors.

Vectors are determined up to a factor of length one, so a gradient that depends on that factor is
refused. Where values coincide, gradients through vectors are not finite, as in PyTorch.
"""

from __future__ import annotations

from typing import Any

from ..backends import meta, systems
from ..backends.backend import has_elements
from ..core import dtypes
from ..core.tensor import Tensor
from ..return_types import linalg_eig, linalg_eigh, linalg_svd
from ..transforms.batching.rules import leading
from .declare import nondifferentiable, primitive
from .diagonals import diag_embed
from .joining import cat
from .linalg_kernels import (
    check_matrices,
    check_square,
    columns,
    complex_dtype,
    failure,
    first_failing,
    into,
    is_recorded,
    meta_columns,
    real_dtype,
)
from .linalg_solving import inverse_of, solve

__all__ = []

# What the rules share -----------------------------------------------------------------------------


def _identity(x: Tensor) -> Tensor:
    """The unit matrix, as bools, with as many rows as the vectors or matrices `x` have columns."""
    return diag_embed(x.new_ones((x.array.shape[-1],), dtype=dtypes.bool))


def _differences(values: Tensor) -> Tensor:
    """How much the value of the column exceeds that of the row; ones on the diagonal."""
    return (values.unsqueeze(-2) - values.unsqueeze(-1)).masked_fill(_identity(values.detach()), 1)


def _without_diagonal(x: Tensor) -> Tensor:
    return x.masked_fill(_identity(x.detach()), 0)


def _diagonal(x: Tensor) -> Tensor:
    return x.diagonal(0, -2, -1)


def _check_phase(text: str, *phases: Tensor) -> None:
    """Refuse a loss that changes when vectors are multiplied by numbers of length one.

    Where there are several terms, these must cancel each other, which large ones do to rounding.
    """
    terms = [term.imag.array for term in phases]
    if all(has_elements(term) for term in terms):
        sizes = [abs(t).max(initial=0).item() for t in terms] if len(terms) > 1 else []
        if not (abs(sum(terms)) <= 1e-2 * max([1, *sizes])).all().item():
            raise RuntimeError(text)


def _phase_text(name: str) -> str:
    return (
        f"{name}: The eigenvectors in the complex case are specified up to multiplication by "
        "e^{i phi}. The specified loss function depends on this quantity, so it is ill-defined."
    )


def _not_converged(code: int) -> str:
    return (
        "The algorithm failed to converge because the input matrix is ill-conditioned or has too "
        f"many repeated eigenvalues (error code: {code})."
    )


# Hermitian matrices -------------------------------------------------------------------------------


def _check_triangle(name: str, a: Any, UPLO: str) -> None:
    check_square(name, a)
    if UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")


def _eigh(xp: Any, a: Any, UPLO: str) -> Any:
    _check_triangle("linalg.eigh", a, UPLO)
    if (found := systems.spectra(a, UPLO in "Uu", True)) is not None:
        return found
    try:
        values, vectors = xp.linalg.eigh(a, UPLO.upper())
    except xp.linalg.LinAlgError:
        index = first_failing(xp, lambda matrix: xp.linalg.eigh(matrix, UPLO.upper()), a)
        raise failure("linalg.eigh", a.ndim > 2, index, _not_converged(1)) from None
    return values, columns(vectors)


def _eigh_meta(a: Any, UPLO: str) -> Any:
    _check_triangle("linalg.eigh", a, UPLO)
    return meta.empty(a.shape[:-1], real_dtype(a.dtype)), meta_columns(a.shape, a.dtype)


def _eigh_gradient(g: list, values: Tensor, vectors: Tensor) -> Tensor | None:
    by_values, by_vectors = g
    if by_vectors is None:
        if by_values is None:
            return None
        return (vectors * by_values.unsqueeze(-2)) @ vectors.mH
    turned = vectors.mH @ by_vectors
    if turned.is_complex():
        _check_phase(_phase_text("linalg_eigh_backward"), _diagonal(turned))
    inner = _without_diagonal(turned / _differences(values))
    if by_values is not None:
        inner = inner + diag_embed(by_values)
    return vectors @ inner @ vectors.mH


def _eigh_tangent(t: Tensor, values: Tensor, vectors: Tensor) -> tuple:
    turned = vectors.mH @ t @ vectors
    rates = _diagonal(turned)
    rates = rates.real if rates.is_complex() else rates
    return rates, vectors @ _without_diagonal(turned / _differences(values))


_eigh_operator = primitive(
    'linalg_eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)',
    _eigh,
    lambda g, out0, out1: _eigh_gradient(g, out0, out1),
    lambda tangents, out0, out1: _eigh_tangent(tangents["self"], out0, out1),
    widens=False,
    meta=_eigh_meta,
    batch=leading,
    undefined=True,
    name="LinalgEighBackward0",
    public="",
    raises="values",
    cost="slow",
    doc="Eigenvalues in ascending order and eigenvectors of Hermitian matrices.",
)


def _eigvalsh(xp: Any, a: Any, UPLO: str) -> Any:
    _check_triangle("linalg.eigh", a, UPLO)
    if (found := systems.spectra(a, UPLO in "Uu", False)) is not None:
        return found
    try:
        return xp.linalg.eigvalsh(a, UPLO.upper())
    except xp.linalg.LinAlgError:
        index = first_failing(xp, lambda matrix: xp.linalg.eigvalsh(matrix, UPLO.upper()), a)
        raise failure("linalg.eigh", a.ndim > 2, index, _not_converged(1)) from None


_eigvalsh_operator = nondifferentiable(
    "_linalg_eigvalsh(Tensor A, str UPLO) -> Tensor",
    _eigvalsh,
    meta=lambda a, UPLO: _eigh_meta(a, UPLO)[0],
    batch=leading,
    raises="values",
    cost="slow",
    doc="Eigenvalues of Hermitian matrices, where nothing asks for derivatives.",
)


def eigh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Any:
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices, of which a triangle is read.

    The triangle is the lower one (``L``) or the upper one (``U``).
    """
    return into("linalg_eigh", linalg_eigh(_eigh_operator.call((A, UPLO))), out)


def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """Eigenvalues of Hermitian matrices, in ascending order."""
    if is_recorded(A):
        found = _eigh_operator.call((A, UPLO))[0]
    else:
        found = _eigvalsh_operator.call((A, UPLO))
    return into("linalg_eigvalsh", found, out)


# Other square matrices ----------------------------------------------------------------------------


def _check_eig(name: str, a: Any) -> None:
    check_square(name, a)


def _check_finite(xp: Any, a: Any) -> None:
    if not xp.isfinite(a).all().item():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")


def _eig(xp: Any, a: Any) -> Any:
    _check_eig("linalg.eig", a)
    _check_finite(xp, a)
    goal = complex_dtype(a.dtype)
    try:
        values, vectors = xp.linalg.eig(a)
    except xp.linalg.LinAlgError:
        index = first_failing(xp, xp.linalg.eig, a)
        raise failure("linalg.eig", a.ndim > 2, index, _not_converged(1)) from None
    return values.astype(goal, copy=False), columns(vectors.astype(goal, copy=False))


def _eig_meta(a: Any) -> Any:
    _check_eig("linalg.eig", a)
    goal = complex_dtype(a.dtype)
    return meta.empty(a.shape[:-1], goal), meta_columns(a.shape, goal)


def _eig_gradient(g: list, values: Tensor, vectors: Tensor) -> Tensor | None:
    by_values, by_vectors = g
    if by_values is None and by_vectors is None:
        return None
    if by_vectors is None:
        inner = by_values.unsqueeze(-1) * vectors.mH
        return solve(vectors.mH, inner)
    turned = vectors.mH @ by_vectors
    lengths = _diagonal(turned)
    _check_phase(_phase_text("linalg_eig_backward"), lengths)
    # Vectors are of length one: what would change their lengths is taken out.
    turned = turned - (vectors.mH @ vectors) * lengths.real.unsqueeze(-2)
    inner = _without_diagonal(turned / _differences(values).conj())
    if by_values is not None:
        inner = inner + diag_embed(by_values)
    return solve(vectors.mH, inner @ vectors.mH)


def _eig_tangent(t: Tensor, values: Tensor, vectors: Tensor) -> tuple:
    turned = inverse_of(vectors) @ t.to(vectors.dtype) @ vectors
    inner = _without_diagonal(turned / _differences(values))
    change = vectors @ inner
    lengths = (vectors.conj() * change).sum(-2).real
    return _diagonal(turned), change - vectors * lengths.unsqueeze(-2)


_eig_operator = primitive(
    "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    _eig,
    lambda g, out0, out1: _eig_gradient(g, out0, out1),
    lambda tangents, out0, out1: _eig_tangent(tangents["self"], out0, out1),
    widens=False,
    meta=_eig_meta,
    batch=leading,
    undefined=True,
    name="LinalgEigBackward0",
    public="",
    raises="values",
    cost="slow",
    doc="Eigenvalues and eigenvectors of square matrices, as complex numbers.",
)


def _eigvals(xp: Any, a: Any) -> Any:
    _check_eig("linalg.eigvals", a)
    _check_finite(xp, a)
    try:
        return xp.linalg.eigvals(a).astype(complex_dtype(a.dtype), copy=False)
    except xp.linalg.LinAlgError:
        index = first_failing(xp, xp.linalg.eigvals, a)
        raise failure("linalg.eig", a.ndim > 2, index, _not_converged(1)) from None


_eigvals_operator = nondifferentiable(
    "_linalg_eigvals(Tensor self) -> Tensor",
    _eigvals,
    meta=lambda a: _eig_meta(a)[0],
    batch=leading,
    raises="values",
    cost="slow",
    doc="Eigenvalues of square matrices, where nothing asks for derivatives.",
)


def eig(A: Tensor, *, out: Any = None) -> Any:
    """Eigenvalues and eigenvectors of square matrices, always as complex numbers."""
    return into("linalg_eig", linalg_eig(_eig_operator.call1(A)), out)


def eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Eigenvalues of square matrices, always as complex numbers."""
    found = _eig_operator.call1(A)[0] if is_recorded(A) else _eigvals_operator.call1(A)
    return into("linalg_eigvals", found, out)


# Singular values ----------------------------------------------------------------------------------

_SVD_FAILS = (
    "The algorithm failed to converge because the input matrix contained non-finite values."
)


def _svd(xp: Any, a: Any, full_matrices: bool) -> Any:
    check_matrices("linalg.svd", a)
    try:
        u, s, vh = xp.linalg.svd(a, full_matrices)
    except xp.linalg.LinAlgError:
        index = first_failing(xp, xp.linalg.svd, a)
        raise failure("linalg.svd", a.ndim > 2, index, _SVD_FAILS) from None
    return columns(u), s, columns(vh)


def _svd_meta(a: Any, full_matrices: bool) -> Any:
    check_matrices("linalg.svd", a)
    *batch, m, n = a.shape
    k = min(m, n)
    return (
        meta_columns((*batch, m, m if full_matrices else k), a.dtype),
        meta.empty((*batch, k), real_dtype(a.dtype)),
        meta_columns((*batch, n if full_matrices else k, n), a.dtype),
    )


def _svd_gradient(g: list, U: Tensor, S: Tensor, Vh: Tensor) -> Tensor | None:
    by_u, by_s, by_vh = g
    if by_u is None and by_vh is None:
        return None if by_s is None else (_thin(U, S) * by_s.unsqueeze(-2)) @ _thin_rows(Vh, S)
    U, Vh = _thin(U, S), _thin_rows(Vh, S)
    m, k, n = U.array.shape[-2], S.array.shape[-1], Vh.array.shape[-1]
    gaps = _square_differences(S)
    inner: Any = 0 if by_s is None else diag_embed(by_s)
    phases = []
    if by_u is not None:
        by_u = _thin(by_u, S)
        turned = U.mH @ by_u
        phases.append(_diagonal(turned))
        skew = turned - turned.mH
        inner = inner + _without_diagonal(skew / gaps) * S.unsqueeze(-2)
        if U.is_complex():
            inner = inner + diag_embed(phases[0].imag * 1j / S)
    if by_vh is not None:
        by_vh = _thin_rows(by_vh, S)
        turned = Vh @ by_vh.mH
        phases.append(_diagonal(turned))
        inner = inner + S.unsqueeze(-1) * _without_diagonal((turned - turned.mH) / gaps)
    if U.is_complex():
        _check_phase(
            "svd_backward: The singular vectors in the complex case are specified up to "
            "multiplication by e^{i phi}. The specified loss function depends on this phase "
            "term, making it ill-defined.",
            *phases,
        )
    out = U @ inner @ Vh
    if by_u is not None and m > k:
        scaled = by_u / S.unsqueeze(-2)
        out = out + (scaled - U @ (U.mH @ scaled)) @ Vh
    if by_vh is not None and n > k:
        scaled = by_vh / S.unsqueeze(-1)
        out = out + U @ (scaled - (scaled @ Vh.mH) @ Vh)
    return out


def _square_differences(S: Tensor) -> Tensor:
    """How much the square of the column's value exceeds that of the row's; ones for no gap."""
    column, row = S.unsqueeze(-2), S.unsqueeze(-1)
    return ((column - row) * (column + row)).masked_fill(_identity(S.detach()), 1)


def _thin(U: Tensor, S: Tensor) -> Tensor:
    """The left vectors that belong to singular values."""
    k = S.array.shape[-1]
    return U if U.array.shape[-1] == k else U.narrow(-1, 0, k)


def _thin_rows(Vh: Tensor, S: Tensor) -> Tensor:
    """The right vectors that belong to singular values."""
    k = S.array.shape[-1]
    return Vh if Vh.array.shape[-2] == k else Vh.narrow(-2, 0, k)


def _svd_tangent(t: Tensor, full_matrices: bool, U: Tensor, S: Tensor, Vh: Tensor) -> tuple:
    m, k, n = U.array.shape[-2], S.array.shape[-1], Vh.array.shape[-1]
    thin_u, thin_vh = _thin(U, S), _thin_rows(Vh, S)
    turned = thin_u.mH @ t @ thin_vh.mH
    rates = _diagonal(turned)
    gaps = _square_differences(S)
    column, row = S.unsqueeze(-2), S.unsqueeze(-1)
    left = _without_diagonal((turned * column + row * turned.mH) / gaps)
    right = _without_diagonal((row * turned + turned.mH * column) / gaps)
    if U.is_complex():
        left = left + diag_embed(rates.imag * 1j / S)
        rates = rates.real
    du, dvh = thin_u @ left, right.mH @ thin_vh
    if m > k:
        scaled = (t @ thin_vh.mH) / column
        du = du + scaled - thin_u @ (thin_u.mH @ scaled)
    if n > k:
        scaled = (thin_u.mH @ t) / row
        dvh = dvh + scaled - (scaled @ thin_vh.mH) @ thin_vh
    if full_matrices and m != n:
        # The remaining vectors are not determined: as in PyTorch they do not move.
        du = _grown(du, U, -1)
        dvh = _grown(dvh, Vh, -2)
    return du, rates, dvh


def _grown(x: Tensor, like: Tensor, dim: int) -> Tensor:
    """`x` with zeros after it up to the shape of `like`."""
    missing = like.array.shape[dim] - x.array.shape[dim]
    if not missing:
        return x
    shape = list(x.array.shape)
    shape[dim] = missing
    return cat([x, x.new_zeros(tuple(shape))], dim)


_svd_operator = primitive(
    "_linalg_svd(Tensor A, bool full_matrices) -> (Tensor U, Tensor S, Tensor Vh)",
    _svd,
    lambda g, out0, out1, out2: _svd_gradient(g, out0, out1, out2),
    lambda tangents, full_matrices, out0, out1, out2: _svd_tangent(
        tangents["A"], full_matrices, out0, out1, out2
    ),
    widens=False,
    meta=_svd_meta,
    batch=leading,
    undefined=True,
    name="LinalgSvdBackward0",
    raises="values",
    cost="slow",
    doc="Singular values in descending order and singular vectors of matrices.",
)


def _svdvals(xp: Any, a: Any) -> Any:
    check_matrices("linalg.svd", a)
    try:
        return xp.linalg.svd(a, compute_uv=False)
    except xp.linalg.LinAlgError:
        index = first_failing(xp, xp.linalg.svd, a)
        raise failure("linalg.svd", a.ndim > 2, index, _SVD_FAILS) from None


_svdvals_operator = nondifferentiable(
    "_linalg_svdvals(Tensor A) -> Tensor",
    _svdvals,
    meta=lambda a: _svd_meta(a, False)[1],
    batch=leading,
    raises="values",
    cost="slow",
    doc="Singular values of matrices, where nothing asks for derivatives.",
)


def _check_driver(name: str, driver: str | None) -> None:
    if driver is not None:
        raise RuntimeError(f"{name}: keyword argument `driver=` is only supported on CUDA inputs")


def singular(A: Tensor, full_matrices: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Left vectors, values and the adjoint of the right vectors."""
    return _svd_operator.call((A, full_matrices))


def svd(
    A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None
) -> Any:
    """``A = U diag(S) Vh`` with singular values in descending order.

    Vectors beyond the number of singular values are given if `full_matrices`, without derivatives.
    """
    _check_driver("torch.linalg.svd", driver)
    return into("linalg_svd", linalg_svd(singular(A, full_matrices)), out)


def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """Singular values of matrices, in descending order."""
    _check_driver("torch.linalg.svd", driver)
    found = singular(A, False)[1] if is_recorded(A) else _svdvals_operator.call1(A)
    return into("linalg_svdvals", found, out)
