"""The stand-in as a backend of the library: arrays on devices of type "standin"."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.backends.backend import Backend, register
from wengert.core.devices import device

from . import namespace
from .array import Array


class StandinBackend(Backend):
    """Strict arrays that count as living on another device."""

    array_class = Array
    device_type = "standin"
    xp = namespace

    def device_of(self, array: Any) -> device:
        return PLACE

    def empty(self, shape: tuple[int, ...], dtype: Any, place: device) -> Any:
        return namespace.empty(shape, dtype)

    def from_numpy(self, array: np.ndarray, place: device) -> Any:
        return namespace.array(array)

    def to_numpy(self, array: Any) -> np.ndarray:
        return array.get()

    def address(self, array: Any) -> int:
        return array.pointer

    def may_share_memory(self, one: Any, other: Any) -> bool:
        return namespace.may_share_memory(one, other)

    def strided(self, array: Any, shape: Any, strides: Any, offset: int = 0) -> Any:
        return array.strided(shape, strides, offset)

    def view_shape(self, array: Any, shape: tuple[int, ...]) -> Any:
        out = array.reshape(shape)
        return out if not out.size or self.may_share_memory(array, out) else None


register(StandinBackend())
PLACE = device("standin", 0)
