"""Checkpointing: memory for time, by running parts of a forward again in the backward."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ...core.devices import as_device
from ...core.scopes import Assigned
from ...core.state import thread_state
from ...core.tensor import Tensor
from .debug import CallLog
from .recomputation import CheckpointError, GraphExecGroup, call_region
from .selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "checkpoint", "checkpoint_sequential", "CheckpointError", "CheckpointFunction",
    "check_backward_validity", "detach_variable", "get_device_states", "set_device_states",
    "noop_context_fn", "set_checkpoint_early_stop", "DefaultDeviceType",
    "set_checkpoint_debug_enabled", "CheckpointPolicy", "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts", "SAC_IGNORED_OPS", "GraphExecGroup",
]  # fmt: skip

_early_stop: bool | None = None
_debug: bool | None = None


def noop_context_fn() -> tuple[AbstractContextManager, AbstractContextManager]:
    """The contexts of an ordinary checkpoint: none."""
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable,
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[
        [], tuple[AbstractContextManager, AbstractContextManager]
    ] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call ``function(*args, **kwargs)`` without keeping what its backward needs.

    The backward calls it again. Random numbers are drawn again alike unless
    ``preserve_rng_state=False``. `context_fn` returns a context for the forward and one for the
    recomputation; with `early_stop` the recomputation ends as soon as it has made what is needed.

    >>> import wengert
    >>> from wengert.utils.checkpoint import checkpoint
    >>> x = wengert.ones(3, requires_grad=True)
    >>> checkpoint(lambda x: x.exp().sum(), x, use_reentrant=False).backward()
    >>> x.grad
    tensor([2.7183, 2.7183, 2.7183])
    """
    if use_reentrant is None:
        warnings.warn(
            "checkpoint: the use_reentrant parameter should be passed explicitly. "
            "use_reentrant=False is recommended; without it the older use_reentrant=True is taken.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        if any(level.traces for level in thread_state().levels):
            return function(*args)  # what to compute again is decided for the whole graph
        from .reentrant import CheckpointFunction

        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"determinism_check should be one of ['default', 'none'], but got {determinism_check}"
        )
    return call_region(
        function,
        args,
        kwargs,
        context_fn(),
        preserve,
        determinism_check == "default",
        early_stop if _early_stop is None else _early_stop,
        CallLog() if (debug if _debug is None else _debug) else None,
    )


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Call `functions` one after the other in `segments` checkpointed parts; the last is plain."""
    if use_reentrant is None:
        warnings.warn(
            "checkpoint_sequential: the use_reentrant parameter should be passed explicitly. "
            "use_reentrant=False is recommended; without it the older use_reentrant=True is taken.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def run(start: int, end: int) -> Callable:
        def part(value: Any) -> Any:
            for step in steps[start:end]:
                value = step(value)
            return value

        return part

    size = len(steps) // segments
    start = 0
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(
            run(start, start + size),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
    done = size * (segments - 1)
    return run(done, len(steps))(input)


def set_checkpoint_early_stop(enable: bool) -> AbstractContextManager[None]:
    """Decide for all checkpoints inside whether recomputations end as soon as they can."""
    return Assigned(sys.modules[__name__], _early_stop=enable)


def set_checkpoint_debug_enabled(enabled: bool | None) -> AbstractContextManager[None]:
    """Decide for all checkpoints inside whether they explain differences operator by operator."""
    return Assigned(sys.modules[__name__], _debug=enabled)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The random states of the accelerators that tensors among `args` are on."""
    devices = {a.device for a in args if isinstance(a, Tensor)} - {as_device("cpu")}
    if any(d.type == "cuda" for d in devices):
        raise RuntimeError("get_device_states(): random states of CUDA devices are not kept yet")
    return [], []


def set_device_states(
    devices: list[int], states: list[Tensor], *, device_type: str | None = None
) -> None:
    """Set the random states of accelerators, as `get_device_states` returned them."""
    if devices:
        raise RuntimeError("set_device_states(): random states of CUDA devices are not kept yet")


class DefaultDeviceType:
    """The kind of device that checkpoints assume when their arguments name no accelerator."""

    _default_device_type = "cpu"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Choose it."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """What it is now."""
        return DefaultDeviceType._default_device_type


def __getattr__(name: str) -> Any:
    if name in ("CheckpointFunction", "check_backward_validity", "detach_variable"):
        from . import reentrant

        return getattr(reentrant, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
