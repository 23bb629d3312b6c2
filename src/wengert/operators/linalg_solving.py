"""Inverses, solutions of equations, Cholesky factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends import meta, systems
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..return_types import linalg_cholesky_ex, linalg_inv_ex, linalg_solve_ex
from ..transforms.batching.rules import leading
from .declare import primitive
from .diagonals import tril, triu
from .linalg_kernels import (
    INFO,
    check_equation,
    check_square,
    columns,
    each_matrix,
    equations,
    into,
    meta_columns,
    raise_first,
    zero_pivots,
)
from .views import as_own

__all__ = []

# Inverses -----------------------------------------------------------------------------------------


def _inverse(xp: Any, a: Any, checked: str) -> Any:
    check_square("linalg.inv", a)
    if (found := systems.solved(a, None)) is not None:
        return found, xp.zeros(a.shape[:-2], INFO)
    try:
        out, info = xp.linalg.inv(a), xp.zeros(a.shape[:-2], INFO)
    except xp.linalg.LinAlgError:
        info = zero_pivots(a)
        if checked:
            raise_first(checked, info, _no_inverse)
        out = xp.full(a.shape, np.nan, a.dtype)
        out[info == 0] = xp.linalg.inv(a[info == 0])
    return columns(out), info


def _no_inverse(pivot: int) -> str:
    return (
        f"The diagonal element {pivot} is zero, the inversion could not be completed because the "
        "input matrix is singular."
    )


def _inverse_meta(a: Any, checked: str) -> Any:
    check_square("linalg.inv", a)
    return meta_columns(a.shape, a.dtype), meta.empty(a.shape[:-2], INFO)


_inv = primitive(
    "_linalg_inv(Tensor A, str checked) -> (Tensor inverse, Tensor info)",
    _inverse,
    lambda g, out0: -(out0.mH @ g[0] @ out0.mH),
    lambda tangents, out0: (-(out0 @ tangents["A"] @ out0), None),
    nondifferentiable_outputs=(1,),
    widens=False,
    meta=_inverse_meta,
    batch=leading,
    name="LinalgInvExBackward0",
    raises="values",
    cost="slow",
    doc="Inverses of matrices, and which of them have none.",
)


def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverses of square matrices."""
    return into("linalg_inv", _inv.call((A, "linalg.inv"))[0], out)


def inv_ex(A: Tensor, *, check_errors: bool = False, out: Any = None) -> Any:
    """The inverses of square matrices, and for each that has none the place of a zero pivot."""
    found = linalg_inv_ex(_inv.call((A, "linalg.inv_ex" if check_errors else "")))
    return into("linalg_inv_ex", found, out)


def inverse_or_raise(A: Tensor, name: str) -> Tensor:
    """The inverses of square matrices; an error of the function `name` where there is none."""
    return _inv.call((A, name))[0]


def inverse_of(A: Tensor) -> Tensor:
    """The inverses of square matrices; NaN where there is none."""
    return _inv.call((A, ""))[0]


# Equations ----------------------------------------------------------------------------------------


def _solution(xp: Any, a: Any, b: Any, left: bool, checked: str) -> Any:
    check_equation("linalg.solve", a, b, left)
    if not left:
        out, info = _solution(xp, a.swapaxes(-1, -2), b.swapaxes(-1, -2), True, checked)
        return out.swapaxes(-1, -2), info
    if (found := systems.solved(a, b)) is not None:
        return found, xp.zeros(a.shape[:-2], INFO)
    try:
        return columns(xp.linalg.solve(a, b)), xp.zeros(a.shape[:-2], INFO)
    except xp.linalg.LinAlgError:
        info = zero_pivots(a)
    if checked:
        raise_first(checked, info, _no_solution)
    safe = xp.where((info == 0)[..., None, None], a, xp.eye(a.shape[-1], dtype=a.dtype))
    out = xp.linalg.solve(safe, b)
    return columns(xp.where((info == 0)[..., None, None], out, np.nan)), info


def _no_solution(pivot: int) -> str:
    return "The solver failed because the input matrix is singular."


def _solution_shape(a: Any, b: Any) -> tuple[int, ...]:
    return (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])


def _solution_meta(a: Any, b: Any, left: bool, checked: str) -> Any:
    check_equation("linalg.solve", a, b, left)
    shape = _solution_shape(a, b)
    out = meta_columns(shape, a.dtype) if left else meta.empty(shape, a.dtype)
    return out, meta.empty(a.shape[:-2], INFO)


def _solution_tangent(tangents: dict, A: Tensor, out0: Tensor, left: bool) -> tuple:
    change = tangents.get("B")
    if "A" in tangents:
        product = tangents["A"] @ out0 if left else out0 @ tangents["A"]
        change = -product if change is None else change - product
    return _solve.call((A, change, left, ""))[0], None


def _matrix_gradient(A: Tensor, g: Tensor, out0: Tensor, left: bool) -> Tensor:
    """The gradient by the matrix of an equation."""
    g = _solve.call((A.mH, g, left, ""))[0]
    return -(g @ out0.mH) if left else -(out0.mH @ g)


