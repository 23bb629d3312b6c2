"""The memory that a tensor inside transforms stands for: reading it, and aliases of it."""

from __future__ import annotations

from typing import Any

from ..core.arrays import LevelArray, WrapperArray, alive, unmarked, unreadable, unreadable_wrapper
from ..core.registry import makers, operator_named
from ..core.state import thread_state
from ..core.tensor import Tensor, wrap
from ..dispatch.levels import check_alive, level_array
from ..dispatch.torch_dispatch import override_below


def plain(t: Tensor, action: str) -> Tensor:
    """The tensor below all transforms that `t` stands for, to be read; refused for a batch."""
    while type((t := alive(t)).array) is LevelArray:
        check_alive(t.array.level)
        t = t.array.level.value_to_read(t.array, action)
    if type(t.array) is WrapperArray:
        raise unreadable_wrapper(action)
    _check_not_traced(action)
    return t


def _check_not_traced(action: str) -> None:
    """Refuse to read a tensor inside a traced function: what is read would be fixed for ever."""
    for level in thread_state().levels:
        if level.fixes_what_is_read:
            raise level.unknown(action)


def check_readable(t: Tensor) -> None:
    """Refuse to hand out the memory of a tensor that has none of its own."""
    if type(t.array) is LevelArray:
        raise unreadable(t.array)
    if type(t.array) is WrapperArray:
        raise unreadable_wrapper("its memory")
    _check_not_traced("reading the memory")


def alias_of(t: Tensor) -> Tensor:
    """A new tensor without history on the memory of `t`.

    Modes see the call, and classes that handle operators decide. The version counter is not shared
    yet.
    """
    t = alive(t)
    if type(t.array) is LevelArray:
        return wrap(_detached(t))
    state = thread_state()
    if state.modes or type(t) is not Tensor:
        out = override_below(state, operator_named("detach"), (t,))
        if out is not NotImplemented:
            if not isinstance(out, Tensor):
                raise RuntimeError(
                    f"Unable to cast {out!r} to Tensor: that is what the handler returned for "
                    "detach()"
                )
            return wrap(unmarked(t.array)) if out is t and type(t) is Tensor else out
    return wrap(unmarked(t.array))


makers.alias = alias_of


def _detached(t: Tensor) -> Any:
    """The array of a level tensor with its value outside the graphs of all levels."""
    array: Any = t.array
    with array.level.below():
        return level_array(array.value.detach(), array.level, array.dim)


def detached_copy(t: Tensor) -> Tensor:
    """A copy of a level tensor without history at any level."""
    return alias_of(t).clone()
