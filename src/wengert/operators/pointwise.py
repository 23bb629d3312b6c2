"""Elementwise operators: arithmetic, comparison, logic, exponentials, activations."""

from __future__ import annotations

import math
from typing import Any

from ..dispatch import Operator, copy_to_out, operator_named
from ..native import native
from ..state import thread_state
from ..tensor import Tensor, wrap
from .declare import elementwise, keep, nondifferentiable, primitive, promote, promote_float

__all__ = [
    "abs", "acos", "acosh", "add", "addcdiv", "addcmul", "asin", "asinh", "atan", "atan2", "atanh",
    "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "ceil", "clamp", "cos", "cosh", "div", "eq", "erf", "exp", "exp2", "expm1",
    "floor", "floor_divide", "fmod", "ge", "gt", "hypot", "isfinite", "isinf", "isnan",
    "le", "lerp", "log", "log10", "log1p", "log2", "logical_and", "logical_not",
    "logical_or", "logical_xor", "lt", "maximum", "minimum", "mul", "ne", "neg", "positive", "pow",
    "reciprocal", "relu", "remainder", "round", "rsqrt", "rsub", "sgn", "sigmoid", "sign",
    "sin", "sinh", "sqrt", "square", "sub", "tan", "tanh", "trunc", "where",
]  # fmt: skip

_native = native

# Loop numbers of the native module.
ADD, SUB, MUL, DIV, RSUB = range(5)
NEG, ABS, EXP, LOG, SQRT, SIN, COS, TANH, SIGMOID, RELU, SQUARE, RECIPROCAL = range(12)


def _zero(t: Tensor) -> Tensor:
    return zeros_like(t)


def _fast(code: int, t: Tensor, value: Tensor) -> Tensor | None:
    """A differential by one native loop, when nothing is recorded and the tensors are small."""
    state = thread_state()
    if state.grad_enabled or state.layers:
        return None
    array = _native.differential(code, t.array, value.array)
    return None if array is None else wrap(array)


def _tanh_differential(t: Tensor, out: Tensor) -> Tensor:
    fast = _fast(TANH, t, out)
    return t * (1 - out * out) if fast is None else fast


def _sigmoid_differential(t: Tensor, out: Tensor) -> Tensor:
    fast = _fast(SIGMOID, t, out)
    return t * ((1 - out) * out) if fast is None else fast


def _relu_differential(t: Tensor, out: Tensor) -> Tensor:
    fast = _fast(RELU, t, out)
    return where(out <= 0, out * 0, t) if fast is None else fast


def _times(x: Any, factor: Any) -> Any:
    """An operand multiplied by a Python number, in the operand's own dtype."""
    product = x * factor
    return product.astype(x.dtype) if hasattr(x, "dtype") and product.dtype != x.dtype else product


# Arithmetic ---------------------------------------------------------------------------------------

add = elementwise(
    "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    lambda xp, x, y, alpha: xp.add(x, y if alpha == 1 else _times(y, alpha)),
    {"self": lambda t: t, "other": lambda t, alpha: t if alpha == 1 else t * alpha},
    native=ADD,
    doc="Sum of two tensors, the second multiplied by `alpha`.",
)


def _difference_dtype(args: tuple, count: int) -> tuple:
    """The common dtype of operands that are no truth values."""
    flags = [
        a.dtype.kind == "b" if hasattr(a, "dtype") else isinstance(a, bool) for a in args[:count]
    ]
    if all(flags):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. "
            "Use `^` or logical_xor() to see where they differ."
        )
    if any(flags):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. "
            "Use `~` or logical_not() to invert a mask."
        )
    return promote(args, count)


sub = elementwise(
    "sub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    lambda xp, x, y, alpha: xp.subtract(x, y if alpha == 1 else _times(y, alpha)),
    {"self": lambda t: t, "other": lambda t, alpha: -t if alpha == 1 else t * -alpha},
    dtype=_difference_dtype,
    native=SUB,
    doc="Difference of two tensors, the second multiplied by `alpha`.",
)


def _reversed_difference(name: str, node_name: str) -> Operator:
    return elementwise(
        f"{name}(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        lambda xp, x, y, alpha: xp.subtract(y, x if alpha == 1 else _times(x, alpha)),
        {"self": lambda t, alpha: -t if alpha == 1 else t * -alpha, "other": lambda t: t},
        dtype=_difference_dtype,
        inplace=False,
        native=RSUB,
        name=node_name,
        doc="The second tensor minus the first, the first multiplied by `alpha`.",
    )


