"""Activation functions beyond those of `transcendental`: of use in networks, not in arithmetic.

Their names begin with an underscore: they are called through `nn.functional` only.
"""

from __future__ import annotations

import math
from typing import Any

from ..core import dtypes
from ..core.dtypes import from_numpy
from ..core.numbers import check_number
from ..core.state import thread_state
from ..core.tensor import Tensor
from ..transforms.batching.rules import along
from ..transforms.batching.views import in_place
from . import shapes
from .along import scalar_name
from .declare import elementwise, primitive, promote
from .joining import cat
from .pointwise import erf, error_function, exp, logistic, sigmoid, tanh, where, zeros_like

__all__ = ["hardshrink"]

_tied = primitive(
    "_tied(Tensor self, Tensor other) -> Tensor",
    lambda xp, x, other: x.copy(),
    {"self": lambda g: g, "other": lambda g, other: zeros_like(other)},
    lambda tangents, self: tangents["self"] if "self" in tangents else zeros_like(self),
    widens=False,
    shape=shapes.broadcast,
    batch=in_place,
    doc="The first tensor, with a derivative by the second one that is zero.",
)


def tied(t: Tensor, x: Tensor) -> Tensor:
    """`t`, of which a recorded graph shall know that it depends on `x`, if only by pieces."""
    return _tied.call((t, x)) if thread_state().grad_enabled and x.requires() else t


leaky_relu = elementwise(
    "_leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    lambda xp, x, slope: xp.where(x > 0, x, x * slope),
    lambda t, self, negative_slope: tied(where(self > 0, t, t * negative_slope), self),
    refuses="biuc",
    doc="The tensor where positive, else multiplied by `negative_slope`.",
    aten="leaky_relu",
)
silu = elementwise(
    "_silu(Tensor self) -> Tensor",
    lambda xp, x: x * logistic(xp, x),
    lambda t, self: _silu_differential(t, self, sigmoid(self)),
    refuses="biu",
    doc="`x * sigmoid(x)`.",
    aten="silu",
)


def _silu_differential(t: Tensor, x: Tensor, s: Tensor) -> Tensor:
    return t * (s * (1 + x * (1 - s)))


softplus = elementwise(
    "_softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    lambda xp, x, beta, threshold: xp.where(
        x * beta > threshold, x, xp.log1p(xp.exp(x * beta)) / beta
    ),
    lambda t, self, beta, threshold: where(
        self * beta > threshold, t, t * sigmoid(self * beta)
    ),
    refuses="biuc",
    inplace=False,
    doc="Smooth version of relu.",
    aten="softplus",
)


def _gelu(xp: Any, x: Any, approximate: str) -> Any:
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1 + xp.tanh(inner))
    if approximate == "none":
        return 0.5 * x * (1 + error_function(xp, x * math.sqrt(0.5)))
    raise RuntimeError("approximate argument must be either none or tanh.")


def _gelu_differential(t: Tensor, x: Tensor, approximate: str) -> Tensor:
    if approximate == "none":
        density = exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))
        return t * (0.5 * (1 + erf(x * math.sqrt(0.5))) + x * density)
    scale = math.sqrt(2 / math.pi)
    bent = tanh(scale * (x + 0.044715 * x * x * x))
    slope = scale * (1 + 3 * 0.044715 * x * x)
    return t * (0.5 * (1 + bent) + 0.5 * x * (1 - bent * bent) * slope)


gelu = elementwise(
    "_gelu(Tensor self, *, str approximate='none') -> Tensor",
    _gelu,
    lambda t, self, approximate: _gelu_differential(t, self, approximate),
    refuses="biuc",
    inplace=False,
    doc="Gaussian error linear unit, exact or with the tanh approximation.",
    aten="gelu",
)


def _elu(xp: Any, x: Any, alpha: float, scale: float, input_scale: float) -> Any:
    grown = xp.expm1(xp.minimum(0, x) * input_scale) * alpha
    return xp.where(x > 0, x, grown) * scale


def _elu_differential(
    t: Tensor, x: Tensor, alpha: float, scale: float, input_scale: float
) -> Tensor:
    # exp() only where it is at most one: infinity times zero would spoil second derivatives.
    slope = exp(where(x < 0, x, 0) * input_scale) * (alpha * scale * input_scale)
    return where(x > 0, t * scale, t * slope)


elu = elementwise(
    "_elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    _elu,
    lambda t, self, alpha, scale, input_scale: _elu_differential(
        t, self, alpha, scale, input_scale
    ),
    refuses="biuc",
    doc="The tensor where positive, else `alpha * (exp(x) - 1)`.",
    aten="elu",
)
celu = elementwise(
    "_celu(Tensor self, Scalar alpha=1.0) -> Tensor",
    lambda xp, x, alpha: _elu(xp, x, alpha, 1, 1 / alpha),
    lambda t, self, alpha: _elu_differential(t, self, alpha, 1, 1 / alpha),
    refuses="biuc",
    doc="The tensor where positive, else `alpha * (exp(x / alpha) - 1)`.",
    aten="celu",
)


def _hardtanh(xp: Any, x: Any, low: float, high: float) -> Any:
    if x.dtype.kind in "iu":
        low, high = int(low), int(high)
    if x.dtype.kind == "u" and low < 0:
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return xp.clip(x, low, high)


