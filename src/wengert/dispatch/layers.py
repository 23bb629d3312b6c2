"""What stands around a plain call when something is active.

From the outside in: classes and modes override the call as a whole (`torch_function.py`), the
tensors are brought to one transform level (`levels.py`), forward mode gives the results their
tangents, autograd records the call (`Operator.call_recorded`), and `run_below` does what the kernel
would: the level below, a dispatch mode, a tensor subclass, or in the end the kernel itself.
"""

from __future__ import annotations

from typing import Any

from ..core.arrays import alive, made_inside, unmarked_arguments
from ..core.native import native
from ..core.scopes import DualsAside
from ..core.state import ThreadState, thread_state
from ..tape.tangents import inherit_tangent_base
from .arguments import arrays_of
from .forward import call_with_tangents, tangents_of
from .levels import (
    RecordedAlone,
    ascend,
    at_level,
    check_active,
    check_not_captured,
    descend,
    innermost,
    level_of_call,
)
from .torch_dispatch import as_results, override_below
from .torch_function import PLAIN, override_bound


def call_layers(operator: Any, args: tuple) -> Any:
    """Call an operator through everything that is active."""
    state = thread_state()
    if not native.overriding or state.inside:
        return _call_inside(state, operator, args)
    out = override_bound(operator, args)
    if out is not PLAIN:
        return out
    state.inside = True
    try:
        return _call_inside(state, operator, args)
    finally:
        state.inside = False


def _call_inside(state: ThreadState, operator: Any, args: tuple) -> Any:
    """The same below what overrides public functions."""
    profiler = state.profiler
    if profiler is not None:
        return profiler.call(operator, args, _call_unmeasured)
    return _call_unmeasured(operator, args)


def _call_unmeasured(operator: Any, args: tuple) -> Any:
    state = thread_state()
    try:
        level = level_of_call(args)
    except RuntimeError:  # a tensor has escaped from its transform
        return _call_on_values(operator, args)
    if level is not None:
        check_active(level, state)
    if state.levels and level is not state.levels[-1]:
        number = 0 if level is None else level.number
        if not has_inner_tangents(state, operator, args, number):
            return call_outside(state, operator, args, number)
    elif level is not None:
        args = at_level(operator, args, level)
        if level.pushes_forward:
            with RecordedAlone(level, state):
                return operator.call_recorded(state, args)
    if state.dual_level >= 0 and state.forward_grad_enabled and not state.tangents_aside:
        tangents = tangents_of(operator, args)
        if tangents:
            with DualsAside(state):
                return call_with_tangents(operator, args, tangents)
        if not operator.mutates and operator.is_view:
            out = operator.call_recorded(state, args)
            inherit_tangent_base(args[0], out)
            return out
    return operator.call_recorded(state, args)


def _call_on_values(operator: Any, args: tuple) -> Any:
    """Call an operator on what is left of tensors whose transforms have ended."""
    values = tuple([alive(value) for value in args])
    level_of_call(values)
    out = operator.call(values)
    return args[0] if operator.mutates and out is values[0] else out


def has_inner_tangents(state: ThreadState, operator: Any, args: tuple, number: int) -> bool:
    """Whether a tangent belongs to a level further in than `number`, to which the tensors do."""
    if state.dual_level < 0 or not state.forward_grad_enabled:
        return False
    level = innermost(tuple(tangents_of(operator, args).values()))
    return level is not None and level.number > number


def call_outside(state: ThreadState, operator: Any, args: tuple, number: int) -> Any:
    """Call an operator on tensors from outside the innermost levels, which it does not concern."""
    if operator.mutates:
        check_not_captured(operator.name, state.levels[number:])
    saved = descend(state, number)
    try:
        out = operator.call(args)
    finally:
        ascend(state, saved)
    return out if operator.mutates or operator.is_view else made_inside(out, state.levels[number:])


def run_below(operator: Any, args: tuple) -> Any:
    """What the kernel of an operator makes of its arguments: arrays, as `finish` expects them.

    None for an in-place operator whose target has been written.
    """
    level = innermost(args)
    if level is not None:
        return level.call(operator, args)
    out = override_below(thread_state(), operator, args)
    if out is not NotImplemented:
        return None if operator.mutates else as_results(operator, args, out)
    if native.overriding:
        args = unmarked_arguments(args)
    if operator.mutates:
        operator.write(args[0], args)
        return None
    return operator.run_kernel(arrays_of(args))
