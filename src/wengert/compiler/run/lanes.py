"""The short way of calls that are like an earlier one: checks and code in one native call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.tensor import Tensor, requires_of
from ...core.trees.pytree import tree_unflatten
from ..native.program import NativeProgram
from ..native.runtime import Lane, Recording
from ..trace.traced import TENSOR, Traced
from .executable import CompiledFunction, Differentiated

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
    differentiated: Any = None
    if grad_enabled and not inference and any(needs):
        differentiated = made.executable._differentiable.get(tuple(needs))
        program = differentiated.f if isinstance(differentiated, Differentiated) else None
    else:
        program = made.executable.__dict__.get("program")
    if not isinstance(program, NativeProgram) or program.latest is None:
        return None
    order: list[int] = program.latest.order
    recording = None
    if differentiated is not None:
        recording = _recording(differentiated, needs, order)
        if recording is None:
            return None
        order = list(range(len(order)))
    places = _places(traced, order)
    if places is None:
        return None
    is_one = traced.out_tree.is_leaf()
    kinds = [0 if not requires_of(t) else 2 if t.node is None else 1 for t in args]
    return Lane(
        program.latest.caller,
        kinds,
        list(traced.captured),
        needs[len(args) :],
        modes,
        surroundings.holds,
        None if is_one else _finish(traced, places),
        places[0] if is_one else -1,
        made,
        recording,
    )


def _recording(compiled: Differentiated, needs: list[bool], order: list[int]) -> Any:
    """How calls of a differentiated graph are recorded; None where that takes more."""
    wiring, executable = compiled.wiring, compiled.executable
    count = wiring.f_real_outputs
    if executable.generators or executable.mutated or not count:
        return None
    if len(set(order[:count])) < count:
        return None
    kept = [order[i] for i in wiring.df_input_captured_outputs]
    return Recording(
        CompiledFunction._plan,
        order[:count],
        [i in wiring.output_vjps for i in range(count)],
        kept,
        (False, *needs),
        (False, *[True] * len(needs)),
        (compiled, (), [None] * len(kept)),
    )


def _places(traced: Traced, order: list[int]) -> list[int] | None:
    """Where the function's results are among those of native code, whose order is given; None if
    making them takes more than to look them up."""
    recipes = traced.recipes
    if any(
        r.is_input or r.is_spent or r.strides or r.before is not None or r.history is not None
        for r in recipes
    ):
        return None
    if any(literal is not TENSOR for literal in traced.literals):
        return None
    places = [order[recipe.index] for recipe in recipes]
    return None if len(set(places)) < len(places) else places


def _finish(traced: Traced, places: list[int]) -> Callable[[Any], Any]:
    """What makes the function's result of tensors."""
    tree = traced.out_tree
    return lambda results: tree_unflatten([results[i] for i in places], tree)
