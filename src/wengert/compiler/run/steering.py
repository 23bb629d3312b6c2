"""What programs ask of the compiler and tell it, beside compiling: PyTorch's names for that."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ...core.state import thread_state
from ..trace.refusals import TraceError, where
from .backends import NAMES

Item = TypeVar("Item")


def is_compiling() -> bool:
    """Whether the caller is being traced, for a graph that will run instead of it."""
    return any(level.traces for level in thread_state().levels)


def is_dynamo_compiling() -> bool:
    """Whether the caller is being traced: another name of `is_compiling`."""
    return is_compiling()


def is_exporting() -> bool:
    """Whether the caller is being exported: never, there is no other runtime to export to."""
    return False


def list_backends(exclude_tags: Sequence[str] = ()) -> list[str]:
    """What can run the graph of a compiled function."""
    return sorted(NAMES)


def cudagraph_mark_step_begin() -> None:
    """Mark the begin of a step for the graphs of CUDA devices, of which there are none."""


def allow_in_graph(fn: Item) -> Item:
    """Let calls of a function be part of graphs, as calls of all functions are."""
    return fn


def disable(
    fn: Callable | None = None, recursive: bool = True, *, reason: str | None = None
) -> Any:
    """Keep a function out of graphs: what calls it runs as it is, with this reason."""
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    function = fn

    @functools.wraps(function)
    def uncompiled(*args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            name = getattr(function, "__qualname__", type(function).__name__)
            why = f" because: {reason}" if reason else ""
            raise TraceError(f"{name} is kept out of graphs by compiler.disable{why}\n  {where()}")
        return function(*args, **kwargs)

    return uncompiled
