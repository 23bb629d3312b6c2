"""From a function to everything that it can have read, as a list of checks."""

from __future__ import annotations

import _thread
import datetime
import decimal
import functools
import operator
import re
import sys
import threading
import types
import typing
import weakref
from array import array as plain_array
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, ItemsView, Iterable, KeysView, ValuesView
from contextvars import ContextVar
from typing import Any

import numpy as np

from ...core.classes import COMPILED
from ...core.tensor import Tensor, wrap
from ...tensor.pickling import FIELDS, user_attributes
from .checks import (
    PLAIN,
    Additions,
    Cell,
    Contents,
    Each,
    Elements,
    Entries,
    Fields,
    Listed,
    Tensors,
)
from .places import MISSING, Appended, Variable
from .reads import SPECIAL, globals_read, modules_imported, names_used

Names = set[str] | frozenset[str]

#: More than so many things are too many to be looked at in every call.
_MOST_CHECKS = 20_000
_SEALED_CLASS = 1 << 8  # the flag of classes that cannot be changed
#: Facts of a tensor that is no argument, apart from its kind.
_TENSOR_FACTS = ("grad_fn", "_version", "_base", "retains_grad", "output_nr")

_OF_EACH = ("__class__", "__dict__", "__bases__", "__code__", "__defaults__", "__kwdefaults__")
_compiled = COMPILED  # then only subclasses have a dictionary for attributes
_WITHOUT_ATTRIBUTES = "{}.cold is None" if _compiled else "FIELDS >= {}.__dict__.keys()"

#: Objects that do not change, or whose changes do not matter to what a function computes.
_CONSTANT = (
    *PLAIN, float, complex, frozenset, slice, types.EllipsisType, types.NotImplementedType,
    types.CodeType, types.WrapperDescriptorType, types.MethodDescriptorType,
    types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.GenericAlias, types.UnionType, typing.TypeVar, datetime.date, datetime.time,
    datetime.datetime, datetime.timedelta, datetime.timezone, datetime.tzinfo, decimal.Decimal,
    re.Pattern, np.generic, np.dtype, np.ufunc, type(np.append), type(_thread.allocate_lock()),
    type(threading.RLock()), type(namedtuple("_", "field").field),  # type: ignore[attr-defined]
)  # fmt: skip
_CONSTANT_TYPES = frozenset(_CONSTANT)
#: Bound to an object by being read from it.
_BOUND = (types.BuiltinFunctionType, types.MethodWrapperType)
#: Classes not made by a class statement whose instances are looked into, or are constant.
_TRANSPARENT = frozenset((
    object, tuple, list, dict, OrderedDict, defaultdict, set, deque, types.SimpleNamespace,
    typing.Generic, threading.local, bytearray, np.ndarray, *_CONSTANT,
))  # fmt: skip
_VIEWS = (KeysView, ValuesView, ItemsView, types.MappingProxyType)


