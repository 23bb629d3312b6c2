"""Orthogonal polynomials of a degree that is a tensor; as in PyTorch they have no derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dispatch.operator import Operator
from ..transforms.batching.rules import elementwise as batched
from .declare import nondifferentiable, promote_float

__all__ = []


def _by_recurrence(first: Callable, step: Callable, shifted: bool) -> Callable[..., Any]:
    """The polynomials p(0) = 1, p(1) = first(x), p(k+1) = step(k, x, p(k), p(k-1))."""

    def kernel(xp: Any, x: Any, n: Any) -> Any:
        x, n = xp.broadcast_arrays(x, n)
        dtype = x.dtype
        degree = xp.trunc(n)
        if shifted:
            x = x + x - 1
        before, current = xp.ones_like(x), xp.asarray(first(x), dtype)
        out = xp.where(degree == 0, before, xp.where(degree == 1, current, 0 * before))
        highest = int(degree.max().item()) if degree.size else 0
        for k in range(1, highest):
            before, current = current, xp.asarray(step(k, x, current, before), dtype)
            out = xp.where(degree == k + 1, current, out)
        return xp.where(xp.isnan(x) & (degree > 0), x, out).astype(dtype, copy=False)

    return kernel


def _polynomial(name: str, doc: str, first: Callable, step: Callable) -> Operator:
    return nondifferentiable(
        f"special_{name}(Tensor x, Tensor n) -> Tensor",
        _by_recurrence(first, step, name.startswith("shifted")),
        broadcasts=True,
        dtype=promote_float,
        refuses="c",
        batch=batched,
        doc=f"{doc} polynomial of degree `n` at `x`; without derivative.",
    )


_CHEBYSHEV = {
    "t": ("first", lambda x: x),
    "u": ("second", lambda x: 2 * x),
    "v": ("third", lambda x: 2 * x - 1),
    "w": ("fourth", lambda x: 2 * x + 1),
}


def _chebyshev(kind: str, prefix: str = "") -> Operator:
    ordinal, first = _CHEBYSHEV[kind]
    return _polynomial(
        f"{prefix}chebyshev_polynomial_{kind}",
        f"{'Shifted ' if prefix else ''}Chebyshev, {ordinal} kind:",
        first,
        lambda k, x, current, before: 2 * x * current - before,
    )


chebyshev_polynomial_t = _chebyshev("t")
chebyshev_polynomial_u = _chebyshev("u")
chebyshev_polynomial_v = _chebyshev("v")
chebyshev_polynomial_w = _chebyshev("w")
shifted_chebyshev_polynomial_t = _chebyshev("t", "shifted_")
shifted_chebyshev_polynomial_u = _chebyshev("u", "shifted_")
shifted_chebyshev_polynomial_v = _chebyshev("v", "shifted_")
shifted_chebyshev_polynomial_w = _chebyshev("w", "shifted_")
hermite_polynomial_h = _polynomial(
    "hermite_polynomial_h",
    "Physicist's Hermite",
    lambda x: 2 * x,
    lambda k, x, current, before: 2 * x * current - 2 * k * before,
)
hermite_polynomial_he = _polynomial(
    "hermite_polynomial_he",
    "Probabilist's Hermite",
    lambda x: x,
    lambda k, x, current, before: x * current - k * before,
)
laguerre_polynomial_l = _polynomial(
    "laguerre_polynomial_l",
    "Laguerre",
    lambda x: 1 - x,
    lambda k, x, current, before: ((2 * k + 1 - x) * current - k * before) / (k + 1),
)
legendre_polynomial_p = _polynomial(
    "legendre_polynomial_p",
    "Legendre",
    lambda x: x,
    lambda k, x, current, before: ((2 * k + 1) * x * current - k * before) / (k + 1),
)
