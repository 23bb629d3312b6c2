"""NumPy's arrays, in the memory of the CPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..core.devices import CPU, device
from ..core.loading import load
from .backend import Backend, register
from .numpy import quiet, reshape_uncopied


class NumpyBackend(Backend):
    """The arrays that tensors have unless a device is named."""

    array_class: type = np.ndarray
    device_type = "cpu"
    xp = np

    def device_of(self, array: Any) -> device:
        return CPU

    def empty(self, shape: tuple[int, ...], dtype: Any, place: device) -> Any:
        return np.empty(shape, dtype)

    def from_numpy(self, array: np.ndarray, place: device) -> Any:
        return array

    def to_numpy(self, array: Any) -> np.ndarray:
        return array

    def address(self, array: Any) -> int:
        return array.__array_interface__["data"][0]

    def may_share_memory(self, one: Any, other: Any) -> bool:
        # As plain arrays: the classes that mark tensors refuse NumPy's functions.
        return np.may_share_memory(one.view(np.ndarray), other.view(np.ndarray))

    def strided(self, array: Any, shape: Any, strides: Any, offset: int = 0) -> Any:
        if offset:
            # The second of two elements `offset` apart: nothing else moves an array's start.
            array = as_strided(array, (2,), (offset,), subok=True)[1:]
        return as_strided(array, shape, strides, subok=True)

    def view_shape(self, array: Any, shape: tuple[int, ...]) -> Any:
        try:
            return reshape_uncopied(array, shape)
        except (AttributeError, ValueError):
            return None

    def empty_strided(self, shape: tuple[int, ...], strides: Any, dtype: Any, like: Any) -> Any:
        memory = np.empty(shape, dtype)
        return memory if memory.strides == strides else np.ndarray(shape, dtype, memory, 0, strides)

    def special(self, name: str) -> Any:
        return _erf if name == "erf" else _of_scipy(name)

    def scipy_linalg(self, name: str) -> Any:
        from scipy import linalg

        return getattr(linalg, name)

    def fourier(self, name: str) -> Any:
        return getattr(load("backends.transforms"), name)

    def accumulate(self, name: str, array: Any, dim: int) -> Any:
        return getattr(np, name).accumulate(array, axis=dim)

    def silence(self) -> Any:
        return quiet.set(quiet.ignore)

    def restore(self, token: Any) -> None:
        quiet.reset(token)


def _of_scipy(name: str) -> Any:
    from scipy import special

    return getattr(special, name)


def _erf(x: Any) -> Any:
    """The error function. For one element, which is all that a trace computes, it does without
    SciPy, whose import takes longer than all else in a first call."""
    if x.size == 1 and x.dtype.kind == "f":
        return np.full(x.shape, math.erf(x.item()), x.dtype)
    return _of_scipy("erf")(x)


def is_plain(array: Any) -> bool:
    """Whether an array is one of NumPy's own class, whose elements lie in this memory."""
    return type(array) is np.ndarray


NUMPY = NumpyBackend()
register(NUMPY)
