"""Distributions that are transformed ones by name, most with a density of their own."""

from __future__ import annotations

import math
from typing import Any

from ..core import dtypes
from ..core.tensor import Tensor
from ..creation.conversion import as_tensor
from ..creation.random import rand
from ..operators.pointwise import where
from ..operators.softmax import logsumexp
from ..operators.special_gamma import digamma, lgamma
from . import constraints
from .combined import TransformedDistribution
from .continuous import Cauchy, Exponential, Normal, Uniform
from .discrete import Categorical
from .distribution import ByProbsOrLogits, Distribution
from .gammas import Gamma
from .transforms import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    StickBreakingTransform,
)
from .utils import broadcast_all, clamp_probs, euler_constant

__all__ = [
    "ExpRelaxedCategorical", "Gumbel", "HalfCauchy", "HalfNormal", "InverseGamma", "Kumaraswamy",
    "LogNormal", "LogisticNormal", "LogitRelaxedBernoulli", "Pareto", "RelaxedBernoulli",
    "RelaxedOneHotCategorical", "Weibull",
]  # fmt: skip


class _Named(TransformedDistribution):
    """A transformed distribution with arguments of its own.

    A class names in `_arguments` those that are attributes; all that follows from the arguments is
    made again for a larger batch.
    """

    _arguments: tuple[str, ...] = ()

    def _transforms(self) -> Any:
        """The transforms, which depend on the arguments."""
        raise NotImplementedError

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        cls = next(kind for kind in type(self).__mro__ if "_arguments" in vars(kind))
        new = self._get_checked_instance(cls, _instance)
        for name in self._arguments:
            new.__dict__[name] = getattr(self, name).expand(batch_shape)
        new = super().expand(batch_shape, new)
        if self._arguments:
            new.transforms = new._transforms()
        return new


