"""Tensors of one value, or of none in particular; and the public list of what makes tensors."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..backends.allocation import fill, new_array, new_array_like
from ..backends.casting import dtype_of
from ..backends.geometry import strided
from ..backends.placement import of_array
from ..core import dtypes
from ..core.arrays import alive, is_level
from ..core.devices import as_device, get_default_device
from ..core.layouts import check_options, contiguous_format
from ..core.numbers import check_number, infer_number_dtype
from ..core.size import parse_size, sequence_size
from ..core.state import thread_state
from ..core.tensor import Tensor
from ..dispatch.function_schemas import handle_by_class
from ..tape.leaves import require_grad
from ..transforms.access import made_like
from .arguments import check_tensor, choose_dtype, finish, number
from .conversion import (
    as_tensor,
    asarray,
    deliver,
    from_dlpack,
    from_numpy,
    tensor,
    warn_copy_construct,
)
from .conversion import legacy_array as legacy_array
from .ranges import arange, eye, linspace, logspace, tril_indices, triu_indices

__all__ = [
    "arange", "as_tensor", "asarray", "empty", "empty_like", "empty_strided", "eye", "from_dlpack",
    "from_numpy", "full", "full_like", "linspace", "logspace", "ones", "ones_like",
    "scalar_tensor", "tensor", "tril_indices", "triu_indices", "zeros", "zeros_like",
]  # fmt: skip

NEW_METHODS = ("new_empty", "new_full", "new_ones", "new_tensor", "new_zeros")


# One value everywhere.


def _filled(
    function: str,
    shape: tuple[int, ...],
    value: Any,
    out: Tensor | None,
    kind: dtypes.dtype,
    place: Any,
    requires_grad: bool,
) -> Tensor:
    place = as_device(place) if out is None else of_array(out.array)
    if value == 0 and place.type == "cpu":
        array: Any = np.zeros(shape, kind.numpy)
    else:
        array = fill(new_array(shape, kind, place), value)
    return finish(function, array, out, requires_grad)


def zeros(
    *sizes: Any,
    size: Any = None,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of zeros."""
    check_options(layout, pin_memory)
    shape = parse_size("zeros", sizes, size)
    return _filled("zeros", shape, 0, out, choose_dtype(dtype, out), device, requires_grad)


