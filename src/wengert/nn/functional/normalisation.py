"""Normalisation of channels over batches, examples, groups and neighbours."""

from __future__ import annotations

import math
from typing import Any

from ...autograd.grad_mode import no_grad
from ...core.errors import shape_text
from ...core.tensor import Tensor
from ...operators.convolution import channels_innermost
from ...operators.nn import constant_pad_nd, native_layer_norm
from ...operators.normalisation import check_normalized, normalize_channels, per_channel
from ...operators.views import as_own
from .pooling import avg_pool2d


def _check_count(shape: tuple[int, ...]) -> None:
    if math.prod([shape[0], *shape[2:]]) == 1:
        raise ValueError(
            "Expected more than 1 value per channel when training, got input size "
            f"Size({shape_text(shape)})"
        )


def _track(running: Tensor | None, value: Tensor, momentum: float) -> None:
    """Move a running statistic towards that of a batch."""
    if running is not None:
        with no_grad():
            running.copy_(running * (1 - momentum) + value * momentum)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel with mean 0 and variance 1 over the batch, then scaled and shifted.

    In training the running statistics follow those of the batch; else they take their place.
    """
    if training:
        _check_count(input.array.shape)
        if eps <= 0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return normalized(input, running_mean, running_var, weight, bias, training, momentum, eps)


def normalized(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Tensor:
    """Batch normalisation without a check of the number of values."""
    if not training:
        for name, value in (("running_mean", running_mean), ("running_var", running_var)):
            if value is None:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
    x = input.array
    if not training or running_mean is not None or running_var is not None:
        given = {
            "running_mean": running_mean, "running_var": running_var, "weight": weight,
            "bias": bias,
        }  # fmt: skip
        check_normalized(x, **{k: None if t is None else t.array for k, t in given.items()})
    if not training:
        return _by_statistics(input, running_mean, running_var, weight, bias, eps)
    out, mean, _, spread = normalize_channels.call((input, weight, bias, float(eps)))
    count = math.prod([x.shape[0], *x.shape[2:]])
    if count == 0:  # nothing that the statistics could follow
        return out
    if running_mean is not None:
        _track(running_mean, mean.reshape(-1), momentum)
    if running_var is not None:
        unbiased = count / (count - 1) if count > 1 else math.nan
        _track(running_var, spread.reshape(-1) * unbiased, momentum)
    return out


def _by_statistics(
    x: Tensor, mean: Any, spread: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """Channels normalised by known means and variances, which get no gradients."""
    ndim = x.array.ndim
    if not channels_innermost(x.array):
        x = x.contiguous()
    scale = (spread.detach() + eps).rsqrt()
    factor = per_channel(scale if weight is None else scale * weight, ndim)
    out = (x - per_channel(mean.detach(), ndim)) * factor
    return (out if bias is None else out + per_channel(bias, ndim)).to(x.dtype)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel of each example with mean 0 and variance 1, then scaled and shifted."""
    shape = input.array.shape
    if use_input_stats and math.prod(shape[2:]) == 1:
        raise ValueError(
            "Expected more than 1 spatial element when training, got input size "
            f"{shape_text(shape)}"
        )
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    count, channels = shape[:2]
    repeated = [
        None if t is None else t.repeat(count) for t in (running_mean, running_var, weight, bias)
    ]
    flat = input.contiguous().reshape((1, count * channels, *shape[2:]))
    mean, spread, scale, shift = repeated
    out = normalized(flat, mean, spread, scale, shift, use_input_stats, momentum, eps)
    if not use_input_stats or count == 0:
        return out.reshape(shape)
    with no_grad():
        for running, found in ((running_mean, mean), (running_var, spread)):
            if running is not None and found is not None:
                running.copy_(found.reshape(count, channels).mean(0))
    return out.reshape(shape)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Groups of channels of each example with mean 0 and variance 1; channels are then scaled."""
    x = input.array
    if x.ndim < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {x.ndim}"
        )
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    _check_count((x.shape[0] * x.shape[1] // num_groups, num_groups, *x.shape[2:]))
    return grouped_norm(input, num_groups, weight, bias, eps)


def grouped_norm(
    input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """Group normalisation without a check of the number of values."""
    shape = input.array.shape
    if shape[1] % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {shape_text(shape)} and num_groups={num_groups}"
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and value.array.shape != (shape[1],):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, "
                f"but got {name} of shape {shape_text(value.array.shape)} and input of shape "
                f"{shape_text(shape)}"
            )
    length = math.prod(shape[1:]) // num_groups
    rows = input.reshape((shape[0], num_groups, length))
    out = as_own(native_layer_norm.call((rows, (length,), None, None, float(eps)))[0], shape)
    if weight is not None:
        out = out * per_channel(weight, len(shape))
    if bias is not None:
        out = out + per_channel(bias, len(shape))
    return out if out.array.dtype == input.array.dtype else out.to(input.dtype)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """The input divided by a power of the mean square of `size` neighbouring channels."""
    ndim = input.array.ndim
    if ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {ndim} dimensions)")
    if input.array.size == 0:
        return input
    shape = input.array.shape
    squares = (input * input).reshape((shape[0], 1, shape[1], -1))
    squares = constant_pad_nd.call((squares, (0, 0, size // 2, (size - 1) // 2), 0))
    mean = avg_pool2d(squares, (size, 1), 1).reshape(shape)
    return input / (mean * alpha + k).pow(beta)
