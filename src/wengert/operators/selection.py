"""Signs, rounding, limits and choices: elementwise operators that are linear by pieces."""

from __future__ import annotations

from typing import Any

from ..backends.layout import copied
from ..backends.loop_codes import ABS
from ..core.dtypes import from_numpy
from ..core.numbers import check_number
from ..core.registry import operator_named
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..dispatch.out import copy_to_out
from ..transforms.batching.rules import elementwise as batched
from . import shapes
from .copying import zeros_like
from .declare import composite, elementwise, primitive, promote

__all__ = [
    "abs", "ceil", "clamp", "floor", "maximum", "minimum", "round", "sgn", "sign", "trunc", "where",
]  # fmt: skip

# Rounding and selection ---------------------------------------------------------------------------


def _sign(xp: Any, x: Any) -> Any:
    """-1, 0 or 1; NaN has no sign."""
    if x.dtype.kind == "b":
        return copied(x)
    return xp.subtract(x > 0, x < 0, dtype=x.dtype)


sign = elementwise(
    "sign(Tensor self) -> Tensor",
    _sign,
    lambda t: zeros_like(t),
    refuses="c",
    doc="-1, 0 or 1 by sign.",
    out="exact",
)
floor = elementwise(
    "floor(Tensor self) -> Tensor",
    lambda xp, x: copied(x) if x.dtype.kind in "iu" else xp.floor(x),
    lambda t: zeros_like(t),
    refuses="bc",
    doc="Largest integer not above.",
    out="exact",
)
ceil = elementwise(
    "ceil(Tensor self) -> Tensor",
    lambda xp, x: copied(x) if x.dtype.kind in "iu" else xp.ceil(x),
    lambda t: zeros_like(t),
    refuses="bc",
    doc="Smallest integer not below.",
    out="exact",
)
trunc = elementwise(
    "trunc(Tensor self) -> Tensor",
    lambda xp, x: copied(x) if x.dtype.kind in "iu" else xp.trunc(x),
    lambda t: zeros_like(t),
    refuses="bc",
    doc="Integer part.",
    out="exact",
    also="fix",
)
round = elementwise(
    "round(Tensor self, *, int decimals=0) -> Tensor",
    lambda xp, x, decimals: (
        copied(x) if x.dtype.kind in "iu" and decimals >= 0 else xp.round(x, decimals)
    ),
    lambda t: zeros_like(t),
    refuses="bc",
    name=lambda self, decimals: f"RoundBackward{int(decimals != 0)}",
    doc="Nearest integer, halves to even; or to `decimals` places.",
    out="exact",
    numpy="rint",
)


def holding_numbers(args: tuple, count: int, halves: bool = True) -> tuple:
    """All operands to their common dtype, which must hold the numbers among them.

    Without `halves`, numbers too large for a 16-bit float become infinite.
    """
    operands = promote(args, count)
    dtype = next(a.dtype for a in operands if a is not None)
    if dtype.kind in "iu" or (dtype.kind in "fV" and (halves or dtype.itemsize > 2)):
        for value in args[:count]:
            if isinstance(value, (int, float)):
                check_number(value, from_numpy(dtype))
    return operands


def refuse_flags(name: str, args: tuple, operands: tuple) -> tuple:
    """Operands of a clamp; those of bools are refused unless a tensor is their one limit."""
    limits = [limit for limit in args[1:] if limit is not None]
    flags = operands[0].dtype.kind == "b"
    if flags and (len(limits) != 1 or not hasattr(limits[0], "shape")):
        raise NotImplementedError(
            f"\"{name}_cpu\" not implemented for 'Bool': {name}() is not supported for bool tensors"
        )
    return operands


def _clamp(xp: Any, x: Any, low: Any, high: Any) -> Any:
    if low is None and high is None:
        raise RuntimeError("clamp: At least one of 'min' or 'max' must not be None")
    if low is not None:
        x = xp.maximum(low, x)  # of equal operands the second: the sign of a zero stays
    return x if high is None else xp.minimum(high, x)


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
        "self": lambda t, self, min, max: where(_within(self, min, max), t, 0),  # type: ignore[has-type]
        "min": lambda t, self, min, max: _clamp_low(t, self, min, max),
        "max": lambda t, self, min, max: _clamp_high(t, self, min, max),
    },
    dtype=lambda args, count: refuse_flags("clamp", args[:3], holding_numbers(args, count)),
    refuses="c",
    name=lambda self, min, max: (
        "ClampBackward0"
        if isinstance(min, Tensor) or isinstance(max, Tensor)
        else "ClampBackward1"
    ),
    doc="The tensor limited to the range from `min` to `max`.",
    overload="Tensor",
    out="exact",
    also="clip",
)
maximum = elementwise(
    "maximum(Tensor self, Tensor other) -> Tensor",
    "maximum",
    {
        "self": lambda t, self, other: _unless(self < other, self, other, t),
        "other": lambda t, self, other: _unless(other < self, self, other, t),
    },
    refuses="c",
    refusal="maximum not implemented for complex tensors.",
    inplace=False,
    commutes=True,
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
    refusal="minimum not implemented for complex tensors.",
    inplace=False,
    commutes=True,
    doc="The smaller of two tensors, elementwise; ties share the gradient.",
)


def _unless(loses: Tensor, x: Tensor, y: Any, t: Tensor) -> Tensor:
    """The tangent, except where its operand loses, and half of it at a tie; NaN loses to none."""
    return where(loses, 0, where(x == y, t / 2, t))


def _where(xp: Any, condition: Any, x: Any, y: Any) -> Any:
    if condition.dtype.kind == "u":
        condition = condition.astype(bool)
    elif condition.dtype.kind != "b":
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{from_numpy(condition.dtype).scalar_name}"
        )
    return xp.where(condition, x, y)


where_: Operator = elementwise(
    "where(Tensor condition, Tensor self, Tensor other) -> Tensor",
    _where,
    {
        "self": lambda t, condition: where_.call((condition, t, 0)),
        "other": lambda t, condition: where_.call((condition, 0, t)),
    },
    dtype=lambda args, count: (args[0], *holding_numbers(args[1:], count - 1, halves=False)),
    inplace=False,
    doc="Elements of one tensor where the condition holds, else of the other.",
    overload="self",
)


@composite(public="function")
def where(
    condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None
) -> Any:
    """Elements of `input` where `condition` holds, else of `other`; alone, its true indices."""
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    result = where_.call((condition, input, other))
    if out is None:
        return result
    return copy_to_out("where", result, out, (condition, input, other), True, True)

# Absolute value and complex sign: not holomorphic, so both rules are written ----------------------

abs = primitive(
    "abs(Tensor self) -> Tensor",
    "absolute",
    lambda g, self: g * sgn(self),
    lambda tangents, self: _abs_tangent(tangents["self"], self),
    dtype=lambda args, operands: args,
    inplace=True,
    widens=False,
    shape=shapes.as_first,
    batch=batched,
    doc="Absolute value.",
    also="absolute",
    numpy="fabs",
)
abs.native_code = ABS
abs.refuses = "b"


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
    shape=shapes.as_first,
    batch=batched,
    doc="The sign; of a complex number, its direction.",
)
