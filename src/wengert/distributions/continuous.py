"""Continuous distributions of numbers that are not made of others."""

from __future__ import annotations

import math
from typing import Any

from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..core.tensor import Tensor
from ..creation.random import normal, rand
from ..nn.functional import binary_cross_entropy_with_logits
from ..operators.pointwise import where
from ..operators.special_bessel import i0e, i1e
from . import constraints
from .distribution import ByProbsOrLogits, Declared, ExponentialFamily
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs, standard_normal

__all__ = [
    "Cauchy", "ContinuousBernoulli", "Exponential", "GeneralizedPareto", "Laplace", "Normal",
    "Uniform", "VonMises",
]  # fmt: skip

_LOG_ROOT_2PI = math.log(math.sqrt(2 * math.pi))


def _uniform(shape: Any, like: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
    return like.new_empty(tuple(shape)).uniform_(low, high)


class Normal(Declared, ExponentialFamily):
    """The normal distribution with mean `loc` and standard deviation `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _arguments = ("loc", "scale")
    loc: Tensor
    scale: Tensor
    _mean_carrier_measure = 0

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._declare(validate_args, loc=loc, scale=scale)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        """The mean."""
        return self.loc

    @property
    def stddev(self) -> Tensor:
        """The scale."""
        return self.scale

    @property
    def variance(self) -> Tensor:
        """The square of the scale."""
        return self.scale.pow(2)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Samples without gradients."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Standard normal numbers, scaled and shifted."""
        noise = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + noise * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        return -((value - self.loc) ** 2) / (2 * self.variance) - self.scale.log() - _LOG_ROOT_2PI

    def cdf(self, value: Tensor) -> Tensor:
        """The distribution function."""
        self._check(value)
        return 0.5 * (1 + ((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)).erf())

    def icdf(self, value: Tensor) -> Tensor:
        """Quantiles."""
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        """The entropy."""
        return 0.5 + _LOG_ROOT_2PI + self.scale.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.loc / self.variance, -0.5 * self.variance.reciprocal()

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return -0.25 * x.pow(2) / y + 0.5 * (-math.pi / y).log()


class Laplace(Declared):
    """The double exponential distribution."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _arguments = ("loc", "scale")
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._declare(validate_args, loc=loc, scale=scale)

    mean = mode = property(lambda self: self.loc, doc="The location.")

    @property
    def variance(self) -> Tensor:
        """Twice the square of the scale."""
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Uniform numbers through the quantiles."""
        tiny = dtypes.finfo(self.loc.dtype).eps
        u = _uniform(self._extended_shape(sample_shape), self.loc, tiny - 1, 1)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        """The distribution function."""
        self._check(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * (-away.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        """Quantiles."""
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self) -> Tensor:
        """The entropy."""
        return 1 + (2 * self.scale).log()


class Cauchy(Declared):
    """The Cauchy distribution, which has no mean."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _arguments = ("loc", "scale")
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._declare(validate_args, loc=loc, scale=scale)

    @property
    def mean(self) -> Tensor:
        """NaN."""
        return self.loc.new_full(self._extended_shape(), math.nan)

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """Infinity."""
        return self.loc.new_full(self._extended_shape(), math.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Tangents of uniform angles, scaled."""
        shape = tuple(self._extended_shape(sample_shape))
        return self.loc + self.loc.new_empty(shape).cauchy_() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        squares = ((value - self.loc) / self.scale) ** 2
        return -math.log(math.pi) - self.scale.log() - squares.log1p()

    def cdf(self, value: Tensor) -> Tensor:
        """The distribution function."""
        self._check(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        """Quantiles."""
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        """The entropy."""
        return math.log(4 * math.pi) + self.scale.log()


class Uniform(Declared):
    """The uniform distribution from `low` to below `high`."""

    has_rsample = True
    _arguments = ("low", "high")
    low: Tensor
    high: Tensor

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:  # type: ignore[override]
        """The bounds must be in order."""
        return {
            "low": constraints.less_than(self.high),
            "high": constraints.greater_than(self.low),
        }

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self._declare(validate_args, low=low, high=high)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """Between the bounds."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        """The middle."""
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        """NaN: no value is more likely than others."""
        return math.nan * self.high

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return (self.high - self.low).pow(2) / 12

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return (self.high - self.low) / math.sqrt(12)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Uniform numbers, scaled and shifted."""
        shape = self._extended_shape(sample_shape)
        u = rand(tuple(shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        is_inside = (self.low <= value) & (self.high > value)
        return is_inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        """The distribution function."""
        self._check(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        """Quantiles."""
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        """The entropy."""
        return (self.high - self.low).log()


class Exponential(Declared, ExponentialFamily):
    """The time to the next of events that come at a `rate`."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _arguments = ("rate",)
    rate: Tensor
    _mean_carrier_measure = 0

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._declare(validate_args, rate=rate)

    mean = stddev = property(lambda self: self.rate.reciprocal(), doc="One over the rate.")

    @property
    def mode(self) -> Tensor:
        """Zero."""
        return self.rate.new_zeros(self.rate.shape)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Exponential numbers divided by the rate."""
        shape = tuple(self._extended_shape(sample_shape))
        return self.rate.new_empty(shape).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        """The distribution function."""
        self._check(value)
        return 1 - (-self.rate * value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        """Quantiles."""
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        """The entropy."""
        return 1 - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return -(-x).log()


class GeneralizedPareto(Declared):
    """What lies beyond a threshold `loc`, with a tail that `concentration` makes heavy or short."""

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    _arguments = ("loc", "scale", "concentration")
    loc: Tensor
    scale: Tensor
    concentration: Tensor

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self._declare(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From the threshold on, to where a short tail ends."""
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, where(self.concentration < 0, end, math.inf))

    def _shape(self) -> tuple[Tensor, Tensor]:
        """Whether the concentration is zero, and one that is not."""
        is_zero = self.concentration.isclose(self.concentration.new_zeros(()))
        return is_zero, where(is_zero, 1.0, self.concentration)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Uniform numbers through the quantiles."""
        shape = tuple(self._extended_shape(sample_shape))
        return self.icdf(rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        z = (value - self.loc) / self.scale
        is_zero, shape = self._shape()
        power = 1 / shape + 1
        tail = where(power == 0, power, power * (shape * z).log1p())
        return -self.scale.log() - where(is_zero, z, tail)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of exceeding values."""
        self._check(value)
        z = (value - self.loc) / self.scale
        is_zero, shape = self._shape()
        return where(is_zero, -z, -(shape * z).log1p() / shape)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of the distribution function."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        """The distribution function."""
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        """Quantiles."""
        is_zero, shape = self._shape()
        log_u = (-value).log1p()
        curved = self.loc + self.scale / shape * (-shape * log_u).expm1()
        return where(is_zero, self.loc - self.scale * log_u, curved)

    @property
    def mean(self) -> Tensor:
        """The mean; NaN where there is none."""
        is_finite = self.concentration < 1
        safe = where(is_finite, self.concentration, 0.5)
        return where(is_finite, self.loc + self.scale / (1 - safe), math.nan)

    @property
    def mode(self) -> Tensor:
        """The threshold."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The variance; NaN where there is none."""
        is_finite = self.concentration < 0.5
        safe = where(is_finite, self.concentration, 0.25)
        value = self.scale**2 / ((1 - safe) ** 2 * (1 - 2 * safe))
        return where(is_finite, value, math.nan)

    def entropy(self) -> Tensor:
        """The entropy."""
        return self.scale.log() + self.concentration + 1


class VonMises(Declared):
    """Angles around `loc`."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    _arguments = ("loc", "concentration")
    loc: Tensor
    concentration: Tensor

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._declare(validate_args, loc=loc, concentration=concentration)

    mean = mode = property(lambda self: self.loc, doc="The angle around which the others lie.")

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        k = self.concentration
        return k * (value - self.loc).cos() - math.log(2 * math.pi) - (i0e(k).log() + k)

    @lazy_property
    def variance(self) -> Tensor:
        """One minus the mean cosine of the distance to `loc`."""
        return 1 - i1e(self.concentration) / i0e(self.concentration)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Angles between -pi and pi, by Best's and Fisher's rejection."""
        shape = tuple(self._extended_shape(sample_shape))
        with no_grad():
            loc, k = [t.to(dtypes.float64).expand(shape) for t in (self.loc, self.concentration)]
            tau = 1 + (1 + 4 * k**2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            r = where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))
            angle = loc.new_zeros(shape)
            done = loc.new_zeros(shape, dtype=dtypes.bool)
            while not bool(done.all()):
                u1, u2, u3 = rand((3, *shape), dtype=loc.dtype, device=loc.device).unbind(0)
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accepted = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                angle = where(accepted, (u3 - 0.5).sign() * f.acos(), angle)
                done = done | accepted
            turned = (angle + math.pi + loc) % (2 * math.pi) - math.pi
        return turned.to(self.loc.dtype)


class ContinuousBernoulli(ByProbsOrLogits, ExponentialFamily):
    """A distribution on [0, 1] whose density is that of Bernoulli's, made to integrate to one.

    Where probabilities are within `lims`, near a half, series replace quotients of small numbers.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _arguments = ()

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        name = self._choose(probs, logits)
        (value,) = broadcast_all(logits if probs is None else probs)
        if name == "probs":
            if validate_args is not None and not constraints.unit_interval.check(value).all():
                raise ValueError("The parameter probs has invalid values")
            value = clamp_probs(value)
        self.__dict__[name] = value
        self._lims = lims
        super().__init__(value.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        new = super().expand(batch_shape, _instance)
        new._lims = self._lims
        return new

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities, neither 0 nor 1."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _is_stable(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Tensor:
        return where(self._is_stable(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Tensor:
        """The logarithm of what makes the density integrate to one."""
        p = self._cut_probs()
        below, above = where(p <= 0.5, p, 0.0), where(p >= 0.5, p, 1.0)
        exact = ((-p).log1p() - p.log()).abs().log() - where(
            p <= 0.5, (-2 * below).log1p(), (2 * above - 1).log()
        )
        x = (self.probs - 0.5) ** 2
        series = math.log(2.0) + (4 / 3 + 104 / 45 * x) * x
        return where(self._is_stable(), exact, series)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        p = self._cut_probs()
        exact = p / (2 * p - 1) + 1 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        return where(self._is_stable(), exact, 0.5 + (1 / 3 + 16 / 45 * x**2) * x)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        p = self._cut_probs()
        exact = p * (p - 1) / (1 - 2 * p) ** 2 + 1 / ((-p).log1p() - p.log()) ** 2
        x = (self.probs - 0.5) ** 2
        return where(self._is_stable(), exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Uniform numbers through the quantiles."""
        shape = tuple(self._extended_shape(sample_shape))
        return self.icdf(rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        entropy = binary_cross_entropy_with_logits(logits, value, reduction="none")
        return self._cont_bern_log_norm() - entropy

    def cdf(self, value: Tensor) -> Tensor:
        """The distribution function."""
        self._check(value)
        p = self._cut_probs()
        inside = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        result = where(self._is_stable(), inside, value)
        return where(value <= 0, 0.0, where(value >= 1, 1.0, result))

    def icdf(self, value: Tensor) -> Tensor:
        """Quantiles."""
        p = self._cut_probs()
        exact = ((value * (2 * p - 1) - p).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return where(self._is_stable(), exact, value)

    def entropy(self) -> Tensor:
        """The entropy."""
        zero, one = (-self.probs).log1p(), self.probs.log()
        return self.mean * (zero - one) - self._cont_bern_log_norm() - zero

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        low, high = self._lims[0] - 0.5, self._lims[1] - 0.5
        is_stable = (x <= low) | (x > high)
        cut = where(is_stable, x, low)
        exact = cut.expm1().abs().log() - cut.abs().log()
        return where(is_stable, exact, 0.5 * x + x**2 / 24 - x**4 / 2880)
