"""Windows as columns and back, and channels that become places."""

from __future__ import annotations

from typing import Any

from ...core.errors import shape_text
from ...core.tensor import Tensor
from ...operators.columns import col2im, im2col
from ...operators.convolution import convolved_sizes
from ...operators.copying import pack
from ...operators.views import as_own

# Windows ------------------------------------------------------------------------------------------


def _pair(name: str, value: Any) -> tuple[int, int]:
    sizes = (value, value) if isinstance(value, int) else tuple(value)
    if len(sizes) == 1:
        sizes = sizes * 2
    if len(sizes) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(sizes)}")
    return sizes


def _options(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> tuple:
    """Kernel, dilation, padding and stride as pairs, checked."""
    pairs = {
        "kernel size": _pair("kernel_size", kernel_size), "stride": _pair("stride", stride),
        "dilation": _pair("dilation", dilation),
    }  # fmt: skip
    border = _pair("padding", padding)
    for name, pair in pairs.items():
        if min(pair) <= 0:
            raise RuntimeError(f"{name} should be greater than zero, but got {list(pair)}")
    if min(border) < 0:
        raise RuntimeError(f"padding should be non-negative, but got {list(border)}")
    return pairs["kernel size"], pairs["dilation"], border, pairs["stride"]


def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """All windows of pictures, each a column."""
    options = _options(kernel_size, dilation, padding, stride)
    kernel, spacing, border, steps = options
    shape = input.array.shape
    if len(shape) not in (3, 4) or 0 in shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {shape_text(shape)}"
        )
    sizes = convolved_sizes(shape[-2:], kernel, steps, border, spacing)
    if min(sizes) < 1:
        raise RuntimeError(
            f"Given input with spatial size {shape[-2:]}, kernel_size={kernel}, "
            f"dilation={spacing}, padding={border}, calculated shape of the array of sliding "
            f"blocks as {sizes}, but its components must be at least one."
        )
    return im2col.call((input, *options))


def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """Columns added up to pictures of which they are the windows."""
    options = _options(kernel_size, dilation, padding, stride)
    kernel, spacing, border, steps = options
    size = _pair("output_size", output_size)
    shape = input.array.shape
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
            f"non-zero dimensions for input, but got: {shape_text(shape)}"
        )
    if shape[-2] % (kernel[0] * kernel[1]):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            f"but got input.size(1)={shape[-2]} and kernel_size={kernel}."
        )
    high, wide = convolved_sizes(size, kernel, steps, border, spacing)
    if high < 1 or wide < 1 or shape[-1] != high * wide:
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={kernel}, dilation={spacing}, "
            f"padding={border}, stride={steps}, expected size of input's dimension 2 to match the "
            f"calculated number of sliding blocks {high} * {wide} = {high * wide}, but got "
            f"input.size(2)={shape[-1]}."
        )
    return col2im.call((input, size, *options))


# Channels -----------------------------------------------------------------------------------------


def _check_picture(name: str, input: Tensor, factor: int, word: str) -> None:
    if input.array.ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with "
            f"{input.array.ndim} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {word}, but got {factor}")


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels as places: a square of channels becomes a square of elements."""
    r = upscale_factor
    _check_picture("pixel_shuffle", input, r, "upscale_factor")
    *lead, channels, high, wide = input.array.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={channels} is not divisible by {r * r}"
        )
    parts = input.reshape((*lead, channels // (r * r), r, r, high, wide))
    n = len(lead)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    shape = (*lead, channels // (r * r), high * r, wide * r)
    return as_own(pack.call1(parts.permute(order)), shape)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Places as channels: a square of elements becomes a square of channels."""
    r = downscale_factor
    _check_picture("pixel_unshuffle", input, r, "downscale_factor")
    *lead, channels, high, wide = input.array.shape
    for word, dim, size in (("height", -2, high), ("width", -1, wide)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {word} to be divisible by downscale_factor, but "
                f"input.size({dim})={size} is not divisible by {r}"
            )
    parts = input.reshape((*lead, channels, high // r, r, wide // r, r))
    n = len(lead)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    shape = (*lead, channels * r * r, high // r, wide // r)
    return as_own(pack.call1(parts.permute(order)), shape)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels of all groups in turn."""
    shape = input.array.shape
    if len(shape) < 3:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes "
            f"{shape_text(shape)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    if shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {shape[1]} channels and "
            f"{groups} groups."
        )
    parts = input.reshape((shape[0], groups, shape[1] // groups, *shape[2:]))
    return as_own(pack.call1(parts.transpose(1, 2)), shape)
