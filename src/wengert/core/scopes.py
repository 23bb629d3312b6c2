"""What enters and leaves modes: context managers that no signal can cut in half.

Python runs signal handlers, and so raises KeyboardInterrupt, between instructions of Python code.
What is here has none when it is compiled: an interrupt comes before a mode is entered, inside its
block, or after it was left, and the block leaves it. Classes elsewhere inherit from these without
wrapping `__enter__` and `__exit__` in Python code. Uncompiled, an interrupt may land in between.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

from .classes import COMPILED
from .frames import frames
from .state import ThreadState, anomaly, overriding, thread_state


class Restoring:
    """Gives attributes of an object the values of `before` when the block ends."""

    target: Any
    before: dict[str, Any]

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: object) -> None:
        for name, value in self.before.items():
            setattr(self.target, name, value)


class Assigned(Restoring, ContextDecorator):
    """Gives attributes of an object other values until the block ends."""

    def __init__(self, target: Any, **values: Any) -> None:
        self.target = target
        self.values = values

    def _recreate_cm(self) -> Assigned:
        return Assigned(self.target, **self.values)

    def __enter__(self) -> Any:
        self.before = {name: getattr(self.target, name) for name in self.values}
        for name, value in self.values.items():
            setattr(self.target, name, value)
        return self


class Switched(Restoring):
    """Gives attributes of an object other values at once and, used with `with`, for its block."""

    made_by: Any = None

    def __init__(self, target: Any, **values: Any) -> None:
        self.target = target
        self.before = {name: getattr(target, name) for name in values}
        for name, value in values.items():
            setattr(target, name, value)
        self.note_origin()

    def note_origin(self) -> None:
        """Note which instruction makes this, until a block is entered: see __del__."""
        if COMPILED:
            self.made_by = frames.caller()
            self.made_at = frames.lasti

    def __enter__(self) -> Any:
        self.made_by = None
        return None

    def keep(self) -> None:
        """Give the old values back at once: what was made is used as a decorator."""
        self.made_by = None
        self.__exit__()

    if COMPILED:

        def __del__(self) -> None:
            # Gone by the very instruction that made it: a signal has ended that instruction, and
            # the block that was to follow will not be entered, nor left.
            made_by = self.made_by
            if made_by is None or frames is None:  # None: the interpreter is going down
                return
            if frames.caller() is made_by and frames.lasti == self.made_at:
                self.__exit__()


class AnomalySwitched(Switched):
    """Switches anomaly detection."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(anomaly, enabled=mode, check_nan=check_nan)


class Together(ContextDecorator):
    """Several of these, entered in order and left in reverse; the block is given `result`."""

    scopes: list
    result: Any

    def __enter__(self) -> Any:
        self.entered: list = []
        try:
            for scope in self.scopes:
                scope.__enter__()
                self.entered.append(scope)
        except BaseException:
            self.__exit__()
            raise
        return self.result

    def __exit__(self, *exception: object) -> None:
        while self.entered:
            self.entered.pop().__exit__(*exception)


class PlaceScope:
    """A device is the default one; `places` has the current one of a thread and those around it."""

    __slots__ = ()
    places: Any = None

    def __enter__(self) -> Any:
        self.places.outer.append(self.places.current)
        self.places.current = self
        return self

    def __exit__(self, *exception: object) -> None:
        self.places.current = self.places.outer.pop()


class LeavesProfile:
    """The exit of a profile, whose `__enter__` ends with the assignments that are undone here."""

    enabled: bool
    acc_events: bool
    previous: Any

    def __exit__(self, *exception: object) -> None:
        if not self.enabled:
            return
        state = thread_state()
        state.profiler = self.previous
        state.count_layers()
        self.entered = not self.acc_events  # else a second use would lose the events of the first


# Dispatch modes and function modes ---------------------------------------------------------------


def set_modes(state: ThreadState, modes: list) -> None:
    """Make these the active dispatch modes of a thread, outermost first."""
    overriding.count_modes(len(modes) - len(state.modes))
    state.modes = modes
    state.count_layers()


def push_mode(mode: Any) -> None:
    """Make a dispatch mode the innermost one."""
    state = thread_state()
    set_modes(state, [*state.modes, mode])


def pop_mode() -> Any:
    """Leave the innermost dispatch mode and return it."""
    state = thread_state()
    if not state.modes:
        raise RuntimeError("no dispatch mode is active that could be left")
    mode = state.modes[-1]
    set_modes(state, state.modes[:-1])
    return mode


def set_function_modes(state: ThreadState, modes: list) -> None:
    """Make these the active function modes of a thread, outermost first."""
    overriding.count_modes(len(modes) - len(state.function_modes))
    state.function_modes = modes
    state.count_layers()


def push_function_mode(mode: Any) -> None:
    """Make a function mode the innermost one."""
    state = thread_state()
    set_function_modes(state, [*state.function_modes, mode])


def pop_function_mode() -> Any:
    """Leave the innermost function mode and return it."""
    state = thread_state()
    if not state.function_modes:
        raise RuntimeError("no function mode is active that could be left")
    mode = state.function_modes[-1]
    set_function_modes(state, state.function_modes[:-1])
    return mode


class DispatchModeScope:
    """A dispatch mode is active in its own block."""

    def _prepare_to_enter(self) -> None:
        """What a mode does before it is active: an `__enter__` of its own could be cut in half."""

    def __enter__(self) -> Any:
        self._prepare_to_enter()
        push_mode(self)
        return self

    def __exit__(self, *exception: object) -> None:
        pop_mode()


