"""Which calls of modules and functions recorded which nodes, noted while a program runs.

Nodes are numbered in the order of recording, so a call is known by the numbers at its beginning and
its end. Modules tell by hooks, functions by the interpreter's profiling hook.
"""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from ..autograd.memory import memory_of
from ..core import PACKAGE_FOLDER
from ..core.state import thread_state
from ..core.tensor import Tensor
from ..nn.modules.hooks import register_module_forward_hook, register_module_forward_pre_hook
from ..nn.modules.module import Module


@dataclass
class Scope:
    """One call: its name, what it is a call of, the numbers of its nodes, its time and inputs.

    An input is a weak reference to the owner of its memory, with its size: it may not live on.
    """

    name: str
    kind: str
    is_module: bool
    start: int
    end: int = -1
    seconds: float = 0.0
    inputs: list[tuple[weakref.ref, int]] = field(default_factory=list)


class Watch:
    """Context manager that notes the calls of one thread, and the modules that they belong to."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.modules: dict[str, Module] = {}
        self._paths: dict[int, str] = {}
        self._modules_running: list[tuple[Module, Scope]] = []
        self._functions_running: list[tuple[FrameType, Scope]] = []

    def __enter__(self) -> Watch:
        self._handles = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ]
        self._previous = sys.getprofile()
        sys.setprofile(self._event)
        return self

    def __exit__(self, *raised: object) -> None:
        sys.setprofile(self._previous)
        for handle in self._handles:
            handle.remove()

    def parameters(self) -> dict[str, Tensor]:
        """The parameters and buffers of all modules that were called, by their full names."""
        found: dict[str, Tensor] = {}
        for prefix, module in self.modules.items():
            for name, tensor in (*module.named_parameters(), *module.named_buffers()):
                found[f"{prefix}{name}"] = tensor
        return found

    # Modules -------------------------------------------------------------------------------

    def _enter_module(self, module: Module, args: tuple) -> None:
        if not self._modules_running and id(module) not in self._paths:
            self._name(module)
        name = self._paths.get(id(module)) or type(module).__name__
        self._modules_running.append((module, self._begin(name, type(module).__name__, True, args)))

    def _leave_module(self, module: Module, args: tuple, output: Any) -> None:
        if self._modules_running and self._modules_running[-1][0] is module:
            self._end(self._modules_running.pop()[1])

    def _name(self, root: Module) -> None:
        """Names for a module that is called from outside of others, and for all inside it."""
        kind = type(root).__name__
        count = sum(type(known) is type(root) for known in self.modules.values())
        prefix = "" if not self.modules else f"{kind}{count}." if count else f"{kind}."
        self.modules[prefix] = root
        for path, module in root.named_modules():
            self._paths.setdefault(id(module), f"{prefix}{path}".rstrip("."))

    # Functions -----------------------------------------------------------------------------

    def _event(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            if code.co_filename.startswith((PACKAGE_FOLDER, "<frozen")):
                return
            given = frame.f_locals
            if code.co_name == "forward" and isinstance(next(iter(given.values()), None), Module):
                return  # the module's own call says the same
            scope = self._begin(code.co_qualname, code.co_qualname, False, given)
            self._functions_running.append((frame, scope))
        elif event == "return":
            running = self._functions_running
            if running and running[-1][0] is frame:
                self._end(running.pop()[1])

    # Both ----------------------------------------------------------------------------------

    def _begin(self, name: str, kind: str, is_module: bool, given: Any) -> Scope:
        scope = Scope(name, kind, is_module, thread_state().sequence)
        scope.inputs = [
            (weakref.ref(owner), owner.nbytes)
            for owner in {id(m): m for m in map(memory_of, _arrays(given))}.values()
        ]
        scope.seconds = -time.perf_counter()
        return scope

    def _end(self, scope: Scope) -> None:
        scope.seconds += time.perf_counter()
        scope.end = thread_state().sequence
        if scope.end > scope.start:
            self.scopes.append(scope)


def arguments_of(inputs: Any) -> Sequence[Any]:
    """The arguments of a call: a tuple or list of them, or a single one."""
    return inputs if isinstance(inputs, tuple | list) else (inputs,)


def title_of(function: Callable, title: str | None) -> str:
    """A title for the picture of a call: as given, or the name of what is called."""
    return title or str(getattr(function, "__qualname__", type(function).__name__))


def _arrays(value: Any, depth: int = 3) -> Iterator[Any]:
    """The arrays of the tensors in arguments."""
    if isinstance(value, Tensor):
        yield value.array
    elif depth and isinstance(value, dict):
        for part in value.values():
            yield from _arrays(part, depth - 1)
    elif depth and isinstance(value, tuple | list):
        for part in value:
            yield from _arrays(part, depth - 1)
