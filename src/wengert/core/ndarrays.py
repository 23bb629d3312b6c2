"""Questions about NumPy arrays; cutting and joining them is left to NumPy.

`ndarrays.pyx` beside this file is the compiled form; an extension module wins at import.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np

_ndarray = np.ndarray


def is_in_rows(array: Any) -> bool:
    """Whether strides grow from the last dimension to the first, as far as dimensions tell.

    Dimensions of length one tell something only beside expanded ones, which do not.
    """
    if array.flags.c_contiguous:
        return True
    pairs = list(zip(reversed(array.shape), reversed(array.strides), strict=True))
    expanded = any(stride == 0 and length != 1 for length, stride in pairs)
    inner = 0
    for length, stride in pairs:
        if stride and (length != 1 or expanded):
            if stride <= inner:
                return False
            inner = stride
    return True


def outside_in(array: Any) -> tuple[int, ...] | None:
    """Dimensions sorted by their strides, those of length one first; None if that is ambiguous."""
    strides = [s for s, n in zip(array.strides, array.shape, strict=True) if n != 1]
    if len(set(strides)) < len(strides) or any(s <= 0 for s in strides):
        return None
    shape, steps = array.shape, array.strides
    return tuple(sorted(range(array.ndim), key=lambda dim: (shape[dim] != 1, -steps[dim])))


class NDArrays:
    """What a NumPy array is; one instance, `ndarrays`."""

    #: The shape of an array, the number of its dimensions, and its dtype.
    shape_of = attrgetter("shape")
    ndim_of = attrgetter("ndim")
    dtype_of = attrgetter("dtype")

    def has_shape(self, array: Any, shape: tuple[int, ...]) -> bool:
        return array.shape == shape

    def is_real_float(self, array: Any) -> bool:
        """Whether the dtype is float32 or float64."""
        return array.dtype.char in "fd"

    def is_half(self, array: Any) -> bool:
        """Whether the dtype is one of the 16-bit floats."""
        return array.dtype.char == "e" or array.dtype.kind == "V"

    def is_differentiable(self, array: Any) -> bool:
        """Whether the dtype is floating or complex; the V kind is bfloat16's."""
        return array.dtype.kind in "fcV"

    def owns_memory(self, array: Any) -> bool:
        """Whether an array is no view of another."""
        return array.base is None

    def is_empty(self, array: Any) -> bool:
        return array.size == 0

    def in_row_order(self, values: tuple) -> bool:
        """Whether elementwise results of these values are in row-major order without more ado.

        They are if no array has its dimensions in another order; expanded ones tell nothing.
        """
        for value in values:  # noqa: SIM110 - a generator would be made for every call
            if isinstance(value, _ndarray) and not is_in_rows(value):
                return False
        return True

    def order_of_first(self, values: tuple) -> tuple[int, ...] | None:
        """The dimensions of arrays of one shape from the outermost in memory to the innermost.

        They are those of the first array; an empty tuple if the others have the same order, None if
        shapes differ, or if expanded or equal strides leave the order open.
        """
        arrays = [value for value in values if isinstance(value, _ndarray)]
        if not arrays or any(a.shape != arrays[0].shape for a in arrays):
            return None
        orders = [outside_in(a) for a in arrays]
        if None in orders:
            return None
        return () if all(order == orders[0] for order in orders) else orders[0]

    def same_view(self, a: Any, b: Any) -> bool:
        """Whether two arrays are the same elements of the same memory."""
        return (
            a.shape == b.shape
            and a.strides == b.strides
            and a.__array_interface__["data"] == b.__array_interface__["data"]
        )

    def cut(self, array: Any, dim: int, sizes: list) -> list | None:
        return None


ndarrays = NDArrays()
