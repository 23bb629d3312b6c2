"""NumPy's functions on scalars: the `xp` with which a kernel says what it does to one element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .expressions import Scalar, Unsupported, is_float, is_signed, type_of
from .functions import FUNCTIONS, is_nan, library


def _is_float(kind: str) -> bool:
    """Whether elements of a type may be infinite or no numbers; `is_float` is for those that have
    instructions of their own."""
    return kind == "bf16" or is_float(kind)


def _in_floats(*args: Any) -> list[Scalar]:
    """Operands in their common floating-point type."""
    scalars = [a for a in args if isinstance(a, Scalar)]
    if not scalars:
        raise Unsupported("a function of numbers alone")
    first = scalars[0]
    dtype = np.result_type(*[a.dtype if isinstance(a, Scalar) else a for a in args])
    if dtype.kind in "biu":
        # NumPy's functions of small integers have small floats, which kernels do not ask for.
        dtype = np.dtype("float64")
    kind = type_of(dtype)
    return [a.to(kind) if isinstance(a, Scalar) else first.number(a, kind) for a in args]


def _function(name: str) -> Callable[..., Scalar]:
    written = FUNCTIONS[name]

    def call(*args: Any) -> Scalar:
        values = _in_floats(*args)
        if values[0].kind == "f16":
            return written(*[v.to("f32") for v in values]).to("f16")
        return written(*values)

    return call


def _paired(x: Any, y: Any) -> tuple[Scalar, Scalar]:
    if isinstance(x, Scalar):
        return x.paired(y)
    if not isinstance(y, Scalar):
        raise Unsupported("a function of numbers alone")
    y, x = y.paired(x)
    return x, y


def maximum(x: Any, y: Any) -> Scalar:
    """The larger of two; NaN if either is."""
    x, y = _paired(x, y)
    wins = x.compare("gt", y)
    return (wins | is_nan(x) if _is_float(x.kind) else wins).choose(x, y)


def minimum(x: Any, y: Any) -> Scalar:
    """The smaller of two; NaN if either is."""
    x, y = _paired(x, y)
    wins = x.compare("lt", y)
    return (wins | is_nan(x) if _is_float(x.kind) else wins).choose(x, y)


def _ignoring_nan(relation: str) -> Callable[[Any, Any], Scalar]:
    def choose(x: Any, y: Any) -> Scalar:
        x, y = _paired(x, y)
        wins = x.compare(relation, y)
        return (wins | is_nan(y) if _is_float(x.kind) else wins).choose(x, y)

    return choose


def power(x: Any, y: Any) -> Scalar:
    x, y = _paired(x, y)
    if not _is_float(x.kind):
        raise Unsupported("powers of integers")
    if y.known == 2:
        return x * x
    if y.known == 1:
        return x
    if y.known == 0.5:
        return x.write("sqrt", x)
    return FUNCTIONS["power"](x, y)


def _rounded(name: str) -> Callable[[Any], Scalar]:
    def call(x: Scalar) -> Scalar:
        return x.write(name, x) if _is_float(x.kind) else x

    return call


def round_(x: Scalar, decimals: int = 0) -> Scalar:
    if decimals:
        raise Unsupported("rounding to decimal places")
    return _rounded("rint")(x)


def _divisors(x: Any, y: Any) -> tuple[Scalar, Scalar]:
    """Integers of which the second is not zero and no quotient overflows, for the processor."""
    x, y = _paired(x, y)
    if x.kind == "bool":
        raise Unsupported("quotients of truth values")
    if not _is_float(x.kind):
        y = (y == 0).choose(y.number(1), y)
    return x, y


def _truncated(x: Scalar, y: Scalar) -> Scalar:
    """The quotient of integers towards zero; the processor traps at the least one over -1."""
    if not is_signed(x.kind):
        return x.write("div", x, y)
    turned = y == -1
    safe = turned.choose(y.number(1), y)
    return turned.choose(-x, x.write("div", x, safe))


def fmod(x: Any, y: Any) -> Scalar:
    x, y = _divisors(x, y)
    if _is_float(x.kind):
        return library("fmod", x, y)
    return x - _truncated(x, y) * y


def remainder(x: Any, y: Any) -> Scalar:
    """The remainder with the sign of the divisor."""
    x, y = _divisors(x, y)
    r = fmod(x, y)
    if _is_float(x.kind):
        adjusted = ((r < 0) != (y < 0)).choose(r + y, r)
        return (r == 0).choose(y.write("copysign", y.number(0.0), y), adjusted)
    return ((r != 0) & ((r < 0) != (y < 0))).choose(r + y, r) if is_signed(x.kind) else r


def floor_divide(x: Any, y: Any) -> Scalar:
    x, y = _divisors(x, y)
    if not _is_float(x.kind):
        q = _truncated(x, y)
        if not is_signed(x.kind):
            return q
        return ((q * y != x) & ((x < 0) != (y < 0))).choose(q - 1, q)
    # As NumPy does it: from the remainder, and the nearest whole number to what is left.
    m = library("fmod", x, y)
    rest = (x - m) / y
    rest = ((m != 0) & ((y < 0) != (m < 0))).choose(rest - 1, rest)
    whole = rest.write("floor", rest)
    whole = (rest - whole > 0.5).choose(whole + 1, whole)
    plain = x / y
    whole = (rest == 0).choose(plain.write("copysign", plain.number(0.0), plain), whole)
    return (y == 0).choose(plain, whole)


def where(condition: Any, x: Any, y: Any) -> Scalar:
    if not isinstance(condition, Scalar):
        raise Unsupported("a choice by a number")
    return condition.to("bool").choose(x, y)


def subtract(x: Any, y: Any, dtype: Any = None) -> Scalar:
    if dtype is not None:
        kind = type_of(np.dtype(dtype))
        x, y = (v.to(kind) if isinstance(v, Scalar) else v for v in (x, y))
    return x - y


def _truth(x: Any, like: Scalar) -> Scalar:
    return x.to("bool") if isinstance(x, Scalar) else like.number(bool(x), "bool")


def _logical(name: str) -> Callable[[Any, Any], Scalar]:
    def call(x: Any, y: Any) -> Scalar:
        like = x if isinstance(x, Scalar) else y
        a, b = _truth(x, like), _truth(y, like)
        return a.write(name, a, b)

    return call


def _shift(name: str) -> Callable[[Any, Any], Scalar]:
    def call(x: Any, y: Any) -> Scalar:
        x, y = _paired(x, y)
        bits = 8 * x.itemsize
        outside = (y < 0) | (y >= bits) if is_signed(y.kind) else y >= bits
        way = name if name == "shl" or not is_signed(x.kind) else "sar"
        moved = x.shifted(way, outside.choose(y.number(0), y))
        beyond = x.shifted("sar", bits - 1) if way == "sar" else x.number(0)
        return outside.choose(beyond, moved)

    return call


def _comparison(relation: str) -> Callable[[Any, Any], Scalar]:
    def call(x: Any, y: Any) -> Scalar:
        x, y = _paired(x, y)
        return x.compare(relation, y)

    return call


def isfinite(x: Scalar) -> Scalar:
    if not _is_float(x.kind):
        return x.number(True, "bool")
    return abs(x) < math.inf


def isinf(x: Scalar) -> Scalar:
    if not _is_float(x.kind):
        return x.number(False, "bool")
    return abs(x) == math.inf


def isnan(x: Scalar) -> Scalar:
    return is_nan(x) if _is_float(x.kind) else x.number(False, "bool")


def _float_instruction(name: str) -> Callable[..., Scalar]:
    def call(*args: Any) -> Scalar:
        values = _in_floats(*args)
        return values[0].write(name, *values)

    return call


def signbit(x: Scalar) -> Scalar:
    if not _is_float(x.kind):
        return x < 0
    integer = {"f16": "i16", "f32": "i32", "f64": "i64"}[x.kind]
    return x.bits(integer) < 0


def clip(x: Scalar, low: Any, high: Any) -> Scalar:
    if low is not None:
        x = maximum(low, x)
    return x if high is None else minimum(high, x)


def sign(x: Scalar) -> Scalar:
    signs = (x > 0).to(x.kind) - (x < 0).to(x.kind)
    return is_nan(x).choose(x, signs) if _is_float(x.kind) else signs


def _unary(function: Callable[[Scalar], Scalar]) -> Callable[[Any], Scalar]:
    def call(x: Any) -> Scalar:
        if not isinstance(x, Scalar):
            raise Unsupported("a function of a number alone")
        return function(x)

    return call


def asarray(x: Any, dtype: Any = None, order: str | None = None) -> Any:
    """An element as it is; a number as NumPy's array, which tells its type."""
    if not isinstance(x, Scalar):
        return np.asarray(x, dtype)
    return x if dtype is None else x.astype(dtype)