_solve: Operator = primitive(
    "_linalg_solve(Tensor A, Tensor B, bool left, str checked) -> (Tensor result, Tensor info)",
    _solution,
    {
        "A": lambda g, A, out0, left: _matrix_gradient(A, g[0], out0, left),
        "B": lambda g, A, left: _solve.call((A.mH, g[0], left, ""))[0],
    },
    _solution_tangent,
    nondifferentiable_outputs=(1,),
    widens=False,
    meta=_solution_meta,
    batch=equations,
    name="LinalgSolveExBackward0",
    raises="values",
    cost="slow",
    doc="Solutions of linear equations, and which of them have none.",
)


def _solved(A: Tensor, B: Tensor, left: bool, checked: str) -> tuple[Tensor, Tensor]:
    """Solutions, where `B` may be a batch of vectors: of the shape of `A` without its columns."""
    shape = B.array.shape
    is_vector = B.array.ndim == 1 or (
        A.array.ndim == B.array.ndim + 1 and shape == A.array.shape[:-1]
    )
    if not is_vector:
        return _solve.call((A, B, left, checked))
    if not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for "
            "left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    found, info = _solve.call((A, B.unsqueeze(-1), left, checked))
    return as_own(found, found.array.shape[:-1]), info


def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """The X of ``A X = B``, or of ``X A = B`` if not `left`; `B` may be a vector."""
    return into("linalg_solve", _solved(A, B, left, "torch.linalg.solve")[0], out)


def solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Any = None
) -> Any:
    """The solutions of linear equations, and for each without one the place of a zero pivot."""
    found = _solved(A, B, left, "torch.linalg.solve_ex" if check_errors else "")
    return into("linalg_solve_ex", linalg_solve_ex(found), out)


# Triangular equations -----------------------------------------------------------------------------


def _triangular(
    xp: Any, a: Any, b: Any, upper: bool, left: bool, unitriangular: bool
) -> Any:
    check_equation("linalg.solve_triangular", a, b, left)
    if not left:
        turned = _triangular(
            xp, a.swapaxes(-1, -2), b.swapaxes(-1, -2), not upper, True, unitriangular
        )
        return columns(turned.swapaxes(-1, -2))
    offset = int(unitriangular)
    a = xp.triu(a, offset) if upper else xp.tril(a, -offset)
    if unitriangular:
        a = a + xp.eye(a.shape[-1], dtype=a.dtype)
    if not upper:
        # Turned around it is upper triangular, and then pivoting finds nothing to exchange.
        return columns(_upper(xp, a[..., ::-1, ::-1], b[..., ::-1, :])[..., ::-1, :])
    return columns(_upper(xp, a, b))


def _upper(xp: Any, a: Any, b: Any) -> Any:
    try:
        return xp.linalg.solve(a, b)
    except xp.linalg.LinAlgError:
        return _dividing_by_zero(a, b)


def _dividing_by_zero(a: Any, b: Any) -> Any:
    """Substitution that divides by zeros on the diagonal, as PyTorch's does."""
    shape = _solution_shape(a, b)
    a, out = np.broadcast_to(a, (*shape[:-2], *a.shape[-2:])), np.array(np.broadcast_to(b, shape))
    for row in range(shape[-2] - 1, -1, -1):
        known = a[..., row : row + 1, row + 1 :] @ out[..., row + 1 :, :]
        out[..., row, :] = (out[..., row, :] - known[..., 0, :]) / a[..., row, row, None]
    return out