class LogNormal(_Named):
    """The exponential of a normal number."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _arguments = ()

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    loc = property(lambda self: self.base_dist.loc, doc="The mean of the logarithm.")
    scale = property(lambda self: self.base_dist.scale, doc="The deviation of the logarithm.")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        """The variance."""
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    def entropy(self) -> Tensor:
        """The entropy."""
        return self.base_dist.entropy() + self.loc


class _Half(_Named):
    """The absolute value of what is symmetric around zero."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    scale = property(lambda self: self.base_dist.scale, doc="The scale.")

    @property
    def mode(self) -> Tensor:
        """Zero."""
        return self.scale.new_zeros(self.scale.shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """Twice the density of the base, for what is not negative."""
        self._check(value)
        value = as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """The distribution function."""
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        """Quantiles."""
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        """The entropy."""
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """The absolute value of a normal number."""

    _arguments = ()

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.scale.pow(2) * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """The absolute value of a number with Cauchy's distribution."""

    _arguments = ()

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """Infinity."""
        return self.scale.new_full(self._extended_shape(), math.inf)

    @property
    def variance(self) -> Tensor:
        """Infinity."""
        return self.base_dist.variance


class Gumbel(_Named):
    """The largest of many numbers."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _arguments = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = dtypes.finfo(self.loc.dtype)
        low, high = [self.loc.new_full(self.loc.shape, each)
                     for each in (limits.tiny, 1 - limits.eps)]  # fmt: skip
        base = Uniform(low, high, validate_args=validate_args)
        super().__init__(base, self._transforms(), validate_args=validate_args)

    def _transforms(self) -> Any:
        return [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=self.scale.new_full(self.scale.shape, -1.0)),
            ExpTransform().inv,
            AffineTransform(loc=self.loc, scale=-self.scale),
        ]

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        """The entropy."""
        return self.scale.log() + (1 + euler_constant)


class Weibull(_Named):
    """The time to a failure whose rate is a power of time."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _arguments = ("scale", "concentration")

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        ones = self.scale.new_full(self.scale.shape, 1.0)
        base = Exponential(ones, validate_args=validate_args)
        super().__init__(base, self._transforms(), validate_args=validate_args)

    def _transforms(self) -> Any:
        return [
            PowerTransform(exponent=self.concentration.reciprocal()),
            AffineTransform(loc=0, scale=self.scale),
        ]

    def _power_mean(self, power: int) -> Tensor:
        return (lgamma(1 + power * self.concentration.reciprocal())).exp()

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.scale * self._power_mean(1)

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        c = self.concentration
        return self.scale * ((c - 1) / c) ** c.reciprocal()

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.scale.pow(2) * (self._power_mean(2) - self._power_mean(1) ** 2)

    def entropy(self) -> Tensor:
        """The entropy."""
        inverse = self.concentration.reciprocal()
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1


class Pareto(_Named):
    """A power law above `scale`."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    _arguments = ("scale", "alpha")

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, self._transforms(), validate_args=validate_args)

    def _transforms(self) -> Any:
        return [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From the scale on."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        """The mean, which may be infinite."""
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        """The scale."""
        return self.scale

    @property
    def variance(self) -> Tensor:
        """The variance, which may be infinite."""
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    def entropy(self) -> Tensor:
        """The entropy."""
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Kumaraswamy(_Named):
    """A distribution on [0, 1] much like the beta distribution."""

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    _arguments = ("concentration1", "concentration0")

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zeros = self.concentration0.new_zeros(self.concentration0.shape)
        base = Uniform(zeros, zeros + 1, validate_args=validate_args)
        super().__init__(base, self._transforms(), validate_args=validate_args)

    def _transforms(self) -> Any:
        return [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]

    def _moment(self, n: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        value = 1 + n / a
        return b * (lgamma(value) + lgamma(b) - lgamma(value + b)).exp()

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        """The most likely value; NaN where there is none."""
        a, b = self.concentration1, self.concentration0
        log_mode = a.reciprocal() * (-b).log1p() - a.reciprocal() * (-a * b).log1p()
        return where((a < 1) | (b < 1), math.nan, log_mode.exp())

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Tensor:
        """The entropy."""
        a, b = self.concentration1, self.concentration0
        harmonic = digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()


class InverseGamma(_Named):
    """One over a gamma number."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _arguments = ()

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        power = PowerTransform(base.rate.new_full((), -1.0))
        super().__init__(base, power, validate_args=validate_args)

    concentration = property(lambda self: self.base_dist.concentration, doc="The concentration.")
    rate = property(lambda self: self.base_dist.rate, doc="The rate.")

    @property
    def mean(self) -> Tensor:
        """The mean, which may be infinite."""
        return where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        """The variance, which may be infinite."""
        c = self.concentration
        value = self.rate.square() / ((c - 1).square() * (c - 2))
        return where(c > 2, value, math.inf)

    def entropy(self) -> Tensor:
        """The entropy."""
        c = self.concentration
        return c + self.rate.log() + lgamma(c) - (1 + c) * digamma(c)


class LogisticNormal(_Named):
    """Shares of a stick that is broken by normal numbers."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    _arguments = ()

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc, doc="The means.")
    scale = property(lambda self: self.base_dist.base_dist.scale, doc="The deviations.")


# Relaxed categories -------------------------------------------------------------------------------


class LogitRelaxedBernoulli(ByProbsOrLogits):
    """The logit of what is near zero or one, the nearer the lower the temperature."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _arguments = ()

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        name = self._choose(probs, logits)
        (value,) = broadcast_all(logits if probs is None else probs)
        self.__dict__[name] = value
        super().__init__(value.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        new = super().expand(batch_shape, _instance)
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Uniform numbers through the quantiles."""
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(rand(tuple(shape), dtype=probs.dtype, device=probs.device))
        logit = u.log() - (-u).log1p() + probs.log() - (-probs).log1p()
        return logit / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        away = logits - value.mul(self.temperature)
        return _log(self.temperature) + away - 2 * away.exp().log1p()


def _log(number: Any) -> Any:
    """The logarithm of a number or tensor."""
    return number.log() if isinstance(number, Tensor) else math.log(number)


class RelaxedBernoulli(_Named):
    """A number near zero or one."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _arguments = ()

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    temperature = property(lambda self: self.base_dist.temperature, doc="The temperature.")
    logits = property(lambda self: self.base_dist.logits, doc="Logits.")
    probs = property(lambda self: self.base_dist.probs, doc="Probabilities.")


class ExpRelaxedCategorical(Distribution):
    """Logarithms of shares near a corner, the nearer the lower the temperature."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        new = self._expanded(ExpRelaxedCategorical, batch_shape, _instance)
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(batch_shape)
        return new

    logits = property(lambda self: self._categorical.logits, doc="Logits.")
    probs = property(lambda self: self._categorical.probs, doc="Probabilities.")
    param_shape = property(
        lambda self: self._categorical.param_shape, doc="The shape of the probabilities or logits."
    )

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Logits with Gumbel's noise, normalised."""
        shape = tuple(self._extended_shape(sample_shape))
        u = clamp_probs(rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - logsumexp(scores, -1, True)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        k = self._event_shape[0]
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        factor = math.lgamma(k) - (1 - k) * _log(self.temperature)
        score = logits - value.mul(self.temperature)
        return (score - logsumexp(score, -1, True)).sum(-1) + factor


class RelaxedOneHotCategorical(_Named):
    """Shares near a corner."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    _arguments = ()

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    temperature = property(lambda self: self.base_dist.temperature, doc="The temperature.")
    logits = property(lambda self: self.base_dist.logits, doc="Logits.")
    probs = property(lambda self: self.base_dist.probs, doc="Probabilities.")
