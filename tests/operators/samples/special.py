"""Samples of the special functions, and of parts, signs and pairs of numbers."""

from __future__ import annotations

from typing import Any

from .pointwise import binary, unary
from .table import Fixed, Make, Operation, Sample


def _special(make_operation: Any, name: str, *args: Any, **options: Any) -> Operation:
    """An operation of `special` whose operator has that word in front of its name."""
    options.setdefault("complex", False)
    return make_operation(
        f"special.{name}", *args, method=False, covers=(f"special_{name}",), **options
    )


def _coarse(name: str, low: float, high: float) -> Operation:
    """An operation without derivative and without 16-bit floats."""
    return _special(unary, name, low, high, differentiable=False, half=False)


def _orders(make: Make) -> list[Sample]:
    return [Sample(n, make.positive(2, 3)) for n in (0, 1, 2, 3)] + [Sample(1, make.positive())]


def _dimensions(make: Make) -> list[Sample]:
    return [Sample(make(2, 3, low=2, high=4), p) for p in (1, 2, 3)] + [Sample(make(low=2), 1)]


def _constant(array: Any) -> Fixed:
    return Fixed(array, takes_dtype=True)


def _incomplete(make: Make) -> list[Sample]:
    return [
        Sample(_constant(make.positive(2, 3)), make.positive(2, 3)),
        Sample(_constant(make.positive(3)), make.positive(2, 1)),
        Sample(_constant(make.positive()), make.positive(0, 2)),
    ]


def _zetas(make: Make) -> list[Sample]:
    return [
        Sample(_constant(make(2, 3, low=2, high=5)), make.positive(2, 3)),
        Sample(_constant(make(3, low=2, high=5)), make.positive(2, 1)),
        Sample(3.0, make.positive(3)),
    ]


def _with_number_first(make: Make) -> list[Sample]:
    return [Sample(2.5, make.positive(3)), Sample(make(3), 1.5), Sample(0.0, make.positive(2))]


def _degrees(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 3, low=-0.9, high=0.9), make.index(2, 3, high=6)),
        Sample(make(3, low=-1.5, high=1.5), 4),
        Sample(make(2, 1), make.index(3, high=3)),
    ]


def _near_one(make: Make, *shape: int) -> Any:
    return make(*shape, low=-0.7, high=2)


def _with_eps(make: Make) -> list[Sample]:
    return [Sample(make(2, 3, low=0.1, high=0.9), eps) for eps in (0.2, 1e-6)]


def _replacing(make: Make) -> list[Sample]:
    return [Sample(make(3), nan=1.0, posinf=2.0, neginf=-2.0), Sample(make(3), 0.5)]


def _limits(make: Make) -> list[Sample]:
    number = 1 if make.kind == "integer" else 0.5
    return [
        Sample(make(2, 3), number),
        Sample(make(2, 3), make(2, 3)),
        Sample(make(2, 3), make(3)),
        Sample(make(), make(2)),
        Sample(make(0, 2), number),
    ]


def _steps(make: Make) -> list[Sample]:
    return [
        Sample(make.apart(2, 3), make(2, 3)),
        Sample(make.apart(2, 1), make(3)),
        Sample(make.apart(0, 2), make()),
    ]


def _float_powers(make: Make) -> list[Sample]:
    return [
        Sample(make.positive(2, 3), make(2, 3)),
        Sample(make.positive(2, 1), make(3)),
        Sample(make.positive(3), 2),
        Sample(make.positive(3), 0.5),
        Sample(2.0, make(3)),
    ]


def _numbered(make: Make) -> list[Sample]:
    return [Sample(make.apart(3), -2.0), Sample(make.apart(3), 3)]


_POLYNOMIALS = (
    *[f"{prefix}chebyshev_polynomial_{kind}" for prefix in ("", "shifted_") for kind in "tuvw"],
    "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
    "legendre_polynomial_p",
)  # fmt: skip
#: What SciPy computes, and so arrays of other classes do not have.
BY_SCIPY = (
    "erfc", "erfinv", "lgamma", "digamma", "polygamma", "mvlgamma", "igamma", "igammac", "i0",
    "xlogy",
    *[f"special.{name}" for name in (
        "erfcx", "ndtr", "ndtri", "log_ndtr", "entr", "i0e", "i1", "i1e", "xlog1py", "zeta",
        "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0",
        "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1",
        "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
    )],
)  # fmt: skip
SPECIAL = [
    unary("erfc", complex=False),
    unary("erfinv", -0.9, 0.9, complex=False),
    unary("lgamma", 0.3, 4, complex=False),
    unary("digamma", 0.3, 4, complex=False),
    Operation("polygamma", _orders, complex=False, out=True, covers=("_polygamma",), inexact=10),
    Operation("mvlgamma", _dimensions, complex=False, out=True, half_scale=4),
    Operation("igamma", _incomplete, complex=False, integer=False, out=True, half_scale=2),
    Operation("igammac", _incomplete, complex=False, integer=False, out=True, half_scale=2),
    unary("i0", complex=False),
    unary("logit", 0.1, 0.9, complex=False, extra=_with_eps),
    unary("sinc", 0.2, 2),
    binary("xlogy", second=Make.positive, complex=False, extra=_with_number_first),
    _special(unary, "erfcx", half=False),
    _special(unary, "ndtr"),
    _special(unary, "ndtri", 0.1, 0.9, half=False),
    _special(unary, "log_ndtr", half=False),
    _special(unary, "entr", 0.1, 2),
    _special(unary, "i0e", 0.3, 2),
    _special(unary, "i1"),
    _special(unary, "i1e", 0.3, 2),
    _special(binary, "xlog1py", second=_near_one, extra=_with_number_first),
    _special(Operation, "zeta", _zetas, half=False, out=True),
    *[_coarse(name, 0.2, 3) for name in (
        "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0",
        "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1",
        "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0",
    )],
    *[_special(Operation, name, _degrees, differentiable=False, half=False, out=True)
      for name in _POLYNOMIALS],
    unary("frac", complex=False, integer=False),
    unary("deg2rad", complex=False),
    unary("rad2deg", complex=False),
    unary("nan_to_num", extra=_replacing),
    Operation("frexp", lambda make: [Sample(make.apart(2, 3)), Sample(make.apart()),
                                     Sample(make(0, 2))],
              complex=False, integer=False, out=True, covers=("_frexp",)),
    *[unary(name, differentiable=False, complex=False)
      for name in ("signbit", "isposinf", "isneginf")],
    unary("isreal", differentiable=False, out=False),
    binary("copysign", Make.apart, Make.apart, complex=False, extra=_numbered),
    binary("nextafter", complex=False, integer=False, half=False),
    Operation("heaviside", _steps, complex=False, differentiable=False, out=True),
    binary("fmax", complex=False),
    binary("fmin", complex=False),
    binary("logaddexp", integer=False),
    binary("logaddexp2", complex=False, integer=False),
    binary("ldexp"),
    *[binary(name, differentiable=False, real=False, complex=False, half=False)
      for name in ("gcd", "lcm")],
    Operation("float_power", _float_powers, out=True, own_dtype=True),
    Operation("clamp_min", _limits, complex=False, out=True),
    Operation("clamp_max", _limits, complex=False, out=True),
]  # fmt: skip