from_number = _reversed_difference("rsub", "RsubBackward1")
from_tensor = _reversed_difference("_rsub_tensor", "RsubBackward0")


def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """The second tensor or number minus the first tensor, the first multiplied by `alpha`."""
    minuend = from_tensor if isinstance(other, Tensor) else from_number
    return minuend(input, other, alpha=alpha)


mul = elementwise(
    "mul(Tensor self, Tensor other) -> Tensor",
    "multiply",
    {"self": lambda t, other: t * other, "other": lambda t, self: t * self},
    native=MUL,
    doc="Product of two tensors.",
)


true_divide = elementwise(
    "div(Tensor self, Tensor other) -> Tensor",
    lambda xp, x, y: xp.divide(x, y),
    {
        "self": lambda t, other: t / other,
        "other": lambda t, self, other: -t * ((self / other) / other),
    },
    dtype=promote_float,
    native=DIV,
    doc="Quotient of two tensors.",
)


def _divide_rounded(xp: Any, x: Any, y: Any, rounding_mode: str) -> Any:
    if rounding_mode == "floor":
        return xp.floor_divide(x, y)
    if rounding_mode != "trunc":
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"'{rounding_mode}'"
        )
    if x.dtype.kind not in "iu":
        return xp.trunc(xp.divide(x, y))
    quotient = xp.floor_divide(x, y)
    return quotient + ((quotient * y != x) & ((x < 0) != (y < 0)))


rounded_divide = elementwise(
    "_div_rounded(Tensor self, Tensor other, str rounding_mode) -> Tensor",
    _divide_rounded,
    {"self": lambda t: _zero(t), "other": lambda t: _zero(t)},
    name="DivBackward2",
    doc="Quotient of two tensors, rounded towards zero ('trunc') or down ('floor').",
)


def div(
    input: Any, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None
) -> Tensor:
    """Quotient of two tensors, optionally rounded towards zero ('trunc') or down ('floor')."""
    if rounding_mode is not None:
        return rounded_divide(input, other, rounding_mode, out=out)
    return true_divide(input, other) if out is None else true_divide(input, other, out=out)


