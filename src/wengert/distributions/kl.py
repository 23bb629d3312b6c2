"""Divergences of Kullback and Leibler, found by the classes of both distributions.

Within a family each has its formula. Between families the divergence is minus the entropy of the
first less the mean of the second's log density; that mean follows from a few moments of the first,
so both are written once for each distribution, not for each pair.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import total_ordering
from typing import Any

from ..autograd import grad
from ..core.size import broadcast_shapes
from ..core.tensor import Tensor
from ..nn.functional import softplus
from ..operators.linalg_solving import solve_triangular
from ..operators.pointwise import where
from ..operators.special_errors import xlogy
from ..operators.special_gamma import digamma, lgamma
from .combined import Independent, TransformedDistribution
from .continuous import Cauchy, ContinuousBernoulli, Exponential, Laplace, Normal, Uniform
from .discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    OneHotCategorical,
    Poisson,
)
from .distribution import Distribution, ExponentialFamily
from .gammas import Beta, Dirichlet, Gamma
from .multivariate import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    log_diagonal,
    low_rank_log_determinant,
    low_rank_mahalanobis,
    mahalanobis,
)
from .transformed import Gumbel, HalfNormal, Pareto
from .utils import euler_constant, sum_rightmost

__all__ = ["kl_divergence", "register_kl"]

_registry: dict[tuple[type, type], Callable] = {}
_found: dict[tuple[type, type], Any] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable], Callable]:
    """Decorate the function that computes the divergence for two classes and their subclasses."""
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorate(function: Callable) -> Callable:
        _registry[type_p, type_q] = function
        _found.clear()
        return function

    return decorate


@total_ordering
class _Match:
    """Classes in the order of how special they are, the first one first."""

    def __init__(self, *types: type) -> None:
        self.types = types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Match) and self.types == other.types

    def __le__(self, other: _Match) -> bool:
        for one, another in zip(self.types, other.types, strict=True):
            if not issubclass(one, another):
                return False
            if one is not another:
                break
        return True


def _dispatch(type_p: type, type_q: type) -> Any:
    matches = [(p, q) for p, q in _registry if issubclass(type_p, p) and issubclass(type_q, q)]
    if not matches:
        return NotImplemented
    left = min(_Match(*match) for match in matches).types
    right = min(_Match(*reversed(match)) for match in matches).types[::-1]
    if _registry[left[0], left[1]] is not _registry[right[0], right[1]]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
            f"register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _registry[left[0], left[1]]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The divergence of `q` from `p`, for each pair in the batch."""
    kinds = type(p), type(q)
    if kinds not in _found:
        _found[kinds] = _dispatch(*kinds)
    if _found[kinds] is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {kinds[0].__name__} and q type "
            f"{kinds[1].__name__}"
        )
    return _found[kinds](p, q)


