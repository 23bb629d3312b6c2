"""Reads schemas: ``ns::name.overload(Tensor(a!) self, *, int[2] size=1) -> (Tensor(a!), int)``.

One method of the parser per rule of the grammar; an error shows where it stands in the text.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from ..core import dtypes, layouts
from ..core.devices import device
from ..core.dtypes import dtype
from ..core.layouts import layout, memory_format
from .schema import (
    BASE_TYPES,
    NO_DEFAULT,
    AliasInfo,
    Argument,
    FunctionSchema,
    ListType,
    OptionalType,
    SchemaType,
)

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?j?)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<sign>->|::|[-+()\[\],=*!|?.])
    )""",
    re.VERBOSE,
)
_OTHER_WORDS = {"number": "Scalar", "dtype": "ScalarType"}
_CONSTANTS = {"None": None, "True": True, "False": False}
_UNESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NON_FINITE = {"inf": float("inf"), "nan": float("nan")}
_KEYWORDS_FOR = {"ScalarType": dtype, "Layout": layout, "MemoryFormat": memory_format}
# PyTorch prints such defaults as numbers.
_NUMBERED: dict[str, dict[int, str]] = {
    "ScalarType": {
        0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32",
        7: "float64", 9: "complex64", 10: "complex128", 11: "bool", 15: "bfloat16",
    },
    "Layout": {0: "strided"},
    "MemoryFormat": {0: "contiguous_format", 1: "preserve_format"},
}  # fmt: skip


def parse_schema(text: str) -> FunctionSchema:
    """Read one schema; RuntimeError if it is not one."""
    return _Parser(text).schema()