def ones(
    *sizes: Any,
    size: Any = None,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of ones."""
    check_options(layout, pin_memory)
    shape = parse_size("ones", sizes, size)
    return _filled("ones", shape, 1, out, choose_dtype(dtype, out), device, requires_grad)


def full(
    size: Any,
    fill_value: Any,
    *,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of one value, whose type decides the dtype unless that is given."""
    check_options(layout, pin_memory)
    shape = sequence_size("full", size)
    value = number("full", "fill_value", fill_value)
    kind = choose_dtype(dtype, out, infer_number_dtype(value))
    return _filled("full", shape, check_number(value, kind), out, kind, device, requires_grad)


def scalar_tensor(
    s: Any,
    *,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A number as a tensor without dimensions, of the default dtype unless that is given."""
    check_options(layout, pin_memory)
    kind = choose_dtype(dtype)
    value = check_number(number("scalar_tensor", "s", s), kind)
    return _filled("scalar_tensor", (), value, None, kind, device, requires_grad)


def empty(
    *sizes: Any,
    size: Any = None,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor whose values are whatever the memory held."""
    check_options(layout, pin_memory)
    if memory_format is not None and memory_format is not contiguous_format:
        raise RuntimeError(f"unsupported memory format {memory_format!r}")
    shape = parse_size("empty", sizes, size)
    kind = choose_dtype(dtype, out)
    if out is not None and out.array.shape == shape:
        return require_grad(out, requires_grad)
    return finish("empty", new_array(shape, kind, as_device(device)), out, requires_grad)


def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """An uninitialised tensor with the given strides, counted in elements."""
    check_options(layout, pin_memory)
    shape = sequence_size("empty_strided", size)
    steps = tuple([operator.index(each) for each in stride])
    if len(shape) != len(steps):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides "
            f"({len(steps)})"
        )
    if any(step < 0 for step in steps):
        raise RuntimeError(f"strides must not be negative, got {list(steps)}")
    kind = choose_dtype(dtype)
    in_bytes = tuple([step * kind.itemsize for step in steps])
    place = get_default_device() if device is None else as_device(device)
    if place.type == "meta":
        from ..backends import meta

        return deliver(meta.of_strides(shape, in_bytes, kind.numpy), place, requires_grad)
    last = sum((extent - 1) * step for extent, step in zip(shape, steps, strict=True))
    storage = new_array((0 if 0 in shape else last + 1,), kind, place)
    array = strided(storage, shape, in_bytes)
    return deliver(array, place, requires_grad)


# Like another tensor.


def _like(
    function: str,
    input: Tensor,
    dtype: Any,
    layout: Any,
    device: Any,
    memory_format: Any,
    pin_memory: bool = False,
) -> Any:
    check_options(layout, pin_memory)
    kind = dtype_of(input) if dtype is None else dtypes.as_dtype(dtype)
    place = of_array(input.array) if device is None else as_device(device)
    return new_array_like(alive(input).array, kind, place, memory_format)


def zeros_like(
    input: Tensor,
    *,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Zeros with the shape, type and device of `input`."""
    check_tensor("zeros_like", "input", input)
    if type(input.array) is not np.ndarray:
        made = handle_by_class(
            "zeros_like", input, dtype=dtype, layout=layout, device=device,
            memory_format=memory_format,
        )  # fmt: skip
        if made is not NotImplemented:
            return require_grad(made, requires_grad)
    if thread_state().levels:
        made = made_like(
            zeros_like, input, dtype=dtype, layout=layout, device=device,
            memory_format=memory_format,
        )  # fmt: skip
        return require_grad(made) if requires_grad else made
    array = _like("zeros_like", input, dtype, layout, device, memory_format)
    return finish("zeros_like", fill(array, 0), None, requires_grad)


def ones_like(
    input: Tensor,
    *,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Ones with the shape, type and device of `input`."""
    check_tensor("ones_like", "input", input)
    if type(input.array) is not np.ndarray:
        made = handle_by_class(
            "ones_like", input, dtype=dtype, layout=layout, device=device,
            memory_format=memory_format,
        )  # fmt: skip
        if made is not NotImplemented:
            return require_grad(made, requires_grad)
    if thread_state().levels:
        made = made_like(
            ones_like, input, dtype=dtype, layout=layout, device=device,
            memory_format=memory_format,
        )  # fmt: skip
        return require_grad(made) if requires_grad else made
    array = _like("ones_like", input, dtype, layout, device, memory_format)
    return finish("ones_like", fill(array, 1), None, requires_grad)


def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """One value with the shape, type and device of `input`."""
    check_tensor("full_like", "input", input)
    if type(input.array) is not np.ndarray:
        made = handle_by_class(
            "full_like", input, fill_value, dtype=dtype, layout=layout, device=device,
            memory_format=memory_format,
        )  # fmt: skip
        if made is not NotImplemented:
            return require_grad(made, requires_grad)
    if thread_state().levels:
        made = made_like(
            full_like, input, fill_value=fill_value, dtype=dtype, layout=layout, device=device,
            memory_format=memory_format,
        )  # fmt: skip
        return require_grad(made) if requires_grad else made
    array = _like("full_like", input, dtype, layout, device, memory_format)
    value = number("full_like", "fill_value", fill_value)
    value = check_number(value, dtypes.from_numpy(array.dtype))
    return finish("full_like", fill(array, value), None, requires_grad)


def empty_like(
    input: Tensor,
    *,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """An uninitialised tensor with the shape, type and device of `input`."""
    check_tensor("empty_like", "input", input)
    if type(input.array) is not np.ndarray:
        made = handle_by_class(
            "empty_like", input, dtype=dtype, layout=layout, device=device,
            memory_format=memory_format,
        )  # fmt: skip
        if made is not NotImplemented:
            return require_grad(made, requires_grad)
    if thread_state().levels:
        made = made_like(
            empty_like, input, dtype=dtype, layout=layout, device=device,
            memory_format=memory_format,
        )  # fmt: skip
        return require_grad(made) if requires_grad else made
    array = _like("empty_like", input, dtype, layout, device, memory_format)
    return finish("empty_like", array, None, requires_grad)


# Methods of a tensor that lend its type and device.


def _new(
    function: str,
    self: Tensor,
    sizes: tuple[Any, ...],
    size: Any,
    value: Any,
    dtype: Any,
    device: Any,
    layout: Any,
    pin_memory: bool,
    requires_grad: bool,
) -> Tensor:
    check_options(layout, pin_memory)
    shape = parse_size(function, sizes, size)
    kind = dtype_of(self) if dtype is None else dtypes.as_dtype(dtype)
    if type(self.array) is not np.ndarray:
        given = () if function != "new_full" else (value,)
        made = handle_by_class(function, self, list(shape), *given, dtype=dtype, device=device)
        if made is not NotImplemented:
            return require_grad(made, requires_grad)
    if thread_state().levels:
        made = made_like(
            lambda like, shape: _new(
                function, like, (), shape, value, kind, device, layout, pin_memory, False
            ),
            self,
            shape,
        )
        return require_grad(made) if requires_grad else made
    place = of_array(self.array) if device is None else as_device(device)
    array = new_array(shape, kind, place)
    if value is not None:
        fill(array, check_number(number(function, "fill_value", value), kind))
    return finish(function, array, None, requires_grad)


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


def new_empty(
    self: Tensor,
    *sizes: Any,
    size: Any = None,
    dtype: dtypes.dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """An uninitialised tensor of the type and on the device of `self`."""
    return _new(
        "new_empty", self, sizes, size, None, dtype, device, layout, pin_memory, requires_grad
    )


def new_zeros(
    self: Tensor,
    *sizes: Any,
    size: Any = None,
    dtype: dtypes.dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Zeros of the type and on the device of `self`."""
    return _new("new_zeros", self, sizes, size, 0, dtype, device, layout, pin_memory, requires_grad)


def new_ones(
    self: Tensor,
    *sizes: Any,
    size: Any = None,
    dtype: dtypes.dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Ones of the type and on the device of `self`."""
    return _new("new_ones", self, sizes, size, 1, dtype, device, layout, pin_memory, requires_grad)


def new_full(
    self: Tensor,
    size: Any,
    fill_value: Any,
    *,
    dtype: dtypes.dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """One value in the type and on the device of `self`."""
    value = number("new_full", "fill_value", fill_value)
    return _new("new_full", self, (), size, value, dtype, device, layout, pin_memory, requires_grad)
