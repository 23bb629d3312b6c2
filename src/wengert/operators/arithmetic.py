"""Arithmetic: sums, products, quotients, remainders and powers."""

from __future__ import annotations

import math
from typing import Any

from ..backends.layout import copied
from ..backends.loop_codes import ADD, DIV, MUL, NEG, PASS_ON, RECIPROCAL, RSUB, SCALE, SQUARE, SUB
from ..core.dtypes import from_numpy
from ..core.numbers import check_number
from ..core.registry import operator_named
from ..core.state import thread_state
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from .copying import zeros_like
from .declare import (
    by_loop,
    composite,
    elementwise,
    promote,
    promote_factors,
    promote_float,
    promote_quotient,
)

__all__ = [
    "add", "addcdiv", "addcmul", "div", "floor_divide", "fmod", "lerp", "mul", "neg", "positive",
    "pow", "reciprocal", "remainder", "rsub", "square", "sub",
]  # fmt: skip


def _times(x: Any, factor: Any) -> Any:
    """An operand multiplied by a Python number, in the operand's own dtype."""
    product = x * factor
    return product.astype(x.dtype) if hasattr(x, "dtype") and product.dtype != x.dtype else product


def _scaled(y: Any, alpha: Any, x: Any) -> Any:
    """The operand `y` times `alpha`, in the dtype that `x` and `y` have in common."""
    if alpha is not True and alpha == 1:
        return y
    dtype = y.dtype if hasattr(y, "dtype") else x.dtype
    if isinstance(alpha, bool) and dtype.kind != "b":
        raise RuntimeError(
            f"Boolean alpha only supported for Boolean results. This one is {dtype}"
        )
    if isinstance(alpha, complex) and dtype.kind != "c":
        raise RuntimeError(
            "For non-complex input tensors, argument alpha must not be a complex number."
        )
    if dtype.kind in "biu":
        if isinstance(alpha, float):
            raise RuntimeError(
                "For integral input tensors, argument alpha must not be a floating point number."
            )
        alpha = check_number(alpha, from_numpy(dtype))
    return _times(y, alpha)


add = elementwise(
    "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    lambda xp, x, y, alpha: xp.add(x, _scaled(y, alpha, x)),
    {
        "self": by_loop(PASS_ON, lambda t: t),
        "other": by_loop(SCALE, lambda t, alpha: t if alpha == 1 else t * alpha),
    },
    native=ADD,
    commutes=True,
    neutral=(0, 0, 1),
    doc="Sum of two tensors, the second multiplied by `alpha`.",
    overload="Tensor",
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
            "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    return promote(args, count)


sub = elementwise(
    "sub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    lambda xp, x, y, alpha: xp.subtract(x, _scaled(y, alpha, x)),
    {"self": lambda t: t, "other": lambda t, alpha: -t if alpha == 1 else t * -alpha},
    dtype=_difference_dtype,
    native=SUB,
    neutral=(0, 1),
    doc="Difference of two tensors, the second multiplied by `alpha`.",
    overload="Tensor",
    also="subtract",
)


def _reversed_difference(name: str, node_name: str, rules: dict) -> Operator:
    return elementwise(
        f"{name}(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        lambda xp, x, y, alpha: xp.subtract(y, _scaled(x, alpha, y)),
        {"self": lambda t, alpha: -t if alpha == 1 else t * -alpha, **rules},
        dtype=_difference_dtype,
        inplace=False,
        native=RSUB,
        ordering=lambda x, y: (y, x),
        name=node_name,
        overload="Tensor",
        overridden_as="__rsub__",
        doc="The second tensor minus the first, the first multiplied by `alpha`.",
    )


from_number = _reversed_difference("rsub", "RsubBackward1", {})
from_tensor = _reversed_difference("_rsub_tensor", "RsubBackward0", {"other": lambda t: t})


@composite(public="function")
def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """The second tensor or number minus the first tensor, the first multiplied by `alpha`."""
    minuend = from_tensor if isinstance(other, Tensor) else from_number
    return minuend(input, other, alpha=alpha)


mul = elementwise(
    "mul(Tensor self, Tensor other) -> Tensor",
    "multiply",
    {
        "self": by_loop(MUL, lambda t, other: t * other),
        "other": by_loop(MUL, lambda t, self: t * self),
    },
    dtype=promote_factors,
    native=MUL,
    commutes=True,
    neutral=(1, 0, 1),
    doc="Product of two tensors.",
    overload="Tensor",
    also="multiply",
)


true_divide = elementwise(
    "div(Tensor self, Tensor other) -> Tensor",
    lambda xp, x, y: xp.divide(x, y),
    {
        "self": by_loop(DIV, lambda t, other: t / other),
        "other": lambda t, self, other: -t * ((self / other) / other),
    },
    dtype=promote_quotient,
    native=DIV,
    neutral=(1, 1),
    doc="Quotient of two tensors.",
    overload="Tensor",
    overridden_as="div",
    reflected="__rtruediv__",
)


def _divisor(x: Any, y: Any) -> Any:
    """What the integers `x` are divided by, not zero if there are any; floats have infinities."""
    whole = getattr(y, "dtype", None) is not None and y.dtype.kind in "iu"
    if whole and x.size and not y.all().item():
        raise RuntimeError("ZeroDivisionError: an integer tensor is divided by zero")
    return y


def _divide_rounded(xp: Any, x: Any, y: Any, rounding_mode: str) -> Any:
    if rounding_mode == "floor":
        return xp.floor_divide(x, _divisor(x, y))
    if rounding_mode != "trunc":
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"'{rounding_mode}'"
        )
    if x.dtype.kind not in "iu":
        return xp.trunc(xp.divide(x, y))
    quotient = xp.floor_divide(x, _divisor(x, y))
    return quotient + ((quotient * y != x) & ((x < 0) != (y < 0)))


