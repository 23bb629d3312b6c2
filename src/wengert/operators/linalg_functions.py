"""Powers and exponentials of matrices, chains of products, and what is made of other operators."""

from __future__ import annotations

import math
from typing import Any

from ..backends import meta
from ..backends.backend import backend_of
from ..core.errors import shape_text
from ..core.layouts import contiguous_format
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..transforms.batching.rules import leading
from . import diagonals
from .along import is_half, normal_dim, packed, scalar_name
from .contraction import multiplied_in_best_order
from .declare import primitive
from .joining import broadcast_tensors, cat
from .linalg_kernels import check_shape_square, into
from .linalg_solving import inv, solve
from .matmul import vdot
from .scan import cumprod
from .views import view_

__all__ = []

# Powers -------------------------------------------------------------------------------------------


def matrix_power(A: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """The n-th power of square matrices; of their inverses if `n` is negative."""
    if A.array.ndim < 2:
        raise RuntimeError(
            "linalg.matrix_power: The input tensor A must have at least 2 dimensions."
        )
    check_shape_square("linalg.matrix_power", A.array.shape)
    return into("linalg_matrix_power", _power(A, n), out, n not in (0, 1))


def _power(A: Tensor, n: int) -> Tensor:
    if n == 0:
        identity = diagonals.diag_embed(A.new_ones(A.array.shape[:-1]))
        # Written into a copy, so that there is a gradient, of zeros.
        return A.clone(memory_format=contiguous_format).copy_(identity)
    if n == 1:
        return A.clone(memory_format=contiguous_format)
    if n < 0:
        A, n = inv(A), -n
    result = None
    while n:
        if n & 1:
            result = A if result is None else result @ A
        n >>= 1
        if n:
            A = A @ A
    assert result is not None
    return result


# Exponentials -------------------------------------------------------------------------------------


def _check_exp(a: Any) -> None:
    if a.dtype.kind in "biu":
        raise RuntimeError(
            "linalg.matrix_exp: Expected a floating point or complex tensor as input. Got "
            + scalar_name(a.dtype)
        )
    if a.ndim < 2:
        raise RuntimeError("linalg.matrix_exp: The input tensor A must have at least 2 dimensions.")
    check_shape_square("linalg.matrix_exp", a.shape)


def _matrix_exp(xp: Any, a: Any) -> Any:
    _check_exp(a)
    if not a.size:
        return a.copy()
    if a.shape[-1] == 1:
        return xp.exp(a)
    expm = backend_of(a).scipy_linalg("expm")
    return packed(expm(a)).astype(a.dtype, copy=False)


def _exp_meta(a: Any) -> Any:
    _check_exp(a)
    return meta.empty(a.shape, a.dtype)


def _exp_derivative(A: Tensor, t: Tensor) -> Tensor:
    """How the exponential of A changes in direction `t`: a corner of that of [[A, t], [0, A]]."""
    n = A.array.shape[-1]
    if not A.array.size:
        return t
    upper = cat([A, t], -1)
    lower = cat([A.new_zeros(A.array.shape), A], -1)
    return matrix_exp.call1(cat([upper, lower], -2)).narrow(-2, 0, n).narrow(-1, n, n)


matrix_exp: Operator = primitive(
    "linalg_matrix_exp(Tensor self) -> Tensor",
    _matrix_exp,
    lambda g, self: _exp_derivative(self.mH, g),
    lambda tangents, self: _exp_derivative(self, tangents["self"]),
    meta=_exp_meta,
    batch=leading,
    name="LinalgMatrixExpBackward0",
    public="",
    aliases={"A": "self"},
    cost="slow",
    doc="Exponentials of square matrices.",
)

# Products -----------------------------------------------------------------------------------------


def multi_dot(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Product of several matrices in the cheapest order; the first and the last may be vectors."""
    given = list(tensors)
    if len(given) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(given)}")
    for i, x in enumerate(given):
        ends = i in (0, len(given) - 1)
        if x.array.ndim != 2 and not (ends and x.array.ndim == 1):
            allowed = "1D or 2D" if ends else "2D"
            raise RuntimeError(
                f"multi_dot(): tensor {i} must be {allowed} but got {x.array.ndim}D"
            )
    row, column = given[0].array.ndim == 1, given[-1].array.ndim == 1
    if row:
        given[0] = given[0].unsqueeze(0)
    if column:
        given[-1] = given[-1].unsqueeze(-1)
    for i in range(len(given) - 1):
        if given[i].array.shape[1] != given[i + 1].array.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes "
                f"{shape_text(given[i].array.shape)} and {shape_text(given[i + 1].array.shape)} "
                "cannot be multiplied"
            )
    shape = given[0].array.shape[:1] * (not row) + given[-1].array.shape[1:] * (not column)
    found = view_.call((multiplied_in_best_order(given), shape))
    return into("linalg_multi_dot", found, out)


def cross(
    input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None
) -> Tensor:
    """The cross products of vectors of three elements along `dim`."""
    if input.array.ndim != other.array.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    along = normal_dim(dim, input.array.ndim)
    lengths = [x.array.shape[along] if x.array.ndim else 1 for x in (input, other)]
    if lengths != [3, 3]:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {lengths[0]} and "
            f"{lengths[1]}"
        )
    x, y = broadcast_tensors(input, other)
    found = x.roll(-1, along) * y.roll(-2, along) - x.roll(-2, along) * y.roll(-1, along)
    return into("linalg_cross", found, out)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Sums of the products of two tensors along `dim`, the first conjugated."""
    if not all(each.array.dtype.kind in "fcV" for each in (x, y)):
        raise RuntimeError(
            "linalg.vecdot: Expected a floating point or complex tensor as input. Got "
            + x.dtype.scalar_name
        )
    if x.array.ndim == 1 and y.array.ndim == 1:
        return into("linalg_vecdot", vdot(x, y), out)
    return into("linalg_vecdot", (x.conj() * y).sum(dim), out)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A view of the diagonals of matrices."""
    return diagonals.diagonal(A, offset, dim1, dim2)


def vander(x: Tensor, N: int | None = None) -> Tensor:
    """Rows of the powers 0, 1, ... of each element."""
    if x.array.dtype.kind == "b" or is_half(x.array.dtype):
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got "
            + x.dtype.scalar_name
        )
    return powers(x, N)


def powers(x: Tensor, N: int | None) -> Tensor:
    """Rows of the powers 0, 1, ... of each element, of any type."""
    x = x if x.array.ndim else x.unsqueeze(0)
    count = x.array.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    repeated = x.unsqueeze(-1).expand((*x.array.shape, count - 1))
    higher = cumprod(repeated, -1)
    return cat([higher.new_ones((*x.array.shape, 1)), higher], -1)


# Tensors as matrices ------------------------------------------------------------------------------


def tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse of a tensor as a map from its last dimensions to its first `ind` ones."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    shape = A.array.shape
    first, last = math.prod(shape[:ind]), math.prod(shape[ind:])
    if first != last:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {last} != {first}"
        )
    found = inv(A.reshape((first, last))).reshape((*shape[ind:], *shape[:ind]))
    return into("linalg_tensorinv", found, out, False)


def tensorsolve(
    A: Tensor, B: Tensor, dims: Any = None, *, out: Tensor | None = None
) -> Tensor:
    """The X of ``tensordot(A, X, X.ndim) = B``; the dimensions `dims` of `A` are taken last."""
    if dims is not None:
        chosen = [normal_dim(d, A.array.ndim) for d in dims]
        A = A.movedim(tuple(chosen), tuple(range(A.array.ndim - len(chosen), A.array.ndim)))
    shape, count = A.array.shape, B.array.ndim
    rows, unknowns = math.prod(shape[:count]), math.prod(shape[count:])
    if rows != unknowns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {unknowns} != {rows}"
        )
    found = solve(A.reshape((rows, unknowns)), B.reshape((-1,))).reshape(shape[count:])
    return into("linalg_tensorsolve", found, out, False)


