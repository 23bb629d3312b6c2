"""Shape-only arrays: a shape, strides and a dtype, and no memory behind them.

A MetaArray is a NumPy view of one element with the strides the real array would have. View kernels
only compute with shapes and strides, so NumPy does them; nothing may read or write the elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided


class MetaArray(np.ndarray):
    """An array on the meta device: what would touch its elements only computes shapes."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        targets = options.pop("out", None)
        if method != "__call__":
            return NotImplemented
        if targets is not None:
            return targets[0]
        return elementwise(lambda xp, *args: ufunc(*args, **options), inputs)

    def __setitem__(self, index: Any, value: Any) -> None:
        pass

    def copy(self, order: Any = "C") -> MetaArray:
        return empty(self.shape, self.dtype)

    def astype(self, dtype: Any, *args: Any, **options: Any) -> MetaArray:
        return empty(self.shape, dtype)


def empty(shape: tuple[int, ...], dtype: Any) -> MetaArray:
    """A contiguous meta array."""
    strides = []
    step = np.dtype(dtype).itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return of_strides(shape, tuple(reversed(strides)), dtype)


def of_strides(shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> MetaArray:
    """A meta array with given strides in bytes."""
    return as_strided(np.empty(1, dtype), shape, strides).view(MetaArray)


def zeros_like(array: Any) -> np.ndarray:
    """Real zeros in the shape of a meta array: what a kernel without a shape rule runs on."""
    return np.zeros(array.shape, array.dtype)


def elementwise(kernel: Callable, args: tuple) -> Any:
    """The meta result of a broadcasting kernel: shapes broadcast, dtypes come from the kernel."""
    shapes = [a.shape for a in args if isinstance(a, np.ndarray)]
    samples = tuple(
        np.zeros((1,) * a.ndim, a.dtype) if isinstance(a, np.ndarray) else a for a in args
    )
    return empty(np.broadcast_shapes(*shapes), np.asarray(kernel(np, *samples)).dtype)


def general(kernel: Callable, args: tuple) -> Any:
    """The meta result of any other kernel, by running it on zeros."""
    result = kernel(np, *[_real(a) for a in args])
    if isinstance(result, tuple):
        return tuple(_shape_of(r) for r in result)
    return _shape_of(result)


def _real(value: Any) -> Any:
    if isinstance(value, list):
        return [_real(item) for item in value]
    return zeros_like(value) if isinstance(value, MetaArray) else value


def _shape_of(value: Any) -> Any:
    array = np.asarray(value)
    return empty(array.shape, array.dtype)
