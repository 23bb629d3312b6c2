"""What a thread carries: gradient mode, active layers, saved-tensor hooks, the running backward.

One object per thread, found by comparing the thread's identity with the one seen last; switching
threads costs a dictionary look-up, staying costs a comparison. Uncompiled, where a comparison costs
more than a look-up in C, it is found in a thread-local.
"""

from __future__ import annotations

from _thread import _local
from functools import partial
from operator import attrgetter
from sys import modules
from typing import Any

from .classes import COMPILED
from .frames import frames
from .memory import keep_blocks

_frames = frames


class ThreadState:
    """Thread-local settings.

    `layers` counts what a plain call must look at before its kernel. `count_layers` sets it, and
    the levels of transforms, which are one layer together, count themselves.
    """

    def __init__(self, ident: int) -> None:
        self.ident = ident
        self.grad_enabled = True
        self.inference = False
        self.multithreading = True
        self.view_replay = False
        self.grad_layout = True
        self.layers = 0
        self.modes: list = []
        self.function_modes: list = []
        self.function_disabled = 0
        self.inside = False
        self.dispatch_disabled = False
        self.profiler: Any = None
        self.levels: list = []
        self.dual_level = -1
        self.tangents_aside = False
        self.duals: list = []
        self.forward_grad_enabled = True
        self.saved_hooks: list = []
        self.saved_hooks_disabled: str | None = None
        self.sequence = 0
        self.graph_task: Any = None
        self.needed: set | None = None
        self.node: Any = None
        self.depth = 0

    def recording(self) -> bool:
        """Whether operations are recorded: gradients are enabled and it is not inference mode."""
        return self.grad_enabled and not self.inference

    def layers_with(self, profiler: Any) -> int:
        """How many things a plain call must look at, were `profiler` the active one."""
        return (
            len(self.modes)
            + len(self.function_modes)
            + (profiler is not None)
            + bool(self.levels)
            + (self.dual_level >= 0 and not self.tangents_aside)
        )

    def count_layers(self) -> None:
        """Set `layers` after modes, levels, duals or the profiler have changed."""
        self.layers = self.layers_with(self.profiler)


class AnomalyMode:
    """Whether nodes remember where they were made; one setting for all threads."""

    def __init__(self) -> None:
        self.enabled = False
        self.check_nan = True


anomaly = AnomalyMode()


class _Forget:
    """Lives in a thread-local, so it dies with its thread and takes the thread's state along."""

    def __init__(self, ident: int) -> None:
        self.ident = ident

    def __del__(self) -> None:
        _forget(self.ident)


_states: dict[int, ThreadState] = {}
_thread_end = _local()
_current = ThreadState(0)


def _forget(ident: int) -> None:
    global _current
    if _states is None:  # the interpreter is going down and has cleared this module
        return
    _states.pop(ident, None)
    if _current.ident == ident:
        _current = ThreadState(0)


def thread_state() -> ThreadState:
    """The calling thread's state."""
    state = _current
    return state if state.ident == _frames.thread_ident() else _look_up(_frames.thread_ident())


def _look_up(ident: int) -> ThreadState:
    global _current
    state = _states.get(ident)
    if state is None:
        state = ThreadState(ident)
        _states[ident] = state
        keep_blocks()
        _thread_end.forget = _Forget(ident)
    _current = state
    return state


class _Found(_local):
    """What a thread finds under `state`, made when it first looks."""

    def __init__(self) -> None:
        self.state = ThreadState(_frames.thread_ident())


if not COMPILED:
    setattr(modules[__name__], "thread_state", partial(attrgetter("state"), _Found()))  # noqa: B010


def call_user(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a user's function from inside an operator: what it calls is not part of the operator."""
    state = thread_state()
    inside, state.inside = state.inside, False
    try:
        return function(*args, **kwargs)
    finally:
        state.inside = inside


def inherit(parent: ThreadState) -> ThreadState:
    """Set the calling thread's modes to `parent`'s, as an engine worker does for its caller."""
    state = thread_state()
    state.grad_enabled = parent.grad_enabled
    state.inference = parent.inference
    state.multithreading = parent.multithreading
    state.view_replay = parent.view_replay
    state.grad_layout = parent.grad_layout
    state.layers = parent.layers
    state.modes = list(parent.modes)
    state.function_modes = list(parent.function_modes)
    state.function_disabled = parent.function_disabled
    state.dispatch_disabled = parent.dispatch_disabled
    state.profiler = parent.profiler
    state.levels = parent.levels
    state.dual_level = parent.dual_level
    state.tangents_aside = parent.tangents_aside
    state.duals = parent.duals
    state.forward_grad_enabled = parent.forward_grad_enabled
    state.saved_hooks = list(parent.saved_hooks)
    state.saved_hooks_disabled = parent.saved_hooks_disabled
    return state


# What the whole process has -------------------------------------------------------------------


class Overriding:
    """Counts what may override calls, which a call finds out by one look; see `overriding`.

    `modes` is the number of active modes in all threads, `possible` is not zero if there is one of
    them or a class of tensors that overrides functions.
    """

    def __init__(self) -> None:
        self.modes = 0
        self.possible = 0
        self.has_classes = False

    def count_modes(self, change: int) -> None:
        """Note that so many modes more are active in some thread."""
        self.modes += change
        self.possible += change

    def note_class(self) -> None:
        """Note that there are tensors whose class overrides functions."""
        if not self.has_classes:
            self.has_classes = True
            self.possible += 1


overriding = Overriding()
