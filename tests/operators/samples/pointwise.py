"""Samples of the elementwise operations."""

from __future__ import annotations

from typing import Any

from .table import Make, Operation, Sample

SHAPES = [(2, 3), (), (0, 3)]


def unary(
    name: str, low: float = -2.0, high: float = 2.0, extra: Any = None, **options: Any
) -> Operation:
    """An operation on one tensor with values between `low` and `high`; `extra` adds samples."""

    def samples(make: Make) -> list[Sample]:
        found = [Sample(make(*shape, low=low, high=high)) for shape in SHAPES]
        return found + (extra(make) if extra else [])

    options.setdefault("out", True)
    return Operation(name, samples, operands=1, **options)


def binary(name: str, first: Any = None, second: Any = None, extra: Any = None, **options: Any):
    """An operation on two tensors that broadcast, made by the given methods of Make."""
    first, second = first or Make.__call__, second or Make.__call__

    def samples(make: Make) -> list[Sample]:
        found = [
            Sample(first(make, 2, 3), second(make, 2, 3)),
            Sample(first(make, 2, 1, 3), second(make, 2, 1)),
            Sample(first(make), second(make, 3)),
            Sample(first(make, 0, 3), second(make, 1, 3)),
        ]
        return found + (extra(make) if extra else [])

    options.setdefault("out", True)
    return Operation(name, samples, operands=2, **options)


def with_numbers(*numbers: Any, **kwargs: Any) -> Any:
    """Samples in which the second operand is a Python number."""
    return lambda make: [Sample(make.apart(2, 2), number, **kwargs) for number in numbers]


def _scaled(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 2), make(2), alpha=3),
        Sample(make(3), 2),
        Sample(make(3), 1.5, alpha=2),
    ]


def _powers(make: Make) -> list[Sample]:
    numbers = (2, 3, 0, 1) if make.kind == "integer" else (2, 3, 0, 1, -1, 0.5, -2, 2.5)
    found = [Sample(make.positive(3), number) for number in numbers]
    found.append(Sample(2, make.positive(3)))
    if make.kind != "integer":
        found.append(Sample(1.7, make(2, 2)))
    return found


def _divisions(make: Make) -> list[Sample]:
    found = [Sample(make(3), 2), Sample(make(3), make.apart(3))]
    if make.kind != "complex":
        found += [
            Sample(make(2, 3, low=-9, high=9), make.apart(2, 3), rounding_mode=mode)
            for mode in ("trunc", "floor")
        ]
    return found


def _clamps(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 3), -1, 1),
        Sample(make(2, 3), min=-0.5),
        Sample(make(2, 3), max=0.5),
        Sample(make(2, 3), make(3, low=-2, high=-1), make(2, 1, low=0, high=2)),
        Sample(make(2, 3), min=make(2, 3)),
        Sample(make(2, 3), None, make(3)),
        Sample(make(), 0, 1),
        Sample(make(0, 2), 0, 1),
    ]


def _weighted(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 3), make(2, 3), make(2, 3)),
        Sample(make(3), make(2, 1), make.apart(), value=2),
        Sample(make(), make(), make(), value=-1),
        Sample(make(0, 2), make(1, 2), make(2)),
    ]


def _quotients(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 3), make(2, 3), make.apart(2, 3)),
        Sample(make(3), make(2, 1), make.apart(), value=2),
        Sample(make(0, 2), make(1, 2), make.apart(2)),
    ]


def _interpolations(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 3), make(2, 3), make(2, 3)),
        Sample(make(2, 3), make(3), 0.3),
        Sample(make(3), make(3), make()),
        Sample(make(0, 2), make(1, 2), 0.7),
    ]


def _choices(make: Make) -> list[Sample]:
    return [
        Sample(make.mask(2, 3), make(2, 3), make(2, 3)),
        Sample(make.mask(2, 1), make(3), make(1, 3)),
        Sample(make.mask(3), make(3), 0),
        Sample(make.mask(3), 1.5, make(3)),
        Sample(make.mask(), make(), make(2)),
        Sample(make.mask(0, 2), make(0, 2), make(2)),
    ]


def _of_one(*pairs: dict[str, Any], **limits: float) -> Any:
    return lambda make: [Sample(make(2, 3, **limits), **kwargs) for kwargs in pairs]


def _comparison(name: str, **options: Any) -> Operation:
    return binary(name, extra=with_numbers(1, 0.5), differentiable=False, **options)