def div_(input: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """In-place form of div()."""
    if rounding_mode is None:
        return operator_named("div_")(input, other)
    return operator_named("_div_rounded_")(input, other, rounding_mode)


floor_divide = elementwise(
    "floor_divide(Tensor self, Tensor other) -> Tensor",
    lambda xp, x, y: xp.floor_divide(x, y),
    {"self": lambda t: _zero(t), "other": lambda t: _zero(t)},
    doc="Quotient rounded down.",
)
remainder = elementwise(
    "remainder(Tensor self, Tensor other) -> Tensor",
    "remainder",
    {
        "self": lambda t: t,
        "other": lambda t, self, other: -t * div(self, other, rounding_mode="floor"),
    },
    name=lambda self, other: f"RemainderBackward{int(isinstance(other, Tensor))}",
    doc="Remainder with the sign of the divisor, as Python's %.",
)
fmod = elementwise(
    "fmod(Tensor self, Tensor other) -> Tensor",
    "fmod",
    {
        "self": lambda t: t,
        "other": lambda t, self, other: -t * div(self, other, rounding_mode="trunc"),
    },
    name=lambda self, other: f"FmodBackward{int(isinstance(other, Tensor))}",
    doc="Remainder with the sign of the dividend, as C's fmod.",
)
neg = elementwise(
    "neg(Tensor self) -> Tensor", "negative", lambda t: -t, native=NEG, doc="The negative."
)
positive = elementwise(
    "positive(Tensor self) -> Tensor", "positive", lambda t: t, inplace=False, doc="The same value."
)


def _power(xp: Any, x: Any, y: Any) -> Any:
    if getattr(y, "ndim", 0) == 0:
        exponent = y.item() if hasattr(y, "item") else y
        if exponent == 2:
            return xp.multiply(x, x)
        if exponent == 0.5:
            return xp.sqrt(x)
        if isinstance(exponent, int) and exponent < 0 and x.dtype.kind in "iu":
            raise RuntimeError("Integers to negative integer powers are not allowed.")
    if xp.result_type(x, y).kind in "iu":
        return _integer_power(xp, x, y)
    return xp.power(x, y)


def _integer_power(xp: Any, x: Any, y: Any) -> Any:
    """Integer powers; a negative exponent gives what the fraction rounds to."""
    negative = y < 0
    out = xp.power(x, xp.where(negative, 0, y))
    unit = xp.where(x == 1, 1, xp.where(x == -1, xp.where(y % 2 == 0, 1, -1), 0))
    return xp.where(negative, unit, out).astype(x.dtype)


def _pow_self(t: Tensor, self: Any, other: Any) -> Tensor:
    if isinstance(other, Tensor):
        return where(other == 0, 0, t * (other * self ** (other - 1)))
    if other == 0:
        return _zero(t)
    if other == 2 and not thread_state().grad_enabled:
        return t * (2 * self)
    return t * (other * self ** (other - 1))  # recorded, it vanishes only after all derivatives


def _pow_other(t: Tensor, self: Any, other: Tensor, out: Tensor) -> Tensor:
    if isinstance(self, Tensor):
        grows = (self == 0) & (real_part(other) >= 0)
        return where(grows, 0, t * (out * log(self)))
    if self == 0:
        return where(real_part(other) >= 0, 0, t * (out * -math.inf))
    positive_real = isinstance(self, (int, float)) and self > 0
    return t * (out * (math.log(self) if positive_real else _clog(self)))


def _clog(value: complex) -> complex:
    import cmath

    return cmath.log(value) if isinstance(value, complex) else math.nan


pow = elementwise(
    "pow(Tensor self, Tensor exponent) -> Tensor",
    _power,
    {
        "self": lambda t, self, exponent: _pow_self(t, self, exponent),
        "exponent": lambda t, self, exponent, out: _pow_other(t, self, exponent, out),
    },
    name=lambda self, exponent: (
        "PowBackward2"
        if not isinstance(self, Tensor)
        else "PowBackward1" if isinstance(exponent, Tensor) else "PowBackward0"
    ),
    doc="Power of two tensors or numbers.",
    aliases={"other": "exponent"},
)
square = elementwise(
    "square(Tensor self) -> Tensor",
    lambda xp, x: xp.square(x.astype("int64") if x.dtype.kind == "b" else x),
    lambda t, self: _pow_self(t, self, 2),
    native=SQUARE,
    name="PowBackward0",
    doc="The square.",
)
reciprocal = elementwise(
    "reciprocal(Tensor self) -> Tensor",
    lambda xp, x: 1 / x,
    lambda t, out: -t * (out * out),
    dtype=promote_float,
    native=RECIPROCAL,
    doc="One divided by the tensor.",
)
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
def _wrapped(x: Any, value: Any) -> Any:
    """A factor for integers of `x`'s dtype, wrapped around as in C."""
    if getattr(x, "dtype", None) is None or x.dtype.kind != "u":
        return value
    return x.dtype.type(value % 2 ** (8 * x.dtype.itemsize))


addcmul = elementwise(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    lambda xp, x, a, b, value: x + (a * b if value == 1 else _times(a * b, _wrapped(x, value))),
    {
        "self": lambda t: t,
        "tensor1": lambda t, tensor2, value: t * (tensor2 * value),
        "tensor2": lambda t, tensor1, value: t * (tensor1 * value),
    },
    doc="`input + value * tensor1 * tensor2`.",
)
addcdiv = elementwise(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    lambda xp, x, a, b, value: x + (a / b if value == 1 else value * a / b),
    {
        "self": lambda t: t,
        "tensor1": lambda t, tensor2, value: t * (value / tensor2),
        "tensor2": lambda t, tensor1, tensor2, value: -t * (value * tensor1 / (tensor2 * tensor2)),
    },
    refuses="biu",
    doc="`input + value * tensor1 / tensor2`.",
)
lerp = elementwise(
    "lerp(Tensor self, Tensor end, Tensor weight) -> Tensor",
    lambda xp, x, end, weight: x + weight * (end - x),
    {
        "self": lambda t, weight: t * (1 - weight),
        "end": lambda t, weight: t * weight,
        "weight": lambda t, self, end: t * (end - self),
    },
    name=lambda self, end, weight: f"LerpBackward{int(isinstance(weight, Tensor))}",
    doc="Linear interpolation from the tensor to `end`.",
)


def _per_square(x: Tensor, a: Any, b: Any) -> Tensor:
    """`x` over the squared distance of the point (a, b) from the origin, zero at the origin."""
    square_sum = a * a + b * b
    return where(square_sum == 0, 0, x / square_sum)


atan2 = elementwise(
    "atan2(Tensor self, Tensor other) -> Tensor",
    "arctan2",
    {
        "self": lambda t, self, other: t * _per_square(other, self, other),
        "other": lambda t, self, other: -t * _per_square(self, self, other),
    },
    dtype=promote_float,
    doc="Angle of the points (other, input).",
)
hypot = elementwise(
    "hypot(Tensor self, Tensor other) -> Tensor",
    "hypot",
    {
        "self": lambda t, self, out: t * (self / out),
        "other": lambda t, other, out: t * (other / out),
    },
    doc="Length of the hypotenuse.",
)

# Exponentials and trigonometry --------------------------------------------------------------------

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
)
acos = elementwise(
    "acos(Tensor self) -> Tensor",
    "arccos",
    lambda t, self: t * -rsqrt(1 - self * self),
    dtype=promote_float,
    doc="Inverse cosine.",
)
atan = elementwise(
    "atan(Tensor self) -> Tensor",
    "arctan",
    lambda t, self: t / (self * self + 1),
    dtype=promote_float,
    doc="Inverse tangent.",
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
    lambda t, out: _tanh_differential(t, out),
    dtype=promote_float,
    native=TANH,
    doc="Hyperbolic tangent.",
)
asinh = elementwise(
    "asinh(Tensor self) -> Tensor",
    "arcsinh",
    lambda t, self: t * rsqrt(self * self + 1),
    dtype=promote_float,
    doc="Inverse hyperbolic sine.",
)
acosh = elementwise(
    "acosh(Tensor self) -> Tensor",
    "arccosh",
    lambda t, self: t * (rsqrt(self - 1) * rsqrt(self + 1)),
    dtype=promote_float,
    doc="Inverse hyperbolic cosine.",
)
atanh = elementwise(
    "atanh(Tensor self) -> Tensor",
    "arctanh",
    lambda t, self: t / (1 - self * self),
    dtype=promote_float,
    doc="Inverse hyperbolic tangent.",
)


