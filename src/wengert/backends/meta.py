"""Shape-only arrays: a shape, strides and a dtype, and no memory behind them.

A MetaArray is a NumPy view of one element with the strides the real array would have. View kernels
only compute with shapes and strides, so NumPy does them; nothing may read or write the elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .numpy import dense_strides


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
        return self.astype(self.dtype, order)

    def astype(self, dtype: Any, order: Any = "K", *args: Any, **options: Any) -> MetaArray:
        if order == "C":
            return empty(self.shape, dtype)
        strides = dense_strides(self.shape, self.strides, np.dtype(dtype).itemsize)
        return of_strides(self.shape, strides, dtype)


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
    """Real zeros in shape and order of a meta array: what a kernel without a shape rule runs on."""
    order = sorted(range(array.ndim), key=lambda dim: -abs(array.strides[dim]))
    lengths = [array.shape[dim] if array.strides[dim] else 1 for dim in order]
    zeros = np.zeros(lengths, array.dtype).transpose([order.index(i) for i in range(array.ndim)])
    return zeros if zeros.shape == array.shape else np.broadcast_to(zeros, array.shape)


def elementwise(kernel: Callable, args: tuple) -> Any:
    """The meta result of a broadcasting kernel: shapes broadcast, dtypes come from the kernel."""
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    samples = tuple(
        np.ones((1,) * a.ndim, a.dtype) if isinstance(a, np.ndarray) else a for a in args
    )
    shape = np.broadcast_shapes(*[a.shape for a in arrays])
    dtype = np.asarray(kernel(np, *samples)).dtype
    if all(a.flags.c_contiguous for a in arrays):
        return empty(shape, dtype)
    return of_strides(shape, _strides_of_result(shape, arrays, dtype.itemsize), dtype)


def _strides_of_result(
    shape: tuple[int, ...], arrays: list, itemsize: int
) -> tuple[int, ...]:
    """Dense strides in the memory order of the operands, of which earlier ones weigh more."""
    strides = [expanded_strides(a, shape) for a in arrays]
    order = list(reversed(range(len(shape))))  # from the dimension with the smallest stride up
    for i in range(1, len(order)):
        place = i
        for j in reversed(range(i)):
            outer = _compare(shape, strides, order[j], order[place])
            if outer > 0:
                order[j], order[place] = order[place], order[j]
                place = j
            elif outer < 0:
                break
    ranks = [order.index(dim) for dim in range(len(shape))]
    return dense_strides(shape, tuple(ranks), itemsize)


def _compare(shape: tuple[int, ...], strides: list, dim: int, other: int) -> int:
    """1 if `dim` must lie outside of `other` in memory, -1 if inside, 0 if nothing tells."""
    for steps in strides:
        if steps[dim] and steps[other]:
            if steps[dim] != steps[other]:
                return 1 if steps[dim] > steps[other] else -1
            if shape[dim] > shape[other]:
                return 1
    return 0


def expanded_strides(array: Any, shape: tuple[int, ...]) -> list[int]:
    """An array's strides in the dimensions of `shape`, zero where it is broadcast."""
    extra = len(shape) - array.ndim
    return [0] * extra + [
        0 if n != shape[i + extra] else s
        for i, (n, s) in enumerate(zip(array.shape, array.strides, strict=True))
    ]


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
    return of_strides(array.shape, array.strides, array.dtype)
