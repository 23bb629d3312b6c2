"""Random numbers inside transforms: what `randomness` lets `vmap` do with them.

With "different" randomness a draw has the batch sizes of the vmap levels in front of its shape and
becomes a batched tensor; with the "same" it is one draw that all examples share.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core.arrays import LevelArray, alive
from ..core.registry import operator_named
from ..core.scopes import DualsAside
from ..core.state import ThreadState, thread_state
from ..core.tensor import Tensor
from ..dispatch.forward import write_tangent
from ..dispatch.levels import Level, captured_mutation, lifted, unwrapped
from ..dispatch.rebasing import check_inplace, rebase_history
from ..dispatch.recording import record
from ..tape.tangents import tangent_of

# Functions that draw, by name: what a traced graph calls again.
DRAWS: dict[str, Callable[..., Tensor]] = {}


def draws(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorates a function that draws: traced, a call of it is one node of the graph."""
    name = function.__name__
    DRAWS[name] = function

    @functools.wraps(function)
    def draw(*args: Any, **kwargs: Any) -> Tensor:
        levels = thread_state().levels
        if levels and levels[-1].kind == "trace":
            return levels[-1].draw(name, args, kwargs)
        return function(*args, **kwargs)

    return draw


@draws
def drawn_in_place_of(t: Tensor, name: str, *args: Any, **options: Any) -> Tensor:
    """A new tensor in the shape of `t`, filled by one of its in-place samplers."""
    return getattr(t.new_empty(t.array.shape), name)(*args, **options)


def sizes_here(out: Tensor | None = None) -> tuple[int, ...]:
    """The batch sizes to draw for, in front of the shape that the function sees."""
    levels = [level for level in thread_state().levels if level.kind == "vmap"]
    if levels and out is not None:
        raise RuntimeError(
            "vmap: We do not support calling out variants of random operations inside of vmap: "
            "all examples would share `out`"
        )
    for level in levels:
        _check_allowed(level)
    return tuple([level.batch_size for level in levels if level.randomness == "different"])


def check_same_parameters(*parameters: Any) -> None:
    """Refuse parameters that differ from example to example where all examples share a draw."""
    for t in parameters:
        while isinstance(t, Tensor) and type(t.array) is LevelArray:
            if t.array.dim is not None and t.array.level.randomness == "same":
                raise RuntimeError(
                    "Vmap does not currently support same randomness with a batched tensor input: "
                    "examples whose distributions differ have no draw in common. Draw from a "
                    "standard distribution and apply the parameters to it, or use "
                    "randomness='different'"
                )
            t = t.array.value


def drawn_here(t: Tensor) -> Tensor:
    """Numbers drawn with `sizes_here` in front, as the tensor that the function sees."""
    for level in thread_state().levels:
        if level.kind != "vmap":
            t = level.made(t)
        elif level.randomness == "different":
            t = lifted(t, level, 0)
    return t


def drawn_like(function: Callable[..., Tensor], like: Tensor, **options: Any) -> Tensor:
    """What `function` draws like a tensor, called one level below on its value."""
    level = thread_state().levels[-1]
    value, dim = unwrapped(like, level)
    if level.kind == "vmap":
        _check_allowed(level)
        with level.below():
            if level.randomness == "same":
                return function(value if dim is None else value.select(dim, 0), **options)
            if dim is None:
                value, dim = value.expand((level.batch_size, *value.array.shape)), 0
            return lifted(function(value, **options), level, dim)
    with level.below():
        return lifted(function(value, **options), level)


def drawn_by_rows(function: Callable[..., Tensor], weights: Tensor, **options: Any) -> Tensor:
    """What `function` draws for each row of `weights`, called one level below on a matrix."""
    level = thread_state().levels[-1]
    value, dim = unwrapped(weights, level)
    if level.kind != "vmap":
        with level.below():
            return lifted(function(value, **options), level)
    _check_allowed(level)
    check_same_parameters(weights)
    with level.below():
        if level.randomness == "same":
            return function(value, **options)
        if dim is None:
            value = value.expand((level.batch_size, *value.array.shape))
        else:
            value = value.movedim(dim, 0)
        rows = value.reshape((-1, value.array.shape[-1]))
        drawn = function(rows, **options)
        return lifted(drawn.reshape((*value.array.shape[:-1], -1)), level, 0)


def fill_here(t: Tensor, name: str, draw: Callable[[Any], None]) -> None:
    """Fill a tensor in place: `draw` writes into the array at the bottom of all levels.

    For the graph and the tangents of each level, the new values are constants.
    """
    state = thread_state()
    t = alive(t)
    if not state.levels:
        node = _cut(t, state)
        draw(t.array)
        _note_change(t, name, node)
        return
    level = state.levels[-1]
    value, dim = unwrapped(t, level)
    node = None if value is t else _cut(t, state)
    if level.kind != "vmap":
        if value is t:
            raise captured_mutation(name, level)
        with level.below():
            fill_here(value, name, draw)
    else:
        _fill_batched(level, value, dim, name, draw)
    if value is not t:
        _note_change(t, name, node)


def _cut(t: Tensor, state: ThreadState) -> Any:
    """The node that passes no gradient on to what `t` was before; None if nothing is recorded."""
    recording = state.recording() and t.requires()
    check_inplace(t, recording, state)
    return record(operator_named("zero"), state, (t,), t.array) if recording else None


def _note_change(t: Tensor, name: str, node: Any) -> None:
    t.bump(name)
    if node is not None:
        rebase_history(t, node)
    tangent = tangent_of(t) if thread_state().dual_level >= 0 else None
    if tangent is not None:
        with DualsAside(thread_state()):
            write_tangent(t, tangent.new_zeros(tangent.array.shape))


def _fill_batched(
    level: Level, value: Tensor, dim: int | None, name: str, draw: Callable[[Any], None]
) -> None:
    _check_allowed(level)
    if dim is None and level.randomness == "different":
        raise RuntimeError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor, which all "
            "examples share. Use an out-of-place function, or a tensor made from a batched one"
        )
    with level.below():
        if dim is None or level.randomness == "different":
            fill_here(value, name, draw)
        else:
            one = value.select(dim, 0).clone()
            fill_here(one, name, draw)
            value.copy_(one.unsqueeze(dim))


def _check_allowed(level: Level) -> None:
    if level.of_derivatives:
        raise RuntimeError(
            "vmap: We do not yet support calling random operations inside of vmap: derivatives for "
            "a batch of gradients or tangents are computed at once, and nothing says whether its "
            "members share random numbers. Draw them in the forward pass, or compute one at a time"
        )
    if level.randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Say with "
            "vmap(..., randomness='same') or 'different' whether examples share random numbers, or "
            "draw them outside"
        )
