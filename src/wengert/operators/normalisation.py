"""Normalisation over all but the channels, of which batch and instance normalisation are made."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..backends import meta
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..transforms.batching.moving import at_front, batch_size, moved, reshaped, with_batch
from .along import mean_kept, packed, scalar_name, widened
from .convolution import channels_innermost, channels_moved
from .declare import primitive
from .nn import _standardized, _through_standardized

__all__ = []


def _others(ndim: int) -> tuple[int, ...]:
    """All dimensions but that of the channels, counted from the end."""
    return (-ndim, *range(2 - ndim, 0))


def per_channel(t: Any, ndim: int) -> Any:
    """A vector with one number for each channel, shaped to broadcast."""
    return t.reshape((1, -1, *(1,) * (ndim - 2)))


def check_normalized(x: Any, **vectors: Any) -> None:
    """Refuse types without fractions, and vectors that have not one number for each channel."""
    channels = x.shape[1] if x.ndim > 1 else 0
    for name, vector in vectors.items():
        if vector is not None and vector.shape != (channels,):
            raise RuntimeError(
                f"{name} should contain {channels} elements not {math.prod(vector.shape)}"
            )
    if x.dtype.kind in "biuc":
        raise NotImplementedError(f"\"batch_norm\" not implemented for '{scalar_name(x.dtype)}'")


def _normalize(xp: Any, x: Any, weight: Any, bias: Any, eps: float) -> tuple:
    check_normalized(x, weight=weight, bias=bias)
    goal, work = x.dtype, widened(x)
    turned = channels_innermost(x)
    if not turned:
        work = packed(work)
    dims = (0, *range(2, x.ndim))
    mean = mean_kept(xp, work, dims)
    out = work - mean
    spread = mean_kept(xp, out * out, dims)
    scale = 1 / xp.sqrt(spread + work.dtype.type(eps))
    out *= scale if weight is None else scale * per_channel(weight, x.ndim)
    if bias is not None:
        out += per_channel(bias, x.ndim)
    out = out.astype(goal, copy=False)
    return channels_moved(xp, out) if turned else out, mean, scale, spread


def _normalize_meta(x: Any, weight: Any, bias: Any, eps: float) -> tuple:
    check_normalized(x, weight=weight, bias=bias)
    kind = np.float32 if x.dtype.itemsize == 2 else x.dtype
    moments = meta.empty((1, x.shape[1], *(1,) * (x.ndim - 2)), kind)
    out = meta.like(x) if channels_innermost(x) else meta.empty(x.shape, x.dtype)
    return out, moments, moments, moments


def _input_rule(g: Tensor, x: Tensor, weight: Any, mean: Tensor, scale: Tensor) -> Tensor:
    ndim = x.array.ndim
    dims = _others(ndim)
    unit, scale = _standardized(x, mean, scale, dims)
    g = g if weight is None else g * per_channel(weight, ndim)
    return _through_standardized(g, unit, scale, dims)


def _weight_rule(g: Tensor, x: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    dims = _others(x.array.ndim)
    return (g * _standardized(x, mean, scale, dims)[0]).sum(dims)


def _tangent(tangents: dict, x: Tensor, weight: Any, mean: Tensor, scale: Tensor) -> tuple:
    ndim = x.array.ndim
    unit, scale = _standardized(x, mean, scale, _others(ndim))
    total: Any = 0
    if "input" in tangents:
        total = _through_standardized(tangents["input"], unit, scale, _others(ndim))
        total = total if weight is None else total * per_channel(weight, ndim)
    if "weight" in tangents:
        total = total + per_channel(tangents["weight"], ndim) * unit
    if "bias" in tangents:
        total = total + per_channel(tangents["bias"], ndim).expand(x.array.shape)
    return total.to(x.dtype), None, None, None


def _batched(operator: Any, args: tuple, dims: tuple) -> tuple[Any, int]:
    """Each channel of each example is a channel."""
    x, weight, bias, eps = args
    size = batch_size(args, dims)
    x = moved(with_batch(x, dims[0], size), 0, 1)
    count, _, channels, *places = x.array.shape
    vectors = [
        None if t is None else reshaped(with_batch(t, d, size), (size * channels,))
        for t, d in ((weight, dims[1]), (bias, dims[2]))
    ]
    found = operator.call((reshaped(x, (count, size * channels, *places)), *vectors, eps))
    out = tuple([reshaped(t, (t.array.shape[0], size, channels, *t.array.shape[2:]))
                 for t in found])  # fmt: skip
    return tuple([at_front(t, 1) for t in out]), 0


normalize_channels: Operator = primitive(
    "_normalize_channels(Tensor input, Tensor? weight, Tensor? bias, float eps) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    _normalize,
    {
        "input": lambda g, input, weight, out1, out2: _input_rule(g[0], input, weight, out1, out2),
        "weight": lambda g, input, out1, out2: _weight_rule(g[0], input, out1, out2),
        "bias": lambda g: g[0].sum(_others(g[0].array.ndim)),
    },
    lambda tangents, input, weight, out1, out2: _tangent(tangents, input, weight, out1, out2),
    nondifferentiable_outputs=(1, 2, 3),
    widens=False,
    meta=_normalize_meta,
    batch=_batched,
    name="NativeBatchNormBackward0",
    doc="The input with mean 0 and variance 1 in each channel, scaled and shifted; then the mean, "
    "the reciprocal standard deviation and the variance of each channel.",
)
