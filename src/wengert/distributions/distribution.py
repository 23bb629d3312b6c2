"""The base classes of distributions."""

from __future__ import annotations

import warnings
from typing import Any

from ..autograd import grad
from ..autograd.grad_mode import no_grad
from ..core.errors import warn_user
from ..core.size import Size
from ..core.tensor import Tensor
from . import constraints
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


class Distribution:
    """A distribution of which a batch has `batch_shape` and one sample `event_shape`."""

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether arguments and samples are checked where nothing else is said."""
        if value not in (True, False):
            raise ValueError(f"expected True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Any = (),
        event_shape: Any = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_arguments()
        super().__init__()

    def _check_arguments(self) -> None:
        try:
            arguments = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = "
                "{}` or initialize the distribution with `validate_args=False` to turn off "
                "validation.",
                stacklevel=4,
            )
            return
        for name, constraint in arguments.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch; its parameters are expanded without a copy."""
        raise NotImplementedError

    def _expanded(self, cls: type, batch_shape: Any, _instance: Any, *names: str) -> Any:
        """A new instance with attributes expanded as far as they are set, and the base's fields.

        Attributes have the shape of the batch, then whatever dimensions they have beyond that.
        """
        new = self._get_checked_instance(cls, _instance)
        batch_shape = Size(batch_shape)
        for name in names:
            if name in self.__dict__:
                value = self.__dict__[name]
                rest = value.shape[len(self._batch_shape) :]
                new.__dict__[name] = value.expand(batch_shape + rest)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """What the arguments must satisfy."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """Where samples lie."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Samples without gradients, `sample_shape` of each distribution in the batch."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Samples that are differentiable functions of the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """`sample((n,))`, which is the newer form."""
        warn_user(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning
        )
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or probability of values."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of being at most `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The value whose `cdf` is given."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a first dimension."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _check(self, value: Tensor) -> None:
        """Raise for values outside the support, if values are checked."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = value.dim() - len(self._event_shape)
        if value.shape[start:] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs "
                f"{self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.shape), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{value.shape} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, but found "
                f"invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        shown = []
        for name in self.arg_constraints:
            if name in self.__dict__:
                value = self.__dict__[name]
                shown.append(f"{name}: {value if value.numel() == 1 else value.shape}")
        return f"{type(self).__name__}({', '.join(shown)})"


class ExponentialFamily(Distribution):
    """A distribution whose entropy and divergences follow from its log normalizer."""

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy, by the Bregman divergence of the log normalizer."""
        natural = [each.detach().requires_grad_() for each in self._natural_params]
        normalizer = self._log_normalizer(*natural)
        slopes = grad(normalizer.sum(), natural, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for value, slope in zip(natural, slopes, strict=True):
            term = value * slope
            result = result - term.reshape(self._batch_shape + (-1,)).sum(-1)
        return result


class Declared(Distribution):
    """A distribution of numbers whose arguments broadcast against each other.

    A class names them in `_arguments`; expanding follows from that.
    """

    _arguments: tuple[str, ...] = ()

    def _declare(self, validate_args: bool | None, **arguments: Any) -> None:
        values = broadcast_all(*arguments.values())
        self.__dict__.update(zip(arguments, values, strict=True))
        Distribution.__init__(self, values[0].shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        return self._expanded(_declarer(type(self)), batch_shape, _instance, *self._arguments)


def _declarer(cls: type) -> type:
    """The class that declares the arguments which an instance of `cls` has."""
    return next(kind for kind in cls.__mro__ if "_arguments" in vars(kind))


class ByProbsOrLogits(Distribution):
    """A distribution that is given by probabilities or by logits, of which the other is lazy."""

    #: Whether each probability is one of two, or they are shares along the last dimension.
    _is_binary = True
    #: Further attributes that are expanded with the batch.
    _arguments: tuple[str, ...] = ()

    def _choose(self, probs: Any, logits: Any) -> str:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        return "logits" if probs is None else "probs"

    @lazy_property
    def logits(self) -> Tensor:
        """Logits."""
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    @property
    def _param(self) -> Tensor:
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    @property
    def param_shape(self) -> Size:
        """The shape of the probabilities or logits."""
        return self._param.shape

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        names = ("probs", "logits", *self._arguments)
        return self._expanded(_declarer(type(self)), batch_shape, _instance, *names)
