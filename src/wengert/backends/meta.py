"""Shape-only arrays: a shape, strides and a dtype, and no memory behind them.

A MetaArray is a NumPy view of one element with the strides the real array would have. View kernels
only compute with shapes and strides, so NumPy does them; nothing may read or write the elements.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..core.devices import CPU, META, device
from .backend import register
from .host import NumpyBackend
from .layout import result_strides, row_major
from .numpy import dense_strides

#: Arrays of so many elements have memory, which nobody touches.
_SMALL = 1024


class MetaArray(np.ndarray):
    """An array on the meta device: what would touch its elements only computes shapes.

    In a trace it `stands_for` an array on some device.
    """

    stands_for: device | None = None

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
        return empty(self.shape, dtype) if order == "C" else like(self, dtype)


def empty(shape: tuple[int, ...], dtype: Any) -> MetaArray:
    """A contiguous meta array."""
    return of_strides(shape, row_major(shape, np.dtype(dtype).itemsize), dtype)


def like(array: Any, dtype: Any = None) -> MetaArray:
    """A meta array without gaps, in the memory order of another array."""
    dtype = array.dtype if dtype is None else np.dtype(dtype)
    strides = result_strides(array.shape, (array,), dtype.itemsize)
    return of_strides(array.shape, strides, dtype)


def of_strides(shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> MetaArray:
    """A meta array with given strides in bytes."""
    if prod(shape) <= _SMALL:  # memory of its own takes less time than strides do
        array = np.empty(shape, dtype)
        if array.strides == strides:
            return array.view(MetaArray)
    return as_strided(np.empty(1, dtype), shape, strides).view(MetaArray)


def zeros_like(array: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Real zeros of some shape in the memory order of a meta array."""
    order = sorted(range(array.ndim), key=lambda dim: -abs(array.strides[dim]))
    lengths = [shape[dim] if array.strides[dim] else 1 for dim in order]
    zeros = np.zeros(lengths, array.dtype).transpose([order.index(i) for i in range(array.ndim)])
    return zeros if zeros.shape == shape else np.broadcast_to(zeros, shape)


def elementwise(kernel: Callable, args: tuple, leading: tuple | None = None) -> Any:
    """The meta result of a broadcasting kernel: shapes broadcast, dtypes come from the kernel.

    The operands that decide on the order in memory are `leading`, or all.
    """
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    samples = tuple(
        np.ones((1,) * a.ndim, a.dtype) if isinstance(a, np.ndarray) else a for a in args
    )
    shape = np.broadcast_shapes(*[a.shape for a in arrays])
    dtype = np.asarray(kernel(np, *samples)).dtype
    strides = result_strides(shape, args if leading is None else leading, dtype.itemsize)
    return of_strides(shape, strides, dtype)


def sampled(kernel: Callable, shape: Callable, *args: Any) -> Any:
    """The meta result of a kernel with a shape rule: it runs on a few elements, for the rest.

    Lengths that differ still do so in the sample, and a kernel refuses what it would have refused.
    It is then asked again on arrays of the right size, to say so with their sizes.
    """
    small = _small_lengths(args)
    with np.errstate(all="ignore"):
        try:
            found = kernel(np, *[_real(a, small) for a in args])
            shapes = shape(*args)
        except Exception:
            return general(kernel, args)
        if not isinstance(found, tuple):
            found, shapes = (found,), [shapes]
        samples = [np.asarray(sample) for sample in found]
        if not all(_is_dense(sample) for sample in samples):
            return general(kernel, args)
    results = tuple([_enlarged(sample, size) for sample, size in zip(samples, shapes, strict=True)])
    return results if len(results) > 1 else results[0]


def _small_lengths(args: tuple) -> dict[int, int]:
    """Small lengths for those of the arrays, in the same order."""
    lengths = {0, 1, 2}
    for value in args:
        for array in value if isinstance(value, list) else (value,):
            if isinstance(array, np.ndarray):
                lengths.update(array.shape)
    return {length: i for i, length in enumerate(sorted(lengths))}


def _is_dense(array: np.ndarray) -> bool:
    return array.flags.c_contiguous or (
        dense_strides(array.shape, array.strides, array.itemsize) == array.strides
    )


def _enlarged(sample: np.ndarray, shape: tuple[int, ...]) -> MetaArray:
    """A meta array of another shape with the dtype and the memory order of a sample."""
    if sample.flags.c_contiguous:
        return empty(shape, sample.dtype)
    return of_strides(shape, dense_strides(shape, sample.strides, sample.itemsize), sample.dtype)


def general(kernel: Callable, args: tuple) -> Any:
    """The meta result of any other kernel, by running it on zeros."""
    result = kernel(np, *[_real(a) for a in args])
    if isinstance(result, tuple):
        return tuple(_shape_of(r) for r in result)
    return _shape_of(result)


def _real(value: Any, lengths: dict[int, int] | None = None) -> Any:
    if isinstance(value, list):
        return [_real(item, lengths) for item in value]
    if not isinstance(value, MetaArray):
        return value
    shape = value.shape if lengths is None else tuple([lengths[n] for n in value.shape])
    return zeros_like(value, shape)


def _shape_of(value: Any) -> Any:
    array = np.asarray(value)
    return of_strides(array.shape, array.strides, array.dtype)


def _flat(values: Any) -> list:
    found: list = []
    for value in values:
        found += value if type(value) is list else (value,)
    return found


class MetaBackend(NumpyBackend):
    """Shape-only arrays: an operator's shape rule, or its kernel on a few elements, runs."""

    array_class = MetaArray
    device_type = "meta"
    shape_only = True

    def device_of(self, array: Any) -> device:
        return META

    def empty(self, shape: tuple[int, ...], dtype: Any, place: device) -> Any:
        return empty(shape, dtype)

    def from_numpy(self, array: np.ndarray, place: device) -> Any:
        return like(array)

    def to_numpy(self, array: Any) -> np.ndarray:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")

    def empty_strided(self, shape: tuple[int, ...], strides: Any, dtype: Any, like: Any) -> Any:
        return of_strides(shape, strides, dtype)

    def number(self, value: Any, dtype: Any, like: Any) -> Any:
        return np.asarray(value, dtype)

    def settled(self, operator: Any, args: tuple, out: Any) -> Any:
        """Let results stand for arrays where the operands are; single elements may be elsewhere."""
        arrays = [a for a in _flat(args) if type(a) is MetaArray]
        if operator.moves_operands:
            arrays = arrays[:1]
        places = [a.stands_for for a in arrays if a.stands_for is not None]
        place = next((p for p in places if p != CPU), places[0] if places else None)
        if place is not None:
            for result in _flat(out if isinstance(out, (tuple, list)) else (out,)):
                if type(result) is MetaArray and result.stands_for is None:
                    result.stands_for = place
        return out

    def compute(self, operator: Any, args: tuple) -> Any:
        if operator.dtype_rule is not None:
            return elementwise(operator.compute_each, args, operator.leading(args))
        return general(operator.kernel, args)


register(MetaBackend())
