"""Shapes and strides without elements: examples for a trace, and results as NumPy's kernels lay
them out, where meta tensors have PyTorch's strides.

The two differ where operands lie in different orders, and they decide whether a later reshape is a
view, so a trace has to know them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.meta import MetaArray, expanded_strides, of_strides
from ..backends.numpy import dense_strides
from ..tensor import Tensor, requires_of, wrap


def as_computed(out: Tensor, operands: list[Tensor]) -> Tensor:
    """The result of an elementwise operator on shapes, in the order that NumPy would choose; what
    an operator has reduced is left as it is."""
    arrays = [t.array for t in operands]
    if len(arrays) < 2 or all(a.flags.c_contiguous for a in arrays):
        return out
    array = out.array
    if array.shape != np.broadcast_shapes(*[a.shape for a in arrays]):
        return out
    strides = _strides_of_result(array.shape, arrays, array.itemsize)
    return out if strides == array.strides else wrap(of_strides(array.shape, strides, array.dtype))


def _strides_of_result(
    shape: tuple[int, ...], arrays: list[np.ndarray], itemsize: int
) -> tuple[int, ...]:
    """Dense strides; each dimension is put inside of those that all operands have outside."""
    strides = [expanded_strides(a, shape) for a in arrays]
    order: list[int] = []  # from the dimension with the smallest stride up
    for dim in reversed(range(len(shape))):
        place = len(order)
        for i in reversed(range(len(order))):
            inside = _lies_inside(strides, dim, order[i])
            if inside:
                place = i
            elif inside is not None:
                break
        order.insert(place, dim)
    ranks = [order.index(dim) for dim in range(len(shape))]
    return dense_strides(shape, tuple(ranks), itemsize)


def _lies_inside(strides: list[list[int]], dim: int, other: int) -> bool | None:
    """Whether all operands that tell have `dim` inside of `other`; None if none tells."""
    known: bool | None = None
    for steps in strides:
        if steps[dim] and steps[other]:
            closer = abs(steps[other]) > abs(steps[dim])
            known = closer and known is not False
    return known


def shape_example(t: Tensor, shape: tuple[int, ...] | None = None) -> Tensor:
    """A tensor without data for a part of the function to be traced on; `shape` is that of one
    slice along the first dimension."""
    array = t.array
    strides = array.strides if shape is None else array.strides[1:]
    out = wrap(of_strides(array.shape if shape is None else shape, strides, array.dtype))
    out.needs_grad = requires_of(t)
    return out


def shape_only(array: Any) -> Any:
    """An array of the same shape, strides and dtype without elements."""
    if isinstance(array, MetaArray):
        return array
    return of_strides(array.shape, array.strides, array.dtype)
