"""Operator schemas: ``name(Tensor(a) self, int[] dims, *, bool keepdim=False) -> Tensor(a)``."""

from __future__ import annotations

import re
from typing import Any

_ARGUMENT = re.compile(
    r"(\w+)(\([\w!| *>-]+\))?(\[\d*\])?(\?)?(\[\d*\])?(\?)?\s+(\w+)(?:\s*=\s*(.+))?$"
)
_LITERALS = {"None": None, "True": True, "False": False, "[]": ()}


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
    parts, depth, current = [], 0, ""
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    if current.strip():
        parts.append(current.strip())
    return parts


def _argument(text: str, keyword_only: bool) -> Argument:
    match = _ARGUMENT.match(text)
    if match is None:
        raise ValueError(f"not a schema argument: {text!r}")
    base, alias, list1, optional1, list2, optional2, name, default = match.groups()
    kind = base + ("[]" if list1 else "") + (optional1 or "") + ("[]" if list2 else "")
    kind += optional2 or ""
    value = REQUIRED if default is None else _literal(default)
    return Argument(name, kind, value, keyword_only, alias[1:-1] if alias else None)


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
