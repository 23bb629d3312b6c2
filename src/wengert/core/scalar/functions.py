"""Elementary functions in scalar expressions, without branches.

Each takes and returns a `Scalar` of type f32 or f64. Coefficients come from tools/fit_scalar.py;
tests/compiler/native/test_scalar_functions.py states how accurate they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from . import coefficients as fitted
from .expressions import Expressions, Scalar, Unsupported, is_float

#: Number of bits of the mantissa, bias of the exponent and the integer type of the same size.
FORMATS = {"f32": (23, 127, "i32"), "f64": (52, 1023, "i64")}


def fma(x: Scalar, y: Any, z: Any) -> Scalar:
    """x * y + z, rounded once."""
    y, z = (v if isinstance(v, Scalar) else x.number(v) for v in (y, z))
    return x.write("fma", x, y, z)


def polynomial(x: Scalar, coefficients: Sequence[float]) -> Scalar:
    """The polynomial with coefficients from the highest power down."""
    result = x.number(coefficients[0])
    for c in coefficients[1:]:
        result = fma(result, x, c)
    return result


def _fit(name: str, x: Scalar) -> Sequence[float]:
    return getattr(fitted, f"{name}_{x.kind.upper()}")


def least(x: Scalar, y: Any) -> Scalar:
    """The smaller of two; the first if it is NaN."""
    y = y if isinstance(y, Scalar) else x.number(y)
    return (x > y).choose(y, x)


def most(x: Scalar, y: Any) -> Scalar:
    """The larger of two; the first if it is NaN."""
    y = y if isinstance(y, Scalar) else x.number(y)
    return (x < y).choose(y, x)


def is_nan(x: Scalar) -> Scalar:
    return x.compare("uno", x)


def with_sign(size: Scalar, x: Scalar) -> Scalar:
    """A value with the sign of another."""
    return size.write("copysign", size, x)


def power_of_two(n: Scalar) -> Scalar:
    """2**n for a whole number in the range of the type's exponents."""
    mantissa, bias, integer = FORMATS[n.kind]
    return (n.to(integer) + bias).shifted("shl", mantissa).bits(n.kind)


def _scaled(x: Scalar, n: Scalar) -> Scalar:
    """x * 2**n for a whole number n, rounded once; an instruction of some processors."""
    return x.write("scale", x, n)


def _reduced(x: Scalar) -> tuple[Scalar, Scalar]:
    """The whole number n nearest to x / ln 2, and x - n ln 2."""
    high, low = _fit("LN2", x)
    scaled = x * (1 / math.log(2))
    n = scaled.write("rint", scaled)
    return n, fma(n, -low, fma(n, -high, x))


_EXP_RANGE = {"f32": (-104.0, 89.0), "f64": (-746.0, 710.0)}


def exp(x: Scalar) -> Scalar:
    low, high = _EXP_RANGE[x.kind]
    n, r = _reduced(most(least(x, high), low))
    return _scaled(fma(polynomial(r, _fit("EXP", x)), r * r, r) + 1, n)


def expm1(x: Scalar) -> Scalar:
    """exp(x) - 1, accurate near zero, where -0.0 stays what it is."""
    low, high = _EXP_RANGE[x.kind]
    n, r = _reduced(most(least(x, high), low))
    p = fma(polynomial(r, _fit("EXP", x)), r * r, r)
    half = (n * 0.5).write("floor", n * 0.5)
    first, second = power_of_two(half), power_of_two(n - half)
    # Beyond the last bit of the result the one that is taken off does not matter.
    grown = fma(p, first, first - power_of_two(half - n)) * second
    grown = (n > 100).choose((p + 1) * first * second, grown)
    grown = (n < -60).choose(grown.number(-1), grown)
    return (n == 0).choose((x == 0).choose(x, p), grown)


def exp2(x: Scalar) -> Scalar:
    low, high = {"f32": (-151.0, 129.0), "f64": (-1076.0, 1025.0)}[x.kind]
    x = most(least(x, high), low)
    n = x.write("rint", x)
    r = x - n
    return _scaled(fma(polynomial(r, _fit("EXP2", x)), r, 1), n)


