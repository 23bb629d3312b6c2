"""The error function's relatives, the normal distribution, and logarithms of probabilities."""

from __future__ import annotations

import math
from typing import Any

from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from .declare import elementwise, promote_float
from .pointwise import cos, exp, log, sin, where
from .special_kernels import by_scipy, numbers_first

__all__ = ["erfc", "erfinv", "logit", "sinc", "xlogy"]

_ROOT_OF_PI = math.sqrt(math.pi)

erfc = elementwise(
    "erfc(Tensor self) -> Tensor",
    by_scipy("erfc"),
    lambda t, self: t * (-2 / _ROOT_OF_PI * exp(-self * self)),
    dtype=promote_float,
    refuses="c",
    doc="One minus the error function, accurate for large arguments.",
)
erfinv: Operator = elementwise(
    "erfinv(Tensor self) -> Tensor",
    by_scipy("erfinv"),
    lambda t, self: t * (_ROOT_OF_PI / 2 * exp(erfinv(self) ** 2)),
    dtype=promote_float,
    refuses="c",
    doc="Inverse of the error function.",
)
erfcx: Operator = elementwise(
    "special_erfcx(Tensor self) -> Tensor",
    by_scipy("erfcx"),
    lambda t, self, out: t * (2 * self * out - 2 / _ROOT_OF_PI),
    dtype=promote_float,
    refuses="c",
    inplace=False,
    doc="`exp(x * x) * erfc(x)`, accurate for large arguments.",
)
ndtr = elementwise(
    "special_ndtr(Tensor self) -> Tensor",
    by_scipy("ndtr"),
    lambda t, self: t * (exp(self * self * -0.5) / math.sqrt(2 * math.pi)),
    dtype=promote_float,
    refuses="c",
    inplace=False,
    doc="Cumulative distribution function of the standard normal distribution.",
)
ndtri: Operator = elementwise(
    "special_ndtri(Tensor self) -> Tensor",
    by_scipy("ndtri"),
    lambda t, out: t * (math.sqrt(2 * math.pi) * exp(out * out / 2)),
    dtype=promote_float,
    refuses="c",
    inplace=False,
    doc="Quantile of the standard normal distribution: the inverse of `ndtr`.",
)
log_ndtr = elementwise(
    "special_log_ndtr(Tensor self) -> Tensor",
    by_scipy("log_ndtr"),
    lambda t, self: t * (math.sqrt(2 / math.pi) / erfcx(self * -math.sqrt(0.5))),
    dtype=promote_float,
    refuses="c",
    inplace=False,
    doc="Logarithm of `ndtr`, accurate for small probabilities.",
)
entr = elementwise(
    "special_entr(Tensor self) -> Tensor",
    by_scipy("entr"),
    lambda t, self: t * (-1 - log(self)),
    dtype=promote_float,
    refuses="c",
    inplace=False,
    doc="`-x * log(x)`, zero at zero and minus infinity below.",
)


def _unless_zero(product: Operator, t: Tensor, x: Any, y: Any, pole: float) -> Tensor:
    """The product of `t` and the logarithm of `y`, zero where `x` is and there is no logarithm."""
    return where((x == 0) & (y <= pole), 0, product(t, y))


xlogy: Operator = elementwise(
    "xlogy(Tensor self, Tensor other) -> Tensor",
    by_scipy("xlogy"),
    {
        "self": lambda t, self, other: _unless_zero(xlogy, t, self, other, 0),
        "other": lambda t, self, other: t * (self / other),
    },
    dtype=promote_float,
    refuses="c",
    name=lambda self, other: f"XlogyBackward{numbers_first(self, other)}",
    overload="Tensor",
    doc="`input * log(other)`, zero where `input` is.",
)
xlog1py: Operator = elementwise(
    "special_xlog1py(Tensor self, Tensor other) -> Tensor",
    by_scipy("xlog1py"),
    {
        "self": lambda t, self, other: _unless_zero(xlog1py, t, self, other, -1),
        "other": lambda t, self, other: t * (self / (other + 1)),
    },
    dtype=promote_float,
    refuses="c",
    inplace=False,
    name=lambda self, other: f"SpecialXlog1PyBackward{numbers_first(self, other)}",
    doc="`input * log1p(other)`, zero where `input` is.",
)


def _logit(xp: Any, x: Any, eps: float | None) -> Any:
    if eps is not None:
        x = xp.clip(x, xp.asarray(eps, x.dtype), xp.asarray(1 - eps, x.dtype))
    return xp.log(x / (1 - x))


def _logit_differential(t: Tensor, x: Tensor, eps: float | None) -> Tensor:
    slope = t / where((x == 0) | (x == 1), 0, x * (1 - x))
    if eps is None:
        return where((x >= 0) & (x <= 1), slope, math.nan)
    return where((x >= eps) & (x <= 1 - eps), slope, 0)


logit = elementwise(
    "logit(Tensor self, float? eps=None) -> Tensor",
    _logit,
    lambda t, self, eps: _logit_differential(t, self, eps),
    dtype=promote_float,
    refuses="c",
    doc="`log(x / (1 - x))`, with `x` first limited to `eps` from zero and one if that is given.",
)


def _sinc(xp: Any, x: Any) -> Any:
    angle = x * xp.asarray(math.pi, x.dtype)
    return xp.where(x == 0, xp.asarray(1, x.dtype), xp.sin(angle) / xp.where(x == 0, 1, angle))


def _sinc_differential(t: Tensor, x: Tensor) -> Tensor:
    angle = x * math.pi
    zero = x == 0
    slope = (angle * cos(angle) - sin(angle)) / where(zero, 1, angle * x)
    return where(zero, 0, t * slope)


sinc = elementwise(
    "sinc(Tensor self) -> Tensor",
    _sinc,
    lambda t, self: _sinc_differential(t, self),
    dtype=promote_float,
    doc="`sin(pi * x) / (pi * x)`, one at zero.",
)
