"""Where a program keeps a value: an entry of a container or namespace, or a variable."""

from __future__ import annotations

from types import CellType, MappingProxyType
from typing import Any, NamedTuple

#: Stands for what is not there.
MISSING: Any = object()


class Item:
    """An entry of a dictionary, a list or the namespace of an object."""

    __slots__ = ("container", "key")

    def __init__(self, container: Any, key: Any) -> None:
        self.container = container
        self.key = key

    @property
    def identity(self) -> tuple:
        return (id(self.container), self.key)

    def read(self) -> Any:
        try:
            return self.container[self.key]
        except LookupError:
            return MISSING

    def write(self, value: Any) -> None:
        """Put a value there; take the entry away if it is MISSING."""
        if value is not MISSING:
            self.container[self.key] = value
        elif self.key in self.container:
            del self.container[self.key]


class Attribute:
    """An attribute of a class, whose namespace cannot be written directly."""

    __slots__ = ("owner", "key")

    def __init__(self, owner: type, key: str) -> None:
        self.owner = owner
        self.key = key

    def write(self, value: Any) -> None:
        if value is not MISSING:
            setattr(self.owner, self.key, value)
        elif self.key in vars(self.owner):
            delattr(self.owner, self.key)


class Variable:
    """A variable of an enclosing function."""

    __slots__ = ("cell",)

    def __init__(self, cell: CellType) -> None:
        self.cell = cell

    @property
    def identity(self) -> tuple:
        return (id(self.cell), None)

    def read(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return MISSING

    def write(self, value: Any) -> None:
        if value is not MISSING:
            self.cell.cell_contents = value
        else:
            del self.cell.cell_contents


class Appended:
    """The end of a list."""

    __slots__ = ("elements",)

    def __init__(self, elements: list) -> None:
        self.elements = elements

    @property
    def identity(self) -> tuple:
        return (id(self.elements), Appended)

    def write(self, values: list) -> None:
        list.extend(self.elements, values)


class Change(NamedTuple):
    """Something that is not what it was: its name in the program, and its value then and now.

    `place` tells where a value alike can be put again by later calls, if that can be done.
    """

    name: str
    before: Any = None
    now: Any = None
    place: Item | Variable | Appended | None = None


def entry(variables: Any, key: Any, owner: type | None = None) -> Item | Attribute:
    """The place of an entry in a namespace, which may be that of the class `owner`."""
    if isinstance(variables, MappingProxyType) and owner is not None:
        return Attribute(owner, key)
    return Item(variables, key)

