"""Diagonals and triangles of matrices."""

from __future__ import annotations

from typing import Any

from ..backends import meta
from ..backends.geometry import diagonal_view, wrap_dim
from ..core.errors import dimension_error
from ..core.registry import operator_named
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..transforms.batching import views as batched
from ..transforms.batching.rules import sized
from . import shapes
from .declare import linear
from .views import ravel

__all__ = [
    "diag", "diag_embed", "diagflat", "diagonal", "diagonal_copy", "tril", "tril_", "triu", "triu_",
]  # fmt: skip


def _on_diagonal(xp: Any, g: Any, input_sizes: tuple, offset: int, dim1: int, dim2: int) -> Any:
    out = xp.zeros(input_sizes, g.dtype)
    diagonal_view(out, offset, dim1, dim2)[...] = g
    return out


diagonal = linear(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    lambda xp, x, offset, dim1, dim2: diagonal_view(x, offset, dim1, dim2),
    lambda g, self_shape, offset, dim1, dim2: _diagonal_backward.call(
        (g, self_shape, offset, dim1, dim2)
    ),
    view=True,
    batch=batched.diagonal,
    doc="The diagonal of two dimensions, as a last dimension.",
)
_diagonal_backward: Operator = linear(
    "diagonal_backward(Tensor grad_output, int[] input_sizes, int offset, int dim1, int dim2) "
    "-> Tensor",
    _on_diagonal,
    lambda g, offset, dim1, dim2: diagonal.call((g, offset, dim1, dim2)),
    meta=shapes.sized,
    batch=sized("input_sizes", "dim1", "dim2"),
    doc="Zeros with a gradient on a diagonal.",
)


def _triangle(name: str) -> Any:
    def kernel(xp: Any, x: Any, diagonal: int) -> Any:
        if x.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return xp.asarray(getattr(xp, name)(x, diagonal), order="C")

    return kernel


tril: Operator = linear(
    "tril(Tensor self, int diagonal=0) -> Tensor",
    _triangle("tril"),
    lambda g, diagonal: tril.call((g, diagonal)),
    inplace=True,
    shape=shapes.as_first,
    batch=batched.matrices,
    doc="The elements on and below a diagonal, zeros elsewhere.",
)
triu: Operator = linear(
    "triu(Tensor self, int diagonal=0) -> Tensor",
    _triangle("triu"),
    lambda g, diagonal: triu.call((g, diagonal)),
    inplace=True,
    shape=shapes.as_first,
    batch=batched.matrices,
    doc="The elements on and above a diagonal, zeros elsewhere.",
)
tril_ = operator_named("tril_")
triu_ = operator_named("triu_")


def _embedded(x: Any, offset: int, dim1: int, dim2: int) -> tuple[int, int, list[int]]:
    """The two dimensions of the matrices, and the shape of all."""
    if not x.ndim:
        raise dimension_error(-1, 0)
    first, second = wrap_dim(dim1, x.ndim + 1), wrap_dim(dim2, x.ndim + 1)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    shape = list(x.shape[:-1])
    for dim in sorted((first, second)):
        shape.insert(dim, x.shape[-1] + abs(offset))
    return first, second, shape


def _diag_embed(xp: Any, x: Any, offset: int, dim1: int, dim2: int) -> Any:
    first, second, shape = _embedded(x, offset, dim1, dim2)
    out = xp.zeros(shape, x.dtype)
    diagonal_view(out, offset, first, second)[...] = x
    return out


diag_embed = linear(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    _diag_embed,
    lambda g, offset, dim1, dim2: diagonal.call((g, offset, dim1, dim2)),
    meta=lambda x, *args: meta.empty(tuple(_embedded(x, *args)[2]), x.dtype),
    batch=batched.diag_embed,
    doc="Matrices of zeros with the last dimension on their diagonals.",
)
diagonal_copy = linear(
    "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    lambda xp, x, offset, dim1, dim2: diagonal_view(x, offset, dim1, dim2).copy(),
    lambda g, self_shape, offset, dim1, dim2: _diagonal_backward.call(
        (g, self_shape, offset, dim1, dim2)
    ),
    name="DiagonalBackward0_copy",
    shape=lambda x, offset, dim1, dim2: x.diagonal(offset, dim1, dim2).shape,
    batch=batched.diagonal,
    doc="A copy of the diagonal of two dimensions.",
    public="function",
)


def diag(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """A vector as a diagonal matrix, or the diagonal of a matrix."""
    ndim = input.array.ndim
    if ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    return (diag_embed if ndim == 1 else diagonal_copy)(input, diagonal, out=out)


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """All elements on the diagonal of a matrix."""
    return diag_embed(ravel(input), offset)
