"""Discrete distributions: of single tries, counts and categories."""

from __future__ import annotations

import math
from typing import Any

from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..core.tensor import Tensor
from ..creation.random import bernoulli, multinomial
from ..creation.ranges import arange, eye
from ..nn.functional import binary_cross_entropy_with_logits, logsigmoid
from ..operators.pointwise import where
from ..operators.special_errors import xlogy
from ..operators.special_gamma import lgamma
from . import constraints
from .distribution import ByProbsOrLogits, Declared, Distribution, ExponentialFamily
from .gammas import Gamma
from .sampling import draw_binomial, draw_poisson
from .utils import (
    broadcast_all,
)

__all__ = [
    "Bernoulli", "Binomial", "Categorical", "Geometric", "Multinomial", "NegativeBinomial",
    "OneHotCategorical", "OneHotCategoricalStraightThrough", "Poisson",
]  # fmt: skip


class Bernoulli(ByProbsOrLogits, ExponentialFamily):
    """One with probability `probs`, else zero."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _arguments = ()

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        name = self._choose(probs, logits)
        (value,) = broadcast_all(logits if probs is None else probs)
        self.__dict__[name] = value
        super().__init__(value.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The probability of one."""
        return self.probs

    @property
    def mode(self) -> Tensor:
        """The likelier value; NaN where both are alike."""
        likelier = (self.probs >= 0.5).to(self.probs.dtype)
        return where(self.probs == 0.5, math.nan, likelier)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Zeros and ones."""
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        """The entropy."""
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Zero and one."""
        return _enumerated(arange(2, dtype=self._param.dtype, device=self._param.device),
                           self._batch_shape, expand)  # fmt: skip

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.probs.logit(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.exp().log1p()


def _enumerated(values: Tensor, batch_shape: Any, expand: bool) -> Tensor:
    """Values along a first dimension in front of the batch."""
    values = values.reshape((-1,) + (1,) * len(batch_shape))
    return values.expand((-1, *batch_shape)) if expand else values


class Geometric(ByProbsOrLogits):
    """How many tries fail before the first that succeeds."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _arguments = ()

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        name = self._choose(probs, logits)
        (value,) = broadcast_all(logits if probs is None else probs)
        self.__dict__[name] = value
        super().__init__(value.shape, validate_args=validate_args)
        if self._validate_args and name == "probs" and not (value > 0).all():
            raise ValueError(
                f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"of distribution {self!r} to be positive but found invalid values:\n{value}"
            )

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        """Zero."""
        return self.probs.new_zeros(self.probs.shape)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Whole numbers, from uniform ones."""
        shape = tuple(self._extended_shape(sample_shape))
        tiny = dtypes.finfo(self.probs.dtype).tiny
        with no_grad():
            u = self.probs.new_empty(shape).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        safe = where((probs == 1) & (value == 0), 0.0, probs)
        return value * (-safe).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        """The entropy."""
        entropy = binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return entropy / self.probs


def _clamped_by_zero(x: Tensor) -> Tensor:
    """The larger of x and zero, with half the slope at zero."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(ByProbsOrLogits):
    """How many of `total_count` tries succeed."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _arguments = ("total_count",)

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        name = self._choose(probs, logits)
        given = logits if probs is None else probs
        count, value = broadcast_all(total_count, given)
        self.total_count = count.to(value.dtype)
        self.__dict__[name] = value
        super().__init__(value.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """From zero to all tries."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        """The most likely number."""
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Whole numbers."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return draw_binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._check(value)
        n, logits = self.total_count, self.logits
        choices = lgamma(n + 1) - lgamma(value + 1) - lgamma(n - value + 1)
        softplus = _clamped_by_zero(logits) + (-logits.abs()).exp().log1p()
        return value * logits + choices - n * softplus

    def entropy(self) -> Tensor:
        """The entropy, where the numbers of tries are all alike."""
        total = int(self.total_count.max())
        if int(self.total_count.min()) != total:
            raise NotImplementedError(
                "Inhomogeneous total count not supported by `entropy`."
            )
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All numbers up to that of the tries."""
        total = int(self.total_count.max())
        if int(self.total_count.min()) != total:
            raise NotImplementedError(
                "Inhomogeneous total count not supported by `enumerate_support`."
            )
        values = arange(1 + total, dtype=self._param.dtype, device=self._param.device)
        return _enumerated(values, self._batch_shape, expand)


class NegativeBinomial(ByProbsOrLogits):
    """How many tries succeed before `total_count` of them have failed."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _arguments = ("total_count",)

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        name = self._choose(probs, logits)
        given = logits if probs is None else probs
        count, value = broadcast_all(total_count, given)
        self.total_count = count.to(value.dtype)
        self.__dict__[name] = value
        super().__init__(value.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        """The most likely number."""
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Poisson numbers whose rate is drawn from a gamma distribution."""
        with no_grad():
            rate = (-self.logits).exp()
            mixed = Gamma(self.total_count, rate, validate_args=False).sample(sample_shape)
            return draw_poisson(mixed)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._check(value)
        n = self.total_count
        likelihood = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        choices = lgamma(n + value) - lgamma(1.0 + value) - lgamma(n)
        choices = choices.masked_fill(n + value == 0.0, 0.0)
        return likelihood + choices


class Poisson(Declared, ExponentialFamily):
    """The number of events where `rate` are expected."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _arguments = ("rate",)
    rate: Tensor

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._declare(validate_args, rate=rate)

    mean = variance = property(lambda self: self.rate, doc="The rate.")

    @property
    def mode(self) -> Tensor:
        """The most likely number."""
        return self.rate.floor()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Whole numbers."""
        with no_grad():
            return draw_poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._check(value)
        rate, value = broadcast_all(self.rate, value)
        return xlogy(value, rate) - rate - lgamma(value + 1)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.exp()


# Categories ---------------------------------------------------------------------------------------


class Categorical(ByProbsOrLogits):
    """The number of a category, by shares along the last dimension."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False
    _arguments = ()

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        name = self._choose(probs, logits)
        value = logits if probs is None else probs
        if value.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if name == "probs":
            value = value / value.sum(-1, True)
        else:
            value = value - value.logsumexp(-1, True)
        self.__dict__[name] = value
        self._num_events = value.shape[-1]
        super().__init__(value.shape[:-1], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        new = super().expand(batch_shape, _instance)
        new._num_events = self._num_events
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """The numbers of the categories."""
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        """NaN: categories have no mean."""
        return self.probs.new_full(self._extended_shape(), math.nan)

    @property
    def mode(self) -> Tensor:
        """The likeliest category."""
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        """NaN."""
        return self.probs.new_full(self._extended_shape(), math.nan)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Numbers of categories."""
        count = math.prod(sample_shape)
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = multinomial(rows, count, True).t()
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._check(value)
        index = value.to(dtypes.int64).unsqueeze(-1)
        index, logits = _aligned(index, self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        """The entropy."""
        lowest = dtypes.finfo(self.logits.dtype).min
        return -(self.logits.clamp(min=lowest) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """The numbers of all categories."""
        values = arange(self._num_events, dtype=dtypes.int64, device=self._param.device)
        return _enumerated(values, self._batch_shape, expand)


def _aligned(index: Tensor, logits: Tensor) -> tuple[Tensor, ...]:
    """Indices with one column and logits, broadcast against each other."""
    return broadcast_all(index.to(dtypes.int64), logits)


class OneHotCategorical(Distribution):
    """A category as a one among zeros."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        new = self._expanded(OneHotCategorical, batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    probs = property(lambda self: self._categorical.probs, doc="Probabilities.")
    logits = property(lambda self: self._categorical.logits, doc="Logits.")
    param_shape = property(
        lambda self: self._categorical.param_shape, doc="The shape of the probabilities or logits."
    )

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def mean(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def mode(self) -> Tensor:
        """The likeliest category."""
        index = self._categorical.mode.unsqueeze(-1)
        return self.probs.new_zeros(self.probs.shape).scatter(-1, index, 1.0)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Ones among zeros."""
        index = self._categorical.sample(sample_shape)
        shape = index.shape + self._event_shape
        return self.probs.new_zeros(shape).scatter(-1, index.unsqueeze(-1), 1.0)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._check(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        """The entropy."""
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All categories."""
        n = self._event_shape[0]
        values = eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape((n,) + (1,) * len(self._batch_shape) + (n,))
        return values.expand((n, *self._batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """A category as a one among zeros, with the gradient of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Samples that pass gradients on to the probabilities."""
        probs = self._categorical.probs
        return self.sample(sample_shape) + (probs - probs.detach())


class Multinomial(Distribution):
    """How often each category comes up in `total_count` draws."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        new = self._expanded(Multinomial, batch_shape, _instance)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        new._binomial = self._binomial.expand((*batch_shape, *self._event_shape))
        return new

    probs = property(lambda self: self._categorical.probs, doc="Probabilities.")
    logits = property(lambda self: self._categorical.logits, doc="Logits.")
    param_shape = property(
        lambda self: self._categorical.param_shape, doc="The shape of the probabilities or logits."
    )

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Counts that sum up to the number of draws."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Counts of each category."""
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        drawn = drawn.movedim(0, -1)
        counts = drawn.new_zeros(self._extended_shape(sample_shape))
        ones = drawn.new_full(drawn.shape, 1)
        return counts.scatter_add(-1, drawn, ones).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0)
        choices = lgamma(value.sum(-1) + 1) - lgamma(value + 1).sum(-1)
        return choices + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        """The entropy."""
        n = self.probs.new_full((), float(self.total_count))
        single = self._categorical.entropy()
        support = self._binomial.enumerate_support(expand=False)[1:]
        weights = self._binomial.log_prob(support).exp()
        weight = (weights * lgamma(support + 1)).sum((0, -1))
        return n * single - lgamma(n + 1) + weight
