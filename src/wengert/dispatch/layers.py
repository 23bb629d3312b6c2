"""What stands around a plain call when something is active.

From the outside in: classes and modes override the call as a whole (`torch_function.py`), the
tensors are brought to one transform level (`levels.py`), forward mode gives the results their
tangents, autograd records the call (`Operator.finish`), and below it runs what the kernel would:
the level below, a dispatch mode, a tensor subclass, or in the end the kernel itself.
"""

from __future__ import annotations

from typing import Any

from ..core.arrays import LevelArray, alive, made_inside, unmarked_arguments
from ..core.scopes import DualsAside
from ..core.state import ThreadState, overriding, thread_state
from ..core.tensor import Tensor
from ..tape.tangents import inherit_tangent_base
from .declaration import arrays_of
from .forward import call_with_tangents, tangents_of
from .levels import Level, RecordedAlone, ascend, check_alive, descend
from .torch_dispatch import as_results, override_below
from .torch_function import PLAIN, override_bound

_overriding = overriding


def call_layers(state: ThreadState, operator: Any, args: tuple) -> Any:
    """Call an operator through everything that is active."""
    if _overriding.possible and not state.inside:
        out = override_bound(operator, args)
        if out is not PLAIN:
            return out
        state.inside = True
        try:
            return call_layers(state, operator, args)
        finally:
            state.inside = False
    if state.profiler is not None:
        return state.profiler.call(operator, args, _call_measured)
    return _call_at_level(state, operator, args)


def _call_measured(operator: Any, args: tuple) -> Any:
    return _call_at_level(thread_state(), operator, args)


def _call_at_level(state: ThreadState, operator: Any, args: tuple) -> Any:
    """Call an operator at the innermost level of its tensors, with its tangents."""
    levels = state.levels
    try:
        level = level_of_call(state, args)
    except RuntimeError:  # a tensor has escaped from its transform
        return _call_on_values(state, operator, args)
    if level is not None:
        _check_active(level, levels)
    if levels and level is not levels[-1]:
        number = 0 if level is None else level.number
        if state.dual_level < 0 or not has_inner_tangents(state, operator, args, number):
            return call_outside(state, operator, args, number)
    elif level is not None:
        args = _at_level(operator, args, level)
        if level.pushes_forward:
            with RecordedAlone(level, state, not operator.mutates and operator.is_view):
                return _recorded(state, operator, args, level)
    if state.dual_level >= 0 and state.forward_grad_enabled and not state.tangents_aside:
        tangents = tangents_of(operator, args)
        if tangents:
            with DualsAside(state):
                return call_with_tangents(operator, args, tangents)
        if not operator.mutates and operator.is_view:
            out = _recorded(state, operator, args, level)
            inherit_tangent_base(args[0], out)
            return out
    return _recorded(state, operator, args, level)


def _recorded(state: ThreadState, operator: Any, args: tuple, level: Level | None) -> Any:
    """Record a call whose results a level computes, or else what is below all levels."""
    if not operator.finishes:
        return operator.call_recorded(state, args, run_below)
    if level is None:
        out = run_below(state, operator, args)
    else:
        out = level.call(state, operator, args)
    return None if out is None else operator.finish(state, args, out)


def _call_on_values(state: ThreadState, operator: Any, args: tuple) -> Any:
    """Call an operator on what is left of tensors whose transforms have ended."""
    values = tuple([alive(value) for value in args])
    level_of_call(state, values)
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
        for level in reversed(state.levels[number:]):
            level.check_outer_change(operator.name)
    saved = descend(state, number)
    try:
        out = operator.call(args)
    finally:
        ascend(state, saved)
    return out if operator.mutates or operator.is_view else made_inside(out, state.levels[number:])


def run_below(state: ThreadState, operator: Any, args: tuple) -> Any:
    """What the kernel of an operator makes of its arguments: arrays, as `finish` expects them.

    None for an in-place operator whose target has been written.
    """
    level = innermost(args)
    if level is not None:
        return level.call(state, operator, args)
    out = override_below(state, operator, args)
    if out is not NotImplemented:
        return None if operator.mutates else as_results(operator, args, out)
    if _overriding.possible:
        args = unmarked_arguments(args)
    if operator.mutates:
        operator.write(args[0], args)
        return None
    return operator.run_kernel(arrays_of(args))


# The level of a call -----------------------------------------------------------------------------


def innermost(args: tuple) -> Level | None:
    """The innermost level that any of the tensors among `args` belongs to."""
    found: Level | None = None
    for value in args:
        if isinstance(value, Tensor):
            found = _inner(found, value)
        elif type(value) is list or type(value) is tuple:
            for item in value:
                if isinstance(item, Tensor):
                    found = _inner(found, item)
    return found


def _inner(found: Level | None, t: Tensor) -> Level | None:
    array = t.array
    if type(array) is not LevelArray:
        return found
    level = array.level
    if not level.number:
        check_alive(level)
    return level if found is None or level.number > found.number else found


def level_of_call(state: ThreadState, args: tuple) -> Level | None:
    """The level at which a call with these arguments takes place.

    That is the innermost of its tensors, except that a trace sees all calls made inside it.
    """
    found = innermost(args)
    for level in reversed(state.levels):
        if level is found:
            break
        if level.traces:
            return level
    return found


def _check_active(level: Level, levels: list) -> None:
    """Refuse a tensor of a transform that another thread runs."""
    number = level.number
    if number > len(levels) or levels[number - 1] is not level:
        raise RuntimeError(
            f"a tensor made inside a {level.kind} transform is used in a thread that does not run "
            "the transform"
        )


def _at_level(operator: Any, args: tuple, level: Level) -> tuple:
    """The arguments with every tensor of an outer level lifted to `level`."""
    if operator.mutates and _is_outer(args[0], level):
        level.check_captured_target(operator.name)
    for value in args:
        if type(value) is list or (isinstance(value, Tensor) and _is_outer(value, level)):
            return tuple([_lifted(each, level) for each in args])
    return args


def _is_outer(t: Tensor, level: Level) -> bool:
    array = t.array
    return type(array) is not LevelArray or array.level is not level


def _lifted(value: Any, level: Level) -> Any:
    if isinstance(value, Tensor):
        return level.lift(value) if _is_outer(value, level) else value
    if type(value) is list:
        return [_lifted(item, level) for item in value]
    return value