rounded_divide = elementwise(
    "_div_rounded(Tensor self, Tensor other, str rounding_mode) -> Tensor",
    _divide_rounded,
    {"self": lambda t: zeros_like(t), "other": lambda t: zeros_like(t)},
    dtype=promote_factors,
    refuses="bc",
    name="DivBackward2",
    raises="integers",
    doc="Quotient of two tensors, rounded towards zero ('trunc') or down ('floor').",
)


@composite(also="divide true_divide")
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
    lambda xp, x, y: xp.floor_divide(x, _divisor(x, y)),
    {"self": lambda t: zeros_like(t), "other": lambda t: zeros_like(t)},
    dtype=promote_factors,
    refuses="bc",
    raises="integers",
    doc="Quotient rounded down.",
    inplace_overload="Tensor",
    reflected="__rfloordiv__",
)


def _remainder(xp: Any, x: Any, y: Any) -> Any:
    """The remainder with the sign of the divisor; a zero has that of the dividend."""
    out = xp.remainder(x, _divisor(x, y))
    return xp.where(out == 0, xp.copysign(out, x), out) if out.dtype.kind == "f" else out


remainder = elementwise(
    "remainder(Tensor self, Tensor other) -> Tensor",
    _remainder,
    {
        "self": lambda t: t,
        "other": lambda t, self, other: -t * div(self, other, rounding_mode="floor"),
    },
    refuses="bc",
    name=lambda self, other: f"RemainderBackward{int(isinstance(other, Tensor))}",
    raises="integers",
    doc="Remainder with the sign of the divisor, as Python's %.",
    overload="Tensor",
    reflected="__rmod__",
)
fmod = elementwise(
    "fmod(Tensor self, Tensor other) -> Tensor",
    lambda xp, x, y: xp.fmod(x, _divisor(x, y)),
    {
        "self": lambda t: t,
        "other": lambda t, self, other: -t * div(self, other, rounding_mode="trunc"),
    },
    refuses="bc",
    name=lambda self, other: f"FmodBackward{int(isinstance(other, Tensor))}",
    raises="integers",
    doc="Remainder with the sign of the dividend, as C's fmod.",
    overload="Tensor",
)


def _number_dtype(args: tuple, count: int) -> tuple:
    args = promote(args, count)
    if args[0].dtype.kind == "b":
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. "
            "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    return args


neg = elementwise(
    "neg(Tensor self) -> Tensor",
    "negative",
    lambda t: -t,
    dtype=_number_dtype,
    native=NEG,
    involution=True,
    doc="The negative.",
    out="exact",
    also="negative",
)


def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    return +input


def _fourth(x: Any) -> Any:
    square = x * x
    return square * square