hardtanh = elementwise(
    "_hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    _hardtanh,
    lambda t, self, min_val, max_val: tied(
        where((self > min_val) & (self < max_val), t, 0), self
    ),
    refuses="bc",
    refusal="Bool inputs not supported for hardtanh",
    doc="The tensor limited to a range; the slope is zero at its ends.",
    aten="hardtanh",
)
hardsigmoid = elementwise(
    "_hardsigmoid(Tensor self) -> Tensor",
    lambda xp, x: xp.clip(x + 3, 0, 6) / 6,
    lambda t, self: where((self > -3) & (self < 3), t / 6, 0),
    refuses="biuc",
    doc="A piecewise linear sigmoid.",
    aten="hardsigmoid",
)
hardswish = elementwise(
    "_hardswish(Tensor self) -> Tensor",
    lambda xp, x: x * xp.clip(x + 3, 0, 6) / 6,
    # Only in the middle is its slope a function of `self`, also where `t` is not a number.
    lambda t, self: where(
        self <= -3, 0, t * where((self > -3) & (self < 3), self / 3 + 0.5, 1)
    ),
    refuses="biuc",
    doc="`x * hardsigmoid(x)`.",
    aten="hardswish",
)


def _softplus(xp: Any, x: Any) -> Any:
    return xp.maximum(x, 0) + xp.log1p(xp.exp(-xp.abs(x)))


def _mish_differential(t: Tensor, x: Tensor) -> Tensor:
    bent = tanh(softplus(x))
    return t * (bent + x * sigmoid(x) * (1 - bent * bent))


mish = elementwise(
    "_mish(Tensor self) -> Tensor",
    lambda xp, x: x * xp.tanh(_softplus(xp, x)),
    lambda t, self: _mish_differential(t, self),
    refuses="biuc",
    doc="`x * tanh(softplus(x))`.",
    aten="mish",
)
log_sigmoid = elementwise(
    "_log_sigmoid(Tensor self) -> Tensor",
    lambda xp, x: -_softplus(xp, -x),
    lambda t, self: t * sigmoid(-self),
    refuses="biuc",
    ordering=lambda x: (),
    doc="Logarithm of the logistic function.",
)


def _within(x: Tensor, threshold: Any) -> Tensor:
    """Where `x` is not larger, with 16-bit floats compared as the kernel does: as float32."""
    if x.array.dtype.itemsize == 2 and x.is_floating_point():
        x = x.to(dtypes.float32)
    return x <= threshold


def _held(value: Any, dtype: Any) -> Any:
    """A number as integers of a dtype hold it, or an error."""
    return check_number(value, from_numpy(dtype)) if dtype.kind in "iu" else value


threshold = elementwise(
    "_threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    lambda xp, x, threshold, value: xp.where(
        x <= threshold, xp.asarray(_held(value, x.dtype), x.dtype), x
    ),
    lambda t, self, threshold: tied(where(_within(self, threshold), 0, t), self),
    refuses="bc",
    doc="A value where the tensor does not exceed a threshold, else the tensor: NaN stay.",
    aten="threshold",
)


def _outside(t: Tensor, x: Tensor, lambd: float) -> Tensor:
    return tied(where((x >= -lambd) & (x <= lambd), 0, t), x)


def _limit_as_element(args: tuple, count: int) -> tuple:
    """The limit rounded to the type of the elements, which float32 may be wide enough for."""
    x, lambd = promote(args, count)
    return (x, float(x.dtype.type(lambd))) if x.dtype.kind in "fV" else (x, lambd)


hardshrink = elementwise(
    "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    lambda xp, x, lambd: xp.where((x >= -lambd) & (x <= lambd), xp.asarray(0, x.dtype), x),
    lambda t, self, lambd: _outside(t, self, lambd),
    dtype=_limit_as_element,
    inplace=False,
    refuses="biuc",
    doc="The tensor with zeros where it is at most `lambd` in size.",
    out="exact",
)
softshrink = elementwise(
    "_softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    lambda xp, x, lambd: xp.where(
        x > lambd, x - lambd, xp.where(x < -lambd, x + lambd, x * 0)  # zeros keep their signs
    ),
    lambda t, self, lambd: _outside(t, self, lambd),
    inplace=False,
    refuses="biuc",
    doc="The tensor moved towards zero by `lambd`.",
    aten="softshrink",
)
prelu_kernel = elementwise(
    "_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
    lambda xp, x, weight: xp.where(x > 0, x, x * weight),
    {
        "self": lambda t, self, weight: tied(where(self > 0, t, t * weight), self),
        "weight": lambda t, self: where(self > 0, 0, t * self),
    },
    inplace=False,
    refuses="biuc",
    doc="The tensor where positive, else multiplied by a weight.",
)


def _halves(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """What a gated unit lets through, and its gate: the sigmoid of the other half."""
    size = x.array.shape[dim] // 2
    return x.narrow(dim, 0, size), sigmoid(x.narrow(dim, size, size))


def _glu(xp: Any, x: Any, dim: int) -> Any:
    if x.dtype.kind in "biu":
        raise NotImplementedError(f"\"glu_cpu\" not implemented for '{scalar_name(x.dtype)}'")
    passed, gate = xp.split(x, 2, axis=dim)
    return passed * logistic(xp, gate)


def _glu_gradient(g: Tensor, x: Tensor, dim: int) -> Tensor:
    passed, gate = _halves(x, dim)
    return cat([g * gate, g * passed * ((1 - gate) * gate)], dim)


def _glu_tangent(t: Tensor, x: Tensor, dim: int) -> Tensor:
    passed, gate = _halves(x, dim)
    size = t.array.shape[dim] // 2
    moved = t.narrow(dim, size, size)
    return t.narrow(dim, 0, size) * gate + passed * ((1 - gate) * gate) * moved


glu = primitive(
    "_glu(Tensor self, int dim) -> Tensor",
    _glu,
    lambda g, self, dim: _glu_gradient(g, self, dim),
    lambda tangents, self, dim: _glu_tangent(tangents["self"], self, dim),
    shape=lambda x, dim: shapes.replaced(x, dim, x.shape[dim] // 2),
    batch=along("dim"),
    doc="One half of the tensor times the sigmoid of the other.",
)