class _Parser:
    """A position in a text, and the rules of the grammar."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str, int]] = []
        position, end = 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                self._fail(f"{text[position:].strip()[0]!r} has no meaning", position)
            kind = str(match.lastgroup)
            self.tokens.append((kind, match[kind], match.start(kind)))
            position = match.end()
        self.tokens.append(("end", "", end))
        self.at = 0

    # Tokens --------------------------------------------------------------------------------

    def _fail(self, reason: str, position: int | None = None) -> NoReturn:
        if position is None:
            position = self.tokens[self.at][2]
        raise RuntimeError(
            f"cannot read the schema: {reason} here:\n{self.text}\n{' ' * position}^ <--- HERE"
        )

    def sees(self, sign: str) -> bool:
        kind, value, _ = self.tokens[self.at]
        return value == sign and kind == "sign"

    def takes(self, sign: str) -> bool:
        """Whether `sign` comes next, which is then passed."""
        if self.sees(sign):
            self.at += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        if not self.takes(sign):
            found = self.tokens[self.at][1] or "the end"
            self._fail(f"expected {sign} but found {found!r}")

    def word(self, what: str) -> str:
        kind, value, _ = self.tokens[self.at]
        if kind != "word":
            self._fail(f"expected {what} but found {value or 'the end'!r}")
        self.at += 1
        return value

    # The grammar -----------------------------------------------------------------------------

    def schema(self) -> FunctionSchema:
        name = self.word("the name of an operator")
        if self.takes("::"):
            name += "::" + self.word("the name of an operator")
        overload = self.word("the name of an overload") if self.takes(".") else ""
        if overload == "default":
            self.at -= 1
            self._fail("default is not a legal overload name: it is that of the overload without")
        arguments = self.arguments()
        self.expect("->")
        returns = self.returns()
        if self.tokens[self.at][0] != "end":
            self._fail("expected the end")
        return FunctionSchema(name, overload, arguments, returns)

    def arguments(self) -> list[Argument]:
        self.expect("(")
        found: list[Argument] = []
        keyword_only = False
        while not self.takes(")"):
            if found or keyword_only:
                self.expect(",")
            if self.sees("*"):
                if keyword_only:
                    self._fail("a second *")
                keyword_only = True
                self.at += 1
                continue
            argument = self.argument(keyword_only)
            self._check(argument, found)
            found.append(argument)
        return found

    def _check(self, argument: Argument, found: list[Argument]) -> None:
        if any(argument.name == other.name for other in found):
            self._fail(f"a second argument {argument.name!r}")
        if (
            found
            and not argument.kwarg_only
            and found[-1].has_default_value()
            and not argument.has_default_value()
        ):
            self._fail(f"Non-default positional argument follows default argument: {argument.name}")

    def argument(self, keyword_only: bool) -> Argument:
        kind, size, alias = self.type()
        name = self.word("the name of an argument")
        default = self.default(kind, size) if self.takes("=") else NO_DEFAULT
        return Argument(name, kind, size, default, keyword_only, alias)

    def returns(self) -> list[Argument]:
        if not self.takes("("):
            return [self.result()]
        found: list[Argument] = []
        while not self.takes(")"):
            if found:
                self.expect(",")
            found.append(self.result())
        return found

    def result(self) -> Argument:
        kind, size, alias = self.type()
        name = self.word("a name") if self.tokens[self.at][0] == "word" else ""
        return Argument(name, kind, size, alias_info=alias)

    def type(self) -> tuple[SchemaType, int | None, AliasInfo | None]:
        word = self.word("a type")
        word = _OTHER_WORDS.get(word, word)
        if word not in BASE_TYPES:
            self.at -= 1
            self._fail(
                f"unknown type specifier {word}; the types are {', '.join(BASE_TYPES)}, with ? for "
                "an optional one and [] for a list"
            )
        kind = SchemaType(word)
        size = None
        alias = self.alias() if self.sees("(") else None
        if alias is not None and word != "Tensor":
            self._fail(f"an alias annotation of {word}, which is not a Tensor,")
        while self.sees("[") or self.sees("?"):
            if self.takes("?"):
                kind = OptionalType(kind)
                continue
            if size is not None:
                self._fail("expected the name of an argument: a list of a fixed size has no lists")
            self.expect("[")
            if self.tokens[self.at][0] == "number":
                size = self.size()
            self.expect("]")
            kind = ListType(kind)
            if alias is not None:
                alias = AliasInfo((), (), alias.is_write, alias)
        return kind, size, alias

    def size(self) -> int:
        value = self.tokens[self.at][1]
        if not value.isdigit():
            self._fail("expected the size of a list")
        self.at += 1
        return int(value)

    def alias(self) -> AliasInfo:
        self.expect("(")
        before = self.alias_set()
        is_write = self.takes("!")
        after = self.alias_set() if self.takes("->") else before
        self.expect(")")
        return AliasInfo(before, after, is_write)

    def alias_set(self) -> set[str]:
        if self.takes("*"):
            return {"*"}
        names = {self.word("the name of an alias set")}
        while self.takes("|"):
            names.add(self.word("the name of an alias set"))
        return names

    # Defaults --------------------------------------------------------------------------------

    def default(self, kind: SchemaType, size: int | None) -> Any:
        if self.tokens[self.at][1] == "None":
            self.at += 1
            return None
        if isinstance(kind, OptionalType):
            kind = kind.element
        if not isinstance(kind, ListType):
            return self.literal(kind.base)
        if not self.takes("["):
            if size is None:
                self._fail("expected [")
            return [self.literal(kind.base)] * size
        items: list[Any] = []
        while not self.takes("]"):
            if items:
                self.expect(",")
            items.append(self.literal(kind.base))
        return items

    def literal(self, base: str) -> Any:
        """One default value of a base type."""
        start = self.at
        value = self.value(base)
        allowed = _LITERALS[base]
        if type(value) in allowed:
            return allowed[0](value) if base in ("float", "complex", "Device") else value
        self.at = start
        self._fail(f"expected a default of type {base}")

    def value(self, base: str) -> Any:
        kind, text, _ = self.tokens[self.at]
        self.at += 1
        if kind == "string":
            return re.sub(r"\\(.)", lambda m: _UNESCAPES.get(m[1], m[1]), text[1:-1])
        if kind == "number":
            number = self.number(text)
            names = _NUMBERED.get(base)
            return number if names is None else _named_value(names.get(number))
        if kind == "sign" and text in "-+" and self.tokens[self.at][1] == "inf":
            self.at += 1
            return -_NON_FINITE["inf"] if text == "-" else _NON_FINITE["inf"]
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if base == "float" and text in _NON_FINITE:
            return _NON_FINITE[text]
        return _named_value(text) if base in _KEYWORDS_FOR else None

    def number(self, text: str) -> Any:
        following = self.tokens[self.at][1]
        if not text.endswith("j") and following.endswith("j") and following[0] in "-+":
            self.at += 1
            return complex(text + following)
        if text.endswith("j"):
            return complex(text)
        return int(text) if text.lstrip("-+").isdigit() else float(text)


def _named_value(name: str | None) -> Any:
    """The dtype, layout or memory format of a name, None if there is none."""
    if not name:
        return None
    return getattr(dtypes, name, None) or getattr(layouts, name, None)


# The Python types that a default value of a base type may have.
_LITERALS: dict[str, tuple[Any, ...]] = {
    "Tensor": (),
    "Generator": (),
    "Scalar": (int, float, bool, complex),
    "int": (int,),
    "SymInt": (int,),
    "float": (float, int),
    "bool": (bool,),
    "complex": (complex, float, int),
    "str": (str,),
    "ScalarType": (dtype,),
    "Device": (device, str),
    "Layout": (layout,),
    "MemoryFormat": (memory_format,),
}
