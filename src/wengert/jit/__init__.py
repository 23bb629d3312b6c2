"""What programs touch of TorchScript: questions and marks have answers, compilation is refused.

There is no TorchScript here. Decorators that only steer it return what they are given, so that a
class that carries them works; what would compile, save or load a script says what to use instead.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from ..core.missing import missing
from ..tensor.out_of_scope import SCRIPT, refusal

__all__ = [
    "Final", "annotate", "export", "ignore", "interface", "is_scripting", "is_tracing",
    "isinstance", "onednn_fusion_enabled", "optimized_execution", "script_if_tracing", "unused",
]  # fmt: skip

Item = TypeVar("Item")
_REFUSED = frozenset((
    "Attribute", "CompilationUnit", "ScriptFunction", "ScriptModule", "enable_onednn_fusion",
    "fork", "freeze", "fuser", "load", "optimize_for_inference", "run_frozen_optimizations", "save",
    "script", "script_method", "set_fusion_strategy", "strict_fusion", "trace", "trace_module",
    "wait",
))  # fmt: skip


def is_scripting() -> bool:
    """Whether the caller runs as TorchScript: never."""
    return False


def is_tracing() -> bool:
    """Whether the caller is traced by `jit.trace`: never."""
    return False


def onednn_fusion_enabled() -> bool:
    """Whether scripts are fused by oneDNN: never."""
    return False


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark a method that a script would leave to Python; the method itself is returned."""
    return drop if callable(drop) else lambda function: function


def unused(fn: Item) -> Item:
    """Mark a method that no script calls; the method itself is returned."""
    return fn


def export(fn: Item) -> Item:
    """Mark a method that a script would contain; the method itself is returned."""
    return fn


def interface(obj: Item) -> Item:
    """Mark a class as an interface of scripts; the class itself is returned."""
    return obj


def script_if_tracing(fn: Callable) -> Callable:
    """Script a function where it is traced, which it never is: the function itself."""
    return fn


def annotate(the_type: Any, the_value: Item) -> Item:
    """The value, of which a script would know the type."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether an object is of a type, or of one in a tuple."""
    return builtins.isinstance(obj, target_type)


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Choose whether scripts are optimised: there are none."""
    yield


def __getattr__(name: str) -> Any:
    if name in _REFUSED:
        return refusal(f"wengert.jit.{name}", SCRIPT)
    raise missing(__name__, name)
