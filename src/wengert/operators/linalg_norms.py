"""Norms of matrices, condition numbers, ranks."""

from __future__ import annotations

import math
from typing import Any

from ..core.dtypes import dtype as DType
from ..core.dtypes import finfo, from_numpy
from ..core.tensor import Tensor
from .along import normal_dim
from .extrema import amax, amin
from .linalg_kernels import check_matrices, check_shape_square, into, real_dtype
from .linalg_solving import inv_ex
from .linalg_spectral import eigvalsh, svdvals
from .norms import vector_norm
from .pointwise import abs, maximum, where

__all__ = []

_ORDERS = (1, 2, math.inf)


def _check_order(order: Any) -> None:
    known = order in ("fro", "nuc") if isinstance(order, str) else math.fabs(order) in _ORDERS
    if not known:
        raise RuntimeError(f"linalg.matrix_norm: Order {order} not supported.")


def _two_dims(A: Tensor, dim: Any) -> tuple[int, int]:
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) != 2:
        text = " ".join(map(str, dims))
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {text}")
    first, second = (normal_dim(d, A.array.ndim) for d in dims)
    if first == second:
        raise RuntimeError(
            f"linalg.matrix_norm: dims must be different. Got ({dims[0]}, {dims[1]})"
        )
    return first, second


def matrix_norm(
    A: Tensor,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """A norm of matrices: Frobenius (``fro``), nuclear (``nuc``), or of order 1, 2 or inf.

    Orders with a minus sign give the least in place of the greatest.
    """
    if A.array.dtype.kind in "biu" or A.array.ndim < 2:
        check_matrices("linalg.matrix_norm", A.array)
    _check_order(ord)
    row, column = _two_dims(A, dim)
    if dtype is not None and dtype is not A.dtype:
        A = A.to(dtype)
    if ord == "fro":
        return into("linalg_matrix_norm", vector_norm(A, 2, (row, column), keepdim), out)
    if ord == "nuc" or math.fabs(ord) == 2:
        found = _of_singular_values(A, ord, (row, column), keepdim)
        return into("linalg_matrix_norm", found, out)
    if math.fabs(ord) == math.inf:
        row, column = column, row
    sums = vector_norm(A, 1, (row,), keepdim)
    along = column if keepdim or column < row else column - 1
    found = (amax if ord > 0 else amin)(sums, along, keepdim)
    return into("linalg_matrix_norm", found, out)


def _of_singular_values(A: Tensor, order: Any, dims: tuple[int, int], keepdim: bool) -> Tensor:
    ndim = A.array.ndim
    last = (*[d for d in range(ndim) if d not in dims], *dims)
    values = svdvals(A.permute(last))
    found = values.sum(-1) if order == "nuc" else (amax if order > 0 else amin)(values, -1)
    if not keepdim:
        return found
    return found.unsqueeze(-1).unsqueeze(-1).permute(tuple([last.index(d) for d in range(ndim)]))


def norm(
    A: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
) -> Tensor:
    """A norm of vectors along one dimension, or of matrices along two."""
    count = 1 if isinstance(dim, int) else None if dim is None else len(tuple(dim))
    if ord is not None and dim is None:
        if A.array.ndim not in (1, 2):
            raise RuntimeError(
                "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
                f"{A.array.ndim}D."
            )
        count, dim = A.array.ndim, (0,) if A.array.ndim == 1 else (0, 1)
    if ord is not None and (count == 2 or isinstance(ord, str)):
        return matrix_norm(A, ord, dim, keepdim, dtype=dtype, out=out)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype, out=out)


def cond(A: Tensor, p: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Condition numbers: the norm of order `p` of a matrix times that of its inverse."""
    if A.array.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is None or (not isinstance(p, str) and math.fabs(p) == 2):
        values = svdvals(A)
        first, last = values.narrow(-1, 0, 1), values.narrow(-1, -1, 1)
        found = last / first if p == -2 else first / last
        return into("linalg_cond", found.squeeze(-1), out, False)
    if (p not in ("fro", "nuc")) if isinstance(p, str) else math.fabs(p) not in (1, math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    check_matrices("linalg.cond", A.array)
    check_shape_square(f"linalg.cond(ord={p})", A.array.shape)
    if p == "nuc":
        values = svdvals(A)
        return into("linalg_cond", values.sum(-1) * values.reciprocal().sum(-1), out, False)
    size = matrix_norm(A, p)
    inverse, info = inv_ex(A)
    # A singular matrix has an infinite condition number, also if it is zero.
    is_singular = (info != 0) & ~size.isnan()
    inverse = where(is_singular.unsqueeze(-1).unsqueeze(-1), 0, inverse)
    found = where(is_singular, math.inf, size * matrix_norm(inverse, p))
    return into("linalg_cond", found, out, False)


def matrix_rank(
    A: Tensor,
    tol: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """How many singular values of each matrix are above the tolerance.

    That is the larger one of `atol` and `rtol` times the largest of them; `tol` is the older name
    of `atol`, without a relative part.
    """
    if A.array.dtype.kind not in "fc" or A.array.dtype.itemsize == 2:
        raise RuntimeError("This function doesn't handle types other than float and double")
    if A.array.ndim < 2:
        raise RuntimeError(
            "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions."
        )
    if tol is not None:
        atol, rtol = tol, 0.0
    if not A.array.size:
        zeros = A.new_zeros(A.array.shape[:-2]).long()
        return into("linalg_matrix_rank", zeros, out, False)
    A = A.detach()
    values = abs(eigvalsh(A)) if hermitian else svdvals(A)
    if rtol is None:
        eps = finfo(from_numpy(real_dtype(A.array.dtype))).eps
        given = atol is not None and (isinstance(atol, Tensor) or atol > 0)
        rtol = 0.0 if given else eps * max(A.array.shape[-2:])
    largest = values.amax(-1, True)
    limit = largest * (rtol.unsqueeze(-1) if isinstance(rtol, Tensor) else rtol)
    if atol is not None:
        least = atol.unsqueeze(-1) if isinstance(atol, Tensor) else limit.new_full((), atol)
        limit = maximum(limit, least)
    return into("linalg_matrix_rank", (values > limit).sum(-1), out, False)
