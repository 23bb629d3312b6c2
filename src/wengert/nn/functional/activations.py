"""Activation functions, with softmax and its relatives."""

from __future__ import annotations

import warnings
from typing import Any

from ...core.dtypes import finfo
from ...core.registry import operator_named
from ...core.tensor import Tensor
from ...operators import activations, pointwise
from ...operators.softmax import log_softmax as log_softmax_operator
from ...operators.softmax import softmax as softmax_operator

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def _activated(name: str, input: Tensor, inplace: bool, *options: Any) -> Tensor:
    """An elementwise operator, or its in-place form."""
    return operator_named(name + "_" if inplace else name).call((input, *options))


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """The tensor where positive, else zero."""
    return _activated("relu", input, inplace) if inplace else pointwise.relu.call1(input)


def leaky_relu(
    input: Tensor, negative_slope: float = 0.01, inplace: bool = False
) -> Tensor:
    """The tensor where positive, else multiplied by `negative_slope`."""
    return _activated("_leaky_relu", input, inplace, negative_slope)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """The tensor limited to the range from 0 to 6."""
    return _activated("_hardtanh", input, inplace, 0, 6)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """The tensor limited to a range; the slope is zero at its ends."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _activated("_hardtanh", input, inplace, min_val, max_val)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The tensor where positive, else `alpha * (exp(x) - 1)`."""
    return _activated("_elu", input, inplace, alpha, 1, 1)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """A scaled elu that keeps mean and variance of what passes through many layers."""
    return _activated("_elu", input, inplace, _SELU_ALPHA, _SELU_SCALE, 1)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The tensor where positive, else `alpha * (exp(x / alpha) - 1)`."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _activated("_celu", input, inplace, alpha)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """`x * sigmoid(x)`."""
    return _activated("_silu", input, inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """`x * tanh(softplus(x))`."""
    return _activated("_mish", input, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """`x * hardsigmoid(x)`."""
    return _activated("_hardswish", input, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """A piecewise linear sigmoid."""
    return _activated("_hardsigmoid", input, inplace)


def threshold(
    input: Tensor, threshold: float, value: float, inplace: bool = False
) -> Tensor:
    """The tensor where it exceeds a threshold, else a value."""
    return _activated("_threshold", input, inplace, threshold, value)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """The tensor where positive, else multiplied by a weight, one for all or one per channel."""
    shape = input.array.shape
    if weight.array.ndim > 1:
        raise RuntimeError(
            "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
            f"{weight.array.ndim}"
        )
    if weight.array.size != 1:
        if not shape:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = shape[1] if len(shape) > 1 else 1
        if weight.array.size != channels:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight.array.size} and channel size = {channels}."
            )
        weight = weight.reshape((1, channels, *[1] * (len(shape) - 2)))
    elif weight.array.ndim != len(shape):
        weight = weight.reshape((1,) * len(shape))
    return activations.prelu_kernel.call2(input, weight)


def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """Gaussian error linear unit, exact or with the tanh approximation."""
    return activations.gelu.call((input, approximate))


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Smooth version of relu; linear where `x * beta` exceeds the threshold."""
    return activations.softplus.call((input, beta, threshold))


def logsigmoid(input: Tensor) -> Tensor:
    """Logarithm of the logistic function."""
    return activations.log_sigmoid.call1(input)


def sigmoid(input: Tensor) -> Tensor:
    """Logistic function."""
    return pointwise.sigmoid.call1(input)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return pointwise.tanh.call1(input)


def softsign(input: Tensor) -> Tensor:
    """`x / (1 + |x|)`."""
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """`x - tanh(x)`."""
    return input - input.tanh()


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """The tensor with zeros where it is at most `lambd` in size."""
    return activations.hardshrink.call((input, lambd))


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """The tensor moved towards zero by `lambd`."""
    if lambd < 0 and input.is_floating_point():
        largest = finfo(input.dtype).max
        raise RuntimeError(
            f"lambda must be in range [0, {largest:g}] for input dtype "
            f"{input.dtype.scalar_name}, but found {lambd:g}"
        )
    return activations.softshrink.call((input, lambd))


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """One half of the tensor times the sigmoid of the other."""
    if input.array.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    if input.is_complex():
        raise NotImplementedError(f"\"glu_cpu\" not implemented for '{input.dtype.scalar_name}'")
    size = input.size(dim)
    if size % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {dim % input.array.ndim} is size {size}"
        )
    return activations.glu.call((input, dim))


def _implicit_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. "
        "Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Exponentials along a dimension, divided by their sum."""
    if dim is None:
        dim = _implicit_dim("softmax", input.array.ndim, _stacklevel)
    return softmax_operator(input, dim, dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Logarithm of softmax, without the loss of accuracy of taking it afterwards."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input.array.ndim, _stacklevel)
    return log_softmax_operator(input, dim, dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Softmax of the negative."""
    if dim is None:
        dim = _implicit_dim("softmin", input.array.ndim, _stacklevel)
    return softmax_operator(-input, dim, dtype)


# In place ----------------------------------------------------------------------------------------


def relu_(input: Tensor) -> Tensor:
    """The in-place form of `relu`."""
    return relu(input, True)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """The in-place form of `elu`."""
    return elu(input, alpha, True)


def selu_(input: Tensor) -> Tensor:
    """The in-place form of `selu`."""
    return selu(input, True)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """The in-place form of `celu`."""
    return celu(input, alpha, True)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """The in-place form of `hardtanh`."""
    return hardtanh(input, min_val, max_val, True)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """The in-place form of `leaky_relu`."""
    return leaky_relu(input, negative_slope, True)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """The in-place form of `threshold`."""
    return _activated("_threshold", input, True, threshold, value)
