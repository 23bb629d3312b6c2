"""Gamma distributions and what is made of them: chi-squared, beta, Dirichlet, F and Student's t."""

from __future__ import annotations

import math
from typing import Any

from ..core import dtypes
from ..core.tensor import Tensor
from ..operators.joining import stack
from ..operators.pointwise import where
from ..operators.special_errors import xlogy
from ..operators.special_gamma import digamma, igamma, lgamma
from . import constraints
from .distribution import Declared, ExponentialFamily
from .sampling import standard_gamma
from .utils import broadcast_all, standard_normal

__all__ = ["Beta", "Chi2", "Dirichlet", "FisherSnedecor", "Gamma", "StudentT"]


def _positive(value: Tensor) -> Tensor:
    """The values, at least the smallest positive number, which small samples are rounded to."""
    return value.clamp(min=dtypes.finfo(value.dtype).tiny)


class Gamma(Declared, ExponentialFamily):
    """The gamma distribution, by concentration and rate."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _arguments = ("concentration", "rate")
    concentration: Tensor
    rate: Tensor
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._declare(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Samples of rate one, divided by the rate."""
        shape = self._extended_shape(sample_shape)
        value = standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        return _floored(value)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        c, rate = self.concentration, self.rate
        return xlogy(c, rate) + xlogy(c - 1, value) - rate * value - lgamma(c)

    def cdf(self, value: Tensor) -> Tensor:
        """The distribution function."""
        self._check(value)
        return igamma(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        """The entropy."""
        c = self.concentration
        return c - self.rate.log() + lgamma(c) + (1 - c) * digamma(c)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return lgamma(x + 1) + (x + 1) * (-y.reciprocal()).log()


def _floored(value: Tensor) -> Tensor:
    """Samples that are positive; rounding up small ones does not change their gradients."""
    raised = _positive(value.detach()) - value.detach()
    return value + raised


class Chi2(Gamma):
    """The sum of the squares of `df` standard normal numbers."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        new = self._get_checked_instance(Chi2, _instance)
        return super().expand(batch_shape, new)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2


class Dirichlet(ExponentialFamily):
    """Shares that sum to one along the last dimension."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        return self._expanded(Dirichlet, batch_shape, _instance, "concentration")

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Gamma samples divided by their sum."""
        shape = self._extended_shape(sample_shape)
        parts = _floored(standard_gamma(self.concentration.expand(shape)))
        return parts / parts.sum(-1, True)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        c = self.concentration
        return xlogy(c - 1, value).sum(-1) + lgamma(c.sum(-1)) - lgamma(c).sum(-1)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        """The most likely shares; a corner where no concentration exceeds one."""
        above = (self.concentration - 1).clamp(min=0)
        mode = above / above.sum(-1, True)
        is_corner = (self.concentration < 1).all(-1)
        corner = _one_hot_like(mode, mode.argmax(-1))
        return where(is_corner.unsqueeze(-1), corner, mode)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        """The entropy."""
        k = self.concentration.size(-1)
        c, total = self.concentration, self.concentration.sum(-1)
        return (
            lgamma(c).sum(-1)
            - lgamma(total)
            - (k - total) * digamma(total)
            - ((c - 1) * digamma(c)).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return lgamma(x).sum(-1) - lgamma(x.sum(-1))


def _one_hot_like(x: Tensor, index: Tensor) -> Tensor:
    return x.new_zeros(x.shape).scatter(-1, index.unsqueeze(-1), 1.0)


class Beta(ExponentialFamily):
    """A share, and so the first of two that a Dirichlet distribution has."""

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        both = stack(list(broadcast_all(concentration1, concentration0)), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        new = self._expanded(Beta, batch_shape, _instance)
        new._dirichlet = self._dirichlet.expand(batch_shape)
        return new

    @property
    def concentration1(self) -> Tensor:
        """The concentration towards one."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """The concentration towards zero."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        """The variance."""
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """The first share."""
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        return self._dirichlet.log_prob(stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        """The entropy."""
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return lgamma(x) + lgamma(y) - lgamma(x + y)


class FisherSnedecor(Declared):
    """The quotient of two chi-squared numbers, each divided by its degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _arguments = ("df1", "df2")
    df1: Tensor
    df2: Tensor

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self._declare(validate_args, df1=df1, df2=df2)

    @property
    def mean(self) -> Tensor:
        """The mean; NaN where there is none."""
        df2 = where(self.df2 <= 2, math.nan, self.df2)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        """The most likely value; NaN where there is none."""
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return where(self.df1 <= 2, math.nan, mode)

    @property
    def variance(self) -> Tensor:
        """The variance; NaN where there is none."""
        df2 = where(self.df2 <= 4, math.nan, self.df2)
        top = 2 * df2.pow(2) * (self.df1 + df2 - 2)
        return top / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """The quotient of two gamma samples."""
        one, other = [
            Gamma(df * 0.5, df, validate_args=False).rsample(sample_shape)
            for df in (self.df1, self.df2)
        ]
        return _floored(one / _floored(other))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        ratio = self.df1 / self.df2
        half1, half2 = self.df1 * 0.5, self.df2 * 0.5
        constant = lgamma(half1 + half2) - lgamma(half1) - lgamma(half2) + half1 * ratio.log()
        return constant + (half1 - 1) * value.log() - (half1 + half2) * (ratio * value).log1p()


class StudentT(Declared):
    """Student's distribution: a normal number over the root of a chi-squared one."""

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    _arguments = ("df", "loc", "scale")
    df: Tensor
    loc: Tensor
    scale: Tensor

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self._declare(validate_args, df=df, loc=loc, scale=scale)

    @property
    def mean(self) -> Tensor:
        """The mean; NaN where there is none."""
        return where(self.df <= 1, math.nan, self.loc)

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The variance: infinite up to two degrees of freedom, NaN up to one."""
        safe = where(self.df > 2, self.df, 3.0)
        finite = self.scale.pow(2) * safe / (safe - 2)
        return where(self.df > 2, finite, where(self.df > 1, math.inf, math.nan))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Normal numbers over roots of chi-squared ones."""
        shape = self._extended_shape(sample_shape)
        x = standard_normal(shape, self.df)
        z = Chi2(self.df, validate_args=False).rsample(sample_shape)
        return self.loc + self.scale * (x * (z / self.df).rsqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        y = (value - self.loc) / self.scale
        df = self.df
        constant = (
            self.scale.log()
            + 0.5 * df.log()
            + 0.5 * math.log(math.pi)
            + lgamma(0.5 * df)
            - lgamma(0.5 * (df + 1))
        )
        return -0.5 * (df + 1) * (y**2 / df).log1p() - constant

    def entropy(self) -> Tensor:
        """The entropy."""
        df = self.df
        beta = lgamma(0.5 * df) + math.lgamma(0.5) - lgamma(0.5 * (df + 1))
        spread = digamma(0.5 * (df + 1)) - digamma(0.5 * df)
        return self.scale.log() + 0.5 * (df + 1) * spread + 0.5 * df.log() + beta
