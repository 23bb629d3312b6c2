"""Schemas as programs see them: their arguments, types and aliases as objects.

The attributes have PyTorch's names. `str` of a schema is its canonical text, which `parse_schema`
reads back to an equal schema. Calls read `dispatch/schema.py`; this view is made on demand.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.devices import device
from ..core.dtypes import dtype
from ..core.layouts import layout, memory_format
from ..dispatch.schema import ANNOTATIONS, REQUIRED, Schema
from ..dispatch.schema import Argument as DeclaredArgument
from ..dispatch.schema_parser import parse, parse_results

# What `kind()` of a type is, where it is not the word for it in a schema and "Type".
_KINDS = {
    "Scalar": "NumberType",
    "int": "IntType",
    "SymInt": "IntType",
    "float": "FloatType",
    "bool": "BoolType",
    "complex": "ComplexType",
    "str": "StringType",
    "Device": "DeviceObjType",
}
_ESCAPES = {
    "\\": "\\\\", '"': '\\"', "'": "\\'", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n",
    "\r": "\\r", "\t": "\\t", "\v": "\\v",
}  # fmt: skip


class SchemaType:
    """The type of an argument: `base` is the word for it, or for what it is a list or option of.

    Types with the same `str` are equal; ``SymInt`` is another word for ``int``.
    """

    __slots__ = ("base",)

    def __init__(self, base: str) -> None:
        self.base = base

    @property
    def annotation_str(self) -> str:
        return ANNOTATIONS.get(self.base, self.base)

    def kind(self) -> str:
        """PyTorch's name for the class of the type, such as ``TensorType``."""
        return _KINDS.get(self.base, f"{self.base}Type")

    def text(self, alias: str, size: int | None) -> str:
        """The type in a schema, with an alias annotation and the size of a list."""
        return self.base + alias

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SchemaType) and other.annotation_str == self.annotation_str

    def __hash__(self) -> int:
        return hash(self.annotation_str)

    def __repr__(self) -> str:
        return self.annotation_str


class _ElementType(SchemaType):
    """A type made of another one."""

    __slots__ = ("element",)
    word = ""

    def __init__(self, element: SchemaType) -> None:
        super().__init__(element.base)
        self.element = element

    @property
    def annotation_str(self) -> str:
        return f"{self.word}[{self.element}]"

    def kind(self) -> str:
        return f"{self.word}Type"

    def getElementType(self) -> SchemaType:
        return self.element


class ListType(_ElementType):
    """A list of elements of one type."""

    __slots__ = ()
    word = "List"

    def text(self, alias: str, size: int | None) -> str:
        return f"{self.element.text(alias, None)}[{'' if size is None else size}]"


class OptionalType(_ElementType):
    """A type, or None."""

    __slots__ = ()
    word = "Optional"

    def text(self, alias: str, size: int | None) -> str:
        return f"{self.element.text(alias, size)}?"


class AliasInfo:
    """Which memory a tensor may share, by names: before the call, after it, and if it is written.

    What is said about the elements of a list is in `contained`; the list itself aliases nothing.
    """

    __slots__ = ("before_set", "after_set", "is_write", "contained")

    def __init__(
        self,
        before_set: Iterable[str],
        after_set: Iterable[str],
        is_write: bool,
        contained: AliasInfo | None = None,
    ) -> None:
        self.before_set = set(before_set)
        self.after_set = set(after_set)
        self.is_write = is_write
        self.contained = contained

    def names(self) -> set[str]:
        """The names before the call, of the elements for a list."""
        return self.before_set if self.contained is None else self.contained.before_set

    def __str__(self) -> str:
        if self.contained is not None:
            return str(self.contained)
        before = "|".join(sorted(self.before_set)) + ("!" if self.is_write else "")
        if self.after_set == self.before_set:
            return f"({before})"
        return f"({before} -> {'|'.join(sorted(self.after_set))})"

    def __repr__(self) -> str:
        return f"AliasInfo{self}"