class FunctionModeScope:
    """A function mode is active in its own block."""

    def __enter__(self) -> Any:
        push_function_mode(self)
        return self

    def __exit__(self, *exception: object) -> None:
        pop_function_mode()


class InnermostModeAside(ContextDecorator):
    """The innermost dispatch mode, which the block is given, is put aside."""

    def __enter__(self) -> Any:
        self.mode = pop_mode()
        return self.mode

    def __exit__(self, *exception: object) -> None:
        push_mode(self.mode)


class InnermostFunctionModeAside(ContextDecorator):
    """The innermost function mode, which the block is given, is put aside."""

    def __enter__(self) -> Any:
        self.mode = pop_function_mode()
        return self.mode

    def __exit__(self, *exception: object) -> None:
        push_function_mode(self.mode)


class ModesAside(ContextDecorator):
    """All dispatch modes are put aside; the block is given them, innermost first."""

    def __enter__(self) -> Any:
        state = thread_state()
        self.modes = state.modes
        set_modes(state, [])
        return self.modes[::-1]

    def __exit__(self, *exception: object) -> None:
        set_modes(thread_state(), self.modes)


class FunctionsNotOverridden:
    """Overrides of functions are switched off, as far as `what` says."""

    what = 0

    def __enter__(self) -> None:
        state = thread_state()
        self.before = state.function_disabled
        state.function_disabled = max(self.before, self.what)

    def __exit__(self, *exception: object) -> None:
        thread_state().function_disabled = self.before


class DispatchNotOverridden:
    """The classes of tensors do not handle operators."""

    def __enter__(self) -> None:
        state = thread_state()
        self.before, state.dispatch_disabled = state.dispatch_disabled, True

    def __exit__(self, *exception: object) -> None:
        thread_state().dispatch_disabled = self.before


class BelowAutograd:
    """Operators are neither recorded nor differentiated in forward mode."""

    def __enter__(self) -> None:
        state = thread_state()
        self.before = state.grad_enabled, state.forward_grad_enabled
        state.grad_enabled = state.forward_grad_enabled = False

    def __exit__(self, *exception: object) -> None:
        state = thread_state()
        state.grad_enabled, state.forward_grad_enabled = self.before


# Saved-tensor hooks ------------------------------------------------------------------------------


# In the place of the message that hooks raise: they are not called, and nothing raises.
HOOKS_IGNORED = "saved tensor hooks are ignored"


def push_saved_tensors_hooks(pack_hook: Any, unpack_hook: Any) -> None:
    """Make a pair of hooks the one that tensors saved from now on pass through."""
    if not callable(pack_hook) or not callable(unpack_hook):
        raise TypeError(
            "saved_tensors_hooks(): incompatible function arguments. pack_hook and unpack_hook "
            f"must be callable, not {type(pack_hook).__name__} and {type(unpack_hook).__name__}"
        )
    state = thread_state()
    if state.saved_hooks_disabled is HOOKS_IGNORED:
        return
    if state.saved_hooks_disabled is not None:
        raise RuntimeError(state.saved_hooks_disabled)
    state.saved_hooks.append((pack_hook, unpack_hook))


def pop_saved_tensors_hooks() -> None:
    """Go back to the pair of hooks, if any, that was set before the last one."""
    state = thread_state()
    if state.saved_hooks_disabled is HOOKS_IGNORED:
        return
    hooks = state.saved_hooks
    if not hooks:
        raise RuntimeError("no saved tensor hooks are set on this thread that could be taken away")
    hooks.pop()


class SavedTensorsHooks:
    """Tensors that are saved pass through `pack_hook`."""

    pack_hook: Any
    unpack_hook: Any

    def __enter__(self) -> None:
        push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *args: object) -> None:
        pop_saved_tensors_hooks()


class NoSavedTensorsHooks(ContextDecorator):
    """Saved-tensor hooks raise `message`."""

    def __init__(self, message: str) -> None:
        self.message = message

    def _recreate_cm(self) -> NoSavedTensorsHooks:
        return NoSavedTensorsHooks(self.message)

    def __enter__(self) -> None:
        state = thread_state()
        if state.saved_hooks:
            raise RuntimeError(self.message)
        self.before = state.saved_hooks_disabled
        state.saved_hooks_disabled = self.message

    def __exit__(self, *exception: object) -> None:
        thread_state().saved_hooks_disabled = self.before


# Forward mode ------------------------------------------------------------------------------------


def enter_dual_level() -> int:
    """Open a level at which tensors can have tangents."""
    state = thread_state()
    if state.dual_level >= 0:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment; use one dual level with "
            "reverse mode for higher derivatives"
        )
    set_duals(state, 0, [], state.tangents_aside)
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level and forget its tangents."""
    state = thread_state()
    if state.dual_level < 0 or (level is not None and level != state.dual_level):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created"
        )
    duals = state.duals
    set_duals(state, -1, [], state.tangents_aside)
    for reference in duals:
        tensor = reference()
        if tensor is not None:
            tensor.cold.tangents = None


def set_duals(state: ThreadState, level: int, duals: list, aside: bool) -> None:
    """Switch to another forward-mode level, whose tangents count unless they are put aside."""
    state.dual_level = level
    state.duals = duals
    state.tangents_aside = aside
    state.count_layers()


class DualsAside:
    """Primals and tangents are computed with themselves: no operation looks for tangents."""

    def __init__(self, state: ThreadState) -> None:
        self.state = state

    def __enter__(self) -> None:
        state = self.state
        self.aside, state.tangents_aside = state.tangents_aside, True
        state.count_layers()

    def __exit__(self, *exception: object) -> None:
        self.state.tangents_aside = self.aside
        self.state.count_layers()
