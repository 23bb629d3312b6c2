"""On which device an array lives, and how it gets to another."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.arrays import LevelArray, WrapperArray
from ..core.devices import CPU, device
from .backend import backend_of, backend_on
from .meta import like


def of_array(array: Any) -> device:
    """The device on which an array lives; inside a transform, that of the value below."""
    if type(array) is np.ndarray:
        return CPU
    while type(array) is LevelArray:
        if array.level.traces:
            return getattr(array.value.array, "stands_for", None) or CPU
        array = array.value.array
    if type(array) is np.ndarray:
        return CPU
    if type(array) is WrapperArray:
        return array.place
    return backend_of(array).device_of(array)


def transfer(array: Any, target: device) -> Any:
    """An array of these values on `target`; the array itself if it is already there."""
    source = of_array(array)
    if target.type == source.type and target.index in (None, source.index):
        return array
    if target.type == "cpu" == source.type:
        return array
    if target.type == "meta" or getattr(array, "stands_for", None) is not None:
        moved = like(array)
        moved.stands_for = None if target.type == "meta" else target
        return moved
    return backend_on(target).from_numpy(backend_of(array).to_numpy(array), target)
