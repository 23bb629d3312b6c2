"""Norms of vectors: vector_norm, norm."""

from __future__ import annotations

import math
from typing import Any

from ..backends.reductions import SQUARES, reduce
from ..core import dtypes
from ..core.dtypes import from_numpy
from ..core.loading import load
from ..core.tensor import Tensor
from ..transforms.batching.rules import along
from .along import in_dtype, normal_dims, packed, reduced, restore_dims, scalar_name, working_dtype
from .declare import primitive
from .pointwise import abs, isnan, pow, sgn, where, zeros_like
from .reduce import sum

__all__ = ["norm"]


def _check_norm(x: Any, order: float, dim: Any, dtype: Any) -> None:
    if x.dtype.kind in "biu":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            + scalar_name(x.dtype)
        )
    if dtype is not None:
        _check_norm_dtype(from_numpy(x.dtype), dtype)
    if order < 0 or order == math.inf:
        empty = [d for d in normal_dims(dim, x.ndim) if x.ndim and x.shape[d] == 0]
        if empty:
            which = f"the dimension {empty[0]}" if dim else "an empty tensor"
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {order} norm on {which} because the "
                "operation does not have an identity"
            )


def _check_norm_dtype(given: dtypes.dtype, wanted: dtypes.dtype) -> None:
    if wanted.category < dtypes.FLOATING:
        raise RuntimeError(
            "linalg.vector_norm: dtype should be floating point or complex, but got "
            + wanted.scalar_name
        )
    if given.is_complex != wanted.is_complex:
        kind = "complex" if given.is_complex else "real"
        raise RuntimeError(
            f"linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got "
            + wanted.scalar_name
        )
    if dtypes.promote_types(given, wanted) is not wanted:
        raise RuntimeError(
            f"linalg.vector_norm: the dtype of the input ({given.scalar_name}) should be "
            f"convertible without narrowing to the specified dtype ({wanted.scalar_name})"
        )


def _vector_norm(xp: Any, x: Any, order: float, dim: Any, keepdim: bool, dtype: Any) -> Any:
    _check_norm(x, order, dim, dtype)
    goal = x.dtype if dtype is None else dtype.numpy
    x = in_dtype(x, working_dtype(goal))
    dims = normal_dims(dim, x.ndim)
    how: dict[str, Any] = {"axis": dims, "keepdims": keepdim}
    if order == 2:
        total = reduce(SQUARES, x, dims, keepdim)
        if total is not None:
            return xp.sqrt(total).astype(goal, copy=False)
        square = x.real**2 + x.imag**2 if x.dtype.kind == "c" else x * x
        out = xp.sqrt(xp.sum(square, **how))
    else:
        size = xp.abs(x)
        if order == math.inf:
            out = xp.max(size, **how)
        elif order == -math.inf:
            out = xp.min(size, **how)
        elif order == 0:
            out = xp.sum(size != 0, dtype=size.dtype, **how)
        elif order == 1:
            out = xp.sum(size, **how)
        else:
            out = xp.power(xp.sum(xp.power(size, order), **how), 1 / order)
    return packed(out).astype(from_numpy(goal).to_real().numpy, copy=False)


def _norm_slope(x: Tensor, order: float, dim: Any, keepdim: bool, out: Tensor) -> Tensor:
    """The gradient of the norm; of its subgradients at zero, zero."""
    if order == 0:
        return zeros_like(x)
    if order == 1:
        return sgn(x)
    out = restore_dims(out, x.shape, dim, keepdim)
    if math.fabs(order) == math.inf:
        reached = (abs(x) == out) | (isnan(x) & isnan(out))
        return sgn(x) * reached / sum(reached, dim, True)
    vanishes = out == 0
    safe = where(vanishes, 1, out)
    if order == 2:
        return where(vanishes, 0, x / safe)  # 1 / safe alone could overflow
    size = abs(x)
    at_zero = (size == 0) & ~isnan(out)
    ratio = where(at_zero, 1, size) / safe
    return where(at_zero | vanishes, 0, sgn(x) * pow(ratio, order - 1))


def _norm_gradient(
    g: Tensor, x: Tensor, order: float, dim: Any, keepdim: bool, out: Tensor
) -> Tensor | None:
    """The gradient, where a norm above 1 of nothing but zeros feels no incoming one.

    PyTorch says so even of an infinite one, except for the Euclidean norm.
    """
    if order == 0:
        return None
    if 1 < order < math.inf and order != 2:
        g = where(out == 0, 0, g)
    return restore_dims(g, x.shape, dim, keepdim) * _norm_slope(x, order, dim, keepdim, out)


def _norm_tangent(
    t: Tensor, x: Tensor, order: float, dim: Any, keepdim: bool, out: Tensor
) -> Tensor:
    if order == 0:
        return zeros_like(out)
    product = t * _norm_slope(x, order, dim, keepdim, out).conj()
    tangent = sum(product.real if product.is_complex() else product, dim, keepdim)
    return where(out == 0, 0, tangent) if 1 < order < math.inf else tangent


vector_norm = primitive(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[]? dim=None, bool keepdim=False, *, "
    "dtype? dtype=None) -> Tensor",
    _vector_norm,
    lambda g, self, ord, dim, keepdim, out: _norm_gradient(g, self, ord, dim, keepdim, out),
    lambda tangents, self, ord, dim, keepdim, out: _norm_tangent(
        tangents["self"], self, ord, dim, keepdim, out
    ),
    widens=False,
    shape=lambda x, ord, dim, keepdim, dtype: reduced(x, dim, keepdim),
    batch=along("dim"),
    doc="Norm of the elements as vectors over all or the given dimensions.",
    out="exact",
)


def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: Any = None,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The p-norm over all or the given dimensions; 'fro' is the Euclidean norm.

    The nuclear norm, 'nuc', is that of matrices.
    """
    if isinstance(p, str):
        if p == "nuc":
            matrix_norm = load("operators.linalg_norms").matrix_norm
            dims = tuple(range(input.array.ndim)) if dim is None else dim
            return matrix_norm(input, "nuc", dims, keepdim, dtype=dtype, out=out)
        if p != "fro":
            raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
        p = 2
    return vector_norm(input, 2 if p is None else p, dim, keepdim, dtype=dtype, out=out)