# Powers that are products: a general power takes ten to a hundred times as long.
_PRODUCTS = {
    3: lambda x: x * x * x,
    4: _fourth,
    5: lambda x: _fourth(x) * x,
    6: lambda x: _fourth(x) * (x * x),
}
_QUOTIENTS = {
    -1: lambda x: 1 / x,
    -2: lambda x: 1 / (x * x),
    -3: lambda x: _PRODUCTS[3](1 / x),
    -4: lambda x: _fourth(1 / x),
}


#: Classes of exponents whose values are known.
_NUMBERS = (int, float, complex)


def _shorter_power(xp: Any, x: Any, exponent: Any) -> Any:
    """A power as a root or as products, None where it is neither."""
    if exponent == 2:
        return xp.multiply(x, x)
    if exponent == 0.5:
        return xp.sqrt(x)
    product = _PRODUCTS.get(exponent)
    if product is None and x.dtype.kind in "fc":
        product = _QUOTIENTS.get(exponent)
    return None if product is None else product(x)


def _power(xp: Any, x: Any, y: Any) -> Any:
    if getattr(y, "ndim", 0) == 0 and hasattr(x, "ndim"):  # of a number, `y` says the dtype
        exponent = y.item() if hasattr(y, "item") else y
        shorter = _shorter_power(xp, x, exponent) if isinstance(exponent, _NUMBERS) else None
        if shorter is not None:
            return shorter
    kind = xp.result_type(x, y).kind
    if kind in "iu":
        return _integer_power(xp, x, y)
    return _complex_power(xp, x, y) if kind == "c" else xp.power(x, y)


def _power_dtype(args: tuple, count: int) -> tuple:
    base, exponent = args
    if isinstance(exponent, int) and hasattr(base, "dtype") and base.dtype.kind in "biu":
        if exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        if base.dtype.kind != "b":
            check_number(exponent, from_numpy(base.dtype))
    return promote(args, count)


def _integer_power(xp: Any, x: Any, y: Any) -> Any:
    """Integer powers; a negative exponent gives what the fraction rounds to."""
    negative = y < 0
    out = xp.power(x, xp.where(negative, 0, y))
    unit = xp.where(x == 1, 1, xp.where(x == -1, xp.where(y % 2 == 0, 1, -1), 0))
    return xp.where(negative, unit, out).astype(x.dtype)


def _complex_power(xp: Any, x: Any, y: Any) -> Any:
    """Powers of complex numbers; those of zero by exponents below zero are infinite."""
    out = xp.power(x, y)
    return xp.where((x == 0) & (y.real < 0), out.dtype.type(complex(math.inf, math.nan)), out)


def real_part(x: Any) -> Any:
    """The real part of a tensor or number, itself if it is real."""
    if isinstance(x, Tensor):
        return x.real if x.is_complex() else x
    return x.real


def _zero_where(condition: Tensor, x: Tensor) -> Tensor:
    return operator_named("where").call((condition, 0, x))


def _pow_self(t: Tensor, self: Any, other: Any) -> Tensor:
    if isinstance(other, Tensor):
        return _zero_where(other == 0, t * (other * self ** (other - 1)))
    if other == 0:
        return zeros_like(t)
    if other == 2 and not thread_state().grad_enabled:
        return t * (2 * self)
    return t * (other * self ** (other - 1))  # recorded, it vanishes only after all derivatives


def _pow_other(t: Tensor, self: Any, other: Tensor, out: Tensor) -> Tensor:
    if isinstance(self, Tensor):
        grows = (self == 0) & (real_part(other) >= 0)
        # In the dtype of the result, negative numbers may have a logarithm, and no digits are lost.
        base = self if self.dtype is out.dtype else self.to(out.dtype)
        # A logarithm of zero beside the zeros chosen would make their own derivatives NaN.
        logarithm = operator_named("where").call((grows, 1, base)).log()
        return _zero_where(grows, t * (out * logarithm))
    if self == 0:
        grows = real_part(other) >= 0
        return _zero_where(grows, t * (out * _zero_where(grows, zeros_like(out) - math.inf)))
    return t * (out * _log_of_number(self, out.is_complex()))


