"""The short way of calls that are like an earlier one: checks and code in one native call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.tensor import Tensor, requires_of
from ...core.trees.pytree import tree_unflatten
from ..native.program import NativeProgram
from ..native.runtime import Lane
from ..trace.traced import TENSOR, Traced

#: Arguments are compared with each other, so that there must not be too many.
MOST_ARGUMENTS = 64


def lane_for(made: Any, args: tuple, modes: tuple) -> Any:
    """What serves calls with such arguments from now on; None where they take the long way."""
    traced, surroundings = made.traced, made.surroundings
    if (
        Lane is None
        or len(args) > MOST_ARGUMENTS
        or any(type(t) is not Tensor or requires_of(t) for t in args)
        or any(made.attributes)
        or traced.mutated
        or traced.gradients
        or traced.offsets
        or traced.identified
        or traced.given_gradients
        or traced.store is not None
        or surroundings.unwatchable is not None
    ):
        return None
    program = made.executable.__dict__.get("program")
    if not isinstance(program, NativeProgram) or program.latest is None:
        return None
    grad_enabled = modes[0]
    if grad_enabled and any(requires_of(t) for t in traced.captured):
        return None
    finish = _finish(traced, program.latest)
    if finish is None:
        return None
    return Lane(
        program.latest.caller,
        len(args),
        list(traced.captured),
        modes,
        surroundings.holds,
        finish,
        made,
    )


def _finish(traced: Traced, variant: Any) -> Callable[[list], Any] | None:
    """What makes the function's result of the results of native code; None if it takes more."""
    recipes = traced.recipes
    if any(
        r.is_input or r.is_spent or r.strides or r.before is not None or r.history is not None
        for r in recipes
    ):
        return None
    if any(literal is not TENSOR for literal in traced.literals):
        return None
    places = [variant.order[recipe.index] for recipe in recipes]
    if len(set(places)) < len(places):
        return None
    if traced.out_tree.is_leaf():
        (only,) = places
        return lambda results: results[only]
    tree = traced.out_tree
    return lambda results: tree_unflatten([results[i] for i in places], tree)
