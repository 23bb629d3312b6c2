"""Invertible maps, with their derivatives: what makes distributions of others.

`log_abs_det_jacobian(x, y)` is the logarithm of the factor by which volumes grow. A transform with
a cache remembers its last pair of input and output.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import reduce
from numbers import Number
from typing import Any

from ..core import dtypes
from ..core.size import broadcast_shapes
from ..core.tensor import Tensor
from ..creation.ranges import arange
from ..nn.functional import pad, softplus
from ..operators.joining import cat, stack
from ..operators.linalg_solving import cholesky
from ..operators.softmax import softmax
from . import constraints
from .transform import (
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    Transform,
    identity_transform,
    widened,
)
from .utils import sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform",
    "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform",
    "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform",
    "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip


# Of numbers ---------------------------------------------------------------------------------------


class _OfNumbers(Transform):
    """A monotonous map of numbers; those of one class are alike."""

    bijective = True
    domain: Any = constraints.real
    codomain: Any = constraints.real
    sign = +1

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = Transform.__hash__


class ExpTransform(_OfNumbers):
    """The exponential."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The argument."""
        return x


class PowerTransform(_OfNumbers):
    """A power of positive numbers."""

    domain = constraints.positive
    codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.exponent = exponent

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The transform with a cache."""
        if self._cache_size == cache_size:
            return self
        return PowerTransform(self.exponent, cache_size=cache_size)

    @property
    def sign(self) -> Any:  # type: ignore[override]
        """The sign of the exponent."""
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PowerTransform):
            return False
        return bool((self.exponent == other.exponent).all())

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Of the exponent times the image over the argument."""
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        """The shape with that of the exponent."""
        return broadcast_shapes(shape, getattr(self.exponent, "shape", ()))

    inverse_shape = forward_shape


class SigmoidTransform(_OfNumbers):
    """The sigmoid."""

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        limits = dtypes.finfo(x.dtype)
        return x.sigmoid().clamp(min=limits.tiny, max=1.0 - limits.eps)

    def _inverse(self, y: Tensor) -> Tensor:
        limits = dtypes.finfo(y.dtype)
        y = y.clamp(min=limits.tiny, max=1.0 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Of the product of the sigmoids of the argument and its negative."""
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_OfNumbers):
    """The softplus, a smooth rectifier."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Of the sigmoid."""
        return -softplus(-x)


class TanhTransform(_OfNumbers):
    """The hyperbolic tangent."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Of one minus the square of the image, in a form that stays exact."""
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(Transform):
    """The absolute value, of which the positive number counts as the inverse."""

    domain = constraints.real
    codomain = constraints.positive

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsTransform)

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """Multiplies by `scale` and adds `loc`."""

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        """The number of dimensions of an event."""
        return self._event_dim

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The transform with a cache."""
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """Real events."""
        return widened(constraints.real, self.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """Real events."""
        return widened(constraints.real, self.event_dim)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        return _equal(self.loc, other.loc) and _equal(self.scale, other.scale)

    __hash__ = Transform.__hash__

    @property
    def sign(self) -> Any:
        """The sign of the scale."""
        if isinstance(self.scale, Number):
            return (self.scale > 0) - (self.scale < 0)  # type: ignore[operator]
        return self.scale.sign()

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of the scale, for each element of an event."""
        if isinstance(self.scale, Number):
            result = x.new_full(x.shape, math.log(abs(self.scale)))  # type: ignore[arg-type]
        else:
            result = self.scale.abs().log()
        kept = x.shape
        if self.event_dim:
            shape = result.shape[: -self.event_dim] + (-1,)
            result = result.expand(x.shape) if result.dim() < self.event_dim else result
            shape = result.shape[: -self.event_dim] + (-1,)
            result = result.reshape(shape).sum(-1)
            kept = x.shape[: -self.event_dim]
        return result.expand(kept)

    def forward_shape(self, shape: Any) -> Any:
        """The shape with those of location and scale."""
        return broadcast_shapes(
            shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ())
        )

    inverse_shape = forward_shape


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Number) and isinstance(other, Number):
        return one == other
    return bool((one == other).all())


class CumulativeDistributionTransform(Transform):
    """The distribution function of a distribution."""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:  # type: ignore[override]
        """Where samples of the distribution lie."""
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of the density."""
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The transform with a cache."""
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)


# Of vectors and matrices --------------------------------------------------------------------------


