"""Factors L D L^H of Hermitian matrices that need not be definite, and solutions by them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import return_types
from ..backends import meta
from ..backends.backend import backend_of
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..transforms.batching.rules import leading, one_by_one
from .declare import primitive
from .linalg_kernels import (
    INFO,
    check_equation,
    check_square,
    each_matrix,
    into,
    meta_columns,
    raise_first,
)

__all__ = []


def _routine(name: str, hermitian: bool, a: Any) -> Any:
    """LAPACK's routine for symmetric matrices, or for Hermitian ones."""
    kind = "he" if hermitian and a.dtype.kind == "c" else "sy"
    lapack = backend_of(a).scipy_linalg("lapack")
    return lapack.get_lapack_funcs((kind + name,), (a,))[0]


def _factored(xp: Any, a: Any, hermitian: bool, checked: str) -> Any:
    check_square("torch.linalg.ldl_factor_ex", a)
    *batch, n, _ = a.shape
    out = xp.empty(a.shape, a.dtype).swapaxes(-1, -2)
    pivots, info = xp.empty((*batch, n), INFO), xp.zeros(tuple(batch), INFO)
    if not a.size:
        return out, pivots, info
    trf = _routine("trf", hermitian, a)
    found = each_matrix(lambda matrix: trf(matrix, lower=1), a)
    out.reshape(-1, n, n)[...] = np.tril(np.stack([factors for factors, _, _ in found]))
    pivots.reshape(-1, n)[...] = np.stack([rows for _, rows, _ in found])
    info.reshape(-1)[...] = [failed for _, _, failed in found]
    if checked:
        raise_first(checked, info, _singular)
    return out, pivots, info


def _singular(place: int) -> str:
    return f"D[{place},{place}] is zero, using it on ldl_solve would divide by zero."


def _factored_meta(a: Any, hermitian: bool, checked: str) -> Any:
    check_square("torch.linalg.ldl_factor_ex", a)
    shape = a.shape
    return (
        meta_columns(shape, a.dtype), meta.empty(shape[:-1], INFO), meta.empty(shape[:-2], INFO)
    )  # fmt: skip


def _refused(name: str) -> Any:
    def rule(t: Any) -> Any:
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return rule


_NO_FACTORS = _refused("linalg_ldl_factor_ex")
_factor: Operator = primitive(
    "_linalg_ldl_factor(Tensor self, bool hermitian, str checked) -> (Tensor LD, Tensor pivots, "
    "Tensor info)",
    _factored,
    _NO_FACTORS,
    lambda tangents: _NO_FACTORS(tangents["self"]),
    nondifferentiable_outputs=(1, 2),
    widens=False,
    meta=_factored_meta,
    batch=leading,
    name="NotImplemented",
    raises="values",
    cost="slow",
    doc="Factors L D L^H of Hermitian matrices in one matrix, and the exchanged rows.",
)


def ldl_factor(A: Tensor, *, hermitian: bool = False, out: Any = None) -> Any:
    """L and D of ``A = L D L^T`` in one matrix, and which rows were exchanged.

    D has blocks of one or two rows. Only the lower triangle of `A` is read. With `hermitian` the
    factors are those of ``L D L^H``.
    """
    found = _factor.call((A, hermitian, "torch.linalg.ldl_factor"))[:2]
    return into("linalg_ldl_factor", return_types.linalg_ldl_factor(found), out)


def ldl_factor_ex(
    A: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: Any = None
) -> Any:
    """As `ldl_factor`, with the place of a zero on the diagonal of D for each matrix."""
    found = _factor.call((A, hermitian, "torch.linalg.ldl_factor_ex" if check_errors else ""))
    return into("linalg_ldl_factor_ex", return_types.linalg_ldl_factor_ex(found), out)


# Solutions ----------------------------------------------------------------------------------------


def _check_solvable(factors: Any, pivots: Any, b: Any) -> None:
    check_equation("torch.linalg.ldl_solve", factors, b, True)
    if pivots.dtype.kind not in "iu":
        raise RuntimeError(
            "torch.linalg.ldl_solve: Expected pivots to be integers. Got "
            f"{pivots.dtype} instead."
        )
    if pivots.shape != factors.shape[:-1]:
        raise RuntimeError(
            "torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but "
            f"got pivots with shape {list(pivots.shape)} instead"
        )


def _solved(xp: Any, factors: Any, pivots: Any, b: Any, hermitian: bool) -> Any:
    _check_solvable(factors, pivots, b)
    batch = np.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    rows, right = b.shape[-2:]
    out = xp.empty((*batch, right, rows), b.dtype).swapaxes(-1, -2)
    if not out.size:
        return out
    trs = _routine("trs", hermitian, factors)
    factors = xp.broadcast_to(factors, (*batch, rows, rows)).reshape(-1, rows, rows)
    pivots = xp.broadcast_to(pivots, (*batch, rows)).reshape(-1, rows).astype(INFO)
    b = xp.broadcast_to(b, (*batch, rows, right)).reshape(-1, rows, right)
    flat = out.reshape(-1, rows, right)
    for i in range(flat.shape[0]):
        flat[i] = trs(factors[i], pivots[i], b[i], lower=1)[0]
    return flat.reshape(out.shape)


def _solved_meta(factors: Any, pivots: Any, b: Any, hermitian: bool) -> Any:
    _check_solvable(factors, pivots, b)
    batch = np.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    return meta_columns((*batch, *b.shape[-2:]), b.dtype)


_NO_SOLUTION = _refused("linalg_ldl_solve")
_solve: Operator = primitive(
    "_linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, bool hermitian) -> Tensor",
    _solved,
    {"LD": _NO_SOLUTION, "B": _NO_SOLUTION},
    lambda tangents: _NO_SOLUTION(tangents),
    widens=False,
    meta=_solved_meta,
    batch=one_by_one("LAPACK's routine solves the equations of one matrix after the other"),
    name="NotImplemented",
    cost="slow",
    doc="Solutions of linear equations by factors L D L^H.",
)


def ldl_solve(
    LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False, out: Tensor | None = None
) -> Tensor:
    """The X of ``A X = B`` by the factors of A that `ldl_factor` gives."""
    return into("linalg_ldl_solve", _solve.call((LD, pivots, B, hermitian)), out)