class Walk:
    """Visits what a function can reach by the names in the code that has run.

    Where it is not known which code has run, all functions that can be reached count; `before` any
    has run, but for those of libraries. Entries of containers and variables in `skipped` are not
    looked at.
    """

    def __init__(
        self,
        names: set[str],
        by_any_name: bool,
        code: list[tuple[types.CodeType, dict[str, Any]]] | None,
        skipped: frozenset[tuple] = frozenset(),
        before: bool = False,
    ) -> None:
        self.before = before
        self.names = names
        self.by_any_name = by_any_name
        self.code = code
        self.skipped = skipped
        self.home = ""
        self.met_again: set[int] = set()  # what can be reached in more than one way, by identity
        self.containers: set[int] = set()  # lists and dictionaries, by identity
        self._ran = {id(part) for part, _ in code or ()}
        self.checks: list[Any] = []
        self.opaque: str | None = None
        self._each = {name: Each(name) for name in _OF_EACH}
        self._given = Additions(_WITHOUT_ATTRIBUTES, self.attributes_of)
        self._attached = Additions("not {}.__dict__", self._attached_to)
        self.tensors = Tensors()
        self._visited: dict[int, Any] = {}
        self._pending: list[tuple[str, Any]] = []

    def run(self, function: Callable, arguments: list[Any]) -> str | None:
        """Make the checks; the name of something that cannot be watched, if there is any."""
        self.home = _owner_of(getattr(function, "__module__", None))
        known = (-1, False)
        while known != (len(self.names), self.by_any_name):  # what is found may itself read
            known = (len(self.names), self.by_any_name)
            self._clear()
            self._pending = [(f"argument {i}", value) for i, value in enumerate(arguments)]
            self._pending.append(("", function))
            for variables, named in _by_namespace(self.code or ()):
                self._visit_globals(variables, named)
            for code, variables in self.code or ():
                self._visit_named("", sys.modules, modules_imported(code, variables))
            while self._pending and (self.opaque is None or self._goes_on()):
                name, value = self._pending.pop()
                try:
                    self._visit(name, value)
                except Exception as error:  # it runs what users have written
                    self.opaque = f"{name}, which cannot be read: {error!r}"
        of_many: list[Any] = [*self._each.values(), self._given, self._attached, self.tensors]
        self.checks += [check for check in of_many if check.objects]
        self._visited.clear()
        return self.opaque

    def _goes_on(self) -> bool:
        """Whether what cannot be watched is passed by: before a function runs it may not matter."""
        return self.before and len(self._visited) <= _MOST_CHECKS

    def _clear(self) -> None:
        self.checks.clear()
        self._visited.clear()
        self.met_again.clear()
        self.containers.clear()
        self._each = {name: Each(name) for name in _OF_EACH}
        self._given = Additions(_WITHOUT_ATTRIBUTES, self.attributes_of)
        self._attached = Additions("not {}.__dict__", self._attached_to)
        self.tensors = Tensors()
        self.opaque = None

    # Kinds of objects ------------------------------------------------------------------------

    def _visit(self, name: str, value: Any) -> None:
        if type(value) in _CONSTANT_TYPES or value is MISSING or isinstance(value, np.generic):
            return
        if id(value) in self._visited:
            self.met_again.add(id(value))
            return
        self._visited[id(value)] = value
        if len(self._visited) > _MOST_CHECKS:
            self.opaque = f"{name}, and more than {_MOST_CHECKS} other things"
        visit = _VISITS.get(type(value))
        if visit is not None:
            visit(self, name, value)
        elif isinstance(value, Tensor):
            self._visit_tensor(name, value)
        elif isinstance(value, types.ModuleType):
            self._visit_module(name, value)
        elif isinstance(value, type):
            self._visit_class(name, value)
        elif isinstance(value, _VIEWS) and type(value).__module__ == "builtins":
            self._visit_contents(name, value)
        else:
            self._visit_object(name, value)

    def _later(self, name: str, values: Iterable[Any]) -> None:
        self._pending.extend([(name, value) for value in values])

    def _watch(
        self, name: str, read: Callable[[], list], write: Callable[[list], Any] | None = None
    ) -> None:
        """Check what `read` returns and `write` puts back, and visit it."""
        check = Contents(name, read, write)
        if check.expected:
            self.checks.append(check)
            self._later(name, check.expected)

    def _visit_function(self, name: str, function: types.FunctionType) -> None:
        """Closure, code, defaults and attributes. Of a function of this package the closure alone,
        which may hold one of the user's."""
        code = function.__code__
        ran = self.code is None or id(code) in self._ran
        own = _is_own(function.__module__) or self._is_passed_by(function.__module__)
        if ran or own:
            cells = function.__closure__ or ()
            for variable, cell in zip(code.co_freevars, cells, strict=True):
                if (id(cell), None) in self.skipped:
                    continue
                if not own:
                    self.checks.append(Cell(variable, cell))
                self._pending.append((variable, Variable(cell).read()))
        if own:
            return
        name = name or function.__name__
        self._later(name, self._attached.add(name, function))
        if ran:
            for part in ("__code__", "__defaults__", "__kwdefaults__"):
                self._each[part].add(name, function)
            self._later(name, [function.__defaults__, function.__kwdefaults__])
        self._later(name, [getattr(function, "__wrapped__", None)])
        if self.code is None:
            names, computed, variables = names_used(code)
            self.names.update(names)
            self.by_any_name = self.by_any_name or computed
            self._visit_globals(function.__globals__, variables)
            if not self.before:
                imported = modules_imported(code, function.__globals__)
                self._visit_named("", sys.modules, imported)

    def _visit_compiled(self, name: str, function: Any) -> None:
        """A function that Cython has compiled: one of this package with what it wraps. Closures of
        such functions are out of sight, so others cannot be watched."""
        wrapped = getattr(function, "__wrapped__", None)
        own = _is_own(function.__globals__.get("__name__"))
        if not own or (wrapped is None and "<locals>" in function.__qualname__):
            self._visit_object(name, function)
            return
        self._later(name, [wrapped])
        if not _is_own(function.__module__):
            self._later(name, self._attached.add(name, function))

    def _visit_globals(self, variables: dict[str, Any], named: Names) -> None:
        """The globals that code names, and what is built in where there is no global."""
        if "globals" in named:
            named = named.union(variables)
        self._visit_named("", variables, named)
        builtin = variables.get("__builtins__")
        builtin = getattr(builtin, "__dict__", builtin)
        if isinstance(builtin, dict):
            self._visit_named("", builtin, named - set(variables), absent=False)

    def _visit_named(
        self,
        name: str,
        variables: Any,
        names: Names | None = None,
        absent: bool = True,
        count: int | None = None,
        owner: type | None = None,
    ) -> None:
        """The entries of a namespace that are named; those that are missing must stay so, and all
        others if there must be no more than `count`."""
        if names is None and self.by_any_name:
            keys, missing, count = list(variables), frozenset[str](), len(variables)
        else:
            names = self.names if names is None else names
            keys = [key for key in variables if key in names]
            missing = frozenset(names.difference(keys)) if absent else frozenset()
        if self.skipped:
            keys = [key for key in keys if (id(variables), key) not in self.skipped]
        if keys or missing or count is not None:
            self.checks.append(Fields(name, variables, keys, missing, count, owner))
        for key in keys:
            self._pending.append((f"{name}.{key}" if name else key, variables[key]))

    def _is_passed_by(self, module: Any) -> bool:
        """Whether a module is a library's, where it is not known yet which code will run: what
        libraries keep for themselves is taken for bookkeeping then."""
        owner = _owner_of(module)
        return self.before and owner not in (self.home, "wengert") and _is_library(owner)

    def _visit_module(self, name: str, module: types.ModuleType) -> None:
        """The names that are there. Libraries load more of theirs when they are asked."""
        if self._is_passed_by(module.__name__):
            return
        name = name or module.__name__
        owner = module.__name__.partition(".")[0]
        library = _is_own(owner) or owner in _LAZY or owner in sys.stdlib_module_names
        names = self.names if library else None
        self._visit_named(name, module.__dict__, names, absent=not library)

    def _visit_class(self, name: str, cls: type) -> None:
        """Attributes that are named, and methods that Python looks up by itself, in all bases."""
        metaclass: Any = type(cls)
        for base in cls.__mro__ + metaclass.__mro__:
            if id(base) in self._visited and base is not cls:
                continue
            self._visited[id(base)] = base
            if base.__flags__ & _SEALED_CLASS or _is_own(base.__module__):
                continue
            if self._is_passed_by(base.__module__):
                continue
            names = self.names | SPECIAL
            count = None
            if self.by_any_name:
                names |= {key for key in base.__dict__ if not key.startswith(("__", "_abc_"))}
                count = len(base.__dict__)
            self._visit_named(base.__qualname__, base.__dict__, names, count=count, owner=base)
            self._each["__bases__"].add(base.__qualname__, base)

    def _visit_tensor(self, name: str, t: Tensor) -> None:
        """Attributes that users have given it, and facts that do not belong to its kind; gradients
        that are read the trace itself notes."""
        for fact in _TENSOR_FACTS:
            if fact in self.names:
                self._watch(f"{name}.{fact}", functools.partial(_fact, t, fact))
        self._later(name, self._given.add(name, t))
        self.tensors.add(name, t)
        if type(t) is not Tensor:
            self._later(name, [type(t)])

    def attributes_of(self, t: Tensor) -> tuple:
        """Names and values of the attributes that users have given a tensor, as far as they can
        have been read."""
        if type(t) is Tensor and not has_attributes(t):
            return ()
        return self._chosen(user_attributes(t))

    def _attached_to(self, function: types.FunctionType) -> tuple:
        """The attributes that users have given to a function and that may have been read."""
        return self._chosen(function.__dict__)

    def _chosen(self, given: dict[str, Any]) -> tuple:
        keys = [key for key in given if self.by_any_name or key in self.names]
        return (*keys, *[given[key] for key in keys])

    def _visit_array(self, name: str, array: np.ndarray) -> None:
        if array.dtype.hasobject:
            self._watch(name, functools.partial(_objects_in, array))
        else:
            self.checks.append(Elements(name, array))

    def _visit_contents(self, name: str, value: Any) -> None:
        write = functools.partial(_refill, value) if isinstance(value, (set, deque)) else None
        self.checks.append(Contents(name, functools.partial(_elements, value), write))
        for item in _elements(value):
            self._pending.append((name, item))

    def _visit_list(self, name: str, value: list) -> None:
        self.containers.add(id(value))
        skipped = self._skipped_in(value)
        if Appended in skipped:
            return
        check = Listed(name, value, skipped)
        self.checks.append(check)
        for i, item in enumerate(check.expected):
            self._pending.append((f"{name}[{i}]", item))

    def _visit_dictionary(self, name: str, value: dict) -> None:
        self.containers.add(id(value))
        # Not what users override.
        kind: Any = OrderedDict if isinstance(value, OrderedDict) else dict
        extra = ["default_factory"] if isinstance(value, defaultdict) else []
        skipped = self._skipped_in(value)
        self.checks.append(Entries(name, value, kind, extra, skipped))
        for key, item in kind.items(value):
            self._later(name, [key])
            if key not in skipped:
                self._pending.append((f"{name}[{key!r}]" if type(key) is str else name, item))

    def _skipped_in(self, container: Any) -> frozenset:
        return frozenset([key for owner, key in self.skipped if owner == id(container)])

    def _visit_object(self, name: str, value: Any) -> None:
        """Its contents if it is a container, its class, and its attributes in the dictionary and in
        slots."""
        cls = type(value)
        bases = cls.__mro__
        is_layer = any(base.__module__.startswith(_LOOKED_INTO) for base in bases)
        if _is_own(cls.__module__) and not is_layer:
            self._later(name, _callables_of(value))
            return
        for kind, visit in _CONTAINERS:
            if isinstance(value, kind):
                visit(self, name, value)
        attributes = getattr(value, "__dict__", None)
        if not isinstance(attributes, dict):
            attributes = None
        self._each["__class__"].add(name or cls.__name__, value)
        self._pending.append((cls.__name__, cls))
        every = is_layer or _owner_of(cls.__module__) in _LAZY
        if attributes is not None:
            self._each["__dict__"].add(name or cls.__name__, value)
            names = set(attributes) if every else None
            count = len(attributes) if every else None
            self._visit_named(name or cls.__name__, attributes, names, count=count)
        for base in bases:
            if base not in _TRANSPARENT and _is_from_c(base) and not _is_own(base.__module__):
                self.opaque = f"{name or 'a value'}, of type {cls.__module__}.{cls.__qualname__}"
                return
            self._visit_slots(name, value, base)

    def _visit_slots(self, name: str, value: Any, base: type) -> None:
        slots = [
            slot
            for key, slot in vars(base).items()
            if type(slot) is types.MemberDescriptorType and (self.by_any_name or key in self.names)
        ]
        if slots:
            label = f"{name}.{slots[0].__name__}" if len(slots) == 1 else f"{name}'s slots"
            write = functools.partial(_set_slots, value, slots)
            self._watch(label, functools.partial(_slots, value, slots), write)

    def _visit_bound(self, name: str, value: Any) -> None:
        if not isinstance(value.__self__, types.ModuleType):
            self._later(name, [value.__self__])

    def _visit_method(self, name: str, value: types.MethodType) -> None:
        self._later(name or "self", [value.__self__])
        self._later(name, [value.__func__])

    def _visit_partial(self, name: str, value: functools.partial) -> None:
        self._later(name, [value.func, value.args, value.keywords])
        self._visit_named(name, value.__dict__)

    def _visit_getter(self, name: str, value: Any) -> None:
        """Objects that read attributes or items: what they are made of."""
        _, parts = value.__reduce__()
        for part in parts:
            if isinstance(part, str):
                self.names.update(part.split("."))
        self._later(name, parts)

    def _visit_reference(self, name: str, value: Any) -> None:
        """Classes stay; that another object has gone is out of sight, and to hold it would keep it
        from going."""
        if not isinstance(value(), (type, types.NoneType)):
            self.opaque = f"{name}, a weak reference"

    def _visit_items(self, name: str, value: tuple) -> None:
        for i, item in enumerate(value):
            self._pending.append((f"{name}[{i}]", item))

    def _visit_parts(self, name: str, value: Any) -> None:
        for part in ("__func__", "fget", "fset", "fdel", "__wrapped__"):
            self._later(name, [getattr(value, part, None)])

    def _visit_bytes(self, name: str, value: Any) -> None:
        self.checks.append(
            Contents(name, functools.partial(_bytes, value), functools.partial(_set_bytes, value))
        )

    def _visit_variable(self, name: str, value: ContextVar) -> None:
        self._watch(name, lambda: [value.get(MISSING)])


