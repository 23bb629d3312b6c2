"""New arrays on a device, by shape or beside another."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes
from ..core.arrays import made_here
from ..core.devices import CPU, device
from ..core.layouts import channel_order, inverse_order, keeps_order
from ..core.tensor import Tensor, wrap
from . import meta
from .backend import backend_of, backend_on
from .layout import empty_in_order
from .placement import of_array


def new_array(shape: tuple[int, ...], kind: dtypes.dtype, place: device) -> Any:
    """An uninitialised array on a device."""
    return backend_on(place).empty(shape, kind.numpy, place)


def new_array_like(
    source: Any, kind: dtypes.dtype, place: device, memory_format: Any = None
) -> Any:
    """An uninitialised array with the shape and, by default, the order of dimensions of another."""
    order = channel_order(memory_format, source.ndim)
    if order is not None:
        array = new_array(tuple([source.shape[d] for d in order]), kind, place)
        return array.transpose(inverse_order(order))
    keep = keeps_order(memory_format)
    here = of_array(source)
    if place.type == "meta" and keep:
        return meta.like(source, kind.numpy)
    if place.type == here.type and (here is CPU or place.index in (None, here.index)):
        if keep:
            return empty_in_order(source, kind.numpy)
        if here is CPU:
            return np.empty_like(source, kind.numpy, "C", False)
    return new_array(source.shape, kind, place)


def fill(array: Any, value: Any) -> Any:
    """`array` with every element set; a shape-only array has none."""
    if not backend_of(array).shape_only:
        array.fill(value)
    return array


def zeros_for(shape: tuple[int, ...], array_dtype: Any, beside: Any) -> Tensor:
    """Zeros of a shape and array type on the device of an array, as a missing gradient is."""
    return made_here(wrap(_filled(shape, array_dtype, beside, 0)))


def ones_for(shape: tuple[int, ...], array_dtype: Any, beside: Any) -> Tensor:
    """Ones on the device of an array: the gradient of a scalar with respect to itself."""
    return made_here(wrap(_filled(shape, array_dtype, beside, 1)))


def _filled(shape: tuple[int, ...], array_dtype: Any, beside: Any, value: int) -> Any:
    """An array of one number on the device of another array."""
    place = CPU if beside is None else of_array(beside)
    if place is CPU:
        return np.zeros(shape, array_dtype) if value == 0 else np.full(shape, value, array_dtype)
    return fill(backend_on(place).empty(shape, array_dtype, place), value)