def logaddexp(x: Any, y: Any) -> Scalar:
    """log(exp(x) + exp(y)), without overflow."""
    x, y = _in_floats(x, y)
    peak, gap = maximum(x, y), -abs(x - y)
    total = peak + FUNCTIONS["log1p"](FUNCTIONS["exp"](gap))
    return (x == y).choose(x + math.log(2), total)  # also where both are infinite


def logaddexp2(x: Any, y: Any) -> Scalar:
    """log2(2**x + 2**y), without overflow."""
    x, y = _in_floats(x, y)
    small = FUNCTIONS["log1p"](FUNCTIONS["exp2"](-abs(x - y)))
    return (x == y).choose(x + 1, maximum(x, y) + small * (1 / math.log(2)))


def copyto(out: Scalar, value: Any, where: Scalar) -> None:
    out[...] = where.choose(value, out)


def xlogy(x: Any, y: Any) -> Scalar:
    """x * log(y), and zero where x is zero unless y is NaN."""
    x, y = _in_floats(x, y)
    return ((x == 0) & ~is_nan(y)).choose(x.number(0.0), x * FUNCTIONS["log"](y))


def xlog1py(x: Any, y: Any) -> Scalar:
    """x * log1p(y), and zero where x is zero unless y is NaN."""
    x, y = _in_floats(x, y)
    return ((x == 0) & ~is_nan(y)).choose(x.number(0.0), x * FUNCTIONS["log1p"](y))


