"""Reads graphs from text, as `printer` writes them.

Numbers as names of values are forgotten: the printer numbers values anew.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core import dtypes, layouts
from ...core.devices import device
from ...core.tensor import Tensor, wrap
from . import primitives as prim
from .blocks import Block
from .graph import Graph, bind
from .nodes import Node, Value
from .types import CONTAINERS, PLAIN, TENSOR, TensorType, Type

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n]+)
  | (?P<comment>\#[^\n]*)
  | (?P<value>%[A-Za-z0-9_.]+)
  | (?P<large>@\d+)
  | (?P<number>[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf\b|nan\b))
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<word>[A-Za-z_][\w.]*(?:::[\w.]+)?)
  | (?P<dots>\.\.\.)
  | (?P<mark>[()\[\]:,=*;])
    """,
    re.VERBOSE,
)
_WORDS: dict[str, Any] = {"None": None, "True": True, "False": False}
_WORDS.update({each.name: each for each in dtypes.EVERY})
_WORDS.update(
    {
        each.name: each
        for each in (
            layouts.strided, layouts.contiguous_format, layouts.preserve_format,
            layouts.channels_last, layouts.channels_last_3d,
        )
    }
)


class ParseError(ValueError):
    """Text that is no graph; the message names the line."""


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def parse(text: str, constants: Sequence[Tensor] = ()) -> Graph:
    """The graph that a text describes; `constants` are the tensors it refers to as ``@0`` ..."""
    parser = _Parser(text, constants)
    graph = parser.graph()
    graph.lint()
    return graph


def parse_type(text: str) -> Type:
    """The type that a text describes."""
    parser = _Parser(text, ())
    found = parser.type()
    parser.expect("", "end")
    return found


