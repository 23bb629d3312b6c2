"""Tensors of one value, or of none in particular; and the public list of what makes tensors."""

from __future__ import annotations

import operator
from typing import Any

from ..backends import meta
from ..backends.allocation import new_array
from ..backends.casting import dtype_of
from ..backends.geometry import strided
from ..backends.placement import of_array
from ..core import dtypes
from ..core.arrays import is_level
from ..core.devices import get_default_device
from ..core.layouts import channel_order, check_options, contiguous_format, inverse_order
from ..core.numbers import infer_number_dtype
from ..core.size import sequence_size
from ..core.tensor import Tensor
from .arguments import number
from .conversion import as_tensor, asarray, from_dlpack, from_numpy, tensor, warn_copy_construct
from .conversion import legacy_array as legacy_array
from .declare import (
    LIKE,
    OPTIONS,
    Blank,
    Like,
    New,
    NewFirst,
    Sized,
    SizedFirst,
    maker,
    variant,
)

__all__ = [
    "as_tensor", "asarray", "empty", "empty_like", "empty_strided", "from_dlpack", "from_numpy",
    "full", "full_like", "ones", "ones_like", "scalar_tensor", "tensor", "zeros", "zeros_like",
]  # fmt: skip

NEW_METHODS = ("new_empty", "new_full", "new_ones", "new_tensor", "new_zeros")


# One value everywhere.


@maker(f"zeros(SymInt[] size, *, {OPTIONS}) -> Tensor", kind=Sized)
def zeros(blank: Blank) -> Any:
    """A tensor of zeros."""
    return blank.constant(0)


@maker(f"ones(SymInt[] size, *, {OPTIONS}) -> Tensor", kind=Sized)
def ones(blank: Blank) -> Any:
    """A tensor of ones."""
    return blank.constant(1)


@maker(f"full(SymInt[] size, Scalar fill_value, *, {OPTIONS}) -> Tensor", kind=SizedFirst)
def full(blank: Blank, fill_value: Any) -> Any:
    """A tensor of one value, whose type decides the dtype unless that is given."""
    value = number(blank.function, "fill_value", fill_value)
    return blank.filled(value, infer_number_dtype(value))


@maker(f"scalar_tensor(Scalar s, *, {OPTIONS}) -> Tensor", without=("out",))
def scalar_tensor(blank: Blank, s: Any) -> Any:
    """A number as a tensor without dimensions, of the default dtype unless that is given."""
    return blank.filled(number("scalar_tensor", "s", s))


@maker(
    f"empty.memory_format(SymInt[] size, *, {LIKE}) -> Tensor",
    kind=Sized,
)
def empty(blank: Blank, memory_format: Any = None) -> Any:
    """A tensor whose values are whatever the memory held."""
    order = channel_order(memory_format, len(blank.shape))
    if order is not None:
        shape = tuple([blank.shape[d] for d in order])
        return new_array(shape, blank.dtype(), blank.place()).transpose(inverse_order(order))
    if memory_format is not None and memory_format is not contiguous_format:
        raise RuntimeError(f"unsupported memory format {memory_format!r}")
    blank.dtype()
    out = blank.out
    return out.array if out is not None and out.array.shape == blank.shape else blank.empty()


@maker(
    f"empty_strided(SymInt[] size, SymInt[] stride, *, {OPTIONS}) -> Tensor",
    without=("out",),
)
def empty_strided(blank: Blank, size: Any, stride: Any) -> Any:
    """An uninitialised tensor with the given strides, counted in elements."""
    shape = sequence_size("empty_strided", size)
    steps = tuple([operator.index(each) for each in stride])
    if len(shape) != len(steps):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides "
            f"({len(steps)})"
        )
    if any(step < 0 for step in steps):
        raise RuntimeError(f"strides must not be negative, got {list(steps)}")
    kind = blank.dtype()
    in_bytes = tuple([step * kind.itemsize for step in steps])
    place = get_default_device() if blank.asked_device is None else blank.place()
    if place.type == "meta":
        return meta.of_strides(shape, in_bytes, kind.numpy)
    last = sum((extent - 1) * step for extent, step in zip(shape, steps, strict=True))
    storage = new_array((0 if 0 in shape else last + 1,), kind, place)
    return strided(storage, shape, in_bytes)


# Like another tensor.

zeros_like = variant(
    zeros, "zeros_like", Like, f"zeros_like(Tensor self, *, {LIKE}) -> Tensor",
    doc="Zeros with the shape, type and device of `input`.",
)  # fmt: skip
ones_like = variant(
    ones, "ones_like", Like, f"ones_like(Tensor self, *, {LIKE}) -> Tensor",
    doc="Ones with the shape, type and device of `input`.",
)  # fmt: skip
full_like = variant(
    full, "full_like", Like, f"full_like(Tensor self, Scalar fill_value, *, {LIKE}) -> Tensor",
    doc="One value with the shape, type and device of `input`.",
)  # fmt: skip


@maker(f"empty_like(Tensor self, *, {LIKE}) -> Tensor", kind=Like)
def empty_like(blank: Blank) -> Any:
    """An uninitialised tensor with the shape, type and device of `input`."""
    return blank.empty()


# Methods of a tensor that lend its type and device.

new_empty = variant(
    empty_like, "new_empty", New, f"new_empty(Tensor self, SymInt[] size, *, {OPTIONS}) -> Tensor",
    doc="An uninitialised tensor of the type and on the device of `self`.",
)  # fmt: skip
new_zeros = variant(
    zeros, "new_zeros", New, f"new_zeros(Tensor self, SymInt[] size, *, {OPTIONS}) -> Tensor",
    doc="Zeros of the type and on the device of `self`.",
)  # fmt: skip
new_ones = variant(
    ones, "new_ones", New, f"new_ones(Tensor self, SymInt[] size, *, {OPTIONS}) -> Tensor",
    doc="Ones of the type and on the device of `self`.",
)  # fmt: skip
new_full = variant(
    full, "new_full", NewFirst,
    f"new_full(Tensor self, SymInt[] size, Scalar fill_value, *, {OPTIONS}) -> Tensor",
    doc="One value in the type and on the device of `self`.",
)  # fmt: skip


def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: dtypes.dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A copy of `data` in the type and on the device of `self`."""
    check_options(layout, pin_memory)
    if isinstance(data, Tensor):
        warn_copy_construct("tensor.new_tensor(sourceTensor)")
        data = data.detach() if is_level(data) else data.array
    kind = dtype_of(self) if dtype is None else dtype
    place = of_array(self.array) if device is None else device
    return tensor(data, dtype=kind, device=place, requires_grad=requires_grad)
