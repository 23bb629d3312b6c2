"""Parts and signs of numbers, angles, and pairs of numbers beyond arithmetic."""

from __future__ import annotations

import math
from typing import Any

from .. import return_types
from ..backends.layout import copied
from ..core import dtypes
from ..core.dtypes import from_numpy
from ..core.registry import operator_named
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..dispatch.out import copy_to_out
from ..transforms.batching.rules import elementwise as batched
from . import shapes
from .along import returning
from .declare import (
    composite,
    elementwise,
    keep,
    nondifferentiable,
    primitive,
    promote,
    promote_float,
)
from .pointwise import exp, exp2, isfinite, isnan, pow, where, zeros_like
from .selection import holding_numbers, refuse_flags
from .special_kernels import refused

__all__ = [
    "clamp_max", "clamp_min", "copysign", "deg2rad", "float_power", "float_power_", "fmax", "fmin",
    "frac", "frexp", "gcd", "heaviside", "isneginf", "isposinf", "isreal", "lcm", "ldexp",
    "logaddexp", "logaddexp2", "nan_to_num", "nextafter", "rad2deg", "signbit",
]  # fmt: skip

# One number --------------------------------------------------------------------------------------

frac = elementwise(
    "frac(Tensor self) -> Tensor",
    lambda xp, x: x - xp.trunc(x),
    lambda t: t,
    refuses="biuc",
    doc="The part after the decimal point, with the sign of the number.",
    out="exact",
)
deg2rad = elementwise(
    "deg2rad(Tensor self) -> Tensor",
    lambda xp, x: x * xp.asarray(math.pi / 180, x.dtype),
    lambda t: t * (math.pi / 180),
    dtype=promote_float,
    refuses="c",
    refusal="deg2rad is not supported for complex tensors.",
    name="Deg2RadBackward0",
    doc="Degrees as radians.",
)
rad2deg = elementwise(
    "rad2deg(Tensor self) -> Tensor",
    lambda xp, x: x * xp.asarray(180 / math.pi, x.dtype),
    lambda t: t * (180 / math.pi),
    dtype=promote_float,
    refuses="c",
    refusal="rad2deg is not supported for complex tensors.",
    name="Rad2DegBackward0",
    doc="Radians as degrees.",
)