def _log_of_number(base: complex, among_complex: bool) -> complex:
    """The logarithm of a base that is not zero; a negative one has none among real numbers."""
    if not isinstance(base, complex):
        if base > 0:
            return math.log(base)
        if not among_complex or math.isnan(base):
            return math.nan
    import cmath

    return cmath.log(base)


pow = elementwise(
    "pow(Tensor self, Tensor exponent) -> Tensor",
    _power,
    {
        "self": lambda t, self, exponent: _pow_self(t, self, exponent),
        "exponent": lambda t, self, exponent, out: _pow_other(t, self, exponent, out),
    },
    dtype=_power_dtype,
    refuses="b",
    ordering=lambda x, y: (x, y) if getattr(x, "ndim", 0) else (),
    name=lambda self, exponent: (
        "PowBackward2"
        if not isinstance(self, Tensor)
        else "PowBackward1" if isinstance(exponent, Tensor) else "PowBackward0"
    ),
    neutral=(1, 1),
    doc="Power of two tensors or numbers.",
    aliases={"other": "exponent"},
    inplace_overload="Tensor",
    overload="Tensor_Tensor",
    numpy="power",
    reflected="__rpow__",
)
square = elementwise(
    "square(Tensor self) -> Tensor",
    lambda xp, x: xp.square(copied(x, "int64") if x.dtype.kind == "b" else x),
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


def _factor(x: Any, value: Any) -> Any:
    """A factor for elements of `x`'s dtype: complex if they are, whole if they are."""
    dtype = getattr(x, "dtype", None)
    if dtype is not None and (isinstance(value, complex) or dtype.kind in "iu"):
        return check_number(value, from_numpy(dtype))
    return value


addcmul = elementwise(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    lambda xp, x, a, b, value: x + (a * b if value == 1 else _times(a * b, _factor(x, value))),
    {
        "self": lambda t: t,
        "tensor1": lambda t, tensor2, value: t * (tensor2 * value),
        "tensor2": lambda t, tensor1, value: t * (tensor1 * value),
    },
    refuses="b",
    doc="`input + value * tensor1 * tensor2`.",
)


def _quotient_dtype(args: tuple, count: int) -> tuple:
    if all(a.dtype.kind in "biu" if hasattr(a, "dtype") else True for a in args[1:count]):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported: give floating point tensors, "
            "or add the result of div(tensor1, tensor2, rounding_mode='trunc')"
        )
    return promote(args, count)


addcdiv = elementwise(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    lambda xp, x, a, b, value: x + (a / b if value == 1 else _factor(x, value) * a / b),
    {
        "self": lambda t: t,
        "tensor1": lambda t, tensor2, value: t * (value / tensor2),
        "tensor2": lambda t, tensor1, tensor2, value: -t * (value * tensor1 / (tensor2 * tensor2)),
    },
    dtype=_quotient_dtype,
    doc="`input + value * tensor1 / tensor2`.",
)


def _one_dtype(args: tuple, count: int) -> tuple:
    """Operands that must have one dtype; numbers, also weights that are one, take it on."""
    kind = args[0].dtype
    for name, a in zip(("end", "weight"), args[1:count]):
        if hasattr(a, "dtype") and a.dtype != kind and (a.ndim or name == "end"):
            raise RuntimeError(
                f"lerp(): expected dtype {from_numpy(kind).scalar_name} for `{name}` but got dtype "
                f"{from_numpy(a.dtype).scalar_name}"
            )
    return promote(args, count)


def _lerp(xp: Any, x: Any, end: Any, weight: Any) -> Any:
    """From the nearer end, so that both are reached exactly."""
    gap = end - x
    if isinstance(weight, (int, float, complex)):
        return x + weight * gap if abs(weight) < 0.5 else end - gap * (1 - weight)
    return xp.where(abs(weight) < 0.5, x + weight * gap, end - gap * (1 - weight))


lerp = elementwise(
    "lerp(Tensor self, Tensor end, Tensor weight) -> Tensor",
    _lerp,
    {
        "self": lambda t, weight: t * (1 - weight),
        "end": lambda t, weight: t * weight,
        "weight": lambda t, self, end: t * (end - self),
    },
    dtype=_one_dtype,
    refuses="biu",
    name=lambda self, end, weight: f"LerpBackward{int(isinstance(weight, Tensor))}",
    doc="Linear interpolation from the tensor to `end`.",
    overload="Tensor",
)
