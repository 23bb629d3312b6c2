"""Distributions of vectors and matrices: normal, of low rank, Wishart's and of correlations."""

from __future__ import annotations

import math
from typing import Any

from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..core.errors import warn_user
from ..core.size import broadcast_shapes
from ..core.tensor import Tensor
from ..creation.conversion import tensor
from ..creation.random import randn
from ..creation.ranges import arange, eye
from ..operators.joining import broadcast_tensors, cat
from ..operators.linalg_determinants import slogdet
from ..operators.linalg_solving import cholesky, solve_triangular
from ..operators.pointwise import where
from ..operators.special_gamma import digamma, lgamma, mvlgamma
from . import constraints
from .distribution import Distribution, ExponentialFamily
from .gammas import Beta, Chi2
from .utils import broadcast_all, lazy_property, standard_normal

__all__ = ["LKJCholesky", "LowRankMultivariateNormal", "MultivariateNormal", "Wishart"]

_LOG_2PI = math.log(2 * math.pi)


def times_vector(matrix: Tensor, vector: Tensor) -> Tensor:
    """Matrices times vectors."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def mahalanobis(factor: Tensor, x: Tensor) -> Tensor:
    """The squares of vectors that are divided by lower triangular factors."""
    if factor.dim() == 2:  # one factor for all vectors
        flat = x.reshape(-1, x.shape[-1])
        squares = solve_triangular(factor, flat.mT, upper=False).pow(2).sum(-2)
        return squares.reshape(x.shape[:-1])
    solved = solve_triangular(factor, x.unsqueeze(-1), upper=False)
    return solved.pow(2).sum((-2, -1))


def log_diagonal(factor: Tensor) -> Tensor:
    """The sum of the logarithms of the diagonal."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _identity(like: Tensor) -> Tensor:
    return eye(like.shape[-1], dtype=like.dtype, device=like.device)


def _factor_of_inverse(matrix: Tensor) -> Tensor:
    """The Cholesky factor of the inverse of a positive definite matrix."""
    flipped = cholesky(matrix.flip((-2, -1)))
    inverse = flipped.flip((-2, -1)).mT
    return solve_triangular(inverse, _identity(matrix), upper=False)


def _inverse_by_factor(factor: Tensor) -> Tensor:
    """The inverse of a matrix whose Cholesky factor is given."""
    inverse = solve_triangular(factor, _identity(factor), upper=False)
    return inverse.mT @ inverse