def _log_parts(x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """An exponent e, and f and log(1 + f) - f, for x = 2**e * (1 + f) with f near zero."""
    mantissa, _, integer = FORMATS[x.kind]
    tiny = x < (2.0**-126 if x.kind == "f32" else 2.0**-1022)
    up = 2.0 ** (mantissa + 1)
    bits = tiny.choose(x * up, x).bits(integer)
    middle = x.number(math.sqrt(0.5)).bits(integer)
    e = (bits - middle).shifted("sar", mantissa)
    m = (bits - e.shifted("shl", mantissa)).bits(x.kind)
    f = m - 1
    s = f / (f + 2)
    z = s * s
    half_square = f * f * 0.5
    # log(1 + f) = f - f**2 / 2 + s * (f**2 / 2 + z * R(z)), in which only small terms are rounded.
    rest = s * fma(polynomial(z, _fit("LOG", x)), z, half_square) - half_square
    exponent = e.to(x.kind) - tiny.choose(x.number(mantissa + 1), x.number(0))
    return exponent, f, rest


def _log_edges(x: Scalar, y: Scalar) -> Scalar:
    """A logarithm, and what it is at zero, below, at infinity and for NaN."""
    y = (x == 0).choose(x.number(-math.inf), y)
    y = (x < 0).choose(x.number(math.nan), y)
    return (x < math.inf).choose(y, x)


def log(x: Scalar) -> Scalar:
    e, f, rest = _log_parts(x)
    high, low = _fit("LN2", x)
    return _log_edges(x, fma(e, high, f + fma(e, low, rest)))


def log2(x: Scalar) -> Scalar:
    e, f, rest = _log_parts(x)
    return _log_edges(x, e + _times_parts(f, rest, fitted.LOG2E_PARTS))


def _times_parts(f: Scalar, rest: Scalar, parts: Sequence[float]) -> Scalar:
    """(f + rest) times a number that is given as a sum."""
    first, second = parts
    return fma(f, first, fma(rest, first, (f + rest) * second))


def log10(x: Scalar) -> Scalar:
    y = log(x)
    high, low = fitted.LOG10E_PARTS
    return fma(y, high, y * low)


def log1p(x: Scalar) -> Scalar:
    """log(1 + x), accurate near zero, where -0.0 stays what it is."""
    u = x + 1
    usual = (u > 0) & (u < math.inf)
    plain = log(u) + usual.choose((x - (u - 1)) / u, x.number(0))
    return (u == 1).choose(x, plain)


def tanh(x: Scalar) -> Scalar:
    """t / (t + 2) for t = exp(2 |x|) - 1, which is 2**n (1 + p) - 1 with n from 0 to 58."""
    n, r = _reduced(2 * least(abs(x), 20.0))
    p = fma(polynomial(r, _fit("EXP", x)), r * r, r)
    grown = _scaled(x.number(1), n)
    t = fma(p, grown, grown - 1)
    return with_sign(t / (t + 2), x)


def _quarter_turns(x: Scalar) -> tuple[Scalar, Scalar]:
    """How many quarter turns are nearest to an angle, as an integer, and the angle that remains."""
    scaled = x * (2 / math.pi)
    n = scaled.write("rint", scaled)
    r = x
    for part in _fit("HALF_PI", x):
        r = fma(n, -part, r)
    return n.to(FORMATS[x.kind][2]), r


def _sine_of(r: Scalar) -> Scalar:
    z = r * r
    return fma(polynomial(z, _fit("SIN", r)) * z, r, r)


def _cosine_of(r: Scalar) -> Scalar:
    z = r * r
    half = z * 0.5
    w = 1 - half
    # What 1 - half loses in rounding is added to the rest.
    return w + fma(polynomial(z, _fit("COS", r)), z * z, (1 - w) - half)


#: Beyond it the remaining angle has too few bits; the C library computes such values.
_FAR = 1e5


def sin(x: Scalar) -> Scalar:
    n, r = _quarter_turns(x)
    y = ((n & 1) == 0).choose(_sine_of(r), _cosine_of(r))
    y = ((n & 2) == 0).choose(y, -y)
    return _rescued("sin", (x == 0).choose(x, y), x, abs(x) > _FAR)


def cos(x: Scalar) -> Scalar:
    n, r = _quarter_turns(x)
    y = ((n & 1) == 0).choose(_cosine_of(r), _sine_of(r))
    y = (((n + 1) & 2) == 0).choose(y, -y)
    return _rescued("cos", y, x, abs(x) > _FAR)


def _rescued(name: str, value: Scalar, x: Scalar, where: Scalar) -> Scalar:
    """A value that the C library computes where a condition holds, which is seldom."""
    return value.write("rescue", _c_name(name, x), where, value, x)


def _c_name(name: str, x: Scalar) -> str:
    return name + ("f" if x.kind == "f32" else "")


def erf(x: Scalar) -> Scalar:
    """A polynomial near zero, else 1 - 2**p(|x|), of which fewer bits count the larger x is."""
    size = abs(x)
    small = fma(polynomial(x * x, _fit("ERF", x)), x, x)
    if x.kind == "f32":
        exponent = polynomial(least(size, 4.0), fitted.ERF_ABOVE_F32)
    else:
        a = least(size, 6.0)
        exponent = (a < 2.25).choose(
            polynomial(a, fitted.ERF_MIDDLE_F64), polynomial(a, fitted.ERF_TAIL_F64)
        )
    n = exponent.write("rint", exponent)
    r = exponent - n
    rest = _scaled(fma(polynomial(r, _fit("ERF_POWER", x)), r, 1), n)
    return (size < 0.75).choose(small, with_sign(1 - rest, x))


def power(x: Scalar, y: Scalar) -> Scalar:
    """x to the power of y; in single precision by logarithms in double precision."""
    if x.kind == "f64":
        return library("pow", x, y)
    size, wide = abs(x).to("f64"), y.to("f64")
    result = exp(wide * log(size)).to("f32")
    whole = y == y.write("rint", y)
    half = y * 0.5
    odd = whole & (half != half.write("rint", half))
    result = odd.choose(with_sign(result, x), result)
    infinite = abs(y) == math.inf
    negative = (x < 0) & ~whole & (size < math.inf)
    result = (negative & ~infinite).choose(x.number(math.nan), result)
    grows = (size > 1) == (y > 0)
    limit = (size == 1).choose(x.number(1.0), grows.choose(x.number(math.inf), x.number(0.0)))
    result = infinite.choose(limit, result)
    result = (is_nan(x) | is_nan(y)).choose(x + y, result)
    return ((y == 0) | (x == 1)).choose(x.number(1.0), result)


def library(name: str, *args: Scalar) -> Scalar:
    """A function of the C library, called for each element."""
    first = args[0]
    return first.write("call", _c_name(name, first), *args)


def _called(name: str) -> Callable[..., Scalar]:
    return lambda *args: library(name, *args)


#: All functions by NumPy's name, or by that of scipy.special.
FUNCTIONS: dict[str, Callable[..., Scalar]] = {
    "exp": exp, "expm1": expm1, "exp2": exp2, "log": log, "log2": log2, "log10": log10,
    "log1p": log1p, "tanh": tanh, "sin": sin, "cos": cos, "erf": erf, "power": power,
    **{
        name: _called(c_name)
        for name, c_name in {
            "tan": "tan", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
            "arctan2": "atan2", "sinh": "sinh", "cosh": "cosh", "arcsinh": "asinh",
            "arccosh": "acosh", "arctanh": "atanh", "hypot": "hypot", "fmod": "fmod",
            "cbrt": "cbrt", "erfc": "erfc", "gammaln": "lgamma", "nextafter": "nextafter",
        }.items()
    },
}  # fmt: skip


def code_of(name: str, kind: str) -> list[tuple[str, str, tuple]]:
    """The instructions of a function; its arguments are ``input`` 0 and 1."""
    if not is_float(kind):
        raise Unsupported(f"{name} of {kind}")
    block = Expressions()
    count = 2 if name in ("power", "arctan2", "hypot", "fmod", "nextafter") else 1
    inputs = [Scalar(block, block.write("input", kind, i)) for i in range(count)]
    FUNCTIONS[name](*inputs)
    return block.code
