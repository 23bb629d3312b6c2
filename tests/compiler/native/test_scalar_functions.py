"""The functions written in scalar expressions, against mpmath: units in the last place."""

import math
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

import wengert
from compiler.native.support import programs_of, reasons
from wengert.compiler import parse
from wengert.compiler.native.program import NativeProgram

mpmath.mp.dps = 40
TOOL = Path(__file__).parents[3] / "tools" / "fit_scalar.py"

#: The largest error in units in the last place. The last two rows are those of the C library.
BOUNDS = {
    "exp": 2, "expm1": 2, "exp2": 2, "log": 2, "log2": 2, "log10": 2, "log1p": 2, "tanh": 2,
    "sin": 2, "cos": 2, "erf": 2, "sqrt": 0.51, "sigmoid": 3,
    "tan": 2, "asin": 2, "acos": 2, "atan": 2, "sinh": 2, "cosh": 2, "asinh": 2, "acosh": 2,
    "atanh": 2, "erfc": 4, "lgamma": 4,
}  # fmt: skip
EXACT = {
    "exp": mpmath.exp, "expm1": mpmath.expm1, "exp2": lambda x: mpmath.power(2, x),
    "log": mpmath.log, "log2": lambda x: mpmath.log(x, 2), "log10": mpmath.log10,
    "log1p": mpmath.log1p, "tanh": mpmath.tanh, "sin": mpmath.sin, "cos": mpmath.cos,
    "erf": mpmath.erf, "sqrt": mpmath.sqrt, "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "lgamma": lambda x: mpmath.loggamma(x).real,
    **{
        name: getattr(mpmath, name)
        for name in (
            "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erfc",
        )
    },
}  # fmt: skip
#: Where a function is defined, and its result is neither zero nor infinite.
DOMAINS = {
    "sin": lambda x: abs(x) < 9e4, "cos": lambda x: abs(x) < 9e4, "tan": lambda x: abs(x) < 9e4,
    "log": lambda x: x > 0, "log2": lambda x: x > 0, "log10": lambda x: x > 0,
    "sqrt": lambda x: x > 0, "log1p": lambda x: x > -1, "asin": lambda x: abs(x) < 1,
    "acos": lambda x: abs(x) < 1, "atanh": lambda x: abs(x) < 1, "acosh": lambda x: x > 1,
    "sinh": lambda x: abs(x) < 1e4, "cosh": lambda x: abs(x) < 1e4, "erfc": lambda x: x < 30,
    # Away from its zeros, at one, two and between negative whole numbers.
    "lgamma": lambda x: (x > 0) & (abs(x - 1) > 0.01) & (abs(x - 2) > 0.01),
}  # fmt: skip
#: Points near which functions are hard: where they cross zero, turn, or leave the range.
HARD = {
    "log": [1.0], "log2": [1.0], "log10": [1.0], "log1p": [-1.0, 1e-9],
    "expm1": [1e-9, 0.35, -0.35],
    "tanh": [0.625, 20.0], "erf": [0.75, 2.25, 4.0, 6.0], "sigmoid": [0.0],
    "sin": [math.pi * k for k in (1, 2, 100, 10000)],
    "cos": [math.pi * (k + 0.5) for k in (0, 1, 100, 10000)],
    "exp": [0.34657, 88.7, -87.3, -103.9, 709.7, -708.3, -745.0], "exp2": [127.9, -126.0, 0.5],
}  # fmt: skip


def native(name, x):
    kind = x.dtype.name
    graph = parse(
        f"graph(%x : {kind}[{x.size}]):\n  %y : {kind}[{x.size}] = wengert::{name}(%x)\n"
        "  return (%y)\n"
    )
    program = NativeProgram(graph)
    (y,) = program(wengert.from_numpy(x))
    assert not any(v.interface.reasons for v in program.variants.values())
    return y.numpy()


def points(name, dtype):
    """Numbers of all sizes and signs for which the result is finite, and some near hard places."""
    rng = np.random.default_rng(5)
    info = np.finfo(dtype)
    exponents = np.linspace(math.log2(info.smallest_subnormal), math.log2(info.max) - 1, 500)
    sizes = 2.0**exponents * rng.uniform(1, 2, exponents.size)
    near = [
        p * (1 + rng.uniform(-1, 1, 40) * 10.0 ** rng.uniform(-8, -1, 40))
        for p in HARD.get(name, [])
    ]
    usual = rng.uniform(-12, 12, 400)
    x = np.concatenate([sizes, -sizes, usual, *near]).astype(dtype)
    return x[DOMAINS[name](x)] if name in DOMAINS else x


def ulps(name, x, y):
    """Errors of results, in units in the last place of what is exact."""
    info = np.finfo(x.dtype)
    found = []
    for a, b in zip(x.tolist(), y.tolist()):
        exact = EXACT[name](mpmath.mpf(a))
        if abs(exact) >= mpmath.mpf(float(info.max)) * (1 + mpmath.mpf(float(info.eps)) / 4):
            assert b == (math.inf if exact > 0 else -math.inf)
            continue
        exponent = int(mpmath.floor(mpmath.log(abs(exact), 2))) if exact else 0
        unit = mpmath.mpf(2) ** max(exponent - info.nmant, info.minexp - info.nmant)
        found.append(float(abs(mpmath.mpf(b) - exact) / unit))
    return np.array(found)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BOUNDS)