class _ByMatrix(Distribution):
    """A distribution that is given by a covariance, its inverse or its Cholesky factor."""

    _unbroadcasted_scale_tril: Tensor

    def _choose_matrix(
        self, covariance_matrix: Any, precision_matrix: Any, scale_tril: Any, error: type
    ) -> tuple[str, Tensor]:
        given = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        found = [(name, value) for name, value in given.items() if value is not None]
        if len(found) != 1:
            raise error(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        return found[0]

    def _set_factor(self, name: str, matrix: Tensor) -> None:
        make: Any = {
            "covariance_matrix": cholesky,
            "precision_matrix": _factor_of_inverse,
            "scale_tril": lambda factor: factor,
        }[name]
        self._unbroadcasted_scale_tril = make(matrix)

    def _square_shape(self) -> Any:
        n = self._event_shape[-1]
        return self._batch_shape + (n, n)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._square_shape())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(self._square_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return _inverse_by_factor(self._unbroadcasted_scale_tril).expand(self._square_shape())


_MATRICES = ("covariance_matrix", "precision_matrix", "scale_tril")


class MultivariateNormal(_ByMatrix):
    """The normal distribution of vectors."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = self._choose_matrix(
            covariance_matrix, precision_matrix, scale_tril, ValueError
        )
        if matrix.dim() < 2:
            kind = " matrix" if name == "scale_tril" else ""
            raise ValueError(
                f"{name}{kind} must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        batch = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.__dict__[name] = matrix.expand((*batch, -1, -1))
        self.loc = loc.expand((*batch, -1))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        self._set_factor(name, matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        new = self._expanded(MultivariateNormal, batch_shape, _instance, "loc", *_MATRICES)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        return new

    mean = mode = property(lambda self: self.loc, doc="The mean.")

    @property
    def variance(self) -> Tensor:
        """The variances of the elements."""
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """The factor times normal numbers, shifted."""
        noise = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + times_vector(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        factor = self._unbroadcasted_scale_tril
        squares = mahalanobis(factor, value - self.loc)
        return -0.5 * (self._event_shape[0] * _LOG_2PI + squares) - log_diagonal(factor)

    def entropy(self) -> Tensor:
        """The entropy."""
        half = 0.5 * self._event_shape[0] * (1.0 + _LOG_2PI)
        entropy = half + log_diagonal(self._unbroadcasted_scale_tril)
        return entropy if not self._batch_shape else entropy.expand(self._batch_shape)


def low_rank_log_determinant(p: LowRankMultivariateNormal) -> Tensor:
    """The logarithm of the determinant of a covariance."""
    return 2 * log_diagonal(p._capacitance_tril) + p._unbroadcasted_cov_diag.log().sum(-1)


def low_rank_mahalanobis(p: LowRankMultivariateNormal, x: Tensor) -> Tensor:
    """The squares of vectors that are divided by the root of a covariance."""
    factor, diagonal = p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag
    inside = times_vector(factor.mT / diagonal.unsqueeze(-2), x)
    return (x.pow(2) / diagonal).sum(-1) - mahalanobis(p._capacitance_tril, inside)


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors whose covariance is a product and a diagonal."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if cov_factor.shape[-2:-1] != event:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event[0]} x m"
            )
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        try:
            columns, self.cov_factor, diagonals = broadcast_tensors(
                loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1)
            )
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc, self.cov_diag = columns[..., 0], diagonals[..., 0]
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        inside = (cov_factor.mT / cov_diag.unsqueeze(-2)) @ cov_factor
        self._capacitance_tril = cholesky(inside + _identity(inside))
        super().__init__(self.loc.shape[:-1], event, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        names = ("loc", "cov_diag", "cov_factor")
        new = self._expanded(LowRankMultivariateNormal, batch_shape, _instance, *names)
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))
        return new

    mean = mode = property(lambda self: self.loc, doc="The mean.")

    def _square_shape(self) -> Any:
        return self._batch_shape + self._event_shape + self._event_shape

    @lazy_property
    def variance(self) -> Tensor:
        """The variances of the elements."""
        squares = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return squares.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        whole = factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed()
        return whole.expand(self._square_shape())

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        roots = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / roots
        square = scaled @ scaled.mT
        return (roots * cholesky(square + _identity(square))).expand(self._square_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        inverse = self._unbroadcasted_cov_diag.reciprocal()
        inside = self._unbroadcasted_cov_factor.mT * inverse.unsqueeze(-2)
        solved = solve_triangular(self._capacitance_tril, inside, upper=False)
        return (inverse.diag_embed() - solved.mT @ solved).expand(self._square_shape())

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Normal numbers through the factor and the diagonal."""
        shape = self._extended_shape(sample_shape)
        inside = standard_normal(shape[:-1] + self.cov_factor.shape[-1:], self.loc)
        beside = standard_normal(shape, self.loc)
        mixed = times_vector(self._unbroadcasted_cov_factor, inside)
        return self.loc + mixed + self._unbroadcasted_cov_diag.sqrt() * beside

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        squares = low_rank_mahalanobis(self, value - self.loc)
        constant = self._event_shape[0] * _LOG_2PI + low_rank_log_determinant(self)
        return -0.5 * (constant + squares)

    def entropy(self) -> Tensor:
        """The entropy."""
        constant = self._event_shape[0] * (1.0 + _LOG_2PI)
        entropy = 0.5 * (constant + low_rank_log_determinant(self))
        return entropy if not self._batch_shape else entropy.expand(self._batch_shape)


class Wishart(_ByMatrix, ExponentialFamily):
    """Sums of squares of normal vectors, which are positive definite matrices."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:  # type: ignore[override]
        """More degrees of freedom than dimensions less one."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = self._choose_matrix(
            covariance_matrix, precision_matrix, scale_tril, AssertionError
        )
        if matrix.dim() < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if isinstance(df, Tensor):
            batch: Any = broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch)
        else:
            batch = matrix.shape[:-2]
            self.df = tensor(df, dtype=matrix.dtype, device=matrix.device)
        n = matrix.shape[-1]
        if bool((self.df <= n - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        if bool((self.df < n).any()):
            warn_user(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 "
                "< df < ndim."
            )
        self.__dict__[name] = matrix.expand((*batch, -1, -1))
        super().__init__(batch, matrix.shape[-2:], validate_args=validate_args)
        self._set_factor(name, matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        new = self._expanded(Wishart, batch_shape, _instance, *_MATRICES)
        new.df = self.df.expand(batch_shape)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        return new

    def _degrees(self) -> Tensor:
        return self.df.expand(self._batch_shape)[..., None, None]

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self._degrees() * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """The most likely matrix; NaN where there is none."""
        factor = self._degrees() - self._event_shape[-1] - 1
        return factor.masked_fill(factor <= 0, math.nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """The variances of the elements."""
        diagonal = self.covariance_matrix.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._degrees() * (self.covariance_matrix.pow(2) + products)

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Tensor:
        """Products of triangular matrices of normal and chi numbers, by Bartlett.

        What is not positive definite in floating point is drawn again, `max_try_correction` times.
        """
        sample = self._draw(sample_shape)
        for attempt in range(10 if max_try_correction is None else max_try_correction):
            fits = self.support.check(sample)
            if bool(fits.all()):
                break
            if not attempt:
                warn_user("Singular sample detected.")
            sample = where(fits[..., None, None], sample, self._draw(sample_shape))
        return sample

    def _draw(self, sample_shape: Any) -> Tensor:
        n = self._event_shape[-1]
        steps = arange(n, dtype=self.df.dtype, device=self.df.device)
        df = self.df.expand(self._batch_shape).unsqueeze(-1) - steps
        roots = Chi2(df, validate_args=False).rsample(sample_shape).sqrt()
        roots = roots.clamp(min=dtypes.finfo(roots.dtype).eps)
        shape = tuple(self._extended_shape(sample_shape))
        below = randn(shape, dtype=roots.dtype, device=roots.device).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (below + roots.diag_embed())
        return factor @ factor.mT

    def _spread(self) -> Tensor:
        n = self._event_shape[-1]
        return n * math.log(2) / 2 + log_diagonal(self._unbroadcasted_scale_tril)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        nu, n = self.df, self._event_shape[-1]
        inverse = _inverse_by_factor(self._unbroadcasted_scale_tril)
        trace = (inverse * value).sum((-2, -1))
        return (
            -nu * self._spread()
            - mvlgamma(nu / 2, n)
            + (nu - n - 1) / 2 * slogdet(value)[1]
            - trace / 2
        )

    def entropy(self) -> Tensor:
        """The entropy."""
        nu, n = self.df, self._event_shape[-1]
        places = arange(n, dtype=nu.dtype, device=nu.device) / 2
        slope = digamma(nu.unsqueeze(-1) / 2 - places).sum(-1)
        return (
            (n + 1) * self._spread()
            + mvlgamma(nu / 2, n)
            - (nu - n - 1) / 2 * slope
            + nu * n / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        n = self._event_shape[-1]
        half = y + (n + 1) / 2
        return half * (-slogdet(-2 * x)[1] + math.log(2) * n) + mvlgamma(half, n)


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices, whose density is a power of the determinant."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)
        self._beta = self._row_lengths()

    def _row_lengths(self) -> Beta:
        """The distribution of the squared length of what is left of the diagonal, row by row."""
        c = self.concentration
        places = arange(self.dim - 1, dtype=c.dtype, device=c.device)
        places = cat([places.new_zeros((1,)), places])
        marginal = (c + 0.5 * (self.dim - 2)).unsqueeze(-1)
        return Beta(places + 0.5, marginal - 0.5 * places)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        new = self._expanded(LKJCholesky, batch_shape, _instance, "concentration")
        new.dim = self.dim
        new._beta = self._beta.expand((*batch_shape, self.dim))
        return new

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Factors by the onion method: rows are points in balls."""
        with no_grad():
            squared = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = tuple(self._extended_shape(sample_shape))
            noise = randn(shape, dtype=squared.dtype, device=squared.device).tril(-1)
            length = (noise**2).sum(-1, True).sqrt()
            rows = squared.sqrt() * noise / length.masked_fill(length == 0, 1)
            tiny = dtypes.finfo(rows.dtype).tiny
            return rows + (1 - (rows**2).sum(-1)).clamp(min=tiny).sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        n = self.dim
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = arange(2, n + 1, device=self.concentration.device)
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + n - order
        alpha = self.concentration + 0.5 * (n - 1)
        constant = 0.5 * (n - 1) * math.log(math.pi)
        constant = constant + mvlgamma(alpha - 0.5, n - 1) - lgamma(alpha) * (n - 1)
        return (powers * diagonal.log()).sum(-1) - constant
