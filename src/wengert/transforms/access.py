"""Tensors inside a transform, for functions that are no operators: making, reading, detaching.

What a function makes inside grad or jvp belongs to that level, so that it can be changed in place.
What it makes inside vmap is the same for all examples, unless it is made like a batched tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends.placement import of_array, transfer
from ..core.arrays import LevelArray, WrapperArray, alive, unmarked, unreadable, unreadable_wrapper
from ..core.registry import makers, operator_named
from ..core.state import thread_state
from ..core.tensor import Tensor, wrap
from ..dispatch.levels import check_alive, level_array, lifted, unwrapped
from ..dispatch.torch_dispatch import override_below


def made_like(function: Callable[..., Tensor], like: Tensor, *sizes: Any, **options: Any) -> Tensor:
    """What `function`, called one level below, makes like the value of a tensor.

    `sizes` are the shape asked for, if any: a batched tensor's has the batch size in front.
    """
    level = thread_state().levels[-1]
    value, dim = unwrapped(like, level)
    if level.kind == "trace":
        empty = np.empty_like(like.array.view(np.ndarray))  # a LevelArray is one of NumPy's
        value = wrap(transfer(empty, of_array(like.array)))
        with level.below():
            return level.made(function(value, *sizes, **options))
    if dim is not None and sizes:
        sizes = ((value.array.shape[dim], *sizes[0]),)
        dim = 0
    with level.below():
        out = function(value, *sizes, **options)
    return out if level.kind == "vmap" and dim is None else lifted(out, level, dim)


def plain(t: Tensor, action: str) -> Tensor:
    """The tensor below all transforms that `t` stands for, to be read; refused for a batch."""
    while type((t := alive(t)).array) is LevelArray:
        check_alive(t.array.level)
        level: Any = t.array.level
        if level.kind == "trace":
            raise level.unknown(action)
        if t.array.dim is not None:
            raise RuntimeError(
                f"vmap: It looks like you're calling {action} on a Tensor, or attempting to use a "
                "Tensor in some data-dependent control flow. It has a value for each example and "
                "no single one: use where() and other operators instead"
            )
        t = t.array.value
    if type(t.array) is WrapperArray:
        raise unreadable_wrapper(action)
    _check_not_traced(action)
    return t


def _check_not_traced(action: str) -> None:
    """Refuse to read a tensor inside a traced function: what is read would be fixed for ever."""
    for level in thread_state().levels:
        if getattr(level, "fixes_what_is_read", False):
            raise level.unknown(action)


def check_readable(t: Tensor) -> None:
    """Refuse to hand out the memory of a tensor that has none of its own."""
    if type(t.array) is LevelArray:
        raise unreadable(t.array)
    if type(t.array) is WrapperArray:
        raise unreadable_wrapper("its memory")
    _check_not_traced("reading the memory")


def check_hookable(t: Tensor, action: str) -> None:
    """Refuse a hook inside a traced function, which a backward outside of it would not run."""
    if type(t.array) is LevelArray and t.array.level.kind == "trace":
        level: Any = t.array.level
        raise level.refusal(
            f"{action} inside a traced function: a backward outside of it would not run the hook. "
            "Return the tensor and register the hook on the result"
        )


def alias_of(t: Tensor) -> Tensor:
    """The same memory as a new tensor without history, for classes that handle operators by them.

    Modes see it too. The version counter is not shared yet.
    """
    t = alive(t)
    if type(t.array) is LevelArray:
        return wrap(detached(t))
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


def detached(t: Tensor) -> Any:
    """The array of a level tensor with its value outside the graphs of all levels."""
    array: Any = t.array
    with array.level.below():
        return level_array(array.value.detach(), array.level, array.dim)


def detached_copy(t: Tensor) -> Tensor:
    """A copy of a level tensor without history at any level."""
    return alias_of(t).clone()


def trace_around(t: Tensor) -> Any:
    """The trace that a tensor belongs to, or would be an input of: None if there is none.

    What shares memory with a tensor from outside must be made from the input that stands for it,
    since the tensor may have other memory when the graph runs.
    """
    array = t.array
    if type(array) is LevelArray and thread_state().levels[-1].kind != "trace":
        return array.level if array.level.kind == "trace" else None
    for level in reversed(thread_state().levels):
        if level.kind == "trace":
            return level
    return None


def in_transform() -> bool:
    """Whether a function transform is active; tracing, which runs a program as it is, is none."""
    return any(level.kind != "trace" for level in thread_state().levels)


def check_outside(call: str) -> None:
    """Refuse `call`, which marks leaves, where transforms decide what is differentiated."""
    if in_transform():
        raise RuntimeError(
            f"You are attempting to call {call} inside of a function being transformed by a "
            "functorch transform. The transforms of wengert.func decide themselves what is "
            "differentiated: nest them, or make the call outside"
        )
