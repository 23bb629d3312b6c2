"""Roots, exponentials, trigonometry, and the activations made of them."""

from __future__ import annotations

import math
from typing import Any

from ..backends.backend import backend_of
from ..backends.loop_codes import COS, EXP, FUSED, LOG, RELU, SIGMOID, SIN, SQRT, TANH
from ..backends.loops import loops
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from .declare import by_loop, elementwise, promote_float
from .selection import where

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "erf", "exp", "exp2",
    "expm1", "hypot", "log", "log10", "log1p", "log2", "relu", "rsqrt", "sigmoid", "sin", "sinh",
    "sqrt", "tan", "tanh",
]  # fmt: skip


# Roots, exponentials and trigonometry -------------------------------------------------------------

sqrt = elementwise(
    "sqrt(Tensor self) -> Tensor",
    "sqrt",
    lambda t, out: t / (2 * out),
    dtype=promote_float,
    native=SQRT,
    doc="Square root.",
)
rsqrt = elementwise(
    "rsqrt(Tensor self) -> Tensor",
    lambda xp, x: 1 / xp.sqrt(x),
    lambda t, out: -0.5 * t * out**3,
    dtype=promote_float,
    doc="One divided by the square root.",
)
exp = elementwise(
    "exp(Tensor self) -> Tensor",
    "exp",
    lambda t, out: t * out,
    dtype=promote_float,
    native=EXP,
    doc="Exponential function.",
)
exp2 = elementwise(
    "exp2(Tensor self) -> Tensor",
    "exp2",
    lambda t, out: t * (out * math.log(2)),
    dtype=promote_float,
    doc="Two to the power of the tensor.",
)
expm1 = elementwise(
    "expm1(Tensor self) -> Tensor",
    "expm1",
    lambda t, out: t * (out + 1),
    dtype=promote_float,
    doc="`exp(x) - 1`, accurate near zero.",
)
log = elementwise(
    "log(Tensor self) -> Tensor",
    "log",
    lambda t, self: t / self,
    dtype=promote_float,
    native=LOG,
    doc="Natural logarithm.",
)
log2 = elementwise(
    "log2(Tensor self) -> Tensor",
    "log2",
    lambda t, self: t / (self * math.log(2)),
    dtype=promote_float,
    doc="Logarithm to base two.",
)
log10 = elementwise(
    "log10(Tensor self) -> Tensor",
    "log10",
    lambda t, self: t / (self * math.log(10)),
    dtype=promote_float,
    doc="Logarithm to base ten.",
)
log1p = elementwise(
    "log1p(Tensor self) -> Tensor",
    "log1p",
    lambda t, self: t / (self + 1),
    dtype=promote_float,
    doc="`log(1 + x)`, accurate near zero.",
)
sin = elementwise(
    "sin(Tensor self) -> Tensor",
    "sin",
    lambda t, self: t * cos(self),
    dtype=promote_float,
    native=SIN,
    doc="Sine.",
)
cos: Operator = elementwise(
    "cos(Tensor self) -> Tensor",
    "cos",
    lambda t, self: t * -sin(self),
    dtype=promote_float,
    native=COS,
    doc="Cosine.",
)
tan = elementwise(
    "tan(Tensor self) -> Tensor",
    "tan",
    lambda t, out: t * (1 + out * out),
    dtype=promote_float,
    doc="Tangent.",
)
asin = elementwise(
    "asin(Tensor self) -> Tensor",
    "arcsin",
    lambda t, self: t * rsqrt(1 - self * self),
    dtype=promote_float,
    doc="Inverse sine.",
    also="arcsin",
)
acos = elementwise(
    "acos(Tensor self) -> Tensor",
    "arccos",
    lambda t, self: t * -rsqrt(1 - self * self),
    dtype=promote_float,
    doc="Inverse cosine.",
    also="arccos",
)
atan = elementwise(
    "atan(Tensor self) -> Tensor",
    "arctan",
    lambda t, self: t / (self * self + 1),
    dtype=promote_float,
    doc="Inverse tangent.",
    also="arctan",
)
sinh = elementwise(
    "sinh(Tensor self) -> Tensor",
    "sinh",
    lambda t, self: t * cosh(self),
    dtype=promote_float,
    doc="Hyperbolic sine.",
)
cosh: Operator = elementwise(
    "cosh(Tensor self) -> Tensor",
    "cosh",
    lambda t, self: t * sinh(self),
    dtype=promote_float,
    doc="Hyperbolic cosine.",
)
tanh = elementwise(
    "tanh(Tensor self) -> Tensor",
    "tanh",
    by_loop(FUSED + TANH, lambda t, out: t * (1 - out * out)),
    dtype=promote_float,
    native=TANH,
    doc="Hyperbolic tangent.",
)
asinh = elementwise(
    "asinh(Tensor self) -> Tensor",
    "arcsinh",
    lambda t, self: t * rsqrt(self * self + 1),
    dtype=promote_float,
    inplace="AsinhBackward1",
    doc="Inverse hyperbolic sine.",
    also="arcsinh",
)
acosh = elementwise(
    "acosh(Tensor self) -> Tensor",
    "arccosh",
    lambda t, self: t * (rsqrt(self - 1) * rsqrt(self + 1)),
    dtype=promote_float,
    inplace="AcoshBackward1",
    doc="Inverse hyperbolic cosine.",
    also="arccosh",
)
atanh = elementwise(
    "atanh(Tensor self) -> Tensor",
    "arctanh",
    lambda t, self: t / (1 - self * self),
    dtype=promote_float,
    inplace="AtanhBackward1",
    doc="Inverse hyperbolic tangent.",
    also="arctanh",
)