def _nan_to_num(xp: Any, x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    if x.dtype.kind in "biu":
        return copied(x)
    limits = xp.finfo(x.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    out = copied(x)
    for part in (out.real, out.imag) if x.dtype.kind == "c" else (out,):
        replaced = [(xp.isnan(part), nan or 0), (part == xp.inf, high), (part == -xp.inf, low)]
        for chosen, value in replaced:
            xp.copyto(part, xp.asarray(value, part.dtype), where=chosen)
    return out


nan_to_num = elementwise(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    _nan_to_num,
    lambda t, self: where(isfinite(self), t, 0),
    doc="Replaces NaN by `nan` (zero), infinities by the given or the largest finite numbers.",
    out="exact",
)


def _mantissa(xp: Any, x: Any) -> Any:
    if x.dtype.kind not in "fV":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = xp.frexp(x.astype("float32") if x.dtype.itemsize == 2 else x)
    return mantissa.astype(x.dtype, copy=False), exponent.astype("int32", copy=False)


_frexp = primitive(
    "_frexp(Tensor self) -> (Tensor, Tensor)",
    _mantissa,
    lambda g, out1: g[0] / exp2(out1.to(g[0].dtype)),
    lambda tangents, out1: (tangents["self"] / exp2(out1.to(tangents["self"].dtype)), None),
    nondifferentiable_outputs=(1,),
    widens=False,
    shape=shapes.pair_as_first,
    batch=batched,
    name="FrexpBackward0",
    aten="frexp",
    overload="Tensor",
    doc="Mantissa, of size 0.5 to 1, and exponent of two.",
)
frexp = returning(return_types.frexp, _frexp)


def _predicate(name: str, doc: str, refusal: Any, kernel: Any) -> Operator:
    def checked(xp: Any, x: Any) -> Any:
        if x.dtype.kind == "c":
            raise refusal
        return kernel(xp, x.astype("float32") if x.dtype.kind == "V" else x)

    return nondifferentiable(
        f"{name}(Tensor self) -> Tensor", checked, dtype=keep, batch=batched, doc=doc, out="flags"
    )


def _infinite(sign: int) -> Any:
    return lambda xp, x: x == sign * xp.inf if x.dtype.kind == "f" else x != x


signbit = _predicate(
    "signbit",
    "Whether the sign bit is set.",
    NotImplementedError("signbit is not implemented for complex tensors."),
    lambda xp, x: xp.signbit(x) if x.dtype.kind == "f" else x < 0,
)
isposinf = _predicate(
    "isposinf",
    "Whether elements are plus infinity.",
    RuntimeError("isposinf does not support complex inputs."),
    _infinite(1),
)
isneginf = _predicate(
    "isneginf",
    "Whether elements are minus infinity.",
    RuntimeError("isneginf does not support complex inputs."),
    _infinite(-1),
)
isreal = nondifferentiable(
    "isreal(Tensor self) -> Tensor",
    lambda xp, x: x.imag == 0 if x.dtype.kind == "c" else (x == x) | True,
    dtype=keep,
    batch=batched,
    doc="Whether elements have no imaginary part.",
)

# Two numbers -------------------------------------------------------------------------------------


def _copysign_differential(t: Tensor, x: Any, out: Tensor) -> Tensor:
    return t * where(x == 0, 0, out / x)


copysign = elementwise(
    "copysign(Tensor self, Tensor other) -> Tensor",
    "copysign",
    {
        "self": lambda t, self, out: _copysign_differential(t, self, out),
        "other": lambda t: zeros_like(t),
    },
    dtype=promote_float,
    refuses="c",
    name=lambda self, other: f"CopysignBackward{int(not isinstance(other, Tensor))}",
    overload="Tensor",
    doc="The size of the first with the sign of the second.",
)
nextafter = elementwise(
    "nextafter(Tensor self, Tensor other) -> Tensor",
    "nextafter",
    {
        "self": lambda t, self, other: where(self == other, 0, t),
        "other": lambda t: zeros_like(t),
    },
    refuses="biuc",
    doc="The number next to the first in direction of the second.",
)


def _one_dtype(args: tuple, count: int) -> tuple:
    if args[0].dtype != getattr(args[1], "dtype", args[0].dtype):
        raise RuntimeError(
            "heaviside is not yet implemented for tensors with different dtypes: "
            f"{from_numpy(args[0].dtype)} and {from_numpy(args[1].dtype)}"
        )
    return promote(args, count)


def _heaviside(xp: Any, x: Any, values: Any) -> Any:
    out = xp.where(x == 0, values, (x > 0).astype(x.dtype))
    return xp.where(x != x, xp.asarray(0, x.dtype), out)


heaviside = elementwise(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    _heaviside,
    {"self": refused("heaviside"), "values": refused("heaviside")},
    dtype=_one_dtype,
    refuses="c",
    refusal="heaviside is not yet implemented for complex tensors.",
    name="NotImplemented",
    doc="Zero below zero, one above, `values` at zero.",
    out="exact",
)
fmax = elementwise(
    "fmax(Tensor self, Tensor other) -> Tensor",
    "fmax",
    {
        "self": lambda t, self, other: where((self >= other) | isnan(other), t, 0),
        "other": lambda t, self, other: where((self >= other) | isnan(other), 0, t),
    },
    refuses="c",
    refusal="fmax not implemented for complex tensors.",
    inplace=False,
    doc="The larger of two numbers, or that which is not NaN.",
)
fmin = elementwise(
    "fmin(Tensor self, Tensor other) -> Tensor",
    "fmin",
    {
        "self": lambda t, self, other: where((self <= other) | isnan(other), t, 0),
        "other": lambda t, self, other: where((self <= other) | isnan(other), 0, t),
    },
    refuses="c",
    refusal="fmin not implemented for complex tensors.",
    inplace=False,
    doc="The smaller of two numbers, or that which is not NaN.",
)


def _logaddexp(xp: Any, x: Any, y: Any) -> Any:
    if x.dtype.kind != "c":
        return xp.logaddexp(x, y)
    first = x.real >= y.real
    high, low = xp.where(first, x, y), xp.where(first, y, x)
    return xp.where(xp.isinf(high.real) & (high == low), high, high + xp.log1p(xp.exp(low - high)))


logaddexp = elementwise(
    "logaddexp(Tensor self, Tensor other) -> Tensor",
    _logaddexp,
    {
        "self": lambda t, self, other: t / (1 + exp(other - self)),
        "other": lambda t, self, other: t / (1 + exp(self - other)),
    },
    refuses="biu",
    inplace=False,
    commutes=True,
    doc="`log(exp(input) + exp(other))` without overflow.",
)
logaddexp2 = elementwise(
    "logaddexp2(Tensor self, Tensor other) -> Tensor",
    "logaddexp2",
    {
        "self": lambda t, self, other: t / (1 + exp2(other - self)),
        "other": lambda t, self, other: t / (1 + exp2(self - other)),
    },
    refuses="biuc",
    inplace=False,
    commutes=True,
    doc="`log2(2 ** input + 2 ** other)` without overflow.",
)
ldexp = elementwise(
    "ldexp(Tensor self, Tensor other) -> Tensor",
    lambda xp, x, y: x * xp.exp2(y),
    {
        "self": lambda t, other: t * _power_of_two(other, t),
        "other": lambda t, out: t * (out * math.log(2)),
    },
    dtype=promote_float,
    overload="Tensor",
    inplace_overload="",
    doc="`input * 2 ** other`.",
)


def _power_of_two(exponent: Any, like: Tensor) -> Any:
    if not isinstance(exponent, Tensor):
        return 2.0**exponent
    return exp2(exponent if exponent.is_floating_point() or exponent.is_complex()
                else exponent.to(like.dtype))  # fmt: skip


def _whole(name: str, doc: str) -> Operator:
    return nondifferentiable(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        name,
        broadcasts=True,
        dtype=promote,
        refuses="bfcV",
        inplace=True,
        batch=batched,
        commutes=True,
        doc=doc,
    )


gcd = _whole("gcd", "The greatest common divisor of whole numbers.")
lcm = _whole("lcm", "The least common multiple of whole numbers.")

# Composites --------------------------------------------------------------------------------------


def _as_double(x: Any) -> Any:
    if not isinstance(x, Tensor):
        return x
    return x.to(dtypes.complex128 if x.is_complex() else dtypes.float64)


def float_power(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """The power in double precision, whatever the operands are."""
    wide = dtypes.complex128
    if any(x.is_complex() if isinstance(x, Tensor) else isinstance(x, complex)
           for x in (input, exponent)):  # fmt: skip
        input, exponent = (
            x.to(wide) if isinstance(x, Tensor) else complex(x) for x in (input, exponent)
        )
    result = pow(_as_double(input), _as_double(exponent))
    if out is not None and out.dtype is not result.dtype:
        raise RuntimeError(
            f"the output given to float_power has dtype {out.dtype} but the operation's result "
            f"requires dtype {result.dtype}"
        )
    return result if out is None else copy_to_out("float_power", result, out)


@composite(public="method")
def float_power_(input: Tensor, exponent: Any) -> Tensor:
    """In-place form of float_power()."""
    wide = exponent.is_complex() if isinstance(exponent, Tensor) else isinstance(exponent, complex)
    needed = dtypes.complex128 if wide or input.is_complex() else dtypes.float64
    if input.dtype is not needed:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {input.dtype} but the operation's result "
            f"requires dtype {needed}"
        )
    return operator_named("pow_")(input, _as_double(exponent))


def _limited(name: str, bound: str, ufunc: str, doc: str) -> Operator:
    """clamp() with one limit: a number, or a tensor with a gradient of its own."""
    below = bound == "min"
    return elementwise(
        f"{name}(Tensor self, Tensor {bound}) -> Tensor",
        lambda xp, x, limit: getattr(xp, ufunc)(limit, x),  # of equal operands the second
        _rules_below() if below else _rules_above(),
        dtype=lambda args, count: refuse_flags(name, args, holding_numbers(args, count)),
        refuses="c",
        name=lambda self, limit: (
            f"{name.title().replace('_', '')}Backward{int(isinstance(limit, Tensor))}"
        ),
        overload="Tensor",
        out="exact",
        doc=doc,
    )


def _rules_below() -> dict[str, Any]:
    return {
        "self": lambda t, self, min: where(self >= min, t, 0),
        "min": lambda t, self, min: where(self < min, t, 0),
    }


def _rules_above() -> dict[str, Any]:
    return {
        "self": lambda t, self, max: where(self <= max, t, 0),
        "max": lambda t, self, max: where(self > max, t, 0),
    }


clamp_min = _limited("clamp_min", "min", "maximum", "The tensor, at least `min`.")
clamp_max = _limited("clamp_max", "max", "minimum", "The tensor, at most `max`.")
