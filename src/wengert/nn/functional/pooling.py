"""Pools of neighbouring elements of signals, pictures and volumes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.errors import shape_text
from ...core.tensor import Tensor
from ...operators import pooling
from ...operators.along import scalar_name

_WORDS = {2: "two", 3: "three"}


def _option(name: str, option: str, value: Any, count: int) -> tuple[int, ...]:
    """An option for each dimension."""
    if isinstance(value, int):
        return (value,) * count
    sizes = tuple(value)
    if len(sizes) == 1:
        return sizes * count
    if len(sizes) != count:
        raise RuntimeError(
            f"{name}: {option} must either be a single int, or a tuple of {_WORDS[count]} ints"
        )
    return sizes


def _windows(
    name: str,
    count: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[tuple[int, ...], ...]:
    """Kernel, stride, padding and dilation for each dimension, after checking them."""
    kernel = _option(name, "kernel_size", kernel_size, count)
    given = kernel if stride is None or stride in ((), []) else stride
    steps = _option(name, "stride", given, count)
    border = _option(name, "padding", padding, count)
    spacing = _option(name, "dilation", dilation, count)
    if any(s <= 0 for s in steps):
        raise RuntimeError("stride should not be zero")
    if any(k <= 0 for k in kernel):
        raise RuntimeError(f"kernel size should be greater than zero, but got {list(kernel)}")
    if any(d <= 0 for d in spacing):
        raise RuntimeError(f"dilation should be greater than zero, but got {list(spacing)}")
    for k, p, d in zip(kernel, border, spacing, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > (d * (k - 1) + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, "
                f"kernel_size={k} and dilation={d}"
            )
        if p > k // 2:
            raise RuntimeError(
                "pad should be smaller than or equal to half of kernel size, but got pad "
                f"{list(border)} and kernel size {list(kernel)}"
            )
    shape = input.array.shape
    if len(shape) not in (count + 1, count + 2) or 0 in shape[len(shape) - count :]:
        raise _wrong_input(name, count, shape)
    if name == "max_pool3d" and not shape[-4]:
        raise _wrong_input(name, count, shape)
    planes = shape[len(shape) - count :]
    sizes = pooling.pooled_sizes(planes, kernel, steps, border, spacing, ceil_mode)
    if any(n < 1 for n in sizes):
        channels = shape[len(shape) - count - 1]
        raise RuntimeError(
            f"Given input size: ({'x'.join(map(str, (channels, *planes)))}). Calculated output "
            f"size: ({'x'.join(map(str, (channels, *sizes)))}). Output size is too small"
        )
    return kernel, steps, border, spacing


def _wrong_input(name: str, count: int, shape: tuple[int, ...]) -> RuntimeError:
    """For an input with too many or too few dimensions, or without elements."""
    kinds = f"{count + 1}D or {count + 2}D (batch mode) tensor"
    fits = len(shape) in (count + 1, count + 2)
    if name == "max_pool3d" and fits:
        return RuntimeError(
            "max_pool3d: Expected input's non-batch dimensions to have positive length, but input "
            f"has a shape of {shape_text(shape)}"
        )
    if name == "max_pool1d" or name == "max_pool2d" and fits:
        return RuntimeError(
            f"{name}: Expected {kinds} with optional 0 dim batch size for input, but got:"
            f"{shape_text(shape)}"
        )
    return RuntimeError(
        f"{name}: non-empty {kinds} expected for input, but got: {shape_text(shape)}"
    )


def _one(name: str, option: str, value: Any) -> int:
    """An option of a function of signals, which may come as a sequence of one number."""
    if isinstance(value, int):
        return value
    sizes = tuple(value)
    if len(sizes) != 1:
        raise RuntimeError(
            f"{name}() {option} must be an int, list of ints or tuple of ints of size 1 but got "
            f"size {len(sizes)}"
        )
    return sizes[0]


# The largest --------------------------------------------------------------------------------------


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of every window of signals, with its place if wanted."""
    kernel = _one("max_pool1d", "kernel_size", kernel_size)
    step = kernel if stride is None or stride == () else _one("max_pool1d", "stride", stride)
    border = _one("max_pool1d", "padding", padding)
    spacing = _one("max_pool1d", "dilation", dilation)
    if input.array.ndim not in (2, 3) or 0 in input.array.shape[-2:]:
        raise _wrong_input("max_pool1d", 1, input.array.shape)
    if input.array.dtype.kind in "biu":
        raise NotImplementedError(
            f"\"max_pool1d_impl\" not implemented for '{scalar_name(input.array.dtype)}'"
        )
    for name, value in (("kernel_size", kernel), ("stride", step), ("dilation", spacing)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {value}")
    _check_border(border, kernel, spacing, return_indices)
    options = ((kernel,), (step,), (border,), (spacing,))
    count = pooling.pooled_sizes(input.array.shape[-1:], *options, ceil_mode)[0]
    if count <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {count}")
    values, indices = pooling.max_pool.call(
        (input.unsqueeze(-2), (1, kernel), (1, step), (0, border), (1, spacing), ceil_mode)
    )
    if return_indices:
        return values.squeeze(-2), indices.squeeze(-2)
    return values.squeeze(-2)


def _check_border(border: int, kernel: int, spacing: int, as_pictures: bool) -> None:
    """Refuse a border that is too wide, as wide as PyTorch allows it to lines or to pictures."""
    if border < 0:
        words = "pad must be non-negative, but got pad:" if as_pictures else (
            "max_pool1d() padding must be non-negative, but got"
        )
        raise RuntimeError(f"{words} {border}")
    if as_pictures and border > (spacing * (kernel - 1) + 1) // 2:
        raise RuntimeError(
            "pad should be at most half of effective kernel size, but got "
            f"pad={border}, kernel_size={kernel} and dilation={spacing}"
        )
    if border > kernel // 2:
        words = "pad should be smaller than or equal to" if as_pictures else (
            "max_pool1d() padding should be at most"
        )
        raise RuntimeError(
            f"{words} half of kernel size, but got padding={border} and kernel_size={kernel}"
        )


def _max_pool(
    name: str,
    count: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    options = _windows(
        name, count, input, kernel_size, stride, padding, dilation, ceil_mode
    )
    found = pooling.max_pool.call((input, *options, ceil_mode))
    return tuple(found) if return_indices else found[0]


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of every window of pictures, with its place if wanted."""
    options = (kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    return _max_pool("max_pool2d", 2, input, *options)


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of every window of volumes, with its place if wanted."""
    options = (kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    return _max_pool("max_pool3d", 3, input, *options)


# The mean -----------------------------------------------------------------------------------------


def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of every window of signals."""
    _check_signal("avg_pool1d", input)
    kernel = _single("avg_pool1d", "kernel_size", kernel_size)
    step = kernel if stride is None or stride == () else _single("avg_pool1d", "stride", stride)
    border = _single("avg_pool1d", "padding", padding)
    return avg_pool2d(
        input.unsqueeze(-2), (1, kernel), (1, step), (0, border), ceil_mode, count_include_pad
    ).squeeze(-2)


def _check_signal(name: str, input: Tensor) -> None:
    if input.array.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {input.array.ndim}-dimensional tensor for "
            f"argument #1 'self' (while checking arguments for {name})"
        )


def _single(name: str, option: str, value: Any) -> int:
    sizes = (value,) if isinstance(value, int) else tuple(value)
    if len(sizes) != 1:
        raise RuntimeError(
            f"{name}() argument '{option}' should contain one int (got {len(sizes)})"
        )
    return sizes[0]


def _avg_pool(
    name: str,
    count: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    kernel, steps, border, _ = _windows(
        name, count, input, kernel_size, stride, padding, 1, ceil_mode
    )
    planes = input.array.shape[-count:]
    if count == 3 and any(n < k for n, k in zip(planes, kernel, strict=True)):
        raise RuntimeError(f"input image {planes} smaller than kernel size {kernel}")
    return pooling.avg_pool.call(
        (input, kernel, steps, border, ceil_mode, count_include_pad, divisor_override)
    )


def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of every window of pictures."""
    options = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return _avg_pool("avg_pool2d", 2, input, *options)


def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of every window of volumes."""
    options = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return _avg_pool("avg_pool3d", 3, input, *options)


# Norms --------------------------------------------------------------------------------------------


def _lp_pool(
    mean: Any, largest: Any, volume: int, input: Tensor, order: float, options: tuple,
    ceil_mode: bool,
) -> Tensor:  # fmt: skip
    """The norms of windows, from functions that take their means or largest elements."""
    if order == math.inf:
        return largest(input.abs(), *options, 0, 1, ceil_mode)
    if order == -math.inf:
        return -largest(-input.abs(), *options, 0, 1, ceil_mode)
    out = mean(input.pow(order), *options, 0, ceil_mode)
    return (out.sign() * out.abs().relu()).mul(volume).pow(1.0 / order)


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: int,
    stride: Any = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The norm of every window of signals."""
    options = (kernel_size, stride)
    return _lp_pool(avg_pool1d, max_pool1d, kernel_size, input, norm_type, options, ceil_mode)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The norm of every window of pictures."""
    volume = math.prod(_option("lp_pool2d", "kernel_size", kernel_size, 2))
    options = (kernel_size, stride)
    return _lp_pool(avg_pool2d, max_pool2d, volume, input, norm_type, options, ceil_mode)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The norm of every window of volumes."""
    volume = math.prod(_option("lp_pool3d", "kernel_size", kernel_size, 3))
    options = (kernel_size, stride)
    return _lp_pool(avg_pool3d, max_pool3d, volume, input, norm_type, options, ceil_mode)


# The way back -------------------------------------------------------------------------------------


def _unpooled(
    name: str, count: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any,
    padding: Any, output_size: Any,
) -> Tensor:  # fmt: skip
    kernel = _option(name, "kernel_size", kernel_size, count)
    steps = kernel if stride is None else _option(name, "stride", stride, count)
    border = _option(name, "padding", padding, count)
    shape = input.array.shape
    if len(shape) not in (count + 1, count + 2):
        raise RuntimeError(
            f"Input to {name} should be a {count + 1}d or {count + 2}d Tensor, but got a tensor "
            f"with {len(shape)} dimensions"
        )
    default = [
        (n - 1) * s + k - 2 * p
        for n, k, s, p in zip(shape[len(shape) - count :], kernel, steps, border, strict=True)
    ]
    sizes = tuple(default) if output_size is None else tuple(output_size)
    if len(sizes) == count + 2:
        sizes = sizes[2:]
    if len(sizes) != count:
        raise ValueError(
            f"output_size should be a sequence containing {count} or {count + 2} elements, but it "
            f"has a length of '{len(sizes)}'"
        )
    for dim, (n, usual, s) in enumerate(zip(sizes, default, steps, strict=True)):
        if not usual - s < n < usual + s:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {dim} must be between {usual - s} and '
                f"{usual + s})"
            )
    if indices.array.dtype != np.int64:
        raise RuntimeError(
            "elements in indices should be type int64 but got: "
            f"{scalar_name(indices.array.dtype)}"
        )
    if indices.array.shape != shape:
        raise RuntimeError(
            "Expected shape of indices to be same as that of the input tensor "
            f"({shape_text(shape)}) but got indices tensor with shape: "
            f"{shape_text(indices.array.shape)}"
        )
    if count == 1:
        out = pooling.max_unpool.call((input.unsqueeze(-1), indices.unsqueeze(-1), (*sizes, 1)))
        return out.squeeze(-1)
    return pooling.max_unpool.call((input, indices, sizes))


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Zeros with the largest elements of windows of signals where they were."""
    options = (kernel_size, stride, padding, output_size)
    return _unpooled("max_unpool1d", 1, input, indices, *options)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Zeros with the largest elements of windows of pictures where they were."""
    options = (kernel_size, stride, padding, output_size)
    return _unpooled("max_unpool2d", 2, input, indices, *options)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Zeros with the largest elements of windows of volumes where they were."""
    options = (kernel_size, stride, padding, output_size)
    return _unpooled("max_unpool3d", 3, input, indices, *options)
