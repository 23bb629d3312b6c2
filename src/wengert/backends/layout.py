"""In which order the results of elementwise operators lie in memory.

The rule is PyTorch's. A result has the dimensions in the order that its operands have them, and no
gaps. Earlier operands weigh more, dimensions that are broadcast tell nothing, and what no operand
tells is in row-major order. NumPy lays results out in row-major order wherever operands disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .backend import backend_of, is_array

ndarray = np.ndarray


def row_major(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of a contiguous array; a length of zero counts as one."""
    strides = []
    step = itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))


def steps_of(array: Any) -> tuple[int, ...]:
    """Strides in bytes; NumPy's own arrays without elements have none, and count as contiguous."""
    strides: tuple[int, ...] = array.strides
    if array.size or any(strides):
        return strides
    return row_major(array.shape, array.itemsize)


def with_steps(array: Any) -> Any:
    """An array without elements that has strides, for views to compute with."""
    return backend_of(array).strided(array, array.shape, steps_of(array))


def expanded_strides(array: Any, shape: tuple[int, ...]) -> list[int]:
    """An array's strides in the dimensions of `shape`, zero where it is broadcast."""
    extra = len(shape) - array.ndim
    return [0] * extra + [
        0 if n != shape[i + extra] else s
        for i, (n, s) in enumerate(zip(array.shape, steps_of(array), strict=True))
    ]


def result_strides(
    shape: tuple[int, ...], operands: Sequence[Any], itemsize: int
) -> tuple[int, ...]:
    """Strides in bytes of a result of that shape; operands are arrays, numbers or None."""
    arrays = [a for a in operands if is_array(a)]
    if all(a.flags.c_contiguous for a in arrays):  # whatever the strides of single rows are
        return row_major(shape, itemsize)
    numbers = len(operands) - len(arrays) - sum([a is None for a in operands])
    if not numbers and all(a.shape == shape for a in arrays):
        alike = _strides_of_alike(shape, arrays, itemsize)
        if alike is not None:
            return alike
    return dense_strides(shape, [expanded_strides(a, shape) for a in arrays], itemsize)


def dense_strides(
    shape: tuple[int, ...], operands: list[list[int]], itemsize: int
) -> tuple[int, ...]:
    """Strides in bytes without gaps, in the order that the strides of operands ask for."""
    order = _inner_to_outer(shape, operands)
    if order == list(reversed(range(len(shape)))):
        return row_major(shape, itemsize)
    strides = [0] * len(shape)
    step = itemsize
    for dim in order:
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def _strides_of_alike(
    shape: tuple[int, ...], arrays: list, itemsize: int
) -> tuple[int, ...] | None:
    """Strides for operands of one shape without gaps, in one order; None for any others."""
    if len(shape) == 4:
        for_images = _channels_innermost(shape)
        if all(_agree(shape, _in_elements(a), for_images) for a in arrays):
            return tuple([s * itemsize for s in for_images])
    first = _in_elements(arrays[0])
    if is_dense(shape, first) and all(_in_elements(a) == first for a in arrays[1:]):
        return tuple([s * itemsize for s in first])
    return None


