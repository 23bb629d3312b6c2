"""The short way of calls that are like an earlier one: checks and code in one native call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.tensor import Tensor, requires_of
from ...core.trees.pytree import tree_unflatten
from ..native.program import NativeProgram
from ..native.runtime import Lane
from ..trace.traced import TENSOR, Traced
from .executable import Differentiated

#: Arguments are compared with each other, so that there must not be too many.
MOST_ARGUMENTS = 64


def lane_for(made: Any, args: tuple, modes: tuple) -> Any:
    """What serves calls with such arguments from now on; None where they take the long way."""
    traced, surroundings = made.traced, made.surroundings
    if (
        Lane is None
        or len(args) > MOST_ARGUMENTS
        or any(type(t) is not Tensor for t in args)
        or any(made.attributes)
        or traced.mutated
        or traced.gradients
        or traced.offsets
        or traced.identified
        or traced.given_gradients
        or made.floats
        or traced.store is not None
        or surroundings.unwatchable is not None
    ):
        return None
    grad_enabled, inference = modes[:2]
    needs = [requires_of(t) for t in (*args, *traced.captured)]
    recorded = None
    if grad_enabled and not inference and any(needs):
        recorded = made.executable._differentiable.get(tuple(needs))
        program = recorded.f if isinstance(recorded, Differentiated) else None
    else:
        program = made.executable.__dict__.get("program")
    if not isinstance(program, NativeProgram) or program.latest is None:
        return None
    order = program.latest.order if recorded is None else None
    finish = _finish(traced, order)
    if finish is None:
        return None
    kinds = [0 if not requires_of(t) else 2 if t.node is None else 1 for t in args]
    return Lane(
        program.latest.caller,
        kinds,
        list(traced.captured),
        needs[len(args) :],
        modes,
        surroundings.holds,
        finish,
        made,
        recorded,
    )


def _finish(traced: Traced, order: list[int] | None) -> Callable[[Any], Any] | None:
    """What makes the function's result of the results of native code, which come in an order of
    their own, or of the graph's outputs; None if it takes more."""
    recipes = traced.recipes
    if any(
        r.is_input or r.is_spent or r.strides or r.before is not None or r.history is not None
        for r in recipes
    ):
        return None
    if any(literal is not TENSOR for literal in traced.literals):
        return None
    places = [recipe.index if order is None else order[recipe.index] for recipe in recipes]
    if len(set(places)) < len(places):
        return None
    if traced.out_tree.is_leaf():
        (only,) = places
        return lambda results: results[only]
    tree = traced.out_tree
    return lambda results: tree_unflatten([results[i] for i in places], tree)
