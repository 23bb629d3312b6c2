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
from ..core.size import Size, broadcast_shapes
from ..core.tensor import Tensor
from ..creation.factories import arange
from ..nn.functional import pad, softplus
from ..operators.joining import cat, stack
from ..operators.linalg_solving import cholesky
from ..operators.softmax import softmax
from . import constraints
from .utils import sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform",
    "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform",
    "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform",
    "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip


class Transform:
    """A map, and where it is bijective its inverse."""

    bijective = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Transform | None = None
        self._cached: tuple[Any, Any] = (None, None)
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None, "_cached": (None, None)}

    @property
    def event_dim(self) -> int:
        """The number of dimensions of what is mapped."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self) -> Any:
        """The sign of the derivative of a map of numbers."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The transform with another size of its cache."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __call__(self, x: Tensor) -> Tensor:
        """The image of `x`."""
        if not self._cache_size:
            return self._call(x)
        if x is self._cached[0]:
            return self._cached[1]
        y = self._call(x)
        self._cached = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if not self._cache_size:
            return self._inverse(y)
        if y is self._cached[1]:
            return self._cached[0]
        x = self._inverse(y)
        self._cached = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of the absolute value of the determinant of the derivative."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__ + "()"

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the image of what has `shape`."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of what has an image of `shape`."""
        return shape


class _InverseTransform(Transform):
    """The inverse of another transform, whose cache it shares."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv: Any = transform

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cached": (None, None)}

    domain = constraints.dependent_property(lambda self: self._inv.codomain)
    codomain = constraints.dependent_property(lambda self: self._inv.domain)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether the other is."""
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        """The sign of the other's derivative."""
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        """The other."""
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The inverse of the other with a cache."""
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = Transform.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x: Tensor) -> Tensor:
        """What the other maps to `x`."""
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Minus that of the other."""
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the other's argument."""
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the other's image."""
        return self._inv.forward_shape(shape)


class ComposeTransform(Transform):
    """Several transforms, one after the other."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = list(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = Transform.__hash__

    @constraints.dependent_property
    def domain(self) -> Any:
        """That of the first, with as many dimensions as the others need."""
        if not self.parts:
            return constraints.real
        domain = self.parts[0].domain
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim += part.domain.event_dim - part.codomain.event_dim
            event_dim = max(event_dim, part.domain.event_dim)
        return _widened(domain, event_dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """That of the last, with as many dimensions as the others need."""
        if not self.parts:
            return constraints.real
        codomain = self.parts[-1].codomain
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim += part.codomain.event_dim - part.domain.event_dim
            event_dim = max(event_dim, part.codomain.event_dim)
        return _widened(codomain, event_dim)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether all are."""
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        """The product of all signs."""
        return reduce(operator.mul, [part.sign for part in self.parts], 1)

    @property
    def inv(self) -> Transform:
        """The inverses in reverse order."""
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The composition with caches."""
        if self._cache_size == cache_size:
            return self
        return ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        """All images in turn."""
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum of those of the parts."""
        if not self.parts:
            return x.new_zeros(x.shape)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        event_dim = self.domain.event_dim
        terms = []
        for part, before, after in zip(self.parts, values[:-1], values[1:], strict=True):
            term = part.log_abs_det_jacobian(before, after)
            terms.append(sum_rightmost(term, event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return reduce(operator.add, terms)

    def forward_shape(self, shape: Any) -> Any:
        """The shape after all parts."""
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape before all parts."""
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        inside = ",\n    ".join(repr(part) for part in self.parts)
        return f"{type(self).__name__}(\n    {inside}\n)"


def _widened(constraint: Any, event_dim: int) -> Any:
    more = event_dim - constraint.event_dim
    return constraints.independent(constraint, more) if more > 0 else constraint


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform of which some dimensions of a batch count as parts of one event."""

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The transform with a cache."""
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(
            self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size
        )

    @constraints.dependent_property
    def domain(self) -> Any:
        """That of the base, for whole events."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """That of the base, for whole events."""
        return constraints.independent(
            self.base_transform.codomain, self.reinterpreted_batch_ndims
        )

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether the base is."""
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        """That of the base."""
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum over the dimensions that are taken in."""
        result = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_rightmost(result, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        base, count = self.base_transform, self.reinterpreted_batch_ndims
        return f"{type(self).__name__}({base!r}, {count})"

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the base's image."""
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the base's argument."""
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """Changes the shape of events."""

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        """Real events."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        """Real events."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The transform with a cache."""
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Zeros."""
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        """The new shape."""
        return self._replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        """The old shape."""
        return self._replaced(shape, self.out_shape, self.in_shape)

    def _replaced(self, shape: Any, old: Size, new: Size) -> Any:
        if len(shape) < len(old):
            raise ValueError("Too few dimensions on input")
        cut = len(shape) - len(old)
        if shape[cut:] != old:
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
        return shape[:cut] + new


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
        return _widened(constraints.real, self.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """Real events."""
        return _widened(constraints.real, self.event_dim)

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

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """By the rows of the factor, and the derivative of tanh."""
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

    domain = constraints.dependent_property(
        lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)
    )
    codomain = constraints.dependent_property(
        lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)
    )


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

    domain = constraints.dependent_property(
        lambda self: constraints.stack([t.domain for t in self.transforms], self.dim)
    )
    codomain = constraints.dependent_property(
        lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim)
    )