def error_function(xp: Any, x: Any) -> Any:
    from scipy.special import erf as kernel

    return kernel(x)


erf = elementwise(
    "erf(Tensor self) -> Tensor",
    error_function,
    lambda t, self: t * (2 / math.sqrt(math.pi) * exp(-self * self)),
    dtype=promote_float,
    refuses="c",
    doc="Error function.",
)

# Activations --------------------------------------------------------------------------------------


def logistic(xp: Any, x: Any) -> Any:
    e = xp.exp(-x)
    if _native.logistic_tail(e):
        return e
    e = 1 + e
    return 1 / e


sigmoid = elementwise(
    "sigmoid(Tensor self) -> Tensor",
    logistic,
    lambda t, out: _sigmoid_differential(t, out),
    dtype=promote_float,
    native=SIGMOID,
    doc="Logistic function.",
)
relu = elementwise(
    "relu(Tensor self) -> Tensor",
    lambda xp, x: xp.maximum(x, 0),
    lambda t, out: _relu_differential(t, out),
    native=RELU,
    refuses="bc",
    doc="The tensor where positive, else zero.",
)

# Rounding and selection ---------------------------------------------------------------------------



def _sign(xp: Any, x: Any) -> Any:
    """-1, 0 or 1; NaN has no sign."""
    return x.copy() if x.dtype.kind == "b" else xp.subtract(x > 0, x < 0, dtype=x.dtype)


sign = elementwise(
    "sign(Tensor self) -> Tensor",
    _sign,
    lambda t: _zero(t),
    refuses="c",
    doc="-1, 0 or 1 by sign.",
)
floor = elementwise(
    "floor(Tensor self) -> Tensor",
    lambda xp, x: x.copy() if x.dtype.kind in "iu" else xp.floor(x),
    lambda t: _zero(t),
    doc="Largest integer not above.",
)
ceil = elementwise(
    "ceil(Tensor self) -> Tensor",
    lambda xp, x: x.copy() if x.dtype.kind in "iu" else xp.ceil(x),
    lambda t: _zero(t),
    doc="Smallest integer not below.",
)
trunc = elementwise(
    "trunc(Tensor self) -> Tensor",
    lambda xp, x: x.copy() if x.dtype.kind in "iu" else xp.trunc(x),
    lambda t: _zero(t),
    doc="Integer part.",
)
round = elementwise(
    "round(Tensor self, *, int decimals=0) -> Tensor",
    lambda xp, x, decimals: xp.round(x, decimals),
    lambda t: _zero(t),
    refuses="bc",
    name=lambda self, decimals: f"RoundBackward{int(decimals != 0)}",
    doc="Nearest integer, halves to even; or to `decimals` places.",
)


