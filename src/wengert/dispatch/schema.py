"""Operator schemas: ``name(Tensor(a) self, int[] dims, *, bool keepdim=False) -> Tensor(a)``."""

from __future__ import annotations

from functools import cache
from typing import Any

_LITERALS = {"None": None, "True": True, "False": False, "[]": ()}
_SUFFIXES = ("", "?", "[]", "[]?", "?[]")


# What an argument takes, as a number that binding can switch on.
(TENSOR, TENSORS, INTS, INTEGER, FLOAT, SCALAR, BOOLEAN, STRING, DTYPE, ANYTHING) = range(10)
_CODES = {
    "Tensor": TENSOR,
    "Tensor[]": TENSORS,
    "int[]": INTS,
    "int": INTEGER,
    "float": FLOAT,
    "Scalar": SCALAR,
    "bool": BOOLEAN,
    "str": STRING,
    "dtype": DTYPE,
}


class Required:
    """The default of an argument that has none."""

    def __repr__(self) -> str:
        return "<required>"


REQUIRED = Required()


class Argument:
    """One argument: its name, type text without alias marks, default and alias annotation."""

    def __init__(
        self, name: str, type: str, default: Any, keyword_only: bool, alias: str | None
    ) -> None:
        self.name = name
        self.type = type
        self.optional = type.endswith("?") or type == "Tensor?[]"
        self.code = _CODES.get(type.replace("?", ""), ANYTHING)
        self.default = default
        self.keyword_only = keyword_only
        self.alias = alias


class Schema:
    """A parsed schema."""

    def __init__(
        self, name: str, arguments: tuple[Argument, ...], returns: tuple[str, ...], text: str
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.returns = returns
        self.text = text
        self.names = {a.name: i for i, a in enumerate(arguments)}

    def __str__(self) -> str:
        return self.text


def parse(text: str) -> Schema:
    """Read one schema line."""
    head, _, result = text.partition(" -> ")
    name, _, inside = head.partition("(")
    arguments = []
    keyword_only = False
    for part in _split(inside.rpartition(")")[0]):
        if part == "*":
            keyword_only = True
        else:
            arguments.append(_argument(part, keyword_only))
    returns = _split(result[1:-1]) if result.startswith("(") else [result]
    return Schema(name, tuple(arguments), tuple(r for r in returns if r), text)


def _split(text: str) -> list[str]:
    """Split at the commas that are not inside brackets."""
    parts: list[str] = []
    for piece in text.split(","):
        if parts and _is_open(parts[-1]):
            parts[-1] += "," + piece
        else:
            parts.append(piece)
    return [part.strip() for part in parts if part.strip()]


def _is_open(text: str) -> bool:
    """Whether a bracket is not closed."""
    return text.count("(") + text.count("[") > text.count(")") + text.count("]")


@cache
def _argument(text: str, keyword_only: bool) -> Argument:
    """One argument; schemas share those that are written alike."""
    declared, equals, default = text.partition("=")
    kind, _, name = declared.strip().rpartition(" ")
    base, opened, rest = kind.strip().partition("(")
    alias, closed, suffix = rest.partition(")")
    element, listed, rest = (base + suffix).partition("[")
    kind = element + listed + rest.lstrip("0123456789")  # how many a list has is not looked at
    element = element.removesuffix("?")
    if not (
        name.isidentifier()
        and element.isalnum()
        and not suffix[:1].isalnum()
        and kind[len(element) :] in _SUFFIXES
        and bool(alias) == bool(opened) == bool(closed)
        and bool(default.strip()) == bool(equals)
    ):
        raise ValueError(f"not a schema argument: {text!r}")
    value = _literal(default.strip()) if default else REQUIRED
    return Argument(name, kind, value, keyword_only, alias or None)


def _literal(text: str) -> Any:
    if text in _LITERALS:
        return _LITERALS[text]
    if text[0] in "\"'":
        return text[1:-1]
    if text[0] == "[":
        return tuple(_literal(part) for part in _split(text[1:-1]))
    try:
        return int(text)
    except ValueError:
        return float(text)