def entr(x: Any) -> Scalar:
    """-x * log(x); zero at zero, and minus infinity below."""
    (x,) = _in_floats(x)
    inside = (x == 0).choose(x.number(0.0), -x * FUNCTIONS["log"](x))
    return (x < 0).choose(x.number(-math.inf), inside)


def ndtr(x: Any) -> Scalar:
    """The normal distribution's cumulative function."""
    (x,) = _in_floats(x)
    return 0.5 * library("erfc", x * -math.sqrt(0.5))


#: Functions of scipy.special that are composed of others.
SPECIAL: dict[str, Callable[..., Scalar]] = {
    "xlogy": xlogy, "xlog1py": xlog1py, "entr": entr, "ndtr": ndtr,
}  # fmt: skip


def result_type(*args: Any) -> Any:
    return np.result_type(*[a.dtype if isinstance(a, Scalar) else a for a in args])


_TABLE: dict[str, Callable[..., Any]] = {
    **{name: _function(name) for name in FUNCTIONS if name not in ("power", "fmod")},
    "add": lambda x, y: x + y,
    "subtract": subtract,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "true_divide": lambda x, y: x / y,
    "negative": _unary(lambda x: -x),
    "positive": _unary(lambda x: x),
    "absolute": _unary(abs),
    "abs": _unary(abs),
    "fabs": _unary(abs),
    "square": _unary(lambda x: x * x),
    "reciprocal": _unary(lambda x: 1 / x),
    "sqrt": _float_instruction("sqrt"),
    "copysign": _float_instruction("copysign"),
    "floor": _unary(_rounded("floor")),
    "ceil": _unary(_rounded("ceil")),
    "trunc": _unary(_rounded("trunc")),
    "rint": _unary(_rounded("rint")),
    "round": round_,
    "sign": _unary(sign),
    "signbit": _unary(signbit),
    "maximum": maximum,
    "minimum": minimum,
    "fmax": _ignoring_nan("gt"),
    "fmin": _ignoring_nan("lt"),
    "clip": clip,
    "power": power,
    "fmod": fmod,
    "remainder": remainder,
    "mod": remainder,
    "floor_divide": floor_divide,
    "where": where,
    "isnan": _unary(isnan),
    "isinf": _unary(isinf),
    "isfinite": _unary(isfinite),
    "logical_and": _logical("and"),
    "logical_or": _logical("or"),
    "logical_xor": _logical("xor"),
    "logical_not": _unary(lambda x: ~x.to("bool")),
    "bitwise_and": lambda x, y: x & y,
    "bitwise_or": lambda x, y: x | y,
    "bitwise_xor": lambda x, y: x ^ y,
    "invert": _unary(lambda x: ~x),
    "left_shift": _shift("shl"),
    "right_shift": _shift("shr"),
    **{
        name: _comparison(relation)
        for name, relation in {
            "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
            "equal": "eq", "not_equal": "ne",
        }.items()
    },
    "asarray": asarray,
    "asanyarray": asarray,
    "full_like": lambda x, value: x.number(value),
    "logaddexp": logaddexp,
    "logaddexp2": logaddexp2,
    "copyto": copyto,
    "isneginf": _unary(lambda x: x == -math.inf),
    "isposinf": _unary(lambda x: x == math.inf),
    "deg2rad": lambda x: x * (math.pi / 180),
    "rad2deg": lambda x: x * (180 / math.pi),
    "zeros_like": _unary(lambda x: x.number(0)),
    "ones_like": _unary(lambda x: x.number(1)),
    "result_type": result_type,
}  # fmt: skip


#: The functions that there are, by NumPy's names or scipy.special's.
NAMES = frozenset([*_TABLE, *SPECIAL])


class ScalarNamespace:
    """NumPy as kernels know it, for scalars: functions by their names, constants as they are."""

    def __getattr__(self, name: str) -> Any:
        found = _TABLE.get(name) or SPECIAL.get(name)
        if found is not None:
            return found
        value = getattr(np, name, None)
        if isinstance(value, (float, type)):  # pi, inf, float32
            return value
        raise Unsupported(f"numpy.{name} has no form for one element")


scalar_namespace = ScalarNamespace()