def _in_elements(array: Any) -> tuple[int, ...]:
    return tuple([s // array.itemsize for s in array.strides])


def _channels_innermost(shape: tuple[int, ...]) -> tuple[int, ...]:
    _, channels, height, width = shape
    return (channels * height * width, 1, width * channels, channels)


def _agree(shape: tuple[int, ...], one: tuple, other: tuple) -> bool:
    """Whether strides are the same where they matter."""
    return all(n == 1 or a == b for n, a, b in zip(shape, one, other, strict=True))


def is_dense(shape: tuple[int, ...], strides: tuple[int, ...], needed: int = 1) -> bool:
    """Whether elements of a size fill their memory, each in a place of its own."""
    for stride, length in sorted(zip(strides, shape, strict=True)):
        if length > 1:
            if stride != needed:
                return False
            needed *= length
    return True


def _inner_to_outer(shape: tuple[int, ...], strides: list[list[int]]) -> list[int]:
    """The dimensions of a result, from the innermost in memory to the outermost."""
    order = list(reversed(range(len(shape))))
    for i in range(1, len(order)):
        place = i
        for j in reversed(range(i)):
            outer = _compare(shape, strides, order[j], order[place])
            if outer > 0:
                order[j], order[place] = order[place], order[j]
                place = j
            elif outer < 0:
                break
    return order


def _compare(shape: tuple[int, ...], strides: list, dim: int, other: int) -> int:
    """1 if `dim` must lie outside of `other` in memory, -1 if inside, 0 if nothing tells."""
    for steps in strides:
        if steps[dim] and steps[other]:
            if steps[dim] != steps[other]:
                return 1 if steps[dim] > steps[other] else -1
            if shape[dim] > shape[other]:
                return 1
    return 0


def empty_for(shape: tuple[int, ...], operands: Sequence[Any], dtype: Any) -> Any:
    """A new array for the result of an elementwise function of some operands."""
    first = next(a for a in operands if is_array(a))
    strides = result_strides(shape, operands, dtype.itemsize)
    return backend_of(first).empty_strided(shape, strides, dtype, first)


def _tells_order(array: Any) -> bool:
    """Whether strides alone order the dimensions, as NumPy does: none is zero, no two are alike."""
    if array.flags.c_contiguous:
        return True
    strides = array.strides
    return 0 not in strides and len(set(strides)) == len(strides)


def empty_in_order(array: Any, dtype: Any) -> Any:
    """A new array without gaps, in the order of another one; expanded dimensions tell nothing."""
    if isinstance(array, ndarray) and (_tells_order(array) or not array.size):
        return np.empty_like(array, dtype, "K", False)
    return empty_for(array.shape, (array,), np.dtype(dtype))


def copied(array: Any, dtype: Any = None) -> Any:
    """A copy without gaps in the order of the array, with another dtype if one is given."""
    kind = array.dtype if dtype is None else np.dtype(dtype)
    if isinstance(array, ndarray) and (
        _tells_order(array) or type(array) is not ndarray or not array.size
    ):
        return array.astype(kind, "K")
    copy = empty_in_order(array, kind)
    copy[...] = array
    return copy


def copied_in_order(array: Any, strides: tuple[int, ...]) -> Any:
    """A dense copy of an array whose dimensions lie in memory in the order of `strides`."""
    order = sorted(range(array.ndim), key=lambda i: (-strides[i], i))
    ordered = array.transpose(order).copy("C")
    return ordered.transpose(sorted(range(array.ndim), key=order.__getitem__))


def laid_out(out: Any, operands: Sequence[Any]) -> Any:
    """The result of an elementwise kernel in the order that its operands ask for."""
    strides = result_strides(out.shape, operands, out.itemsize)
    if out.strides == strides:
        return out
    if _agree(out.shape, out.strides, strides) or not out.size:
        return backend_of(out).strided(out, out.shape, strides)
    placed = backend_of(out).empty_strided(out.shape, strides, out.dtype, out)
    placed[...] = out
    return placed


def call_in_order(function: Callable, operands: Sequence[Any], leading: Sequence[Any]) -> Any:
    """A function of NumPy arrays called on operands turned so that it writes in the right order.

    `leading` are the operands that decide on the order, those that weigh more first.
    """
    shape = np.broadcast_shapes(*[a.shape for a in operands if isinstance(a, ndarray)])
    # The size of the elements is not known yet, and does not change the order.
    strides = result_strides(shape, leading, 1)
    order = sorted(range(len(shape)), key=lambda dim: (-strides[dim], dim))
    turned = [
        np.broadcast_to(a, shape).transpose(order) if isinstance(a, ndarray) and a.ndim else a
        for a in operands
    ]
    out = np.asarray(function(*turned))
    return laid_out(out.transpose([order.index(dim) for dim in range(len(shape))]), leading)
