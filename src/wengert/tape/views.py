"""Making views again: by the calls that led to them, or from their place in memory."""

from __future__ import annotations

from typing import Any

from ..backends.geometry import offset_of, seen_from
from ..core.registry import operator_named
from ..core.tensor import Tensor


def copy_in_order(g: Tensor, order: tuple) -> Tensor:
    """A copy of `g` with its dimensions in the memory order of the base, as view steps expect."""
    if order == tuple(range(len(order))):
        return operator_named("_contiguous").call1(g)
    back = tuple(sorted(range(len(order)), key=order.__getitem__))
    return operator_named("_contiguous").call1(g.permute(order)).permute(back)


def replay(base: Tensor, steps: tuple | None) -> Tensor:
    """Apply the view operators in `steps`, innermost first, to `base`."""
    calls = []
    while steps is not None:
        steps, operator, args = steps
        calls.append((operator, args))
    for operator, args in reversed(calls):
        base = operator.call((base, *args))
    return base


def strided_steps(t: Tensor, base: Any) -> tuple:
    """The way from `base` to a view of its memory by shape, strides and offset alone.

    To parts of complex numbers it leads through all of these as real numbers.
    """
    array, steps = t.array, None
    if sees_parts(t, base):
        steps = (None, operator_named("view_as_real"), ())
        base = replay(base, steps)
    stride = tuple([s // array.itemsize for s in array.strides])
    seen = seen_from(base.array, array.shape, stride, offset_of(array))
    return (steps, operator_named("_as_strided"), seen)


def sees_parts(t: Tensor, base: Tensor) -> bool:
    """Whether a view has the real numbers that the complex ones of its base consist of."""
    mine, whole = t.array.dtype, base.array.dtype
    return mine.kind == "f" and whole.kind == "c" and 2 * mine.itemsize == whole.itemsize
