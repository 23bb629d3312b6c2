"""Refusals that depend on values, of functions that are made of other operators.

Where the values are at hand such a function looks at them. In a graph, and inside transforms, what
must hold is an operator of its own, which raises when it runs, even if nobody uses its result.
"""

from __future__ import annotations

from typing import Any

from ..backends import meta
from ..backends.backend import has_elements
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from .declare import nondifferentiable

__all__ = []


def _all_hold(xp: Any, condition: Any, message: str) -> Any:
    holds = condition.all()
    if not holds.item():
        raise RuntimeError(message)
    return holds


def _of_all_examples(operator: Any, args: tuple, dims: tuple) -> tuple[Any, None]:
    """What must hold, holds for all examples of a batch."""
    return operator.call(args), None


_require: Operator = nondifferentiable(
    "_require(Tensor condition, str message) -> Tensor",
    _all_hold,
    meta=lambda condition, message: meta.empty((), condition.dtype),
    batch=_of_all_examples,
    raises="values",
    doc="Raises a RuntimeError with the message unless all elements are true.",
)


def require(condition: Tensor, message: str) -> None:
    """Raise a RuntimeError unless all elements of `condition` are true, now or in the graph."""
    if not has_elements(condition.array):
        _require.call((condition, message))
    elif not condition.array.all().item():
        raise RuntimeError(message)
