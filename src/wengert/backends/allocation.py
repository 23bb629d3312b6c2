"""New arrays on a device, by shape or like another."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes
from ..core.devices import CPU, device
from ..core.layouts import keeps_order
from .layout import empty_in_order
from .placement import of_array, require_cupy


def new_array(shape: tuple[int, ...], kind: dtypes.dtype, place: device) -> Any:
    """An uninitialised array on a device."""
    if place.type == "cpu":
        return np.empty(shape, kind.numpy)
    if place.type == "meta":
        from . import meta

        return meta.empty(shape, kind.numpy)
    cupy = require_cupy()
    with cupy.cuda.Device(place.index):
        return cupy.empty(shape, kind.numpy)


def new_array_like(
    source: Any, kind: dtypes.dtype, place: device, memory_format: Any = None
) -> Any:
    """An uninitialised array with the shape and, by default, the order of dimensions of another."""
    keep = keeps_order(memory_format)
    here = of_array(source)
    if place.type == "cpu" and here is CPU:
        if keep:
            return empty_in_order(source, kind.numpy)
        return np.empty_like(source, kind.numpy, "C", False)
    if place.type == "meta" and keep:
        from . import meta

        return meta.like(source, kind.numpy)
    return new_array(source.shape, kind, place)


def fill(array: Any, value: Any) -> Any:
    """`array` with every element set; a shape-only array has none."""
    if of_array(array).type != "meta":
        array.fill(value)
    return array
