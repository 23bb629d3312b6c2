"""Shapes and strides without elements, for a function to be traced on."""

from __future__ import annotations

from typing import Any

from ...backends.geometry import span
from ...backends.meta import MetaArray, of_strides
from ...backends.placement import of_array
from ...core.tensor import Tensor, requires_of, set_fields, wrap


def shape_example(t: Tensor, shape: tuple[int, ...] | None = None) -> Tensor:
    """A tensor without data for a part of the function to be traced on; `shape` is that of one
    slice along the first dimension."""
    array = t.array
    strides = array.strides if shape is None else array.strides[1:]
    made = of_strides(array.shape if shape is None else shape, strides, array.dtype)
    made.stands_for = of_array(array)
    out = wrap(made)
    set_fields(out, needs_grad=requires_of(t))
    return out


def shape_only(array: Any) -> Any:
    """An array of the same shape, strides and dtype without elements."""
    if isinstance(array, MetaArray):
        return array
    out = of_strides(array.shape, array.strides, array.dtype)
    out.stands_for = of_array(array)
    return out


def is_within(t: Tensor, size: tuple, stride: tuple, offset: int, layout: tuple) -> bool:
    """Whether a view by strides shows no more than a tensor's own elements and the gaps in them."""
    return 0 in size or (offset >= 0 and offset + span(size, stride) <= span(t.array.shape, layout))
