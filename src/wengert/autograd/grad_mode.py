"""Switches of recording: no_grad, enable_grad, set_grad_enabled, inference_mode and relatives.

Each is a context manager and a decorator, of generator functions too, and belongs to its thread.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..core.errors import warn_user
from ..core.scopes import Switched, enter_dual_level, exit_dual_level
from ..core.state import thread_state
from ..core.tensor import Tensor

__all__ = [
    "no_grad",
    "enable_grad",
    "set_grad_enabled",
    "inference_mode",
    "set_multithreading_enabled",
    "enforce_grad_layout_policy",
]


def is_grad_enabled() -> bool:
    """Whether operations are being recorded on this thread."""
    return thread_state().grad_enabled


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on for this thread."""
    return thread_state().inference


def is_multithreading_enabled() -> bool:
    """Whether backward may use device worker threads."""
    return thread_state().multithreading


def is_view_replay_enabled() -> bool:
    """Whether views are re-made by replaying their operators when their base has changed."""
    return thread_state().view_replay


class _Mode:
    """A context manager that also decorates functions and generator functions."""

    def clone(self) -> Any:
        """Another block of the same kind: a decorator needs one for each call."""
        return type(self)()

    def __call__(self, orig_func: Callable) -> Callable:
        if inspect.isclass(orig_func):
            warn_user(
                "Decorating classes is deprecated: only __init__ is decorated. Decorate the "
                "methods that are meant.",
                FutureWarning,
            )
            orig_func.__init__ = self(orig_func.__init__)  # type: ignore[method-assign]
            return orig_func
        if inspect.isgeneratorfunction(orig_func):
            return self._generator(orig_func)

        @functools.wraps(orig_func)
        def inner(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return orig_func(*args, **kwargs)

        return inner

    def _generator(self, function: Callable) -> Callable:
        """The mode holds while the generator's own code runs and not while it is suspended."""

        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            try:
                with self.clone():
                    value = next(generator)
                while True:
                    try:
                        sent = yield value
                    except GeneratorExit:
                        with self.clone():
                            generator.close()
                        raise
                    except BaseException as error:
                        with self.clone():
                            value = generator.throw(error)
                    else:
                        with self.clone():
                            value = generator.send(sent)
            except StopIteration as stop:
                return stop.value

        return inner

    def __enter__(self) -> Any:
        raise NotImplementedError("a mode defines what it sets")

    def __exit__(self, *exception: object) -> None:
        raise NotImplementedError("a mode defines what it restores")


class _OptionalCall(_Mode):
    """Usable as ``@no_grad`` as well as ``@no_grad()``."""

    def __new__(cls, orig_func: Callable | None = None) -> Any:
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)


class _Flag(Switched, _Mode):
    """Sets one flag of the thread, at once and, used with `with`, until the block ends."""

    flag: str

    def __init__(self, mode: bool) -> None:
        state = self.target = thread_state()
        self.previous = getattr(state, self.flag)
        self.mode = mode
        setattr(state, self.flag, bool(mode))
        self.note_origin()

    def clone(self) -> Any:
        """Another block of the same kind: a decorator needs one for each call."""
        return type(self)(self.mode)

    def __enter__(self) -> None:
        self.made_by = None
        self.target = thread_state()
        setattr(self.target, self.flag, bool(self.mode))

    def __exit__(self, *exception: object) -> None:
        setattr(self.target, self.flag, self.previous)


class _DecoratorFlag(_Flag):
    """A flag that making a decorator leaves as it was."""

    def __call__(self, orig_func: Callable) -> Callable:
        self.keep()
        return super().__call__(orig_func)


class no_grad(_OptionalCall):
    """Record nothing.

    >>> import wengert
    >>> x = wengert.ones(2, requires_grad=True)
    >>> with wengert.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __init__(self) -> None:
        self.previous = True

    def __enter__(self) -> None:
        state = thread_state()
        self.previous = state.grad_enabled
        state.grad_enabled = False

    def __exit__(self, *exception: object) -> None:
        thread_state().grad_enabled = self.previous


class enable_grad(_OptionalCall):
    """Record again inside a `no_grad` block."""

    def __enter__(self) -> None:
        state = thread_state()
        self.previous = state.grad_enabled
        state.grad_enabled = True

    def __exit__(self, *exception: object) -> None:
        thread_state().grad_enabled = self.previous


class set_grad_enabled(_DecoratorFlag):
    """Set recording on or off, at once and, used with `with`, until the block ends."""

    flag = "grad_enabled"

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled(): mode must be bool, not {type(mode).__name__}")
        super().__init__(mode)

    def __str__(self) -> str:
        return f"{type(self).__module__}.{type(self).__name__}(mode={self.mode})"

    __repr__ = __str__


class inference_mode(_Mode):
    """Record nothing, and give up view and version tracking for what is made inside."""

    def __new__(cls, mode: Any = True) -> Any:
        if isinstance(mode, bool):
            return super().__new__(cls)
        return cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def clone(self) -> inference_mode:
        """Another block of the same kind: a decorator needs one for each call."""
        return type(self)(self.mode)

    def __enter__(self) -> None:
        state = thread_state()
        self.previous = (state.inference, state.grad_enabled, state.forward_grad_enabled)
        state.inference = self.mode
        state.grad_enabled = not self.mode
        state.forward_grad_enabled = not self.mode

    def __exit__(self, *exception: object) -> None:
        state = thread_state()
        state.inference, state.grad_enabled, state.forward_grad_enabled = self.previous


class dual_level(_Mode):
    """Context manager of one level of forward mode.

    >>> import wengert
    >>> import wengert.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(wengert.tensor([2.0]), wengert.tensor([1.0]))
    ...     fwAD.unpack_dual(x * x).tangent
    tensor([4.])
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: object) -> None:
        exit_dual_level()


class set_multithreading_enabled(_Flag):
    """Allow or forbid device worker threads in backward, at once and for a `with` block."""

    flag = "multithreading"


class enforce_grad_layout_policy(_DecoratorFlag):
    """Choose whether a leaf's first gradient must have the memory order of the leaf.

    It must by default. Without that, a gradient that only the engine holds is taken over as it is,
    which saves a copy.
    """

    flag = "grad_layout"

    def __init__(self, enable: bool = True) -> None:
        super().__init__(enable)


class _force_original_view_tracking(_DecoratorFlag):
    """Choose whether views remember their operators; they always do, so only the flag moves."""

    flag = "view_replay"


class _unsafe_preserve_version_counter(_Mode):
    """Hide the in-place changes of a block from the version counters of some tensors."""

    def __init__(self, tensors: Any) -> None:
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tensors
        if not isinstance(self.tensors, tuple):
            raise AssertionError(
                f"Expected tensors to be a tuple or a Tensor, but got {type(tensors).__name__}"
            )
        self.versions = tuple(t._version for t in self.tensors)

    def clone(self) -> _unsafe_preserve_version_counter:
        """Another block of the same kind: a decorator needs one for each call."""
        return type(self)(self.tensors)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        for tensor, version in zip(self.tensors, self.versions, strict=True):
            tensor.shared_counter().value = version
