"""Reductions: sum, mean, prod, var, extrema and their indices, norms, softmax, cumulative sum."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..errors import dimension_error
from ..native import native
from ..tensor import Tensor
from .declare import linear


def normal_dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """`dim` (None, an int or several) as a tuple of non-negative dimensions; None means all."""
    if dim is None or (isinstance(dim, tuple) and not dim):
        return tuple(range(ndim))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    result = []
    for d in dims:
        if not -max(ndim, 1) <= d < max(ndim, 1):
            raise dimension_error(d, ndim)
        d = d % ndim if ndim else 0
        if d in result:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
        result.append(d)
    return tuple(result) if ndim else ()


def sum_dtype(x: Any, dtype: Any) -> Any:
    """Integers are summed as int64."""
    if dtype is not None:
        return dtype.numpy
    return dtypes.int64.numpy if x.dtype.kind in "biu" else x.dtype


def _sum(xp: Any, x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if dim is None and not keepdim and dtype is None:
        small = native.sum_all(x)
        if small is not None:
            return small
    return xp.sum(x, axis=normal_dims(dim, x.ndim), dtype=sum_dtype(x, dtype), keepdims=keepdim)


def restore_dims(g: Tensor, shape: tuple, dim: Any, keepdim: bool) -> Tensor:
    """A reduced gradient with the reduced dimensions back as ones."""
    if keepdim or not shape:
        return g
    dims = normal_dims(dim, len(shape))
    return g.reshape(tuple(1 if i in dims else n for i, n in enumerate(shape)))


sum = linear(
    "sum(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    _sum,
    lambda g, self_shape, dim, keepdim: restore_dims(g, self_shape, dim, keepdim).expand(
        self_shape
    ),
    doc="Sum over all or the given dimensions.",
)


def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """Sum over the dimensions that were broadcast from `size`."""
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    extra = input.array.ndim - len(shape)
    dims = tuple(range(extra)) + tuple(
        i + extra
        for i, n in enumerate(shape)
        if n == 1 and input.array.shape[i + extra] != 1
    )
    out = sum(input, dims, True) if dims else input
    return out.reshape(shape) if extra else out
