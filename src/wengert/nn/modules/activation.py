"""Activations; most are their function, whose arguments are the fields."""

from __future__ import annotations

import warnings
from typing import Any

from ...core.tensor import Tensor
from .. import functional as F
from .. import init
from .layer import Layer, parameter


class Threshold(Layer):
    """Keeps what exceeds a threshold and replaces all else by a value."""

    forward = F.threshold


class ReLU(Layer):
    """Keeps what is positive, and makes all else zero."""

    forward = F.relu


class Hardtanh(
    Layer,
    fields="min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None",
    passing="min_value max_value",
):
    """Limits the input to a range."""

    forward = F.hardtanh

    def _prepare(self, values: dict[str, Any]) -> None:
        """Take over the older names of both ends, and check their order."""
        for old, new in (("min_value", "min_val"), ("max_value", "max_val")):
            if values.get(old) is not None:
                warnings.warn(
                    f"keyword argument `{old}` is deprecated and rename to `{new}`",
                    FutureWarning,
                    stacklevel=4,
                )
                setattr(self, new, values[old])
        if self.max_val <= self.min_val:
            raise AssertionError(
                f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})"
            )


class ReLU6(Hardtanh, fields="inplace=False"):
    """Limits the input to the range from 0 to 6."""

    def _prepare(self, values: dict[str, Any]) -> None:
        """Set the ends of the range, which are not fields."""
        self.min_val, self.max_val = 0.0, 6.0


class LeakyReLU(Layer):
    """Keeps what is positive, and multiplies all else by a small slope."""

    forward = F.leaky_relu


class ELU(Layer):
    """Keeps what is positive, and lets all else approach a negative value exponentially."""

    forward = F.elu


class SELU(Layer):
    """A scaled ELU that keeps mean and variance of what passes through many layers."""

    forward = F.selu


class CELU(Layer):
    """An ELU with a continuous derivative for every `alpha`."""

    forward = F.celu


class GELU(Layer):
    """Multiplies the input by the probability that a normal number is smaller."""

    forward = F.gelu


class SiLU(Layer):
    """Multiplies the input by its sigmoid."""

    forward = F.silu


class Mish(Layer):
    """Multiplies the input by the tanh of its softplus."""

    forward = F.mish


class Hardswish(Layer, shown=""):
    """Multiplies the input by a piecewise linear sigmoid of it."""

    forward = F.hardswish


class Hardsigmoid(Layer, shown=""):
    """A piecewise linear sigmoid."""

    forward = F.hardsigmoid


class Sigmoid(Layer):
    """The logistic function."""

    forward = F.sigmoid


class LogSigmoid(Layer):
    """The logarithm of the logistic function."""

    forward = F.logsigmoid


class Tanh(Layer):
    """The hyperbolic tangent."""

    forward = F.tanh


class Tanhshrink(Layer):
    """The input less its hyperbolic tangent."""

    forward = F.tanhshrink


class Softsign(Layer):
    """The input divided by one more than its size."""

    forward = F.softsign


class Softplus(Layer):
    """A smooth form of ReLU, linear where the input is large."""

    forward = F.softplus


class Hardshrink(Layer, shown="*lambd"):
    """Makes zero what is small."""

    forward = F.hardshrink


class Softshrink(Layer, shown="*lambd"):
    """Moves the input towards zero."""

    forward = F.softshrink


class GLU(Layer):
    """Multiplies one half of the input by the sigmoid of the other."""

    forward = F.glu


class PReLU(Layer, fields="num_parameters=1, init=0.25", shown="num_parameters"):
    """Keeps what is positive, and multiplies all else by slopes that are trained."""

    weight = parameter("num_parameters", init=lambda layer, t: init.constant_(t, layer.init))
    forward = F.prelu


class Softmax(Layer):
    """Exponentials along a dimension, divided by their sum."""

    forward = F.softmax


class Softmin(Layer):
    """Softmax of the negative input."""

    forward = F.softmin


class LogSoftmax(Layer):
    """The logarithm of softmax."""

    forward = F.log_softmax


class Softmax2d(Layer, fields=""):
    """Softmax over the channels of pictures."""

    def forward(self, input: Tensor) -> Tensor:
        """Softmax over the third dimension from the end."""
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead"
            )
        return F.softmax(input, -3)
