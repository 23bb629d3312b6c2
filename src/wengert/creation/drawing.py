"""Drawing random numbers at the levels that are active: each level says what becomes of a draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.arrays import WrapperArray, alive, unreadable_wrapper
from ..core.registry import operator_named
from ..core.scopes import DualsAside
from ..core.state import ThreadState, thread_state
from ..core.tensor import Tensor
from ..dispatch.effects import Effect
from ..dispatch.forward import write_tangent
from ..dispatch.inplace import check_inplace, rebase_history
from ..dispatch.levels import unwrapped
from ..dispatch.overlap import check_not_overlapping
from ..dispatch.recording import record
from ..tape.tangents import tangent_of
from .arguments import first_argument

#: Functions that draw, by name: what a traced graph calls again.
DRAWS: dict[str, Callable[..., Tensor]] = {}


class DrawnFunction(Effect):
    """A function that draws in a way of its own, inside transforms too."""

    def __init__(self, function: Callable[..., Tensor], schemas: tuple[str, ...]) -> None:
        Effect.__init__(self, function.__name__, schemas, function.__doc__)
        self.__wrapped__ = function
        DRAWS[self.name] = function

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        node = noted(self.name, args, kwargs)
        return self.__wrapped__(*args, **kwargs) if node is NotImplemented else node


def draws(*schemas: str) -> Callable[[Callable[..., Tensor]], DrawnFunction]:
    """Decorates a function that draws: traced, a call of it is one node of the graph."""
    return lambda function: DrawnFunction(function, schemas)


def noted(name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What a trace makes of a call that draws; NotImplemented where none is directly around."""
    levels = thread_state().levels
    return levels[-1].draw(name, args, kwargs) if levels else NotImplemented


@draws()
def drawn_in_place_of(t: Tensor, name: str, *args: Any, **options: Any) -> Tensor:
    """A new tensor in the shape of `t`, filled by one of its in-place samplers."""
    return getattr(t.new_empty(t.array.shape), name)(*args, **options)


def sizes_drawn(out: Tensor | None = None) -> tuple[int, ...]:
    """The batch sizes to draw for, in front of the shape that the function sees."""
    levels = thread_state().levels
    if out is not None:
        for level in levels:
            level.check_drawing_into()
    return tuple([size for level in levels for size in level.sizes_drawn()])


def drawn_here(t: Tensor) -> Tensor:
    """Numbers drawn with `sizes_drawn` in front, as the tensor that the function sees."""
    for level in thread_state().levels:
        t = level.drawn(t)
    return t


def fill_at_levels(t: Tensor, name: str, draw: Callable[[Any], None]) -> None:
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
    if value is t:
        level.check_captured_draw(name)
    node = None if value is t else _cut(t, state)
    level.fill(value, dim, lambda below: fill_at_levels(below, name, draw))
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


class Sampler(Effect):
    """A method that fills a tensor in place with random numbers: ``fill(array, *args)``."""

    def __init__(self, name: str, fill: Callable[..., None], *schemas: str) -> None:
        words = f"Fill with random numbers: {name[:-1]} distribution."
        Effect.__init__(self, name, schemas, words)
        self.fill = fill

    def handled(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        target = args[0]
        counter, version = target.shared_counter(), target.version()
        if super().handled(args, kwargs) is NotImplemented:
            return NotImplemented
        counter.value = version  # what the handler has counted is one change
        target.bump(self.name)
        return target

    def __call__(self, *args: Any, generator: Any = None, **options: Any) -> Tensor:
        target, args = first_argument(self.name, "self", args, options)
        check_not_overlapping(self.name, target.array)
        levels = thread_state().levels
        if levels and levels[-1].traces:
            options["generator"] = generator
            return target.copy_(drawn_in_place_of(target, self.name, *args, **options))
        if levels and args and isinstance(args[0], Tensor):
            bernoulli = DRAWS["bernoulli"]
            return target.copy_(bernoulli(args[0].expand_as(target), generator=generator))
        if type(target.array) is WrapperArray:
            raise unreadable_wrapper(self.name + "()")
        fill = self.fill
        fill_at_levels(
            target, self.name, lambda array: fill(array, *args, generator=generator, **options)
        )
        return target