def error_function(xp: Any, x: Any) -> Any:
    return backend_of(xp.asarray(x)).special("erf")(x)


erf = elementwise(
    "erf(Tensor self) -> Tensor",
    error_function,
    lambda t, self: t * (2 / math.sqrt(math.pi) * exp(-self * self)),
    dtype=promote_float,
    refuses="c",
    doc="Error function.",
)


def _per_square(t: Tensor, x: Any, a: Any, b: Any) -> Tensor:
    """`t` times `x` over the squared distance of (a, b) from the origin, zero at the origin."""
    # Squares of integers would overflow.
    a = a if a.is_floating_point() else a.to(t.dtype)
    b = b if b.is_floating_point() else b.to(t.dtype)
    square_sum = a * a + b * b
    return t * where(square_sum == 0, 0, x / square_sum)


atan2 = elementwise(
    "atan2(Tensor self, Tensor other) -> Tensor",
    "arctan2",
    {
        "self": lambda t, self, other: _per_square(t, other, self, other),
        "other": lambda t, self, other: _per_square(-t, self, self, other),
    },
    dtype=promote_float,
    refuses="c",
    doc="Angle of the points (other, input).",
    also="arctan2",
)
hypot = elementwise(
    "hypot(Tensor self, Tensor other) -> Tensor",
    "hypot",
    {
        "self": lambda t, self, out: t * (self / out),
        "other": lambda t, other, out: t * (other / out),
    },
    refuses="biuc",
    doc="Length of the hypotenuse.",
)

# Activations --------------------------------------------------------------------------------------


def logistic(xp: Any, x: Any) -> Any:
    e = xp.exp(-x)
    if loops.logistic_tail(e):
        return e
    e = 1 + e
    return 1 / e


sigmoid = elementwise(
    "sigmoid(Tensor self) -> Tensor",
    logistic,
    by_loop(FUSED + SIGMOID, lambda t, out: t * ((1 - out) * out)),
    dtype=promote_float,
    native=SIGMOID,
    doc="Logistic function.",
)
relu = elementwise(
    "relu(Tensor self) -> Tensor",
    lambda xp, x: xp.maximum(0, x),  # of equal operands the second: -0 stays
    by_loop(FUSED + RELU, lambda t, out: where(out <= 0, out * 0, t)),
    native=RELU,
    refuses="bc",
    refusal="Boolean inputs not supported for relu",
    doc="The tensor where positive, else zero.",
)
