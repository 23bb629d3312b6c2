"""Computes the coefficients of the scalar functions and writes core/scalar/coefficients.py.

    python tools/fit_scalar.py            writes the file
    python tools/fit_scalar.py --check    fails where the file says something else

Each polynomial is the minimax approximation of a function on an interval, found by Remez' exchange
in mpmath, with the error measured relative to the weight that the function's use gives it.
Coefficients are rounded to the type they are used in, from the highest power to the constant.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import mp, mpf

TARGET = Path(__file__).resolve().parent.parent / "src/wengert/core/scalar/coefficients.py"
#: Below it quotients are their limits: cancellation would leave nothing of them.
TINY = mpf("1e-15")
Function = Callable[[Any], Any]


def remez(f: Function, low: Any, high: Any, degree: int, weight: Function) -> list:
    """Coefficients, lowest first, that make the largest weighted error as small as can be."""
    count = degree + 2
    middle, half = (mpf(high) + low) / 2, (mpf(high) - low) / 2
    nodes = [middle - half * mp.cos(mp.pi * i / (count - 1)) for i in range(count)]
    grid = [middle - half * mp.cos(mp.pi * i / 1200) for i in range(1201)]
    values = [(x, f(x), weight(x)) for x in grid]
    best: list = []
    least = None
    for _ in range(12):
        system = mp.matrix(count, count)
        right = mp.matrix(count, 1)
        for i, x in enumerate(nodes):
            for k in range(degree + 1):
                system[i, k] = x**k
            system[i, degree + 1] = (-1) ** i / weight(x)
            right[i] = f(x)
        solution = mp.lu_solve(system, right)
        found = [solution[k] for k in range(degree + 1)]
        errors = [(mp.polyval(found[::-1], x) - y) * w for x, y, w in values]
        largest = max(abs(e) for e in errors)
        if least is None or largest < least:
            least, best = largest, found
        nodes = extremes(grid, errors, count)
        if len(nodes) < count or largest <= abs(solution[degree + 1]) * 1.02:
            break
    return best


def extremes(grid: list, errors: list, count: int) -> list:
    """The places of the largest errors of alternating sign, `count` of them where there are."""
    found: list[tuple[Any, Any]] = []
    for x, error in zip(grid, errors, strict=True):
        if found and (found[-1][1] > 0) == (error > 0):
            if abs(error) > abs(found[-1][1]):
                found[-1] = (x, error)
        else:
            found.append((x, error))
    while len(found) > count:
        if abs(found[0][1]) < abs(found[-1][1]):
            found.pop(0)
        else:
            found.pop()
    return [x for x, _ in found]


def one(x: Any) -> Any:
    return mpf(1)


def of_square(f: Function, small: Any) -> Function:
    """A function of sqrt(z), with its value at zero given."""
    return lambda z: small if abs(z) < TINY else f(mp.sqrt(z))


def exponential_rest(r: Any) -> Any:
    """(exp(r) - 1 - r) / r**2."""
    return mpf(1) / 2 if abs(r) < TINY else (mp.expm1(r) - r) / r**2


def binary_rest(r: Any) -> Any:
    """(2**r - 1) / r."""
    return mp.log(2) if abs(r) < TINY else mp.expm1(r * mp.log(2)) / r


def logarithm_rest(z: Any) -> Any:
    """(2 * atanh(s) / s - 2) / s**2 at s = sqrt(z)."""
    if abs(z) < TINY:
        return mpf(2) / 3
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) / s - 2) / z


def sine_rest(z: Any) -> Any:
    """(sin(x) / x - 1) / x**2 at x = sqrt(z)."""
    if abs(z) < TINY:
        return -mpf(1) / 6
    x = mp.sqrt(z)
    return (mp.sin(x) / x - 1) / z


def cosine_rest(z: Any) -> Any:
    """(cos(x) - 1 + x**2 / 2) / x**4 at x = sqrt(z)."""
    return mpf(1) / 24 if abs(z) < TINY else (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


error_small = of_square(lambda x: mp.erf(x) / x - 1, 2 / mp.sqrt(mp.pi) - 1)


def error_tail(x: Any) -> Any:
    """The binary logarithm of 1 - erf(x)."""
    return mp.log(mp.erfc(x), 2)


#: Name: function, interval, degrees in single and in double precision, weight of the error. A
#: degree of 0 means that there is none.
FITS: dict[str, tuple[Function, Any, Any, int, int, Function]] = {
    "EXP": (exponential_rest, -0.35, 0.35, 4, 10, lambda r: mpf(1)),
    "EXP2": (binary_rest, -0.5, 0.5, 6, 12, one),
    "LOG": (logarithm_rest, 0, 0.0296, 2, 6, one),
    "SIN": (sine_rest, 0, 0.64, 3, 6, one),
    "COS": (cosine_rest, 0, 0.64, 3, 6, lambda z: z + mpf("0.01")),
    "ERF": (error_small, 0, 0.5625, 4, 10, one),
    "ERF_ABOVE": (error_tail, 0.75, 4, 6, 0, lambda x: mp.erfc(x)),
    "ERF_MIDDLE": (error_tail, 0.75, 2.25, 0, 14, lambda x: mp.erfc(x)),
    "ERF_TAIL": (error_tail, 2.25, 6.1, 0, 14, lambda x: mp.erfc(x) + mpf("1e-18")),
    "ERF_POWER": (binary_rest, -0.5, 0.5, 4, 11, one),
}


def rounded(coefficients: list, kind: Any) -> list[float]:
    return [float(kind(mp.nstr(c, 30))) for c in reversed(coefficients)]


def split(value: Any, parts: list[int]) -> list[float]:
    """A number as a sum of doubles, each with so many bits."""
    found = []
    for bits in parts:
        shift = bits - 1 - int(mp.floor(mp.log(abs(value), 2)))
        part = mp.nint(value * mpf(2) ** shift) / mpf(2) ** shift
        found.append(float(part))
        value -= part
    return found


def text() -> str:
    """What the file should say."""
    mp.dps = 45
    lines = [
        '"""Coefficients of the scalar functions, written by tools/fit_scalar.py.',
        "",
        "Polynomials are listed from the highest power down; sums of numbers from the largest on.",
        '"""',
        "",
    ]
    for name, (f, low, high, single, double, weight) in FITS.items():
        for kind, degree, numpy_type in (("f32", single, np.float32), ("f64", double, np.float64)):
            if not degree:
                continue
            found = rounded(remez(f, low, high, degree, weight), numpy_type)
            lines += [f"{name}_{kind.upper()} = (", *[f"    {c!r}," for c in found], ")"]
    constants = {
        # The first parts have zeros at the end: their products with whole numbers are exact.
        "LN2_F32": split(mp.log(2), [15, 24]),
        "LN2_F64": split(mp.log(2), [42, 53]),
        # Products of whole numbers with these are exact where they nearly cancel an angle.
        "HALF_PI_F32": split(mp.pi / 2, [24, 24, 24]),
        "HALF_PI_F64": split(mp.pi / 2, [53, 53, 53]),
        "LOG2E_PARTS": split(1 / mp.log(2), [53, 53]),
        "LOG10E_PARTS": split(1 / mp.log(10), [53, 53]),
    }
    lines += [f"{name} = ({', '.join(map(repr, parts))})" for name, parts in constants.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    made = text()
    if parser.parse_args().check:
        if TARGET.read_text() != made:
            raise SystemExit(f"{TARGET} is stale: run tools/fit_scalar.py")
        return
    TARGET.write_text(made)


if __name__ == "__main__":
    main()