class Argument:
    """An argument or a return value of an operator; `N` is the fixed size of a list."""

    __slots__ = ("name", "type", "N", "_default", "kwarg_only", "alias_info")

    def __init__(
        self,
        name: str,
        type: SchemaType,
        N: int | None = None,
        default: Any = REQUIRED,
        kwarg_only: bool = False,
        alias_info: AliasInfo | None = None,
    ) -> None:
        self.name = name
        self.type = type
        self.N = N
        self._default = default
        self.kwarg_only = kwarg_only
        self.alias_info = alias_info

    def has_default_value(self) -> bool:
        """Whether the argument may be left out."""
        return self._default is not REQUIRED

    @property
    def default_value(self) -> Any:
        """The default, None if there is none; a list is new each time."""
        if self._default is REQUIRED:
            return None
        return list(self._default) if isinstance(self._default, list) else self._default

    @property
    def real_type(self) -> SchemaType:
        return self.type

    @property
    def is_write(self) -> bool:
        """Whether the operator changes it."""
        return self.alias_info is not None and self.alias_info.is_write

    @property
    def is_out(self) -> bool:
        """Whether it is a place for a result, given by keyword."""
        return self.kwarg_only and self.is_write

    def __str__(self) -> str:
        alias = "" if self.alias_info is None else str(self.alias_info)
        text = self.type.text(alias, self.N)
        if self.name:
            text += f" {self.name}"
        if self.has_default_value():
            text += f"={self._default_text()}"
        return text

    def _default_text(self) -> str:
        value = self._default
        if (
            isinstance(value, list)
            and self.type.text("", None) == "int[]"
            and self.N == len(value) > 1
            and value == value[:1] * self.N
        ):
            return literal_text(value[0])
        return literal_text(value)

    def __repr__(self) -> str:
        return f"Argument({self})"


class FunctionSchema:
    """The name of an operator, its arguments and what it returns."""

    __slots__ = ("name", "overload_name", "arguments", "returns", "_text")

    def __init__(
        self,
        name: str,
        overload_name: str,
        arguments: Iterable[Argument],
        returns: Iterable[Argument],
    ) -> None:
        self.name = name
        self.overload_name = overload_name
        self.arguments = list(arguments)
        self.returns = list(returns)
        self._text = self._make_text()

    @property
    def is_mutable(self) -> bool:
        """Whether the operator changes one of its arguments."""
        return any(argument.is_write for argument in self.arguments)

    def _make_text(self) -> str:
        parts: list[str] = []
        for i, argument in enumerate(self.arguments):
            if argument.kwarg_only and (i == 0 or not self.arguments[i - 1].kwarg_only):
                parts.append("*")
            parts.append(str(argument))
        overload = f".{self.overload_name}" if self.overload_name else ""
        returns = ", ".join(map(str, self.returns))
        if len(self.returns) != 1:
            returns = f"({returns})"
        return f"{self.name}{overload}({', '.join(parts)}) -> {returns}"

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSchema) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple:
        return (parse_schema, (self._text,))


def parse_schema(text: str) -> FunctionSchema:
    """Read one schema; RuntimeError if it is not one."""
    return function_schema(parse(text))


def function_schema(schema: Schema, name: str | None = None) -> FunctionSchema:
    """What a schema says, under PyTorch's names; `name` in place of its own, with the overload."""
    base, _, overload = (name or schema.name).partition(".")
    return FunctionSchema(
        base,
        overload,
        [_shown(each) for each in schema.arguments],
        [_shown(each) for each in parse_results(schema)],
    )


def _shown(argument: DeclaredArgument) -> Argument:
    default = argument.default
    return Argument(
        argument.name,
        _type_of(argument.base, argument.suffixes),
        argument.size,
        list(default) if type(default) is tuple else default,
        argument.keyword_only,
        _alias_of(argument.alias, argument.suffixes.count("[]")),
    )


def _type_of(base: str, suffixes: tuple[str, ...]) -> SchemaType:
    kind = SchemaType(base)
    for suffix in suffixes:
        kind = ListType(kind) if suffix == "[]" else OptionalType(kind)
    return kind


def _alias_of(text: str | None, lists: int) -> AliasInfo | None:
    """An annotation such as ``a|b! -> *``; that of a list concerns its elements."""
    if text is None:
        return None
    before, _, after = text.partition(" -> ")
    names = before.rstrip("!").split("|")
    alias = AliasInfo(names, after.split("|") if after else names, before.endswith("!"))
    for _ in range(lists):
        alias = AliasInfo((), (), alias.is_write, alias)
    return alias


# Default values as text --------------------------------------------------------------------------


def literal_text(value: Any) -> str:
    """A default value as a schema has it."""
    if isinstance(value, list):
        return f"[{', '.join(map(literal_text, value))}]"
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, complex):
        return f"{_float_text(value.real)}{'' if value.imag < 0 else '+'}{_float_text(value.imag)}j"
    if isinstance(value, (str, device)):
        return f'"{"".join([_ESCAPES.get(c, c) for c in str(value)])}"'
    if isinstance(value, (dtype, layout, memory_format)):
        return value.name
    return str(value)


def _float_text(value: float) -> str:
    """Digits enough to read the same number, and a point in every finite one."""
    text = f"{value:.17g}"
    return text if any(c in text for c in ".en") else text + "."