#: Parts of this package whose objects hold what is the user's: parameters, buffers, options.
_LOOKED_INTO = ("wengert.nn", "wengert.optim")
#: Libraries other than this one whose objects are looked into as wholes.
_LAZY = frozenset(("numpy", "scipy", "ml_dtypes"))

_VISITS: dict[type, Callable[[Walk, str, Any], None]] = {
    type(wrap): Walk._visit_compiled,
    types.FunctionType: Walk._visit_function,
    types.MethodType: Walk._visit_method,
    **dict.fromkeys(_BOUND, Walk._visit_bound),
    functools.partial: Walk._visit_partial,
    property: Walk._visit_parts,
    staticmethod: Walk._visit_parts,
    classmethod: Walk._visit_parts,
    type(functools.lru_cache(len)): Walk._visit_parts,
    np.ndarray: Walk._visit_array,
    list: Walk._visit_list,
    set: Walk._visit_contents,
    deque: Walk._visit_contents,
    tuple: Walk._visit_items,
    dict: Walk._visit_dictionary,
    operator.attrgetter: Walk._visit_getter,
    operator.methodcaller: Walk._visit_getter,
    operator.itemgetter: Walk._visit_getter,
    weakref.ReferenceType: Walk._visit_reference,
    bytearray: Walk._visit_bytes,
    memoryview: Walk._visit_bytes,
    plain_array: Walk._visit_bytes,
    ContextVar: Walk._visit_variable,
}
#: What instances of subclasses contain.
_CONTAINERS: tuple[tuple[type, Callable[[Walk, str, Any], None]], ...] = (
    (list, Walk._visit_list),
    (set, Walk._visit_contents),
    (deque, Walk._visit_contents),
    (tuple, Walk._visit_items),
    (dict, Walk._visit_dictionary),
    (np.ndarray, Walk._visit_array),
    (bytearray, Walk._visit_bytes),
)