class SoftmaxTransform(Transform):
    """Exponentials divided by their sum, with logarithms as the inverse."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        """The shape, which does not change."""
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """Breaks pieces off a stick of length one: shares, one more than there are numbers."""

    bijective = True
    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    __hash__ = Transform.__hash__

    def _offsets(self, x: Tensor) -> Tensor:
        """The logarithms of how many pieces are left, with which zeros give equal shares."""
        n = x.shape[-1]
        return (n - arange(n, dtype=x.dtype, device=x.device)).log()

    def _call(self, x: Tensor) -> Tensor:
        z = (x - self._offsets(x)).sigmoid()
        left = (1 - z).cumprod(-1)
        return pad(z, (0, 1), value=1) * pad(left, (1, 0), value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        cut = y[..., :-1]
        left = 1 - cut.cumsum(-1)
        left = left.clamp(min=dtypes.finfo(y.dtype).tiny)
        return cut.log() - left.log() + self._offsets(cut)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum over all pieces."""
        x = x - self._offsets(x)
        return (-x - softplus(-x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        """One more."""
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape: Any) -> Any:
        """One less."""
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape[:-1] + (shape[-1] - 1,)


class LowerCholeskyTransform(Transform):
    """Lower triangular matrices with a positive diagonal, of any matrices."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Positive definite matrices, of any matrices."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(cholesky(y))


class CorrCholeskyTransform(Transform):
    """Cholesky factors of correlation matrices, of vectors of numbers below the diagonal."""

    bijective = True
    domain = constraints.real_vector
    codomain = constraints.corr_cholesky

    def _call(self, x: Tensor) -> Tensor:
        x = x.tanh()
        eps = dtypes.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r**2).sqrt().cumprod(-1)
        r = r + r.new_full(r.shape[-1:], 1.0).diag_embed()
        return r * pad(left[..., :-1], (1, 0), value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = 1 - (y * y).cumsum(-1)
        shifted = pad(left[..., :-1], (1, 0), value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(shifted, diag=-1).sqrt()
        return (t.log1p() - (-t).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        """By the rows of the factor, and the derivative of tanh; `intermediates` are not needed."""
        left = 1 - (y * y).cumsum(-1)
        inner = 0.5 * tril_matrix_to_vec(left, diag=-2).log().sum(-1)
        outer = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)
        return inner + outer

    def forward_shape(self, shape: Any) -> Any:
        """Square matrices, for vectors of what is below a diagonal."""
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        count = shape[-1]
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (n, n)

    def inverse_shape(self, shape: Any) -> Any:
        """Vectors of what is below the diagonal."""
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        n = shape[-1]
        return shape[:-2] + (n * (n - 1) // 2,)


# Of parts -----------------------------------------------------------------------------------------


class _OfParts(Transform):
    """A transform for each part along a dimension."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(each, Transform) for each in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [each.with_cache(cache_size) if cache_size else each for each in tseq]
        self.dim = dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether all are."""
        return all(each.bijective for each in self.transforms)

    def _parts(self, x: Tensor) -> list[Tensor]:
        raise NotImplementedError

    def _joined(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _call(self, x: Tensor) -> Tensor:
        return self._joined([t(v) for t, v in zip(self.transforms, self._parts(x), strict=True)])

    def _inverse(self, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._parts(y), strict=True)
        return self._joined([t.inv(v) for t, v in parts])


class CatTransform(_OfParts):
    """Transforms for stretches of given lengths along a dimension."""

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths must have the same length as transforms, got {len(self.lengths)} and "
                f"{len(self.transforms)}"
            )

    @property
    def event_dim(self) -> int:
        """The most dimensions of any part."""
        return max(each.event_dim for each in self.transforms)

    @property
    def length(self) -> int:
        """The sum of all lengths."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The transform with caches."""
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, x: Tensor) -> list[Tensor]:
        if x.size(self.dim) != self.length:
            raise AssertionError(
                f"x.size({self.dim}) = {x.size(self.dim)} must equal length {self.length}"
            )
        return list(x.split(self.lengths, self.dim))

    def _joined(self, parts: list[Tensor]) -> Tensor:
        return cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Those of the parts, side by side or, inside an event, summed."""
        terms = []
        for t, before, after in zip(
            self.transforms, self._parts(x), self._parts(y), strict=True
        ):
            term = t.log_abs_det_jacobian(before, after)
            terms.append(sum_rightmost(term, self.event_dim - t.event_dim))
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return cat(terms, dim) if dim < 0 else reduce(operator.add, terms)

    @constraints.dependent_property
    def domain(self) -> Any:
        """The domains of the parts, side by side."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """The codomains of the parts, side by side."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_OfParts):
    """Transforms for slices along a dimension."""

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The transform with caches."""
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _parts(self, x: Tensor) -> list[Tensor]:
        if x.size(self.dim) != len(self.transforms):
            raise AssertionError(
                f"x.size({self.dim}) = {x.size(self.dim)} must equal {len(self.transforms)}"
            )
        return list(x.unbind(self.dim))

    def _joined(self, parts: list[Tensor]) -> Tensor:
        return stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Those of the slices, stacked."""
        parts = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        return self._joined([t.log_abs_det_jacobian(a, b) for t, a, b in parts])

    @constraints.dependent_property
    def domain(self) -> Any:
        """The domains of the parts, side by side."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """The codomains of the parts, side by side."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
