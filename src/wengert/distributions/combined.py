"""Distributions of distributions: transformed ones, independent batches, mixtures."""

from __future__ import annotations

from typing import Any

from ..autograd.grad_mode import no_grad
from ..core.tensor import Tensor
from ..operators.softmax import logsumexp
from . import constraints
from .discrete import Categorical
from .distribution import Distribution
from .transforms import ComposeTransform, Transform
from .utils import normalized_logits, sum_rightmost

__all__ = ["Independent", "MixtureSameFamily", "TransformedDistribution"]


class Independent(Distribution):
    """A distribution of which some dimensions of the batch count as parts of one event."""

    arg_constraints: Any = {}

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {len(batch)}"
            )
        cut = len(batch) - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(
            batch[:cut], batch[cut:] + base_distribution.event_shape, validate_args=validate_args
        )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        new = self._expanded(Independent, batch_shape, _instance)
        taken = self._event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand((*batch_shape, *taken))
        new.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims
        return new

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether samples of the base are differentiable."""
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """Whether all values can be listed."""
        return not self.reinterpreted_batch_ndims and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        """That of the base, for whole events."""
        count = self.reinterpreted_batch_ndims
        support = self.base_dist.support
        return constraints.independent(support, count) if count else support

    mean = property(lambda self: self.base_dist.mean, doc="The mean of the base.")
    mode = property(lambda self: self.base_dist.mode, doc="The mode of the base.")
    variance = property(lambda self: self.base_dist.variance, doc="The variance of the base.")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Samples of the base."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Differentiable samples of the base."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The sum over the dimensions that are taken in."""
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        """The sum over the dimensions that are taken in."""
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, where no dimension is taken in."""
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError(
                "Enumeration over cartesian product is not implemented"
            )
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """What transforms make of samples of another distribution."""

    arg_constraints: Any = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        if isinstance(transforms, Transform):
            transforms = [transforms]
        elif not isinstance(transforms, list):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        elif not all(isinstance(each, Transform) for each in transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        self.transforms = transforms
        whole = ComposeTransform(transforms)
        shape = base_distribution.batch_shape + base_distribution.event_shape
        base_dim, domain_dim = len(base_distribution.event_shape), whole.domain.event_dim
        if len(shape) < domain_dim:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{domain_dim}, but got {shape}."
            )
        result_shape = whole.forward_shape(shape)
        needed = whole.inverse_shape(result_shape)
        if shape != needed:
            base_distribution = base_distribution.expand(needed[: len(needed) - base_dim])
        if domain_dim > base_dim:
            base_distribution = Independent(base_distribution, domain_dim - base_dim)
        self.base_dist = base_distribution
        codomain_dim = whole.codomain.event_dim
        event_dim = max(codomain_dim, base_dim + codomain_dim - domain_dim)
        cut = len(result_shape) - event_dim
        super().__init__(result_shape[:cut], result_shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        new = self._expanded(TransformedDistribution, batch_shape, _instance)
        shape: Any = new._batch_shape + self._event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        cut = len(shape) - len(self.base_dist.event_shape)
        new.base_dist = self.base_dist.expand(shape[:cut])
        new.transforms = self.transforms
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        """Where the last transform leads to."""
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self._event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether samples of the base are differentiable."""
        return self.base_dist.has_rsample

    def _transformed(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Samples of the base, transformed, without gradients."""
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Samples of the base, transformed."""
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The density of the base, divided by how much volumes grow."""
        self._check(value)
        event_dim = len(self._event_shape)
        total: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            growth = transform.log_abs_det_jacobian(x, y)
            total = total - sum_rightmost(growth, event_dim - transform.domain.event_dim)
            y = x
        base = self.base_dist.log_prob(y)
        return total + sum_rightmost(base, event_dim - len(self.base_dist.event_shape))

    def _turned(self, value: Tensor) -> Tensor:
        """Probabilities counted from the other end, where the transforms decrease."""
        sign = ComposeTransform(self.transforms).sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        """The distribution function of the base."""
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        """The quantiles of the base, transformed."""
        return self._transformed(self.base_dist.icdf(self._turned(value)))


class MixtureSameFamily(Distribution):
    """One of several components of a kind, along the last dimension of their batch."""

    arg_constraints: Any = {}

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of "
                "torch.distributions.Distribution"
            )
        mixture, batch = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for one, other in zip(reversed(mixture), reversed(batch), strict=False):
            if one != 1 and other != 1 and one != other:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch})"
                )
        count = mixture_distribution.logits.shape[-1]
        found = component_distribution.batch_shape[-1]
        if count != found:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({found})"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = count
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(batch, event, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        new = self._expanded(MixtureSameFamily, batch_shape, _instance)
        shape = (*batch_shape, self._num_component)
        new._component_distribution = self._component_distribution.expand(shape)
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        """That of the components."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    mixture_distribution = property(
        lambda self: self._mixture_distribution, doc="How likely each component is."
    )
    component_distribution = property(
        lambda self: self._component_distribution, doc="The components."
    )

    def _shares(self) -> Tensor:
        """The shares of the components, beside their events."""
        probs = self._mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * self._event_ndims)

    def _mixed(self, values: Tensor) -> Tensor:
        return (self._shares() * values).sum(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        """The mean of the components' means."""
        return self._mixed(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        """The mean variance of the components, and the variance of their means."""
        away = self._component_distribution.mean - self._pad(self.mean)
        return self._mixed(self._component_distribution.variance) + self._mixed(away.pow(2.0))

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def cdf(self, x: Tensor) -> Tensor:
        """The mean of the components' distribution functions."""
        return (self._component_distribution.cdf(self._pad(x))
                * self._mixture_distribution.probs).sum(-1)  # fmt: skip

    def log_prob(self, x: Tensor) -> Tensor:
        """The logarithm of the mean of the components' densities."""
        self._check(x)
        each = self._component_distribution.log_prob(self._pad(x))
        return logsumexp(each + normalized_logits(self._mixture_distribution.logits), -1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Samples of components that are drawn first."""
        with no_grad():
            chosen = self._mixture_distribution.sample(sample_shape)
            samples = self._component_distribution.sample(sample_shape)
            dim = len(sample_shape) + len(self._batch_shape)
            index = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1))
            shape = (*samples.shape[:dim], 1, *self._event_shape)
            return samples.gather(dim, index.expand(shape)).squeeze(dim)

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self._mixture_distribution},\n  "
            f"{self._component_distribution})"
        )
