"""Convolutions of signals, pictures and volumes, and their transposes."""

from __future__ import annotations

import warnings
from typing import Any

from ...core.errors import shape_text
from ...core.tensor import Tensor
from ...operators.convolution import convolve, expanded
from ...operators.nn import constant_pad_nd


def _same_padding(
    input: Tensor, weight: Tensor, stride: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[Tensor, tuple[int, ...]]:
    """What keeps the lengths: a padding, and the input with one element more where it is odd."""
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for k, d in zip(weight.array.shape[2:], dilation, strict=True)]
    if any(t % 2 for t in total):
        warnings.warn(
            "Using padding='same' with even kernel lengths and odd dilation may require a "
            "zero-padded copy of the input be created",
            stacklevel=5,
        )
        widths = [width for t in reversed(total) for width in (0, t % 2)]
        input = constant_pad_nd.call((input, tuple(widths), 0))
    return input, tuple([t // 2 for t in total])


def _convolved(
    name: str,
    count: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    transposed: bool = False,
    output_padding: Any = 0,
) -> Tensor:
    """A convolution in `count` dimensions of one input or a batch of them."""
    ndim = input.array.ndim
    if ndim not in (count + 1, count + 2):
        raise RuntimeError(
            f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to {name}, but got "
            f"input of size: {shape_text(input.array.shape)}"
        )
    if weight.array.ndim < 3:
        raise RuntimeError(
            f"weight should have at least three dimensions, but that of {name} has the shape "
            f"{shape_text(weight.array.shape)}"
        )
    if weight.array.ndim != count + 2:
        raise RuntimeError(
            f"Expected {weight.array.ndim}-dimensional input for {weight.array.ndim}-dimensional "
            f"weight {shape_text(weight.array.shape)}, but got {ndim}-dimensional input of size "
            f"{shape_text(input.array.shape)} instead: the weight of {name} has {count + 2} "
            "dimensions"
        )
    steps = expanded("stride", stride, count)
    spacing = expanded("dilation", dilation, count)
    x = input.unsqueeze(0) if ndim == count + 1 else input
    if isinstance(padding, str):
        if padding == "same":
            x, padding = _same_padding(x, weight, steps, spacing)
        elif padding == "valid":
            padding = 0
        else:
            raise RuntimeError(f"Invalid padding string: '{padding}'")
    border = expanded("padding", padding, count)
    extra = expanded("output_padding", output_padding, count)
    out = convolve.call((x, weight, bias, steps, border, spacing, transposed, extra, groups))
    return out.squeeze(0) if ndim == count + 1 else out


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """A convolution of signals."""
    return _convolved("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution of signals whose dimensions are times, examples and channels, in this order.

    The dimensions of `weight` are times, channels of the input and channels of the result.
    """
    sizes = ", ".join(shape_text(x.array.shape) for x in (input, weight, bias))
    for agrees, text in (
        (input.array.ndim == 3, "Input must have 3 dims: time, batch, in_channel"),
        (weight.array.ndim == 3,
         "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels."),
        (bias.array.ndim == 1, "Bias must be 1-D"),
        (input.array.shape[-1] == weight.array.shape[-2],
         "Input dim 2 (input channels) is not == dim 1 in the weight tensor"),
        (bias.array.shape[0] == weight.array.shape[-1],
         "Bias size must equal dim 2 in the weight tensor (output channels)."),
    ):  # fmt: skip
        if not agrees:
            raise RuntimeError(f"{text}: conv_tbc() got input, weight and bias of sizes {sizes}")
    found = conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return found.permute(2, 0, 1).contiguous()


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """A convolution of pictures."""
    return _convolved("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """A convolution of volumes."""
    return _convolved("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """A transposed convolution of signals: what the gradient of `conv1d` by its input is."""
    options = (stride, padding, dilation, groups, True, output_padding)
    return _convolved("conv_transpose1d", 1, input, weight, bias, *options)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """A transposed convolution of pictures: what the gradient of `conv2d` by its input is."""
    options = (stride, padding, dilation, groups, True, output_padding)
    return _convolved("conv_transpose2d", 2, input, weight, bias, *options)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """A transposed convolution of volumes: what the gradient of `conv3d` by its input is."""
    options = (stride, padding, dilation, groups, True, output_padding)
    return _convolved("conv_transpose3d", 3, input, weight, bias, *options)
