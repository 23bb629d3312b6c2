"""Bessel functions and the Airy function."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..transforms.batching.rules import elementwise as batched
from .declare import elementwise, nondifferentiable, promote_float
from .pointwise import sgn, where
from .special_kernels import by_scipy

__all__ = ["i0"]

i0: Operator = elementwise(
    "i0(Tensor self) -> Tensor",
    by_scipy("i0"),
    lambda t, self: t * i1(self),
    dtype=promote_float,
    refuses="c",
    doc="Modified Bessel function of the first kind of order zero.",
)
i0e: Operator = elementwise(
    "special_i0e(Tensor self) -> Tensor",
    by_scipy("i0e"),
    lambda t, self, out: t * (i1e(self) - sgn(self) * out),
    dtype=promote_float,
    refuses="c",
    inplace=False,
    doc="`exp(-abs(x)) * i0(x)`.",
)


def _away_from_zero(x: Tensor) -> tuple[Tensor, Tensor]:
    """Where `x` can be divided by, and `x` there."""
    tiny = 2.220446049250313e-16 if x.dtype.itemsize == 8 else 1.1920929e-07
    large = x.abs() > tiny
    return large, where(large, x, tiny)


def _i1_differential(t: Tensor, x: Tensor, out: Tensor) -> Tensor:
    large, safe = _away_from_zero(x)
    return t * where(large, i0(safe) - out / safe, 0.5)


def _i1e_differential(t: Tensor, x: Tensor, out: Tensor) -> Tensor:
    large, safe = _away_from_zero(x)
    return t * where(large, i0e(safe) - out * (sgn(safe) + 1 / safe), 0.5)


i1: Operator = elementwise(
    "special_i1(Tensor self) -> Tensor",
    by_scipy("i1"),
    lambda t, self, out: _i1_differential(t, self, out),
    dtype=promote_float,
    refuses="c",
    inplace=False,
    doc="Modified Bessel function of the first kind of order one.",
)
i1e: Operator = elementwise(
    "special_i1e(Tensor self) -> Tensor",
    by_scipy("i1e"),
    lambda t, self, out: _i1e_differential(t, self, out),
    dtype=promote_float,
    refuses="c",
    inplace=False,
    doc="`exp(-abs(x)) * i1(x)`.",
)


def _undifferentiated(name: str, kernel: Any, doc: str, word: str = "self") -> Operator:
    return nondifferentiable(
        f"special_{name}(Tensor {word}) -> Tensor",
        kernel,
        broadcasts=True,
        dtype=promote_float,
        refuses="c",
        batch=batched,
        doc=f"{doc}; without derivative.",
    )


def _airy(xp: Any, x: Any) -> Any:
    return by_scipy("airy")(xp, x)[0]


def _spherical(xp: Any, x: Any) -> Any:
    return xp.where(x == 0, xp.asarray(1, x.dtype), xp.where(
        xp.isinf(x), xp.asarray(0, x.dtype), xp.sin(x) / xp.where(x == 0, 1, x)
    ))  # fmt: skip


airy_ai = _undifferentiated("airy_ai", _airy, "Airy function Ai", "x")
bessel_j0 = _undifferentiated(
    "bessel_j0", by_scipy("j0"), "Bessel function of the first kind of order zero"
)
bessel_j1 = _undifferentiated(
    "bessel_j1", by_scipy("j1"), "Bessel function of the first kind of order one"
)
bessel_y0 = _undifferentiated(
    "bessel_y0", by_scipy("y0"), "Bessel function of the second kind of order zero"
)
bessel_y1 = _undifferentiated(
    "bessel_y1", by_scipy("y1"), "Bessel function of the second kind of order one"
)
modified_bessel_i0 = _undifferentiated(
    "modified_bessel_i0", by_scipy("i0"), "Modified Bessel function of the first kind, order zero"
)
modified_bessel_i1 = _undifferentiated(
    "modified_bessel_i1", by_scipy("i1"), "Modified Bessel function of the first kind, order one"
)
modified_bessel_k0 = _undifferentiated(
    "modified_bessel_k0", by_scipy("k0"), "Modified Bessel function of the second kind, order zero"
)
modified_bessel_k1 = _undifferentiated(
    "modified_bessel_k1", by_scipy("k1"), "Modified Bessel function of the second kind, order one"
)
scaled_modified_bessel_k0 = _undifferentiated(
    "scaled_modified_bessel_k0", by_scipy("k0e"), "`exp(x) * modified_bessel_k0(x)`", "x"
)
scaled_modified_bessel_k1 = _undifferentiated(
    "scaled_modified_bessel_k1", by_scipy("k1e"), "`exp(x) * modified_bessel_k1(x)`", "x"
)
spherical_bessel_j0 = _undifferentiated(
    "spherical_bessel_j0", _spherical, "Spherical Bessel function of the first kind", "x"
)
