"""Probability distributions: samples, densities, moments and divergences, with gradients.

>>> import wengert as torch
>>> normal = torch.distributions.Normal(0.0, 1.0)
>>> normal.log_prob(torch.tensor(0.0))
tensor(-0.9189)
>>> torch.distributions.kl_divergence(normal, torch.distributions.Normal(1.0, 1.0))
tensor(0.5000)
"""

import sys as _sys

from . import combined as _combined
from . import constraint_registry as constraint_registry
from . import constraints as constraints
from . import continuous as _continuous
from . import discrete as _discrete
from . import distribution as distribution
from . import gammas as _gammas
from . import kl as kl
from . import multivariate as _multivariate
from . import transformed as _transformed
from . import transforms as transforms
from . import utils as utils
from .combined import Independent as Independent
from .combined import MixtureSameFamily as MixtureSameFamily
from .combined import TransformedDistribution as TransformedDistribution
from .constraint_registry import biject_to as biject_to
from .constraint_registry import transform_to as transform_to
from .continuous import Cauchy as Cauchy
from .continuous import ContinuousBernoulli as ContinuousBernoulli
from .continuous import Exponential as Exponential
from .continuous import GeneralizedPareto as GeneralizedPareto
from .continuous import Laplace as Laplace
from .continuous import Normal as Normal
from .continuous import Uniform as Uniform
from .continuous import VonMises as VonMises
from .discrete import Bernoulli as Bernoulli
from .discrete import Binomial as Binomial
from .discrete import Categorical as Categorical
from .discrete import Geometric as Geometric
from .discrete import Multinomial as Multinomial
from .discrete import NegativeBinomial as NegativeBinomial
from .discrete import OneHotCategorical as OneHotCategorical
from .discrete import OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough
from .discrete import Poisson as Poisson
from .distribution import Distribution as Distribution
from .distribution import ExponentialFamily as ExponentialFamily
from .gammas import Beta as Beta
from .gammas import Chi2 as Chi2
from .gammas import Dirichlet as Dirichlet
from .gammas import FisherSnedecor as FisherSnedecor
from .gammas import Gamma as Gamma
from .gammas import StudentT as StudentT
from .kl import kl_divergence as kl_divergence
from .kl import register_kl as register_kl
from .multivariate import LKJCholesky as LKJCholesky
from .multivariate import LowRankMultivariateNormal as LowRankMultivariateNormal
from .multivariate import MultivariateNormal as MultivariateNormal
from .multivariate import Wishart as Wishart
from .transformed import Gumbel as Gumbel
from .transformed import HalfCauchy as HalfCauchy
from .transformed import HalfNormal as HalfNormal
from .transformed import InverseGamma as InverseGamma
from .transformed import Kumaraswamy as Kumaraswamy
from .transformed import LogisticNormal as LogisticNormal
from .transformed import LogNormal as LogNormal
from .transformed import Pareto as Pareto
from .transformed import RelaxedBernoulli as RelaxedBernoulli
from .transformed import RelaxedOneHotCategorical as RelaxedOneHotCategorical
from .transformed import Weibull as Weibull
from .transforms import *  # noqa: F403

#: PyTorch's modules, one for each distribution, by the module here that has it.
_HOMES = {
    "beta": _gammas, "bernoulli": _discrete, "binomial": _discrete, "categorical": _discrete,
    "cauchy": _continuous, "chi2": _gammas, "continuous_bernoulli": _continuous,
    "dirichlet": _gammas, "exp_family": distribution, "exponential": _continuous,
    "fishersnedecor": _gammas, "gamma": _gammas, "generalized_pareto": _continuous,
    "geometric": _discrete, "gumbel": _transformed, "half_cauchy": _transformed,
    "half_normal": _transformed, "independent": _combined, "inverse_gamma": _transformed,
    "kumaraswamy": _transformed, "laplace": _continuous, "lkj_cholesky": _multivariate,
    "log_normal": _transformed, "logistic_normal": _transformed,
    "lowrank_multivariate_normal": _multivariate, "mixture_same_family": _combined,
    "multinomial": _discrete, "multivariate_normal": _multivariate,
    "negative_binomial": _discrete, "normal": _continuous, "one_hot_categorical": _discrete,
    "pareto": _transformed, "poisson": _discrete, "relaxed_bernoulli": _transformed,
    "relaxed_categorical": _transformed, "studentT": _gammas,
    "transformed_distribution": _combined, "uniform": _continuous, "von_mises": _continuous,
    "weibull": _transformed, "wishart": _multivariate,
}  # fmt: skip
for _name, _home in _HOMES.items():
    globals()[_name] = _sys.modules.setdefault(f"{__name__}.{_name}", _home)