def _logical(name: str) -> Operation:
    return binary(name, differentiable=False)


def _bits(name: str, second: Any = None) -> Operation:
    return binary(
        name, second=second, differentiable=False, real=False, complex=False, half=False,
        extra=lambda make: [Sample(make(3), 1)],
    )  # fmt: skip


def _shift_count(make: Make, *shape: int) -> Any:
    return make(*shape, low=0, high=3)


POINTWISE = [
    binary("add", extra=_scaled),
    binary("sub", extra=_scaled),
    binary("rsub", extra=_scaled, method=False, out=False),
    binary("mul", extra=with_numbers(3, -0.5)),
    binary("div", second=Make.apart, extra=_divisions),
    binary(
        "floor_divide", Make.apart, Make.apart, extra=with_numbers(2), complex=False,
    ),
    binary("remainder", Make.apart, Make.apart, extra=with_numbers(0.7), complex=False),
    binary("fmod", Make.apart, Make.apart, extra=with_numbers(0.7), complex=False),
    binary("pow", Make.positive, extra=_powers, half_scale=2),
    binary("atan2", Make.apart, Make.apart, complex=False),
    binary("hypot", Make.apart, Make.apart, complex=False, integer=False),
    binary("maximum", complex=False),
    binary("minimum", complex=False),
    unary("neg"),
    unary("positive", out=False),
    unary("square"),
    unary("reciprocal", 0.3, 2),
    unary("sqrt", 0.3, 3),
    unary("rsqrt", 0.3, 3),
    Operation("addcmul", _weighted, out=True),
    Operation("addcdiv", _quotients, integer=False, out=True),
    Operation("lerp", _interpolations, integer=False, out=True),
    unary("exp"),
    unary("exp2"),
    unary("expm1"),
    unary("log", 0.3, 3),
    unary("log2", 0.3, 3),
    unary("log10", 0.3, 3),
    unary("log1p", -0.6, 3),
    unary("sin"),
    unary("cos"),
    unary("tan", -1.2, 1.2),
    unary("asin", -0.9, 0.9),
    unary("acos", -0.9, 0.9),
    unary("atan"),
    unary("sinh"),
    unary("cosh"),
    unary("tanh"),
    unary("asinh"),
    unary("acosh", 1.2, 3),
    unary("atanh", -0.9, 0.9),
    unary("erf", complex=False),
    unary("sigmoid"),
    unary("relu", complex=False, out=False),
    unary(
        "nn.functional.leaky_relu", complex=False, integer=False, method=False,
        out=False, extra=_of_one({"negative_slope": 0.2}),
    ),
    unary("nn.functional.silu", integer=False, method=False, out=False),
    unary(
        "nn.functional.softplus", complex=False, integer=False, method=False,
        out=False, extra=_of_one({"beta": 2, "threshold": 1.5}),
    ),
    unary(
        "nn.functional.gelu", complex=False, integer=False, method=False,
        out=False, extra=_of_one({"approximate": "tanh"}),
    ),
    unary("abs"),
    unary("sgn"),
    unary("sign", complex=False),
    unary("floor", complex=False),
    unary("ceil", complex=False),
    unary("trunc", complex=False),
    unary("round", complex=False, extra=_of_one({"decimals": 1})),
    Operation("clamp", _clamps, complex=False, out=True),
    Operation("where", _choices, out=True, method=False),
    Operation(
        "Tensor.where",
        lambda make: [
            Sample(make(2, 3), make.mask(3), make(2, 1)),
            Sample(make(2), make.mask(2), 0),
        ],
    ),
    *[_comparison(name) for name in ("eq", "ne")],
    *[_comparison(name, complex=False) for name in ("lt", "le", "gt", "ge")],
    *[_logical(f"logical_{name}") for name in ("and", "or", "xor")],
    unary("logical_not", differentiable=False),
    *[_bits(f"bitwise_{name}") for name in ("and", "or", "xor")],
    unary("bitwise_not", differentiable=False, real=False, complex=False, half=False),
    *[_bits(f"bitwise_{name}_shift", _shift_count) for name in ("left", "right")],
    *[unary(name, differentiable=False, out=False) for name in ("isnan", "isinf", "isfinite")],
    Operation(
        "isclose",
        lambda make: [Sample(make(2, 3), make(3)), Sample(make(3), make(3), atol=1.0, rtol=0.1)],
        differentiable=False,
        half_scale=0,
    ),
]  # fmt: skip
