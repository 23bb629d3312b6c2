"""Checks that something a compiled function has read is still what it was.

A check compares by value where another object is there: equal numbers and strings are the same,
other objects are not. Before that all are compared by identity, in one function that is written for
the purpose (`all_hold`) out of the conditions that the checks give; `bind` names an object there.
Checks made before a function runs tell what it has changed, and can put back what was there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from operator import attrgetter, is_
from types import CellType, FunctionType
from typing import Any

import numpy as np

from ...core.tensor import Tensor, requires_of, set_fields
from ...tensor.pickling import FIELDS
from .guards import tensor_key
from .places import MISSING, Appended, Change, Item, Variable, entry

#: Values that are compared by `==` if their types agree.
PLAIN = (int, bool, str, bytes, type(None), range)


def same(found: Any, expected: Any) -> bool:
    """Whether two values are one object, or immutable and equal."""
    if found is expected:
        return True
    cls = type(expected)
    if type(found) is not cls:
        return False
    if cls in (float, complex):
        return repr(found) == repr(expected)  # zeros have signs, and nan equals nothing
    if cls is tuple:
        return len(found) == len(expected) and all(map(same, found, expected))
    if cls is frozenset:
        return found == expected and all(map(same, found, expected))
    if isinstance(expected, np.generic):
        return found.tobytes() == expected.tobytes()
    return cls in PLAIN and found == expected


Bind = Callable[[Any], str]


def all_hold(checks: Sequence[Any]) -> Callable[[], bool]:
    """A function that tells quickly, and False where in doubt, whether nothing has changed."""
    objects: dict[str, Any] = {"FIELDS": FIELDS}

    def bind(value: Any) -> str:
        name = f"v{len(objects)}"
        objects[name] = value
        return name

    conditions = [condition for check in checks for condition in check.conditions(bind)]
    lines = ["def holds():"]
    for i in range(0, len(conditions), 100):
        lines.append(f"    if not ({' and '.join(conditions[i : i + 100])}): return False")
    exec("\n".join([*lines, "    return True"]), objects)
    return objects["holds"]


class Cell:
    """What a variable of an enclosing function is bound to."""

    __slots__ = ("name", "cell", "expected")

    def __init__(self, name: str, cell: CellType) -> None:
        self.name = name
        self.cell = cell
        self.expected = Variable(cell).read()

    def changed(self) -> str | None:
        """The name of the variable if it is bound to something else."""
        return None if same(Variable(self.cell).read(), self.expected) else self.name

    def changes(self) -> list[Change]:
        if self.changed() is None:
            return []
        place = Variable(self.cell)
        return [Change(self.name, self.expected, place.read(), place)]

    def restore(self) -> None:
        Variable(self.cell).write(self.expected)

    def conditions(self, bind: Bind) -> list[str]:
        return [f"{bind(self.cell)}.cell_contents is {bind(self.expected)}"]


class Contents:
    """A list of values that is read again, and may be written: elements, slots."""

    __slots__ = ("name", "read", "expected", "write")

    def __init__(
        self,
        name: str,
        read: Callable[[], list],
        write: Callable[[list], Any] | None = None,
    ) -> None:
        self.name = name
        self.read = read
        self.expected = read()
        self.write = write

    def changes(self) -> list[Change]:
        if self.changed() is None:
            return []
        return [Change(self.name, self.expected, self.read())]

    def restore(self) -> None:
        if self.write is not None and self.changed() is not None:
            self.write(self.expected)

    def changed(self) -> str | None:
        """The name of what is not as it was, None if all is."""
        found = self.read()
        if len(found) != len(self.expected):
            return self.name
        if all(map(is_, found, self.expected)) or all(map(same, found, self.expected)):
            return None
        return self.name

    def conditions(self, bind: Bind) -> list[str]:
        return [f"{bind(self.changed)}() is None"]


def _while_empty(value: Any, bind: Bind) -> list[str]:
    """The condition that a container stays empty, as those of hooks mostly do; none if it is not,
    or may say otherwise itself."""
    return [f"not {bind(value)}"] if type(value) in (list, dict, OrderedDict) and not value else []


class Listed(Contents):
    """The elements of a list, but for those at the places `skipped`."""

    __slots__ = ("value", "skipped")

    def __init__(self, name: str, value: list, skipped: frozenset[int] = frozenset()) -> None:
        self.value = value
        self.skipped = skipped
        Contents.__init__(self, name, self._elements, self._put)

    def conditions(self, bind: Bind) -> list[str]:
        return _while_empty(self.value, bind) or Contents.conditions(self, bind)

    def _elements(self) -> list:
        elements = list(list.__iter__(self.value))
        for place in self.skipped:
            if place < len(elements):
                elements[place] = MISSING
        return elements

    def _put(self, elements: list) -> None:
        list.__setitem__(self.value, slice(None), elements)

    def changes(self) -> list[Change]:
        found, count = self.read(), len(self.expected)
        if len(found) > count and all(map(is_, found, self.expected)):
            return [Change(self.name, MISSING, found[count:], Appended(self.value))]
        if len(found) != count:
            return [Change(self.name, self.expected, found)]
        pairs = enumerate(zip(self.expected, found, strict=True))
        return [
            Change(f"{self.name}[{i}]", old, new, Item(self.value, i))
            for i, (old, new) in pairs
            if not same(new, old)
        ]


class Entries(Contents):
    """Keys and values of a dictionary in their order, but for the values of keys `skipped`."""

    __slots__ = ("value", "skipped", "kind")

    def __init__(
        self, name: str, value: dict, kind: Any, extra: list, skipped: frozenset = frozenset()
    ) -> None:
        self.value = value
        self.skipped = skipped
        self.kind = kind

        def entries() -> list:
            values = kind.values(value)
            if skipped:
                values = [MISSING if key in skipped else kept for key, kept in kind.items(value)]
            return [*kind.keys(value), *values, *[getattr(value, part) for part in extra]]

        Contents.__init__(self, name, entries, self._put)

    def conditions(self, bind: Bind) -> list[str]:
        return _while_empty(self.value, bind) or Contents.conditions(self, bind)

    def _expected_items(self) -> dict:
        count = len(self.expected) // 2
        return dict(zip(self.expected[:count], self.expected[count : 2 * count], strict=True))

    def _put(self, _: list) -> None:
        self.kind.clear(self.value)
        for key, kept in self._expected_items().items():
            self.kind.__setitem__(self.value, key, kept)

    def changes(self) -> list[Change]:
        if self.changed() is None:
            return []
        before, now = self._expected_items(), dict(self.kind.items(self.value))
        found = [
            Change(self._full(key), old, new, Item(self.value, key))
            for key in dict.fromkeys([*before, *now])
            if not same(
                new := now.get(key, MISSING), old := before.get(key, MISSING)
            )
        ]
        return found or [Change(self.name, before, now)]  # another order, or another default

    def _full(self, key: Any) -> str:
        return f"{self.name}[{key!r}]"


class Fields:
    """Some entries of a namespace, and the names that it does not have.

    With `count`, there must not be more entries than that, whatever their names. The namespace may
    be that of a class, its `owner`.
    """

    __slots__ = ("name", "variables", "keys", "expected", "absent", "count", "owner")

    def __init__(
        self,
        name: str,
        variables: Mapping[str, Any],
        keys: list[str],
        absent: frozenset[str] = frozenset(),
        count: int | None = None,
        owner: type | None = None,
    ) -> None:
        self.name = name
        self.variables = variables
        self.keys = keys
        self.expected = [variables[key] for key in keys]
        self.absent = absent
        self.count = count
        self.owner = owner

    def changed(self) -> str | None:
        """The name of an entry that is not what it was, None if all are."""
        variables = self.variables
        if not all(map(is_, map(variables.get, self.keys, repeat(MISSING)), self.expected)):
            for key, expected in zip(self.keys, self.expected, strict=True):
                if not same(variables.get(key, MISSING), expected):
                    return self._full(key)
        if self.absent and not variables.keys().isdisjoint(self.absent):
            return self._full(min(self.absent.intersection(variables)))
        if self.count is not None and len(variables) != self.count:
            return self.name
        return None

    def _differences(self) -> list[tuple[str, Any, Any]]:
        """Name, value before and value now of each entry that is not what it was."""
        variables = self.variables
        before: dict[str, Any] = dict(zip(self.keys, self.expected, strict=True))
        appeared = self.absent.intersection(variables)
        if self.count is not None and len(variables) != self.count:
            appeared = appeared.union([key for key in variables if key not in before])
        found = []
        for key in [*before, *sorted(appeared)]:
            old, new = before.get(key, MISSING), variables.get(key, MISSING)
            if not same(new, old):
                found.append((key, old, new))
        return found

    def changes(self) -> list[Change]:
        found = []
        for key, old, new in self._differences():
            place = entry(self.variables, key, self.owner)
            found.append(
                Change(self._full(key), old, new, place if type(place) is Item else None)
            )
        return found

    def restore(self) -> None:
        for key, old, _ in self._differences():
            entry(self.variables, key, self.owner).write(old)

    def conditions(self, bind: Bind) -> list[str]:
        found = []
        if self.keys:
            get, missing = bind(self.variables.get), bind(MISSING)
            for key, expected in zip(self.keys, self.expected, strict=True):
                found.append(f"{get}({key!r}, {missing}) is {bind(expected)}")
        if self.absent:
            found.append(f"{bind(self.variables.keys().isdisjoint)}({bind(self.absent)})")
        if self.count is not None:
            found.append(f"len({bind(self.variables)}) == {self.count}")
        return found

    def _full(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key


class Each:
    """One attribute of each of many objects, such as the class or the code."""

    __slots__ = ("attribute", "read", "names", "objects", "expected")

    def __init__(self, attribute: str) -> None:
        self.attribute = attribute
        self.read: Callable[[Any], Any] = (
            type if attribute == "__class__" else attrgetter(attribute)
        )
        self.names: list[str] = []
        self.objects: list[Any] = []
        self.expected: list[Any] = []

    def add(self, name: str, value: Any) -> None:
        self.names.append(name)
        self.objects.append(value)
        self.expected.append(self.read(value))

    def changed(self) -> str | None:
        """The name of an attribute that is not what it was, None if all are."""
        for name, value, expected in zip(self.names, self.objects, self.expected, strict=True):
            if not same(self.read(value), expected):
                return f"{name}.{self.attribute}"
        return None

    def changes(self) -> list[Change]:
        changed = self.changed()
        return [] if changed is None else [Change(changed)]

    def restore(self) -> None:
        for value, expected in zip(self.objects, self.expected, strict=True):
            if self.read(value) is not expected:
                setattr(value, self.attribute, expected)

    def conditions(self, bind: Bind) -> list[str]:
        of_class = self.attribute == "__class__"
        text = "type({}) is {}" if of_class else f"{{}}.{self.attribute} is {{}}"
        pairs = zip(self.objects, self.expected, strict=True)
        return [text.format(bind(value), bind(expected)) for value, expected in pairs]


class Additions:
    """Attributes that users may give to objects which have none at first: functions, tensors.

    `read` returns those that matter; `none` is the text of a condition under which there are none.
    """

    __slots__ = ("none", "read", "names", "objects", "expected")

    def __init__(self, none: str, read: Callable[[Any], tuple]) -> None:
        self.none = none
        self.read = read
        self.names: list[str] = []
        self.objects: list[Any] = []
        self.expected: list[tuple] = []

    def add(self, name: str, value: Any) -> tuple:
        """Watch an object; its attributes that matter."""
        self.names.append(name)
        self.objects.append(value)
        self.expected.append(self.read(value))
        return self.expected[-1]

    def changed(self) -> str | None:
        """The name of an object that has other attributes now."""
        for name, value, expected in zip(self.names, self.objects, self.expected, strict=True):
            if not same(self.read(value), expected):
                return f"{name}'s attributes"
        return None

    def changes(self) -> list[Change]:
        changed = self.changed()
        return [] if changed is None else [Change(changed)]

    def restore(self) -> None:
        for value, expected in zip(self.objects, self.expected, strict=True):
            now, before = _as_attributes(self.read(value)), _as_attributes(expected)
            for key in now.keys() - before.keys():
                delattr(value, key)
            for key, kept in before.items():
                if now.get(key, MISSING) is not kept:
                    setattr(value, key, kept)

    def conditions(self, bind: Bind) -> list[str]:
        if any(self.expected):
            return [f"{bind(self.changed)}() is None"]
        read = bind(self.read)
        return [self._condition(value, bind, read) for value in self.objects]

    def _condition(self, value: Any, bind: Bind, read: str) -> str:
        """The text of a condition under which an object has no attributes that matter."""
        if type(value) is FunctionType and value.__dict__:
            # Such as `__wrapped__`: of what is there now, nothing matters.
            return f"{bind(value)}.__dict__.keys() == {bind(frozenset(value.__dict__))}"
        text = self.none if type(value) in (FunctionType, Tensor) else f"not {read}({{}})"
        return text.format(bind(value))


def _as_attributes(names_and_values: tuple) -> dict[str, Any]:
    count = len(names_and_values) // 2
    return dict(zip(names_and_values[:count], names_and_values[count:], strict=True))


class Tensors:
    """The kinds of tensors that are not arguments: a function may read their shape alone."""

    __slots__ = ("names", "objects", "arrays", "needs", "keys", "gradients")

    def __init__(self) -> None:
        self.names: list[str] = []
        self.objects: list[Tensor] = []
        self.arrays: list[Any] = []
        self.needs: list[bool] = []
        self.keys: list[tuple] = []
        self.gradients: list[Tensor | None] = []

    def add(self, name: str, t: Tensor) -> None:
        self.names.append(name)
        self.gradients.append(t.gradient)
        self.objects.append(t)
        self.arrays.append(t.array)
        self.needs.append(requires_of(t))
        self.keys.append(tensor_key(t))

    def changed(self) -> str | None:
        """The name of a tensor that is of another kind now."""
        for name, t, key in zip(self.names, self.objects, self.keys, strict=True):
            if tensor_key(t) != key:
                return name
        return None

    def changes(self) -> list[Change]:
        facts = zip(self.names, self.objects, self.keys, self.gradients, strict=True)
        found = []
        for name, t, key, gradient in facts:
            if t.gradient is not gradient:
                found.append(Change(f"{name}.grad", gradient, t.gradient))
            elif tensor_key(t) != key:
                found.append(Change(name))
        return found

    def restore(self) -> None:
        facts = zip(self.objects, self.arrays, self.needs, self.gradients, strict=True)
        for t, array, needs, gradient in facts:
            if t.array is not array or t.gradient is not gradient:
                set_fields(t, array=array, gradient=gradient)
            if requires_of(t) is not needs and t.node is None:
                set_fields(t, needs_grad=needs)

    def conditions(self, bind: Bind) -> list[str]:
        requires = bind(requires_of)
        found = []
        for t, array, needs in zip(self.objects, self.arrays, self.needs, strict=True):
            name = bind(t)
            found.append(f"{name}.array is {bind(array)} and {requires}({name}) is {needs}")
        return found


class Elements:
    """The elements of an array, bit by bit."""

    __slots__ = ("name", "array", "expected", "layout")

    def __init__(self, name: str, array: np.ndarray) -> None:
        self.name = name
        self.array = array
        self.layout = (array.shape, array.dtype)
        self.expected = _bits(array.copy(order="C"))

    def changed(self) -> str | None:
        """The name of the array if it is not what it was."""
        array = self.array
        if (array.shape, array.dtype) != self.layout:
            return self.name
        return None if np.array_equal(_bits(array), self.expected) else self.name

    def changes(self) -> list[Change]:
        return [] if self.changed() is None else [Change(self.name)]

    def restore(self) -> None:
        shape, dtype = self.layout
        if self.changed() is not None and self.array.shape == shape:
            self.array[...] = self.expected.view(np.uint8).view(dtype).reshape(shape)

    def conditions(self, bind: Bind) -> list[str]:
        return [f"{bind(self.changed)}() is None"]


def _bits(array: np.ndarray) -> np.ndarray:
    """The elements as unsigned integers, in a view where that is possible."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return flat.view(np.uint64) if flat.nbytes % 8 == 0 else flat