def _owner_of(module: Any) -> str:
    return module.partition(".")[0] if isinstance(module, str) else ""


@functools.cache
def _is_library(owner: str) -> bool:
    """Whether a package is Python's own, or was installed beside it."""
    if owner in _LAZY or owner in sys.stdlib_module_names:
        return owner not in ("__main__", "test")
    module = sys.modules.get(owner)
    places = [getattr(module, "__file__", None) or "", *getattr(module, "__path__", ())]
    return any("site-packages" in place or "dist-packages" in place for place in places)


def _is_own(module: Any) -> bool:
    return _owner_of(module) == "wengert"


def has_attributes(t: Tensor) -> bool:
    """Whether users may have given a tensor attributes."""
    if _compiled and type(t) is Tensor:
        return t.cold is not None
    return not t.__dict__.keys() <= FIELDS


def _fact(t: Tensor, name: str) -> list:
    return [getattr(t, name, MISSING)]


def _elements(value: Any) -> list:
    if isinstance(value, types.MappingProxyType):
        return [*value, *value.values()]
    if isinstance(value, ItemsView):
        return [part for item in value for part in item]
    kind = next((kind for kind in (list, set, deque) if isinstance(value, kind)), None)
    return list(value if kind is None else kind.__iter__(value))


def _refill(value: Any, elements: list) -> None:
    kind: Any = set if isinstance(value, set) else deque
    kind.clear(value)
    (kind.update if kind is set else kind.extend)(value, elements)


