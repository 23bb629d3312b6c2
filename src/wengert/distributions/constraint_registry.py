"""Transforms from all real numbers to what a constraint allows.

`biject_to(constraint)` is bijective, `transform_to(constraint)` may do with more numbers than
needed, which suits optimisation.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Functions that make a transform for constraints, by class."""

    def __init__(self) -> None:
        self._registry: dict[type, Callable] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Callable | None = None) -> Any:
        """Add a function for a class of constraints; without one, a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, but got "
                f"{kind}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """The transform to what a constraint allows."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints"
            )
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _to_real(constraint: Any) -> Any:
    return transforms.identity_transform


def _shifted_exp(bound: str, sign: int) -> Callable:
    def make(constraint: Any) -> Any:
        shift = transforms.AffineTransform(getattr(constraint, bound), sign)
        return transforms.ComposeTransform([transforms.ExpTransform(), shift])

    return make


def _to_interval(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, Number) and isinstance(high, Number) and low == 0 and high == 1:
        return transforms.SigmoidTransform()
    scale = transforms.AffineTransform(low, high - low)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), scale])


for _registry in (biject_to, transform_to):
    _registry.register(constraints.real, _to_real)
    _registry.register(constraints.greater_than, _shifted_exp("lower_bound", 1))
    _registry.register(constraints.greater_than_eq, _shifted_exp("lower_bound", 1))
    _registry.register(constraints.less_than, _shifted_exp("upper_bound", -1))
    _registry.register(constraints.interval, _to_interval)
    _registry.register(constraints.half_open_interval, _to_interval)
    _registry.register(constraints.corr_cholesky, lambda c: transforms.CorrCholeskyTransform())
    _registry.register(
        constraints.independent,
        lambda c, registry=_registry: transforms.IndependentTransform(
            registry(c.base_constraint), c.reinterpreted_batch_ndims
        ),
    )
    _registry.register(
        constraints.cat,
        lambda c, registry=_registry: transforms.CatTransform(
            [registry(each) for each in c.cseq], c.dim, c.lengths
        ),
    )
    _registry.register(
        constraints.stack,
        lambda c, registry=_registry: transforms.StackTransform(
            [registry(each) for each in c.cseq], c.dim
        ),
    )
biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(
    constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform()
)
for _constraint in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_constraint, lambda c: transforms.PositiveDefiniteTransform())
