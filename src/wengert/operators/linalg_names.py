"""Linear algebra under the names that functions of the package and methods of Tensor have."""

from __future__ import annotations

from typing import Any

from .. import return_types
from ..core.errors import shape_text
from ..core.tensor import Tensor
from . import linalg_determinants as determinants
from . import linalg_functions as functions
from .declare import composite
from .diagonals import tril
from .linalg_determinants import logdet
from .linalg_functions import matrix_power
from .linalg_kernels import by_columns, check_square, into
from .linalg_least_squares import pinv
from .linalg_least_squares import qr as factors
from .linalg_solving import cholesky_factor, inv, inverse_or_raise, solve_triangular
from .linalg_spectral import singular, svdvals

__all__ = [
    "cholesky", "cholesky_inverse", "cholesky_solve", "cross", "det", "inverse", "logdet",
    "matrix_exp", "matrix_power", "pinverse", "qr", "slogdet", "svd", "triangular_solve", "vander",
]  # fmt: skip


def cholesky(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The triangular L of ``input = L L^H``, or the U of ``input = U^H U`` if `upper`."""
    return into("cholesky", cholesky_factor(input, upper, "cholesky")[0], out)


def cholesky_solve(
    input: Tensor, input2: Tensor, upper: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The X of ``A X = input``, where `input2` is the Cholesky factor of A."""
    for name, x in (("b", input), ("u", input2)):
        if x.array.ndim < 2:
            raise RuntimeError(
                f"{name} should have at least 2 dimensions, but has {x.array.ndim} dimensions "
                "instead"
            )
    lower = input2.mH if upper else input2
    inner = solve_triangular.call((lower, input, False, True, False))
    found = solve_triangular.call((lower.mH, inner, True, True, False))
    return into("cholesky_solve", found, out)


def cholesky_inverse(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the matrix whose Cholesky factor is given."""
    check_square("cholesky_inverse", input.array)
    lower = input.mH if upper else input
    inner = inverse_or_raise(tril(lower), "cholesky_inverse")
    return into("cholesky_inverse", by_columns(inner.mH @ inner), out)


def cross(
    input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Cross products of vectors along `dim`, or along the first dimension of length three."""
    if dim is None:
        if input.array.ndim != other.array.ndim:
            raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
        three = [i for i, n in enumerate(input.array.shape) if n == 3]
        if not three:
            raise RuntimeError(
                f"no dimension of size 3 in input {shape_text(input.array.shape)}"
            )
        dim = three[0]
    return functions.cross(input, other, dim=dim, out=out)


def det(input: Tensor) -> Tensor:
    """Determinants of square matrices."""
    return determinants.det.call1(input)


def slogdet(input: Tensor, *, out: Any = None) -> Any:
    """Signs of determinants and logarithms of their sizes: another name of linalg.slogdet()."""
    found = return_types.slogdet(determinants.slogdet_operator.call1(input))
    return into("slogdet", found, out)


def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverses of square matrices: another name of linalg.inv()."""
    return inv(input, out=out)


def matrix_exp(input: Tensor) -> Tensor:
    """Exponentials of square matrices."""
    return functions.matrix_exp.call1(input)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Pseudo-inverses; singular values up to `rcond` times the largest count as zero."""
    return pinv(input, rcond)


def qr(input: Tensor, some: bool = True, *, out: Any = None) -> Any:
    """``input = Q R`` with orthonormal columns in Q, which is square unless `some`."""
    found = return_types.qr(factors(input, "reduced" if some else "complete"))
    return into("qr", found, out)


def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """``input = U diag(S) V^H``; vectors are zeros unless `compute_uv`."""
    if compute_uv:
        u, s, vh = singular(input, not some)
        found = return_types.svd(u, s, vh.mH)
    else:
        *batch, m, n = input.array.shape
        u, v = input.new_zeros((*batch, m, m)), input.new_zeros((*batch, n, n))
        found = return_types.svd(u, svdvals(input), v)
    return into("svd", found, out)


def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: Any = None,
) -> Any:
    """The X of ``A X = input`` with a triangular A, and a copy of A."""
    if input.array.ndim < 2 or A.array.ndim < 2:
        raise RuntimeError(
            "torch.triangular_solve: Expected b and A to have at least 2 dimensions, but they have "
            f"{input.array.ndim} and {A.array.ndim} dimensions respectively"
        )
    turned = A.mT if transpose else A
    solution = solve_triangular.call((turned, input, upper != transpose, True, unitriangular))
    shape = (*solution.array.shape[:-2], *A.array.shape[-2:])
    found = return_types.triangular_solve(solution, by_columns(A.expand(shape)))
    return into("triangular_solve", found, out)


@composite(public="function")
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Rows of the powers of each element, from the highest down unless `increasing`."""
    if x.array.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.array.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    if count <= 1 or not x.array.size:
        found = x.new_ones((x.array.shape[0], count)) + 0 * x.unsqueeze(-1)
        return found.long() if found.array.dtype.kind in "biu" else found
    found = functions.powers(x, count)
    return found if increasing else found.flip(-1)