def _clamp(xp: Any, x: Any, low: Any, high: Any) -> Any:
    if low is None and high is None:
        raise RuntimeError("clamp: At least one of 'min' or 'max' must not be None")
    if low is not None:
        x = xp.maximum(x, low)
    return x if high is None else xp.minimum(x, high)


def _within(x: Tensor, low: Any, high: Any) -> Tensor:
    if low is None:
        return x <= high
    return x >= low if high is None else (x >= low) & (x <= high)


def _clamp_low(t: Tensor, x: Tensor, low: Tensor, high: Any) -> Tensor:
    return where(x < low if high is None else (low < high) & (x < low), t, 0)


def _clamp_high(t: Tensor, x: Tensor, low: Any, high: Tensor) -> Tensor:
    return where(x > high if low is None else (x > high) | (high < low), t, 0)


clamp = elementwise(
    "clamp(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    _clamp,
    {
        "self": lambda t, self, min, max: where(_within(self, min, max), t, 0),
        "min": lambda t, self, min, max: _clamp_low(t, self, min, max),
        "max": lambda t, self, min, max: _clamp_high(t, self, min, max),
    },
    refuses="c",
    name=lambda self, min, max: (
        "ClampBackward0"
        if isinstance(min, Tensor) or isinstance(max, Tensor)
        else "ClampBackward1"
    ),
    doc="The tensor limited to the range from `min` to `max`.",
)
maximum = elementwise(
    "maximum(Tensor self, Tensor other) -> Tensor",
    "maximum",
    {
        "self": lambda t, self, other: _unless(self < other, self, other, t),
        "other": lambda t, self, other: _unless(other < self, self, other, t),
    },
    refuses="c",
    inplace=False,
    doc="The larger of two tensors, elementwise; ties share the gradient.",
)
minimum = elementwise(
    "minimum(Tensor self, Tensor other) -> Tensor",
    "minimum",
    {
        "self": lambda t, self, other: _unless(self > other, self, other, t),
        "other": lambda t, self, other: _unless(other > self, self, other, t),
    },
    refuses="c",
    inplace=False,
    doc="The smaller of two tensors, elementwise; ties share the gradient.",
)


def _unless(loses: Tensor, x: Tensor, y: Any, t: Tensor) -> Tensor:
    """The tangent, except where its operand loses, and half of it at a tie; NaN loses to none."""
    return where(loses, 0, where(x == y, t / 2, t))


def _where_dtype(args: tuple, count: int) -> tuple:
    condition = args[0]
    if getattr(condition, "dtype", None) is not None and condition.dtype.kind not in "b":
        if condition.dtype.kind != "u":
            raise RuntimeError(
                "where expected condition to be a boolean tensor, but got a tensor with dtype "
                f"{condition.dtype}"
            )
        condition = condition.astype(bool)
    return (condition, *promote(args[1:], count - 1))


where_: Operator = elementwise(
    "where(Tensor condition, Tensor self, Tensor other) -> Tensor",
    lambda xp, condition, x, y: xp.where(condition, x, y),
    {
        "self": lambda t, condition: where_(condition, t, 0),
        "other": lambda t, condition: where_(condition, 0, t),
    },
    dtype=_where_dtype,
    inplace=False,
    doc="Elements of one tensor where the condition holds, else of the other.",
)


def where(
    condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None
) -> Any:
    """Elements of `input` where `condition` holds, else of `other`; alone, its true indices."""
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    result = where_.call((condition, input, other))
    return result if out is None else copy_to_out("where", result, out)


# Absolute value and complex sign: not holomorphic, so both rules are written ----------------------

abs = primitive(
    "abs(Tensor self) -> Tensor",
    "absolute",
    lambda g, self: g * sgn(self),
    lambda tangents, self: _abs_tangent(tangents["self"], self),
    inplace=True,
    widens=False,
    doc="Absolute value.",
)
if _native.compiled:
    abs.native_code = ABS


