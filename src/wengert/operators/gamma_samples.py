"""Samples of gamma distributions as differentiable functions of the concentration."""

from __future__ import annotations

from typing import Any

from ..backends.backend import backend_of
from .declare import elementwise
from .special_kernels import refused

__all__ = []


def _slope(xp: Any, a: Any, x: Any) -> Any:
    """How a sample changes with the concentration while its probability stays the same.

    Differences of the inverse distribution function, once extrapolated, in double precision; of
    the upper tail where that is the smaller one.
    """
    goal, special = a.dtype, backend_of(a).special
    a, x = a.astype(xp.float64), x.astype(xp.float64)
    lower, upper = special("gammainc")(a, x), special("gammaincc")(a, x)
    is_low = lower < upper

    def inverse(a: Any) -> Any:
        from_below = special("gammaincinv")(a, xp.where(is_low, lower, 0.5))
        from_above = special("gammainccinv")(a, xp.where(is_low, 0.5, upper))
        return xp.where(is_low, from_below, from_above)

    def difference(step: Any) -> Any:
        return (inverse(a + step) - inverse(a - step)) / (2 * step)

    step = 1e-3 * a
    slope = (4 * difference(step / 2) - difference(step)) / 3
    # For samples near zero the distribution function is a power, which can be solved.
    by_power = x / a * (special("psi")(a + 1) - xp.log(xp.maximum(x, 1e-300)))
    return xp.where(x < 1e-6 * a, by_power, slope).astype(goal)


standard_gamma_grad = elementwise(
    "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
    _slope,
    {"self": refused("_standard_gamma_grad"), "output": refused("_standard_gamma_grad")},
    refuses="biuc",
    inplace=False,
    name="NotImplemented",
    doc="The derivative of samples of a gamma distribution by its concentration.",
)
gamma_sample = elementwise(
    "_gamma_sample(Tensor self, Tensor sample) -> Tensor",
    lambda xp, a, x: x.copy(),
    {
        "self": lambda t, self, sample: t * standard_gamma_grad(self, sample),
        "sample": lambda t: t,
    },
    refuses="biuc",
    inplace=False,
    name="StandardGammaBackward0",
    doc="A sample of a gamma distribution, as a function of the concentration too.",
)
