"""What a function reads from outside while it runs, and whether it is still the same later.

While a function is traced, the Python functions that it calls are noted. The names in their code
tell what they can have read: closures, globals, attributes of objects, modules and classes, and the
contents of lists and dictionaries found there. Tensors must be the same objects, numbers and
strings equal; what a library keeps for itself is not looked at.
"""

from __future__ import annotations

import functools
import gc
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

from ..tensor import Tensor

_LIBRARIES = frozenset(("wengert", "numpy", "scipy", "ml_dtypes", *sys.stdlib_module_names)) - {
    "__main__", "test",
}  # fmt: skip
_PLAIN = (int, float, complex, bool, str, bytes, type(None), frozenset)
_MISSING = object()
#: More than so many things are not watched, nor the contents of arrays of more bytes.
_MOST_CHECKS, _MOST_BYTES = 20_000, 1 << 16
#: Names in whose presence any attribute can have been read.
_REFLECTION = {"getattr", "__dict__", "vars", "attrgetter", "__getattribute__"}


def _is_library(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in _LIBRARIES


class Check:
    """One thing that was read: how to read it again, and what it was."""

    __slots__ = ("name", "read", "expected")

    def __init__(self, name: str, read: Callable[[], Any], expected: Any) -> None:
        self.name = name
        self.read = read
        self.expected = expected


class Surroundings:
    """Notes what a function reads; `changed` compares it with what is there now."""

    def __init__(self) -> None:
        self.checks: list[Check] = []
        self._globals: dict[CodeType, dict[str, Any]] | None = {}
        self._names: set[str] = set()
        self._start: Any = None  # the frame from which on it is watched
        self._visited: dict[int, Any] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note the functions that are called, unless another profiler does so."""
        if sys.getprofile() is not None:
            self._globals = None
            yield
            return
        self._start = sys._getframe()
        sys.setprofile(self._event)
        collecting = gc.isenabled()
        gc.disable()  # what it calls is not called by the function
        try:
            yield
        finally:
            sys.setprofile(None)
            self._start = None
            if collecting:
                gc.enable()

    def _event(self, frame: Any, event: str, argument: Any) -> None:
        if event == "call" and self._globals is not None:
            code, variables = frame.f_code, frame.f_globals
            if code in self._globals or _is_library(variables.get("__name__")):
                return
            if not self._importing(frame):
                self._globals[code] = variables

    def _importing(self, frame: Any) -> bool:
        """Whether an import is going on, which happens once and may call anybody's hooks."""
        while frame is not None and frame is not self._start:
            if frame.f_globals.get("__name__") == "importlib._bootstrap":
                return True
            frame = frame.f_back
        return False

    def note(self, function: Callable, arguments: list[Any]) -> None:
        """Look at all that the function, called with such objects, can have read."""
        for code in self._globals or ():
            self._names.update(code.co_names)
        if self._globals is None:
            self._names = _REFLECTION
        self._visit("", function)
        for i, value in enumerate(arguments):
            self._visit(f"argument {i}", value)
        for code, variables in list((self._globals or {}).items()):
            self._visit_globals(code, variables)
        self._visited.clear()

    def changed(self) -> str | None:
        """The name of something that is not what it was, None if all is."""
        for check in self.checks:
            try:
                found = check.read()
            except (AttributeError, LookupError, ValueError):
                return check.name
            if found is not check.expected and not _same(found, check.expected):
                return check.name
        return None

    # Walking ---------------------------------------------------------------------------------

    def _visit(self, name: str, value: Any) -> None:
        if isinstance(value, (Tensor, *_PLAIN, BuiltinFunctionType)) or id(value) in self._visited:
            return
        if len(self.checks) > _MOST_CHECKS:
            return
        self._visited[id(value)] = value
        if isinstance(value, FunctionType):
            self._visit_function(name, value)
        elif isinstance(value, MethodType):
            self._visit(name or "self", value.__self__)
            self._visit(name, value.__func__)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self._visit(name, part)
        elif isinstance(value, property):
            self._visit(name, value.fget)
        elif isinstance(value, (staticmethod, classmethod)):
            self._visit(name, value.__func__)
        elif isinstance(value, np.ndarray):
            if value.nbytes <= _MOST_BYTES:
                self.checks.append(Check(name, value.tobytes, value.tobytes()))
        elif isinstance(value, ModuleType):
            if not _is_library(value.__name__):
                self._visit_named(name, value.__dict__)
        elif isinstance(value, type):
            for cls in value.__mro__:
                if not _is_library(cls.__module__):
                    self._visit_named(name, cls.__dict__)
        elif isinstance(value, (list, tuple)):
            self._visit_items(name, value)
        elif isinstance(value, dict):
            self._check(f"len({name})", functools.partial(len, value), len(value))
            for key, item in value.items():
                self._check(f"{name}[{key!r}]", functools.partial(value.get, key, _MISSING), item)
        else:
            self._visit_object(name, value)

    def _check(self, name: str, read: Callable[[], Any], value: Any) -> None:
        self.checks.append(Check(name, read, value))
        self._visit(name, value)

    def _visit_items(self, name: str, value: list | tuple) -> None:
        if isinstance(value, tuple):
            for i, item in enumerate(value):
                self._visit(f"{name}[{i}]", item)
            return
        self._check(f"len({name})", functools.partial(len, value), len(value))
        for i, item in enumerate(value):
            self._check(f"{name}[{i}]", functools.partial(operator.getitem, value, i), item)

    def _visit_function(self, name: str, function: FunctionType) -> None:
        code = function.__code__
        if _is_library(function.__module__) or not (
            self._globals is None or code in self._globals
        ):
            return
        for variable, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                self._check(variable, functools.partial(_contents, cell), cell.cell_contents)
            except ValueError:
                continue  # it is not bound yet
        for defaults in ("__defaults__", "__kwdefaults__"):
            given = getattr(function, defaults)
            if given is not None:
                self._check(
                    f"{name}.{defaults}", functools.partial(getattr, function, defaults), given
                )
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is not None:
            self._visit(name, wrapped)
        if self._globals is None:
            self._visit_globals(code, function.__globals__)

    def _visit_globals(self, code: CodeType, variables: dict[str, Any]) -> None:
        for name in code.co_names:
            if name in variables:
                self._check(
                    name, functools.partial(variables.get, name, _MISSING), variables[name]
                )

    def _visit_object(self, name: str, value: Any) -> None:
        cls = type(value)
        modules = [base.__module__ for base in cls.__mro__]
        is_layer = any(module.startswith("wengert.nn") for module in modules)
        if _is_library(cls.__module__) and not is_layer:
            self._visit(name, getattr(value, "__wrapped__", None))
            return
        self._visit(cls.__name__, cls)
        inside = getattr(value, "__dict__", None)
        if isinstance(inside, dict):
            self._visit_named(name, inside, every=is_layer)
        for base in cls.__mro__:
            for slot in getattr(base, "__slots__", ()):
                if slot in self._names and hasattr(value, slot):
                    read = functools.partial(getattr, value, slot)
                    self._check(f"{name}.{slot}", read, getattr(value, slot))

    def _visit_named(self, name: str, variables: Any, every: bool = False) -> None:
        """The attributes among `variables` that some function has named."""
        every = every or not self._names.isdisjoint(_REFLECTION)
        chosen = list(variables) if every else [key for key in variables if key in self._names]
        for key in chosen:
            if not every or not key.startswith("__"):
                read = functools.partial(variables.get, key, _MISSING)
                self._check(f"{name}.{key}", read, variables[key])


def _contents(cell: CellType) -> Any:
    return cell.cell_contents


def _same(found: Any, expected: Any) -> bool:
    """Whether two values that are not one object are equal plain ones."""
    if type(found) is not type(expected):
        return False
    if isinstance(found, (float, complex)):
        return repr(found) == repr(expected)
    return isinstance(found, _PLAIN) and found == expected