def abs_(input: Tensor) -> Tensor:
    """In-place form of abs(), for real tensors."""
    if input.is_complex():
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return operator_named("abs_")(input)


def _abs_tangent(t: Tensor, x: Tensor) -> Tensor:
    if x.is_complex():
        return (t.conj() * sgn(x)).real
    return t * sgn(x)


def _sgn(xp: Any, x: Any) -> Any:
    if x.dtype.kind != "c":
        return _sign(xp, x)
    size = xp.abs(x)
    return xp.where(size == 0, 0, x / xp.where(size == 0, 1, size))


def _sgn_tangent(t: Tensor, x: Tensor, out: Tensor) -> Tensor:
    if not x.is_complex():
        return zeros_like(t)
    size = abs(x)
    turned = t - out * (out.conj() * t).real
    return where(size == 0, 0, turned / where(size == 0, 1, size))


sgn: Operator = primitive(
    "sgn(Tensor self) -> Tensor",
    _sgn,
    lambda g, self, out: _sgn_tangent(g, self, out),
    lambda tangents, self, out: _sgn_tangent(tangents["self"], self, out),
    inplace=True,
    doc="The sign; of a complex number, its direction.",
)


def real_part(x: Any) -> Any:
    """The real part of a tensor or number, itself if it is real."""
    if isinstance(x, Tensor):
        return x.real if x.is_complex() else x
    return x.real


# Comparison and logic -----------------------------------------------------------------------------


def _comparison(name: str, ufunc: str, doc: str, refuses: str = "") -> Any:
    return nondifferentiable(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        ufunc,
        broadcasts=True,
        dtype=promote,
        refuses=refuses,
        inplace=True,
        doc=doc,
    )


eq = _comparison("eq", "equal", "Whether elements are equal.")
ne = _comparison("ne", "not_equal", "Whether elements differ.")
lt = _comparison("lt", "less", "Whether elements are smaller.", "c")
le = _comparison("le", "less_equal", "Whether elements are smaller or equal.", "c")
gt = _comparison("gt", "greater", "Whether elements are larger.", "c")
ge = _comparison("ge", "greater_equal", "Whether elements are larger or equal.", "c")


def _logical(name: str, ufunc: str, operands: str, dtype: Any, doc: str) -> Any:
    return nondifferentiable(
        f"{name}({operands}) -> Tensor", ufunc, broadcasts=True, dtype=dtype, inplace=True, doc=doc
    )


_TWO = "Tensor self, Tensor other"
logical_and = _logical("logical_and", "logical_and", _TWO, keep, "Both are non-zero.")
logical_or = _logical("logical_or", "logical_or", _TWO, keep, "One is non-zero.")
logical_xor = _logical("logical_xor", "logical_xor", _TWO, keep, "Exactly one is non-zero.")
logical_not = _logical("logical_not", "logical_not", "Tensor self", keep, "Is zero.")
bitwise_and = _logical("bitwise_and", "bitwise_and", _TWO, promote, "Bits set in both.")
bitwise_or = _logical("bitwise_or", "bitwise_or", _TWO, promote, "Bits set in one.")
bitwise_xor = _logical("bitwise_xor", "bitwise_xor", _TWO, promote, "Bits set in exactly one.")
bitwise_not = _logical("bitwise_not", "invert", "Tensor self", keep, "Bits inverted.")
bitwise_left_shift = _logical(
    "bitwise_left_shift", "left_shift", _TWO, promote, "Bits moved left."
)
bitwise_right_shift = _logical(
    "bitwise_right_shift", "right_shift", _TWO, promote, "Bits moved right."
)


def _predicate(name: str, doc: str) -> Any:
    return nondifferentiable(f"{name}(Tensor self) -> Tensor", name, dtype=keep, doc=doc)


isnan = _predicate("isnan", "Whether elements are NaN.")
isinf = _predicate("isinf", "Whether elements are infinite.")
isfinite = _predicate("isfinite", "Whether elements are neither infinite nor NaN.")

zeros_like = nondifferentiable(
    "_zeros_like(Tensor self) -> Tensor",
    lambda xp, x: xp.zeros(x.shape, x.dtype),
    doc="Zeros in the shape and dtype of a tensor, as gradient rules need them.",
)