def _objects_in(array: np.ndarray) -> list:
    if array.dtype == object:
        return array.reshape(-1).tolist()
    return [part for item in array.reshape(-1).tolist() for part in item]


def _slots(value: Any, slots: list[Any]) -> list:
    found = []
    for slot in slots:
        try:
            found.append(slot.__get__(value))
        except AttributeError:
            found.append(MISSING)
    return found


def _set_slots(value: Any, slots: list[Any], before: list) -> None:
    for slot, kept in zip(slots, before, strict=True):
        if kept is not MISSING:
            slot.__set__(value, kept)
        elif _slots(value, [slot]) != [MISSING]:
            slot.__delete__(value)


def _bytes(value: Any) -> list:
    return [bytes(value), getattr(value, "typecode", None)]


def _set_bytes(value: Any, before: list) -> None:
    content, typecode = before
    value[:] = content if typecode is None else plain_array(typecode, content)


def _callables_of(value: Any) -> list:
    """What an object of this package may call that is the user's."""
    attributes = getattr(value, "__dict__", None)
    inside = list(attributes.values()) if isinstance(attributes, dict) else []
    return [part for part in inside if callable(part)]


def _by_namespace(
    code: Iterable[tuple[types.CodeType, dict[str, Any]]],
) -> Iterable[tuple[dict, set[str]]]:
    """The globals that all code with the same namespace reads."""
    found: dict[int, tuple[dict, set[str]]] = {}
    for part, variables in code:
        found.setdefault(id(variables), (variables, set()))[1].update(globals_read(part))
    return found.values()


_OF_C = (types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType)


def _is_from_c(cls: type) -> bool:
    """Whether a class was not made by a class statement, so that its instances may have state that
    cannot be seen."""
    return any(
        type(part) in _OF_C
        and getattr(part, "__objclass__", None) is cls
        and key not in ("__dict__", "__weakref__")
        for key, part in vars(cls).items()
    ) and not issubclass(cls, BaseException)