# Within families ----------------------------------------------------------------------------------


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_families(p: Any, q: Any) -> Tensor:
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    natural = [each.detach().requires_grad_() for each in p._natural_params]
    normalizer = p._log_normalizer(*natural)
    slopes = grad(normalizer.sum(), natural, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normalizer
    for mine, other, slope in zip(natural, q._natural_params, slopes, strict=True):
        result = result - sum_rightmost((other - mine) * slope, len(q.event_shape))
    return result


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    one = where(p.probs == 0, 0.0, where(q.probs == 0, math.inf, one))
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zero = where(p.probs == 1, 0.0, where(q.probs == 1, math.inf, zero))
    return one + zero


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    total = p.concentration.sum(-1)
    constants = lgamma(total) - lgamma(q.concentration.sum(-1))
    constants = constants - (lgamma(p.concentration) - lgamma(q.concentration)).sum(-1)
    slopes = digamma(p.concentration) - digamma(total).unsqueeze(-1)
    return constants + ((p.concentration - q.concentration) * slopes).sum(-1)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    each = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return where(p.total_count > q.total_count, math.inf, p.total_count * each)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    return where(p.probs == 0, 0.0, where(q.probs == 0, math.inf, terms)).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    away = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + away - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    distance = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return distance.log() - (4 * p.scale * q.scale).log()


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * (-away / p.scale).exp() - 1


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    return (
        q.concentration * (p.rate / q.rate).log()
        + lgamma(q.concentration)
        - lgamma(p.concentration)
        + (p.concentration - q.concentration) * digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc) / q.scale
    tail = (lgamma(1 + ratio) - away).exp()
    return -ratio.log() + away + ratio * euler_constant + tail - (1 + euler_constant)


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Tensor:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return where(p.scale < q.scale, math.inf, result)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return where((q.low > p.low) | (q.high < p.high), math.inf, result)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Tensor:
    def constant(d: Any) -> Tensor:
        return d._cont_bern_log_norm() + (-d.probs).log1p()

    return p.mean * (p.logits - q.logits) + constant(p) - constant(q)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("the distributions take in different numbers of dimensions")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("the distributions are transformed in different ways")
    return kl_divergence(p.base_dist, q.base_dist)


# Normal distributions of vectors ------------------------------------------------------------------


def _squares(matrix: Tensor) -> Tensor:
    """The trace of a matrix times its transpose."""
    return matrix.pow(2).sum((-2, -1))


def _log_determinant(d: Any) -> Tensor:
    if isinstance(d, LowRankMultivariateNormal):
        return low_rank_log_determinant(d)
    return 2 * log_diagonal(d._unbroadcasted_scale_tril)


def _roots(d: Any) -> list[Tensor]:
    """Matrices whose products with their transposes add up to the covariance."""
    if isinstance(d, LowRankMultivariateNormal):
        return [d._unbroadcasted_cov_factor, d._unbroadcasted_cov_diag.sqrt().diag_embed()]
    return [d._unbroadcasted_scale_tril]


def _divided_squares(q: Any, root: Tensor) -> Tensor:
    """The trace of a root of a covariance, squared and divided by the covariance of `q`."""
    if not isinstance(q, LowRankMultivariateNormal):
        factor = q._unbroadcasted_scale_tril
        batch = broadcast_shapes(factor.shape[:-2], root.shape[:-2])
        factor, root = [each.expand((*batch, *each.shape[-2:])) for each in (factor, root)]
        return _squares(solve_triangular(factor, root, upper=False))
    diagonal = q._unbroadcasted_cov_diag
    inside = q._unbroadcasted_cov_factor.mT / diagonal.unsqueeze(-2)
    solved = solve_triangular(q._capacitance_tril, inside, upper=False)
    return _squares(root * diagonal.rsqrt().unsqueeze(-1)) - _squares(solved @ root)


def _normal_vectors(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes "
            "cannot be computed"
        )
    away = q.loc - p.loc
    if isinstance(q, LowRankMultivariateNormal):
        distance = low_rank_mahalanobis(q, away)
    else:
        distance = mahalanobis(q._unbroadcasted_scale_tril, away)
    trace: Any = 0
    for root in _roots(p):
        trace = trace + _divided_squares(q, root)
    size = p.event_shape[0]
    return 0.5 * (_log_determinant(q) - _log_determinant(p) + trace + distance - size)


for _one in (MultivariateNormal, LowRankMultivariateNormal):
    for _other in (MultivariateNormal, LowRankMultivariateNormal):
        register_kl(_one, _other)(_normal_vectors)


# Between families ---------------------------------------------------------------------------------


def _mean_log(p: Any) -> Tensor:
    """The mean of the logarithm."""
    if isinstance(p, Exponential):
        return -euler_constant - p.rate.log()
    if isinstance(p, Gamma):
        return digamma(p.concentration) - p.rate.log()
    if isinstance(p, Beta):
        return digamma(p.concentration1) - digamma(p.concentration1 + p.concentration0)
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return (xlogy(p.high, p.high) - xlogy(p.low, p.low)) / (p.high - p.low) - 1  # Uniform


def _mean_exp(p: Any, t: Tensor) -> Tensor:
    """The mean of the exponential of the number times `t`."""
    if isinstance(p, Exponential):
        return p.rate / (p.rate - t)
    if isinstance(p, Gamma):
        return (p.rate / (p.rate - t)) ** p.concentration
    if isinstance(p, Normal):
        return (p.loc * t + 0.5 * (p.scale * t) ** 2).exp()
    return ((t * p.high).exp() - (t * p.low).exp()) / (t * (p.high - p.low))  # Uniform


def _normal_density(p: Any, q: Any) -> Tensor:
    squares = p.variance + (p.mean - q.loc).pow(2)
    return -0.5 * squares / q.scale.pow(2) - q.scale.log() - 0.5 * math.log(2 * math.pi)


def _exponential_density(p: Any, q: Any) -> Tensor:
    return q.rate.log() - q.rate * p.mean


def _gamma_density(p: Any, q: Any) -> Tensor:
    constant = q.concentration * q.rate.log() - lgamma(q.concentration)
    return constant + (q.concentration - 1) * _mean_log(p) - q.rate * p.mean


def _gumbel_density(p: Any, q: Any) -> Tensor:
    tail = (q.loc / q.scale).exp() * _mean_exp(p, -q.scale.reciprocal())
    return (q.loc - p.mean) / q.scale - tail - q.scale.log()


def _pareto_density(p: Any, q: Any) -> Tensor:
    return q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _mean_log(p)


def _continuous_bernoulli_density(p: Any, q: Any) -> Tensor:
    return p.mean * q.logits + (-q.probs).log1p() + q._cont_bern_log_norm()


def _uniform_density(p: Any, q: Any) -> Tensor:
    return -(q.high - q.low).log()


def _laplace_density(p: Any, q: Any) -> Tensor:
    away = (p.loc - q.loc) / p.scale  # of a normal distribution
    spread = p.scale * math.sqrt(2 / math.pi) * (-0.5 * away**2).exp()
    spread = spread + (p.loc - q.loc) * (away / math.sqrt(2)).erf()
    return -(2 * q.scale).log() - spread / q.scale


def _beta_density(p: Any, q: Any) -> Tensor:
    flipped = Uniform(1 - p.high, 1 - p.low, validate_args=False)
    a, b = q.concentration1, q.concentration0
    constant = lgamma(a + b) - lgamma(a) - lgamma(b)
    return constant + (a - 1) * _mean_log(p) + (b - 1) * _mean_log(flipped)


def _poisson_density(p: Any, q: Any) -> Tensor:
    return p.probs * q.rate.log() - q.rate  # of a Bernoulli distribution


def _lower(d: Any) -> Any:
    """Where the support begins; minus infinity where it does not."""
    if isinstance(d, (Normal, Laplace, Gumbel)):
        return -math.inf
    return d.low if isinstance(d, Uniform) else d.scale if isinstance(d, Pareto) else 0.0


def _upper(d: Any) -> Any:
    """Where the support ends."""
    if isinstance(d, (Beta, ContinuousBernoulli)):
        return 1.0
    return d.high if isinstance(d, Uniform) else math.inf


def _between(density: Callable) -> Callable:
    def divergence(p: Any, q: Any) -> Tensor:
        result = -p.entropy() - density(p, q)
        outside = (result.new_full((), 1.0) * _lower(p) < _lower(q)) | (
            result.new_full((), 1.0) * _upper(p) > _upper(q)
        )
        return where(outside, math.inf, result)

    return divergence


def _infinite(p: Any, q: Any) -> Tensor:
    entropy = p.entropy() if not isinstance(p, Poisson) else p.rate
    return entropy.new_full(entropy.shape, math.inf)


_DENSITIES = {
    Normal: _normal_density,
    Exponential: _exponential_density,
    Gamma: _gamma_density,
    Gumbel: _gumbel_density,
    Pareto: _pareto_density,
    ContinuousBernoulli: _continuous_bernoulli_density,
    Uniform: _uniform_density,
    Laplace: _laplace_density,
    Beta: _beta_density,
}
_FINITE: dict[type, tuple[type, ...]] = {
    Beta: (ContinuousBernoulli, Exponential, Gamma, Normal, Uniform),
    ContinuousBernoulli: (Exponential, Normal, Uniform),
    Exponential: (Gamma, Gumbel, Normal),
    Gamma: (Exponential, Gumbel, Normal),
    Gumbel: (Normal,),
    Laplace: (Normal,),
    Normal: (Gumbel, Laplace),
    Pareto: (Exponential, Gamma, Normal),
    Uniform: (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Normal, Pareto),
}
_BOUNDED = (Beta, ContinuousBernoulli, Pareto, Uniform)
_INFINITE: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: _BOUNDED,
    Gamma: _BOUNDED,
    Gumbel: (*_BOUNDED, Exponential, Gamma),
    Laplace: (*_BOUNDED, Exponential, Gamma),
    Normal: (*_BOUNDED, Exponential, Gamma),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}
for _p, _family in _FINITE.items():
    for _q in _family:
        register_kl(_p, _q)(_between(_DENSITIES[_q]))
for _p, _family in _INFINITE.items():
    for _q in _family:
        register_kl(_p, _q)(_infinite)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - _poisson_density(p, q)