def test_error_is_below_the_bound(name, dtype):
    x = points(name, np.dtype(dtype))
    errors = ulps(name, x, native(name, x))
    worst = int(errors.argmax())
    assert errors.max() <= BOUNDS[name], f"{errors.max()} at {x[worst]!r}"


SPECIAL = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 1e300, -1e300])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BOUNDS)
def test_zeros_infinities_and_nan_are_those_of_numpy(name, dtype):
    with np.errstate(all="ignore"):
        x = SPECIAL.astype(dtype)
        y = native(name, x)
        expected = getattr(wengert, name)(wengert.from_numpy(x)).numpy()
    special = ~np.isfinite(expected) | (expected == 0)
    assert np.array_equal(np.isnan(y), np.isnan(expected))
    kept = special & ~np.isnan(expected)
    assert np.array_equal(y[kept], expected[kept])
    assert np.array_equal(np.signbit(y[kept]), np.signbit(expected[kept]))


@pytest.mark.parametrize("name", ["sin", "cos"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_angles(name, dtype):
    x = np.array([1e5, 2e5, 1e10, -3e20, 12345678.0] * 5).astype(dtype)
    assert np.allclose(native(name, x), getattr(np, name)(x.astype("float64")), atol=1e-6)


POWERS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 2.5, -3.0, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers(dtype):
    x, y = (a.reshape(-1).astype(dtype) for a in np.meshgrid(POWERS, POWERS))
    size = x.size
    graph = parse(
        f"graph(%x : {dtype}[{size}], %y : {dtype}[{size}]):\n"
        f"  %z : {dtype}[{size}] = wengert::pow(%x, %y)\n  return (%z)\n"
    )
    (z,) = NativeProgram(graph)(wengert.from_numpy(x), wengert.from_numpy(y))
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    assert np.array_equal(np.isnan(z.numpy()), np.isnan(expected))
    assert np.allclose(z.numpy(), expected, rtol=4 * np.finfo(dtype).eps, equal_nan=True)
    signs = ~np.isnan(expected)
    assert np.array_equal(np.signbit(z.numpy())[signs], np.signbit(expected)[signs])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_error_of_powers_is_below_the_bound(dtype):
    rng, info = np.random.default_rng(3), np.finfo(dtype)
    sizes = np.exp(rng.uniform(-20, 20, 600)), rng.uniform(0.9, 1.1, 300)
    x = np.concatenate(sizes).astype(dtype)
    y = np.concatenate([rng.uniform(-10, 10, 600), rng.uniform(-500, 500, 300)]).astype(dtype)
    (z,) = NativeProgram(
        parse(
            f"graph(%x : {dtype}[900], %y : {dtype}[900]):\n"
            f"  %z : {dtype}[900] = wengert::pow(%x, %y)\n  return (%z)\n"
        )
    )(wengert.from_numpy(x), wengert.from_numpy(y))
    inside = np.isfinite(z.numpy()) & (abs(z.numpy()) >= info.tiny)
    assert inside.sum() > 700
    for base, exponent, found in zip(x[inside].tolist(), y[inside].tolist(), z.numpy()[inside]):
        exact = mpmath.power(base, exponent)
        assert abs(mpmath.mpf(float(found)) - exact) <= 4 * mpmath.mpf(float(np.spacing(found)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("places", [(), (0,), (37,), (16, 17, 130), (161, 162), range(163)])
def test_angles_far_from_zero_among_others(dtype, places):
    """Vectors and the elements after the last one are computed again, whole, where one is far; the
    second function is far for the first one's results, and for NaN if those are missing."""
    x = np.linspace(-3.0, 3.0, 163).astype(dtype)
    x[list(places)] = 1e7 + np.arange(len(places))

    def function(x):
        y = (x.sin().round() * 1e6).cos()
        return y, x.sin() * x.cos(), y.sum(), (x.cos() * x.exp().clamp(max=2.0)).sum()

    given = wengert.tensor(x)
    program, _ = programs_of(function, given)
    wide = wengert.tensor(x.astype("float64"))
    tolerance = 2e-6 if dtype == "float32" else 1e-13
    for found, expected in zip(program(given), function(wide), strict=True):
        scale = max(1.0, expected.abs().max().item())
        assert np.allclose(found.numpy(), expected.numpy(), rtol=0, atol=tolerance * scale)
    assert not reasons(program)


def test_sigmoid_far_below_zero_is_what_eager_gives():
    x = wengert.tensor([-1000.0, -103.5, -95.0, -89.0, -88.75, -88.5, -88.2, -87.5, -80.0])
    native = wengert.compile(lambda x: x.sigmoid(), backend="native")(x)
    assert native.tolist() == pytest.approx(x.sigmoid().tolist(), rel=1e-2, abs=1e-44)
    assert native[:5].tolist() == [0] * 5


@pytest.mark.full
def test_coefficients_are_what_the_tool_computes():
    assert subprocess.run([sys.executable, TOOL, "--check"], timeout=300).returncode == 0
