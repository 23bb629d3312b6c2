"""Sets of values: what parameters of distributions may be, and what samples are.

`check` says for each value, or for each of the last `event_dim` dimensions, whether it is inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import dtypes
from ..core.tensor import Tensor
from ..operators.joining import cat as _join
from ..operators.joining import stack as _stack
from ..operators.linalg_solving import cholesky_ex as _cholesky_ex
from ..operators.linalg_spectral import eigvalsh as _eigvalsh

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent",
    "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent",
    "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky",
    "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive",
    "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector",
    "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A set of values."""

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Tensor:
        """Which values are in the set."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__.lstrip("_") + "()"


class _Dependent(Constraint):
    """A set that depends on other values, so that nothing can be checked."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether the set is discrete, if that is known."""
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The number of dimensions of an event, if that is known."""
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> _Dependent:
        """A dependent constraint of which more is known."""
        if is_discrete is NotImplemented:
            is_discrete = self._is_discrete
        if event_dim is NotImplemented:
            event_dim = self._event_dim
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, x: Tensor) -> Tensor:
        """Refused."""
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on other values."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that is a constraint for instances, and a dependent one for the class."""

    def __init__(
        self,
        fn: Callable | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable) -> _DependentProperty:  # type: ignore[override]
        """Decorate a method."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """The last dimensions of a batch belong to one event, all of which must be inside."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether the base is discrete."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The dimensions of the base and those taken in."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        """Which events are inside throughout."""
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            expected = self.base_constraint.event_dim + self.reinterpreted_batch_ndims
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.dim()}")
        kept = result.dim() - self.reinterpreted_batch_ndims
        return result.reshape(result.shape[:kept] + (-1,)).all(-1)

    def __repr__(self) -> str:
        base, count = self.base_constraint, self.reinterpreted_batch_ndims
        return f"{type(self).__name__[1:]}({base!r}, {count})"


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture, whose components all have one."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether the components are discrete."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The dimensions of an event of a component."""
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        """Which values are inside for all components."""
        kept = value.dim() - self.event_dim
        if kept < 0:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        checked = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return checked.reshape(checked.shape[:kept] + (-1,)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        """Zeros and ones."""
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        """A single one among zeros."""
        is_boolean = (value == 0) | (value == 1)
        return is_boolean.all(-1) & value.sum(-1).eq(1)


class _Bounded(Constraint):
    """Between bounds that the text shows."""

    lower_bound: Any
    upper_bound: Any

    def __init__(self, **bounds: Any) -> None:
        self.__dict__.update(bounds)

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{type(self).__name__[1:]}({bounds})"


class _IntegerInterval(_Bounded):
    is_discrete = True

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound=lower_bound, upper_bound=upper_bound)

    def check(self, value: Tensor) -> Tensor:
        """Whole numbers within both bounds."""
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_Bounded):
    is_discrete = True

    def __init__(self, upper_bound: Any) -> None:
        super().__init__(upper_bound=upper_bound)

    def check(self, value: Tensor) -> Tensor:
        """Whole numbers up to the bound."""
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Bounded):
    is_discrete = True

    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound=lower_bound)

    def check(self, value: Tensor) -> Tensor:
        """Whole numbers from the bound on."""
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        """Whatever is a number."""
        return value == value


class _GreaterThan(_Bounded):
    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound=lower_bound)

    def check(self, value: Tensor) -> Tensor:
        """Above the bound."""
        return self.lower_bound < value


class _GreaterThanEq(_GreaterThan):
    def check(self, value: Tensor) -> Tensor:
        """From the bound on."""
        return self.lower_bound <= value


class _LessThan(_Bounded):
    def __init__(self, upper_bound: Any) -> None:
        super().__init__(upper_bound=upper_bound)

    def check(self, value: Tensor) -> Tensor:
        """Below the bound."""
        return value < self.upper_bound


class _Interval(_Bounded):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound=lower_bound, upper_bound=upper_bound)

    def check(self, value: Tensor) -> Tensor:
        """Within both bounds."""
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    def check(self, value: Tensor) -> Tensor:
        """From the lower bound to below the upper one."""
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        """Nonnegative, with the sum one."""
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Tensor) -> Tensor:
        """Nonnegative, with a sum up to the bound."""
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        """Zeros above the diagonal."""
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Tensor) -> Tensor:
        """Zeros above a positive diagonal."""
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value: Tensor) -> Tensor:
        """Cholesky factors whose rows have the norm one."""
        tolerance = dtypes.finfo(value.dtype).eps * value.size(-1) * 10
        norms = (value.detach() ** 2).sum(-1).sqrt()
        return super().check(value) & ((norms - 1).abs() <= tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        """Square matrices."""
        is_square = value.shape[-2] == value.shape[-1]
        return value.new_full(value.shape[:-2], is_square, dtype=dtypes.bool)


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        """Square matrices that are nearly their transposes."""
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return value.isclose(value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        """Symmetric matrices without negative eigenvalues."""
        is_symmetric = super().check(value)
        if not is_symmetric.all():
            return is_symmetric
        return _eigvalsh(value).ge(0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        """Symmetric matrices that have a Cholesky factor."""
        is_symmetric = super().check(value)
        if not is_symmetric.all():
            return is_symmetric
        return _cholesky_ex(value).info.eq(0)




class _Joined(Constraint):
    """Several constraints for parts along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        if not all(isinstance(each, Constraint) for each in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq = list(cseq)
        self.dim = dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether a part is discrete."""
        return any(each.is_discrete for each in self.cseq)


class _Cat(_Joined):
    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(
                f"lengths must have same length as cseq, got {len(self.lengths)} vs "
                f"{len(self.cseq)}"
            )

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The most dimensions of any part."""
        return max(each.event_dim for each in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        """Each stretch by its constraint."""
        parts = value.split(self.lengths, self.dim)
        return _join([c.check(x) for c, x in zip(self.cseq, parts, strict=True)], self.dim)


class _Stack(_Joined):
    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The dimensions of the parts, and the one along which they are stacked."""
        dim = max(each.event_dim for each in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        """Each slice by its constraint."""
        parts = value.unbind(self.dim)
        return _stack([c.check(x) for c, x in zip(self.cseq, parts, strict=True)], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
