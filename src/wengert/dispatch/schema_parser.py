"""Reads schemas: ``ns::name.overload(Tensor(a!) self, *, int[2] size=1) -> (Tensor(a!), int)``.

One method of the parser per rule of the grammar; an error shows where it stands in the text.
Schemas share the arguments that are written alike, so that a declared operator costs little.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NoReturn

from ..core import dtypes, layouts
from ..core.devices import device
from ..core.dtypes import dtype
from ..core.layouts import layout, memory_format
from .schema import REQUIRED, Argument, Schema

_TOKEN = r"""\s*(?:
    (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?j?)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<sign>->|::|[-+()\[\],=*!|?.])
    )"""
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
    "MemoryFormat": {
        0: "contiguous_format", 1: "preserve_format", 2: "channels_last", 3: "channels_last_3d",
    },
}  # fmt: skip
# The words for types, and the Python types that a default value of each may have.
_LITERALS: dict[str, tuple[Any, ...]] = {
    "Tensor": (),
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
    "Generator": (),
}


def parse(text: str) -> Schema:
    """Read one schema; RuntimeError if it is not one."""
    head, arrow, result = text.partition(") -> ")
    name, _, rest = head.partition("(")
    if arrow and _is_name(name):
        try:
            found = _arguments(rest)
            if _in_order(found):
                return Schema(name, found, _returns(result), text)
        except RuntimeError:
            pass  # read as a whole, which tells where the error stands
    return _Parser(text).schema()


def _is_name(text: str) -> bool:
    """Whether a text is ``name``, ``ns::name``, or one of them and ``.overload``."""
    namespace, separator, name = text.partition("::")
    name, point, overload = (name if separator else namespace).partition(".")
    return (
        name.isidentifier()
        and (not separator or namespace.isidentifier())
        and (not point or overload.isidentifier() and overload != "default")
    )


@cache
def _tokens() -> re.Pattern[str]:
    """The pattern of tokens, compiled when a schema first needs it."""
    return re.compile(_TOKEN, re.VERBOSE)


def parse_results(schema: Schema) -> list[Argument]:
    """What a schema returns, as arguments; those without a name have an empty one."""
    return [_result(text) for text in schema.returns]


def _arguments(text: str) -> tuple[Argument, ...]:
    found: list[Argument] = []
    keyword_only = False
    for part in _split(text):
        if part == "*" and not keyword_only:
            keyword_only = True
        else:
            found.append(_argument(part, keyword_only))
    return tuple(found)


@cache
def _argument(text: str, keyword_only: bool) -> Argument:
    words = text.split(" ")
    if len(words) == 2 and words[0] in _LITERALS and words[1].isidentifier():
        return Argument(words[1], words[0], keyword_only=keyword_only)  # most are no more than that
    parser = _Parser(text)
    argument = parser.argument(keyword_only)
    parser.expect_end()
    return argument


@cache
def _result(text: str) -> Argument:
    if text == "Tensor":
        return Argument("", "Tensor")
    parser = _Parser(text)
    result = parser.result()
    parser.expect_end()
    return result


@cache
def _returns(text: str) -> tuple[str, ...]:
    """The texts of the results, each of which is known to be one."""
    parts = tuple(_split(text[1:-1]) if text.startswith("(") else [text])
    for part in parts:
        _result(part)
    return parts


def _in_order(arguments: tuple[Argument, ...]) -> bool:
    """Whether names differ and arguments that must be given come before those with defaults."""
    required_ends = False
    for argument in arguments:
        if argument.keyword_only:
            break
        if argument.default is not REQUIRED:
            required_ends = True
        elif required_ends:
            return False
    return len({a.name for a in arguments}) == len(arguments)


def _split(text: str) -> list[str]:
    """Split at the commas that are not inside brackets."""
    parts: list[str] = []
    for piece in text.split(","):
        if parts and _is_open(parts[-1]):
            parts[-1] += "," + piece
        else:
            parts.append(piece)
    return [part.strip() for part in parts] if text.strip() else []


def _is_open(text: str) -> bool:
    """Whether a bracket is not closed."""
    return text.count("(") + text.count("[") > text.count(")") + text.count("]")


class _Parser:
    """A position in a text, and the rules of the grammar."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str, int]] = []
        position, end = 0, len(text.rstrip())
        pattern = _tokens()
        while position < end:
            match = pattern.match(text, position)
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

    def expect_end(self) -> None:
        if self.tokens[self.at][0] != "end":
            self._fail("expected the end")

    def word(self, what: str) -> str:
        kind, value, _ = self.tokens[self.at]
        if kind != "word":
            self._fail(f"expected {what} but found {value or 'the end'!r}")
        self.at += 1
        return value

    # The grammar -----------------------------------------------------------------------------

    def schema(self) -> Schema:
        name = self.word("the name of an operator")
        if self.takes("::"):
            name += "::" + self.word("the name of an operator")
        if self.takes("."):
            overload = self.word("the name of an overload")
            if overload == "default":
                self.at -= 1
                self._fail(
                    "default is not a legal overload name: it is that of the overload without"
                )
            name += "." + overload
        arguments = self.arguments()
        self.expect("->")
        returns = self.returns()
        self.expect_end()
        return Schema(name, arguments, returns, self.text)

    def arguments(self) -> tuple[Argument, ...]:
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
        return tuple(found)

    def _check(self, argument: Argument, found: list[Argument]) -> None:
        if any(argument.name == other.name for other in found):
            self._fail(f"a second argument {argument.name!r}")
        if (
            found
            and not argument.keyword_only
            and found[-1].default is not REQUIRED
            and argument.default is REQUIRED
        ):
            self._fail(f"Non-default positional argument follows default argument: {argument.name}")

    def argument(self, keyword_only: bool) -> Argument:
        base, suffixes, size, alias = self.type()
        name = self.word("the name of an argument")
        default = self.default(base, suffixes, size) if self.takes("=") else REQUIRED
        return Argument(name, base, suffixes, size, default, keyword_only, alias)

    def returns(self) -> tuple[str, ...]:
        """The texts of the results, each checked."""
        if not self.takes("("):
            return (self.result_text(),)
        found: list[str] = []
        while not self.takes(")"):
            if found:
                self.expect(",")
            found.append(self.result_text())
        return tuple(found)

    def result_text(self) -> str:
        start = self.tokens[self.at][2]
        self.result()
        return self.text[start : self.tokens[self.at][2]].strip()

    def result(self) -> Argument:
        base, suffixes, size, alias = self.type()
        name = self.word("a name") if self.tokens[self.at][0] == "word" else ""
        return Argument(name, base, suffixes, size, alias=alias)

    def type(self) -> tuple[str, tuple[str, ...], int | None, str | None]:
        word = self.word("a type")
        word = _OTHER_WORDS.get(word, word)
        if word not in _LITERALS:
            self.at -= 1
            self._fail(
                f"unknown type specifier {word}; the types are {', '.join(_LITERALS)}, with ? for "
                "an optional one and [] for a list"
            )
        suffixes: list[str] = []
        size = None
        alias = self.alias() if self.sees("(") else None
        if alias is not None and word != "Tensor":
            self._fail(f"an alias annotation of {word}, which is not a Tensor,")
        while self.sees("[") or self.sees("?"):
            if self.sees("?"):
                if suffixes[-1:] == ["?"]:
                    self._fail("what is optional already is not made optional again")
                self.at += 1
                suffixes.append("?")
                continue
            if size is not None:
                self._fail("expected the name of an argument: a list of a fixed size has no lists")
            self.expect("[")
            if self.tokens[self.at][0] == "number":
                size = self.size()
            self.expect("]")
            suffixes.append("[]")
        return word, tuple(suffixes), size, alias

    def size(self) -> int:
        value = self.tokens[self.at][1]
        if not value.isdigit():
            self._fail("expected the size of a list")
        self.at += 1
        return int(value)

    def alias(self) -> str:
        """An annotation such as ``(a|b! -> *)`` in its canonical form, without brackets."""
        self.expect("(")
        before = self.alias_set()
        mark = "!" if self.takes("!") else ""
        after = self.alias_set() if self.takes("->") else before
        self.expect(")")
        return before + mark + ("" if after == before else f" -> {after}")

    def alias_set(self) -> str:
        if self.takes("*"):
            return "*"
        names = {self.word("the name of an alias set")}
        while self.takes("|"):
            names.add(self.word("the name of an alias set"))
        return "|".join(sorted(names))

    # Defaults --------------------------------------------------------------------------------

    def default(self, base: str, suffixes: tuple[str, ...], size: int | None) -> Any:
        """A default value; those of lists are tuples, which nobody can change."""
        if self.tokens[self.at][1] == "None":
            self.at += 1
            return None
        inner = suffixes[:-1] if suffixes[-1:] == ("?",) else suffixes
        if inner[-1:] != ("[]",):
            return self.literal(base)
        if not self.takes("["):
            if size is None:
                self._fail("expected [")
            return (self.literal(base),) * size
        items: list[Any] = []
        while not self.takes("]"):
            if items:
                self.expect(",")
            items.append(self.literal(base))
        return tuple(items)

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