def _triangular_meta(a: Any, b: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    check_equation("linalg.solve_triangular", a, b, left)
    return meta_columns(_solution_shape(a, b), a.dtype)


def _triangle(x: Tensor, upper: bool, unitriangular: bool) -> Tensor:
    """The elements that a triangular equation reads."""
    offset = int(unitriangular)
    return triu(x, offset) if upper else tril(x, -offset)


def _triangular_tangent(
    tangents: dict,
    self: Tensor,
    upper: bool,
    left: bool,
    unitriangular: bool,
    out: Tensor,
) -> Tensor:
    change = tangents.get("B")
    if "self" in tangents:
        t = _triangle(tangents["self"], upper, unitriangular)
        product = t @ out if left else out @ t
        change = -product if change is None else change - product
    return solve_triangular.call((self, change, upper, left, unitriangular))


def _triangular_matrix_gradient(
    g: Tensor, self: Tensor, upper: bool, left: bool, unitriangular: bool, out: Tensor
) -> Tensor:
    g = solve_triangular.call((self.mH, g, not upper, left, unitriangular))
    product = g @ out.mH if left else out.mH @ g
    return _triangle(-product, upper, unitriangular)


solve_triangular: Operator = primitive(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, "
    "bool unitriangular=False) -> Tensor",
    _triangular,
    {
        "self": _triangular_matrix_gradient,
        "B": lambda g, self, upper, left, unitriangular: solve_triangular.call(
            (self.mH, g, not upper, left, unitriangular)
        ),
    },
    _triangular_tangent,
    widens=False,
    meta=_triangular_meta,
    batch=equations,
    cost="slow",
    name="LinalgSolveTriangularBackward0",
    public="",
    aliases={"A": "self"},
    doc="The X of ``A X = B``, or of ``X A = B`` if not `left`, with a triangular A.",
)


# Cholesky -----------------------------------------------------------------------------------------


def _cholesky(xp: Any, a: Any, upper: bool, checked: str) -> Any:
    check_square("linalg.cholesky", a)
    # Only one triangle is read, which may be all there is.
    lower = a.conj().swapaxes(-1, -2) if upper else a
    if (found := systems.cholesky(lower)) is not None:
        return columns(found.swapaxes(-1, -2) if upper else found), xp.zeros(a.shape[:-2], INFO)
    try:
        out = xp.linalg.cholesky(lower)
        info = _first_lost(xp, out)
    except xp.linalg.LinAlgError:
        out, info = _cholesky_each(lower)
    if info is None:
        info = xp.zeros(a.shape[:-2], INFO)
    elif checked:
        raise_first(checked, info, _not_positive)
    return columns(out.conj().swapaxes(-1, -2) if upper else out), info


def _first_lost(xp: Any, factor: Any) -> Any:
    """The order of each matrix's first minor that is not a number, or 0: LAPACK goes on there.

    None if all of them are numbers.
    """
    lost = xp.isnan(xp.diagonal(factor, 0, -2, -1))
    if not lost.any().item():
        return None
    return xp.where(lost.any(-1), lost.argmax(-1) + 1, 0).astype(INFO)


def _cholesky_each(a: Any) -> tuple[Any, Any]:
    """The factors of all matrices as far as they go, and where each of them ends."""
    from scipy.linalg import lapack

    (potrf,) = lapack.get_lapack_funcs(("potrf",), (a,))
    found = each_matrix(lambda matrix: potrf(matrix, lower=True, clean=True), a)
    out = np.stack([factor for factor, _ in found]).reshape(a.shape)
    info = np.array([info for _, info in found], INFO).reshape(a.shape[:-2])
    lost = _first_lost(np, out)
    return out, info if lost is None else np.where(info == 0, lost, info)


def _not_positive(order: int) -> str:
    return (
        "The factorization could not be completed because the input is not positive-definite (the "
        f"leading minor of order {order} is not positive-definite)."
    )


def _cholesky_meta(a: Any, upper: bool, checked: str) -> Any:
    check_square("linalg.cholesky", a)
    return meta_columns(a.shape, a.dtype), meta.empty(a.shape[:-2], INFO)


def _half_diagonal(x: Tensor) -> Tensor:
    """The lower triangle with half the diagonal."""
    return (tril(x) + tril(x, -1)) / 2


def _cholesky_gradient(g: Tensor, upper: bool, factor: Tensor) -> Tensor:
    if upper:
        g, factor = g.mH, factor.mH
    inner = _half_diagonal(factor.mH @ g)
    inner = (inner + inner.mH) / 2
    solved = solve_triangular.call((factor.mH, inner, True, True, False))
    return solve_triangular.call((factor, solved, False, False, False))


def _cholesky_tangent(t: Tensor, upper: bool, factor: Tensor) -> Tensor:
    lower = factor.mH if upper else factor
    inner = solve_triangular.call((lower, t, False, True, False))
    inner = solve_triangular.call((lower.mH, inner, True, False, False))
    tangent = lower @ _half_diagonal(inner)
    return tangent.mH if upper else tangent


_factor = primitive(
    "_linalg_cholesky(Tensor A, bool upper, str checked) -> (Tensor L, Tensor info)",
    _cholesky,
    lambda g, upper, out0: _cholesky_gradient(g[0], upper, out0),
    lambda tangents, upper, out0: (_cholesky_tangent(tangents["A"], upper, out0), None),
    nondifferentiable_outputs=(1,),
    widens=False,
    meta=_cholesky_meta,
    batch=leading,
    name=lambda A, upper, checked: (
        "CholeskyBackward0" if checked == "cholesky" else "LinalgCholeskyExBackward0"
    ),
    raises="values",
    cost="slow",
    doc="Cholesky factors of matrices, and which of them have none.",
)


def cholesky_factor(A: Tensor, upper: bool, checked: str) -> tuple[Tensor, Tensor]:
    """Cholesky factors; what has none is refused in the name of `checked`, if that is given."""
    return _factor.call((A, upper, checked))


def cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """The triangular L of ``A = L L^H``, or the U of ``A = U^H U`` if `upper`."""
    return into("linalg_cholesky", _factor.call((A, upper, "linalg.cholesky"))[0], out)


def cholesky_ex(
    A: Tensor, *, upper: bool = False, check_errors: bool = False, out: Any = None
) -> Any:
    """Cholesky factors, and for each matrix without one the order of a minor that shows it."""
    found = _factor.call((A, upper, "linalg.cholesky_ex" if check_errors else ""))
    return into("linalg_cholesky_ex", linalg_cholesky_ex(found), out)
