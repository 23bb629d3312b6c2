"""Functions that draw: dropout that keeps mean and variance, random slopes, Gumbel softmax."""

from __future__ import annotations

import math
import warnings

from ...core import dtypes
from ...core.tensor import Tensor
from ...creation.factories import empty_like
from ...creation.random import random_slopes
from ...operators.softmax import softmax
from .activations import leaky_relu
from .layers import _check_probability

#: The value far below zero of SELU, with its sign turned.
_SATURATION = 1.7580993408473766


def _by_channels(input: Tensor) -> Tensor:
    """A part of the input with one element for each channel of each example."""
    if input.array.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return input.detach()[(slice(None),) * 2 + (slice(0, 1),) * (input.array.ndim - 2)]


def _kept(pattern: Tensor, p: float) -> Tensor:
    """Ones, and zeros with probability `p`."""
    return empty_like(pattern.detach()).bernoulli_(1 - p)


def _alpha_dropped(
    input: Tensor, by_channels: bool, p: float, training: bool, inplace: bool
) -> Tensor:
    _check_probability(p)
    if not training or p == 0 or not input.array.size:
        return input
    pattern = _by_channels(input) if by_channels else input
    if p == 1:
        zero = input.new_zeros(())
        return input.mul_(zero) if inplace else input * zero
    if dtypes.from_numpy(input.array.dtype).category < dtypes.FLOATING:
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type "
            f"{dtypes.from_numpy(input.array.dtype).scalar_name}"
        )
    kept = _kept(pattern, p)
    scale = 1 / math.sqrt((_SATURATION**2 * p + 1) * (1 - p))
    shift = (kept - 1) * (_SATURATION * scale) + _SATURATION * scale * p
    if inplace:
        return input.mul_(kept * scale).add_(shift)
    return input * (kept * scale) + shift


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout to a negative value, which keeps mean 0 and variance 1 of what SELU gives."""
    return _alpha_dropped(input, False, p, training, inplace)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Alpha dropout of whole channels."""
    return _alpha_dropped(input, True, p, training, inplace)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """The tensor where positive, else times slopes drawn in training, and their mean otherwise."""
    if not lower <= upper:
        raise RuntimeError(
            f"Lower bound should be less than or equal to the upper bound, but got {lower} and "
            f"{upper}"
        )
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    factors = random_slopes(input.detach(), lower, upper)
    return input.mul_(factors) if inplace else input * factors


def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """The in-place form of `rrelu`."""
    return rrelu(input, lower, upper, training, True)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Softmax of scores with random numbers added, which samples classes as `tau` goes to zero.

    With `hard` the result is one-hot, with the gradient of the softmax.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -empty_like(logits.detach()).exponential_().log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.detach().max(dim, keepdim=True)[1]
    return soft.detach().mul(0).scatter(dim, index, 1.0) - soft.detach() + soft