class _Parser:
    def __init__(self, text: str, constants: Sequence[Tensor]) -> None:
        self.tokens = _tokens(text)
        self.at = 0
        self.constants = constants
        self.values: dict[str, Value] = {}

    # Tokens --------------------------------------------------------------------------------

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    def fail(self, message: str, line: int = 0) -> ParseError:
        """An error at the token just read, or at a given line."""
        return ParseError(f"line {line or self.tokens[self.at - 1].line}: {message}")

    def accept(self, text: str, kind: str = "mark") -> bool:
        if self.token.kind == kind and self.token.text == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str, kind: str = "mark") -> str:
        token = self.token
        if token.kind != kind or (text and token.text != text):
            found = token.text or "the end"
            raise self.fail(f"expected {text or kind!r}, found {found!r}", token.line)
        self.at += 1
        return token.text

    # Structure -----------------------------------------------------------------------------

    def graph(self) -> Graph:
        graph = Graph()
        self.expect("graph", "word")
        self.body(graph.block)
        self.expect("", "end")
        return graph

    def body(self, block: Block) -> None:
        """Parameters, nodes and results of a block."""
        self.expect("(")
        while not self.accept(")"):
            name, type = self.definition()
            self.define(name, block.add_input(type))
            if not self.accept(","):
                self.expect(")")
                break
        self.expect(":")
        while not self.accept("return", "word"):
            self.node(block)
        self.expect("(")
        while not self.accept(")"):
            block.register_output(self.value())
            if not self.accept(","):
                self.expect(")")
                break

    def definition(self) -> tuple[str, Type]:
        name = self.expect("", "value")
        return name, self.type() if self.accept(":") else TENSOR

    def define(self, name: str, value: Value) -> None:
        if name in self.values:
            raise self.fail(f"{name} is defined twice")
        self.values[name] = value
        if not name[1:].isdigit():
            value.name = name[1:]

    def value(self) -> Value:
        name = self.expect("", "value")
        if name not in self.values:
            raise self.fail(f"{name} is not defined here")
        return self.values[name]

    def node(self, block: Block) -> None:
        outputs = []
        while self.token.kind == "value":
            outputs.append(self.definition())
            if not self.accept(","):
                break
        if outputs:
            self.expect("=")
        line = self.token.line
        kind = self.expect("", "word")
        if "::" not in kind:
            raise self.fail(f"{kind} is no kind of node")
        attributes = self.attributes()
        args, kwargs = self.call()
        try:
            operator = prim.operator_of(kind)
            if operator is None and kind not in prim.PRIMITIVES:
                raise LookupError(f"{kind}: no such primitive is declared")
            schema = operator.schema if operator is not None else prim.PRIMITIVES[kind].schema
            arguments, inputs = None, args
            if schema is not None:
                arguments, inputs = bind(kind, schema, args, kwargs)
        except (LookupError, TypeError) as error:
            raise self.fail(str(error.args[0]), line) from None
        if schema is None and (kwargs or not all(isinstance(item, Value) for item in inputs)):
            raise self.fail(f"{kind} takes values only", line)
        types = [type for _, type in outputs]
        node = Node(block.graph, kind, inputs, types, arguments, attributes)
        block.append(node)
        if self.token.kind == "comment":
            node.source = self.expect("", "comment")[1:].strip()
        while self.accept("block", "word"):
            inner = dict(self.values)
            self.body(node.add_block())
            self.values = inner
        for (name, _), value in zip(outputs, node.outputs, strict=True):
            self.define(name, value)

    def attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.accept("["):
            while not self.accept("]"):
                name = self.expect("", "word")
                self.expect("=")
                found[name] = self.argument()
                if not self.accept(","):
                    self.expect("]")
                    break
        return found

    def call(self) -> tuple[list, dict[str, Any]]:
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        self.expect("(")
        while not self.accept(")"):
            if self.token.kind == "word" and self.tokens[self.at + 1].text == "=":
                name = self.expect("", "word")
                self.expect("=")
                kwargs[name] = self.argument()
            elif kwargs:
                raise self.fail("an argument without a name follows one with a name")
            else:
                args.append(self.argument())
            if not self.accept(","):
                self.expect(")")
                break
        return args, kwargs

    # Literals and types --------------------------------------------------------------------

    def argument(self) -> Any:
        kind, text, _ = self.token
        if kind == "value":
            return self.value()
        if kind == "number":
            self.at += 1
            return float(text) if text[-1] in "fn" else ast.literal_eval(text)
        if kind == "string":
            self.at += 1
            return json.loads(text)
        if self.accept("["):
            items = []
            while not self.accept("]"):
                items.append(self.argument())
                if not self.accept(","):
                    self.expect("]")
                    break
            return tuple(items)
        if kind == "word":
            return self.word()
        raise self.fail(f"expected an argument, found {text or 'the end'!r}", self.token.line)

    def word(self) -> Any:
        text = self.expect("", "word")
        if text in _WORDS:
            return _WORDS[text]
        if text not in ("device", "type", "tensor", "complex"):
            raise self.fail(f"{text} is no literal")
        self.expect("(")
        found: Any
        if text == "device":
            found = device(self.argument())
        elif text == "type":
            found = self.type()
        elif text == "complex":
            real = self.argument()
            self.expect(",")
            found = complex(real, self.argument())
        else:
            found = self.tensor()
        self.expect(")")
        return found

    def tensor(self) -> Tensor:
        type = self.type()
        self.expect(",")
        if self.token.kind == "large":
            index = int(self.expect("", "large")[1:])
            if index >= len(self.constants):
                raise self.fail(f"@{index} is not among the {len(self.constants)} constants given")
            return self.constants[index]
        items = self.argument()
        if not isinstance(type, TensorType) or not type.is_complete:
            raise self.fail("a tensor needs dtype and shape")
        return wrap(np.array(items, type.dtype.numpy).reshape(type.shape))  # type: ignore[union-attr,arg-type]

    def type(self) -> Type:
        name = self.expect("", "word")
        if name in CONTAINERS:
            self.expect("(")
            elements = []
            while not self.accept(")"):
                elements.append(self.type())
                if not self.accept(","):
                    self.expect(")")
                    break
            return CONTAINERS[name](*elements)
        followed = self.token.text == "[" and self.token.kind == "mark"
        if not followed and name in PLAIN:
            return PLAIN[name]
        if name != "Tensor" and name not in _DTYPES:
            raise self.fail(f"{name} is no type")
        dtype = _DTYPES.get(name)
        return self.tensor_type(dtype) if followed else TensorType(dtype)

    def tensor_type(self, dtype: Any) -> TensorType:
        self.expect("[")
        shape: list[int | None] | None = []
        requires_grad = None
        if self.token.kind == "dots":
            self.at += 1
            shape = None
        while self.token.kind == "number" or self.token.text == "*":
            length = self.token.text
            self.at += 1
            assert shape is not None
            shape.append(None if length == "*" else int(length))
            if not self.accept(","):
                break
        if self.accept(";"):
            word = self.expect("", "word")
            if word not in ("grad", "no_grad"):
                raise self.fail(f"expected grad or no_grad, found {word!r}")
            requires_grad = word == "grad"
        self.expect("]")
        return TensorType(dtype, shape, requires_grad)


_DTYPES = {each.name: each for each in dtypes.EVERY}


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    line = 1
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ParseError(f"line {line}: {text[at : at + 10]!r} is no part of a graph")
        kind = match.lastgroup or ""
        # A comment stands for a node's source if it follows the node on its line.
        if kind == "comment":
            if tokens and tokens[-1].line == line and tokens[-1].text == ")":
                tokens.append(_Token(kind, match[0], line))
        elif kind != "space":
            tokens.append(_Token(kind, match[0], line))
        line += match[0].count("\n")
        at = match.end()
    tokens.append(_Token("end", "", line))
    return tokens
