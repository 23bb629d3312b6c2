"""Checkpointing without reentrancy: saved tensors are dropped and made again when asked for.

A region's forward runs under saved-tensor hooks that keep an empty `Place` for each tensor. The
first place that a backward asks for runs the region again under other hooks, which fill the places
in the order of saving. A backward is known by its number, so every backward over a retained graph
computes anew, and what has been handed out is not kept.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ...autograd.grad_mode import enable_grad
from ...autograd.graph import saved_tensors_hooks
from ...core.scopes import Restoring
from ...core.state import thread_state
from ...core.tensor import Tensor
from ...creation.generator import fork_rng, get_rng_state, set_rng_state
from ...tape.node import Node, unpack_saved
from ...tape.plans import GradientPlan
from ...tape.saved import save
from ...tape.tasks import current_graph_task_id
from ...transforms.memory import alias_of
from .debug import CallLog

_INPUTS_PLAN = GradientPlan(None, "CheckpointInputs", 0)
_outside_of_backward = itertools.count(-2, -1)


class CheckpointError(RuntimeError):
    """The recomputation of a region did not repeat its forward."""


class StopRecomputation(Exception):
    """Everything that was saved has been made again; the rest of the region is not needed."""


class Place:
    """Stands in a node for a tensor that will be made again."""

    __slots__ = ("__weakref__",)


class Region:
    """One checkpointed call: how to run it again, and the places its forward has left."""

    def __init__(self, early_stop: bool, described: bool, log: CallLog | None) -> None:
        self.run_again: Callable[[], Any] = lambda: None
        self.early_stop = early_stop
        self.described = described
        self.log = log
        self.places: list[weakref.ref[Place]] = []
        self.descriptions: list[dict[str, Any]] = []
        self.passes: dict[Any, Pass] = {}

    # Hooks of the forward --------------------------------------------------------------------

    def leave_place(self, t: Tensor) -> Place:
        place = Place()
        self.places.append(weakref.ref(place))
        if self.described:
            self.descriptions.append(description(t))
        return place

    def fetch(self, place: Place) -> Tensor:
        """The tensor of a place; the first one of a backward runs the region again."""
        key = _current_backward()
        known = self.passes.get(key)
        if known is None:
            known = Pass(self)
            self.passes = {key: known}
            try:
                known.run()
            except BaseException:
                del self.passes[key]
                raise
        if place not in known.tensors:
            raise CheckpointError(
                "checkpoint: unpack is being triggered for a tensor that was either never "
                "recomputed, or already unpacked once in this backward. Read ctx.saved_tensors "
                "only once in a backward"
            )
        return known.tensors.pop(place)


class Pass:
    """One recomputation of a region."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.count = 0
        self.descriptions: list[dict[str, Any]] = []
        self.tensors: dict[Place, Tensor] = {}

    def run(self) -> None:
        region = self.region
        try:
            with saved_tensors_hooks(self.fill_place, lambda t: t), enable_grad():
                region.run_again()
        except StopRecomputation:
            pass
        self._check()

    def fill_place(self, t: Tensor) -> Tensor:
        """Put a tensor that is saved again into the place of its forward."""
        region = self.region
        index = self.count
        self.count += 1
        kept = alias_of(t)
        if region.described:
            self.descriptions.append(description(t))
        if index < len(region.places):
            place = region.places[index]()
            if place is not None:
                self.tensors[place] = kept
            if region.early_stop and self.count == len(region.places):
                raise StopRecomputation
        return kept

    def _check(self) -> None:
        region = self.region
        expected = len(region.places)
        if self.count != expected:
            raise CheckpointError(
                "checkpoint: A different number of tensors was saved during the original forward "
                f"and recomputation.\nNumber of tensors saved during forward: {expected}\n"
                f"Number of tensors saved during recomputation: {self.count}.\n"
                f"{self._advice()}"
            )
        pairs = zip(region.descriptions, self.descriptions, strict=True)
        differing = [
            f"tensor at position {i}:\nsaved metadata: {old}\nrecomputed metadata: {new}"
            for i, (old, new) in enumerate(pairs)
            if old != new
        ]
        if differing:
            raise CheckpointError(
                "checkpoint: Recomputed values for the following tensors have different metadata "
                "than during the forward pass.\n" + "\n".join(differing) + f"\n{self._advice()}"
            )

    def _advice(self) -> str:
        if self.region.log is not None:
            return self.region.log.comparison()
        return (
            "The function must do the same every time it is called with the same inputs. Pass "
            "debug=True to checkpoint() to see which operators ran."
        )


def description(t: Tensor) -> dict[str, Any]:
    """What a recomputed tensor must have in common with the one of the forward."""
    return {"shape": t.shape, "dtype": t.dtype, "device": t.device}


# Which backward is running ------------------------------------------------------------------------


class GraphExecGroup(Restoring):
    """Context manager under which several backward calls count as one: one recomputation for all.

    The calls must run over different parts of the graph.
    """

    def __enter__(self) -> GraphExecGroup:
        if _running.group is not None:
            raise RuntimeError("GraphExecGroup contexts cannot be nested")
        self.target, self.before = _running, {"group": None}
        _running.group = self
        return self


class _Running:
    """The group that is active, in whatever thread."""

    group: GraphExecGroup | None = None


_running = _Running()


def _current_backward() -> Any:
    if _running.group is not None:
        return _running.group
    number = current_graph_task_id()
    return number if number >= 0 else next(_outside_of_backward)


# The forward --------------------------------------------------------------------------------------


def call_region(
    function: Callable,
    args: tuple,
    kwargs: dict[str, Any],
    contexts: tuple[AbstractContextManager, AbstractContextManager],
    preserve_rng_state: bool,
    described: bool,
    early_stop: bool,
    log: CallLog | None,
) -> Any:
    """Run `function` so that its saved tensors are made again in the backward."""
    forward_context, recompute_context = contexts
    if not thread_state().grad_enabled:
        with forward_context:
            return function(*args, **kwargs)
    region = Region(early_stop, described, log)
    inputs = Inputs(args)
    rng_state = get_rng_state() if preserve_rng_state else None

    def run_again() -> None:
        with fork_rng(enabled=preserve_rng_state):
            if rng_state is not None:
                set_rng_state(rng_state)
            with recompute_context, _logged(log, "recomputation"):
                function(*inputs.again(), **kwargs)

    region.run_again = run_again
    with (
        saved_tensors_hooks(region.leave_place, region.fetch),
        forward_context,
        _logged(log, "forward"),
    ):
        return function(*args, **kwargs)


@contextmanager
def _logged(log: CallLog | None, part: str) -> Iterator[None]:
    if log is None:
        yield
    else:
        with log.listening(part):
            yield


class Inputs:
    """A region's arguments, with the tensors saved as an operator would save them.

    So the hooks of a surrounding region apply to the inputs of an inner one, and a change in place
    before the recomputation is noticed.
    """

    def __init__(self, args: tuple) -> None:
        state = thread_state()
        self.node = Node(_INPUTS_PLAN, (), None)
        self.node.saved = tuple([save(a, state) for a in args if isinstance(a, Tensor)])
        self.positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        self.others = [None if isinstance(a, Tensor) else a for a in args]

    def again(self) -> list:
        """The arguments, the tensors unpacked."""
        args = list(self.others)
        for position, t in zip(self.positions, unpack_saved(self.node), strict=True):
            args[position] = t
        return args
