"""The gamma function and its relatives."""

from __future__ import annotations

import math
from typing import Any

from ..core import dtypes
from ..core.registry import operator_named
from ..core.tensor import Tensor
from ..creation.ranges import arange
from ..dispatch.operator import Operator
from ..dispatch.out import copy_to_out
from ..transforms.batching.rules import elementwise as batched
from . import shapes
from .declare import composite, elementwise, primitive, promote_float
from .pointwise import exp, log
from .special_kernels import by_scipy, numbers_first, refused

__all__ = [
    "digamma", "igamma", "igammac", "lgamma", "mvlgamma", "polygamma", "polygamma_",
]  # fmt: skip


def _lgamma(xp: Any, x: Any) -> Any:
    # SciPy has minus infinity at minus infinity.
    return by_scipy("gammaln")(xp, xp.where(xp.isneginf(x), -x, x))


lgamma = elementwise(
    "lgamma(Tensor self) -> Tensor",
    _lgamma,
    lambda t, self: t * digamma(self),
    dtype=promote_float,
    refuses="c",
    doc="Logarithm of the absolute value of the gamma function.",
)


def _digamma(xp: Any, x: Any) -> Any:
    out = by_scipy("psi")(xp, x)
    return xp.where(xp.isneginf(x), xp.nan, out).astype(x.dtype, copy=False)


digamma: Operator = elementwise(
    "digamma(Tensor self) -> Tensor",
    _digamma,
    lambda t, self: t * polygamma_operator.call((self, 1)),
    dtype=promote_float,
    refuses="c",
    doc="Derivative of the logarithm of the gamma function.",
)


def _polygamma(xp: Any, x: Any, n: int) -> Any:
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n, but n is {n}.")
    if not n:
        return _digamma(xp, x)
    sign = 1 if n % 2 else -1
    return by_scipy("zeta")(xp, xp.asarray(n + 1, x.dtype), x) * xp.asarray(
        sign * math.gamma(n + 1), x.dtype
    )


polygamma_operator: Operator = elementwise(
    "_polygamma(Tensor self, int n) -> Tensor",
    _polygamma,
    lambda t, self, n: t * polygamma_operator.call((self, n + 1)),
    dtype=promote_float,
    refuses="c",
    name="PolygammaBackward0",
    doc="The derivative of order `n` of the digamma function.",
)


def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of order `n` of the digamma function."""
    if isinstance(n, Tensor):  # as a method: the tensor comes first
        n, input = input, n  # type: ignore[assignment]
    result = polygamma_operator(input, n)
    return result if out is None else copy_to_out("polygamma", result, out)


@composite(public="method")
def polygamma_(input: Tensor, n: int) -> Tensor:
    """In-place form of polygamma()."""
    return operator_named("_polygamma_")(input, n)


def _multivariate(xp: Any, x: Any, p: int) -> Any:
    if x.dtype.kind == "b":
        raise RuntimeError("mvlgamma: The input tensor may not be a boolean tensor.")
    if x.dtype.kind == "c":
        kind = dtypes.from_numpy(x.dtype).scalar_name
        raise NotImplementedError(f"\"mvlgamma\" not implemented for '{kind}'")
    if x.dtype.kind in "iu":
        x = x.astype(dtypes.get_default_dtype().numpy)
    if p < 1:
        raise RuntimeError(f"mvlgamma: p has to be greater than or equal to 1, but it is {p}")
    out = xp.full(x.shape, p * (p - 1) / 4 * math.log(math.pi), x.dtype)
    for j in range(p):
        out += _lgamma(xp, x - xp.asarray(j / 2, x.dtype))
    return out


def _multivariate_differential(t: Tensor, x: Tensor, p: int) -> Tensor:
    steps = arange(p, dtype=t.dtype, device=x.device) / 2
    return t * digamma(x.unsqueeze(-1) - steps).sum(-1)


mvlgamma = primitive(
    "mvlgamma(Tensor self, int p) -> Tensor",
    _multivariate,
    lambda g, self, p: _multivariate_differential(g, self, p),
    lambda tangents, self, p: _multivariate_differential(tangents["self"], self, p),
    inplace=True,
    shape=shapes.as_first,
    batch=batched,
    out="casts",
    doc="Logarithm of the multivariate gamma function of dimension `p`.",
)


def _density(t: Tensor, a: Any, x: Any) -> Tensor:
    """`t` times the derivative by `x` of the lower incomplete gamma function."""
    return t * exp((a - 1) * log(x) - x - lgamma(a))


igamma = elementwise(
    "igamma(Tensor self, Tensor other) -> Tensor",
    by_scipy("gammainc"),
    {
        "self": refused("igamma: input"),
        "other": lambda t, self, other: _density(t, self, other),
    },
    refuses="biuc",
    doc="The regularised lower incomplete gamma function of order `input` at `other`.",
)
igammac = elementwise(
    "igammac(Tensor self, Tensor other) -> Tensor",
    by_scipy("gammaincc"),
    {
        "self": refused("igammac: input"),
        "other": lambda t, self, other: _density(-t, self, other),
    },
    refuses="biuc",
    doc="The regularised upper incomplete gamma function of order `input` at `other`.",
)
zeta: Operator = elementwise(
    "special_zeta(Tensor self, Tensor other) -> Tensor",
    by_scipy("zeta"),
    {
        "self": refused("zeta"),
        "other": lambda t, self, other: t * -self * zeta(self + 1, other),
    },
    dtype=promote_float,
    refuses="c",
    inplace=False,
    name=lambda self, other: f"SpecialZetaBackward{numbers_first(self, other)}",
    doc="The Hurwitz zeta function of `input` from `other` on.",
)
