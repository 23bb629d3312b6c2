"""Graphs as text, in static single assignment form; `parser` reads it back.

    graph(%x : float32[4, 5; grad], %w : float32[5, 3]):
      %0 : float32[4, 3] = wengert::mm(%x, %w)
      %1 : float32[4, 3] = wengert::mul(%0, 2.0)
      return (%1)

Arguments at the end that have their default values are left out. Tensors of many elements are
written as ``@0``, ``@1`` and so on; `large_constants` lists them in this order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...core.tensor import Tensor
from .base import text_of
from .blocks import Block
from .graph import Graph
from .literals import HOLE, MOST_ELEMENTS, literal_key, literal_text
from .nodes import Node, Value

Names = dict[Value, str]


@text_of.register
def _graph_text(graph: Graph) -> str:
    """The text of a graph."""
    return _Printer(graph.block.names(), large_constants(graph)).block(graph.block, "graph", "")


@text_of.register
def _block_text(block: Block) -> str:
    """The text of a block, with the names its values have in the whole graph."""
    return _Printer(block.graph.block.names(), []).block(block, "block", "")


@text_of.register
def _node_text(node: Node) -> str:
    """The text of a node, with the names its values have in the whole graph."""
    return _Printer(node.graph.block.names(), []).node(node, "").rstrip("\n")


@text_of.register
def _value_text(value: Value) -> str:
    """The text of a value with its type."""
    return f"%{value.graph.block.names().get(value, '?')} : {value.type}"


def large_constants(graph: Graph) -> list[Tensor]:
    """The tensors that the text of a graph refers to by number."""
    found = []
    for node in graph.all_nodes():
        value = node.attributes.get("value")
        if isinstance(value, Tensor) and value.array.size > MOST_ELEMENTS:
            found.append(value)
    return found


class _Printer:
    def __init__(self, names: Names, large: list[Tensor]) -> None:
        self.names = names
        self.large = large

    def name(self, value: Value) -> str:
        return "%" + self.names.get(value, "?")

    def typed(self, values: Iterable[Value]) -> str:
        return ", ".join(f"{self.name(value)} : {value.type}" for value in values)

    def block(self, block: Block, word: str, indent: str) -> str:
        lines = [f"{indent}{word}({self.typed(block.param_node._outputs)}):\n"]
        lines += [self.node(node, indent + "  ") for node in block.nodes()]
        results = ", ".join(map(self.name, block.return_node._inputs))
        lines.append(f"{indent}  return ({results})\n")
        return "".join(lines)

    def node(self, node: Node, indent: str) -> str:
        outputs = self.typed(node._outputs)
        text = f"{indent}{outputs} = " if outputs else indent
        text += node.kind
        if node.attributes:
            inside = [f"{k}={literal_text(v, self.large)}" for k, v in node.attributes.items()]
            text += f"[{', '.join(inside)}]"
        text += f"({self.call(node)})"
        if node.source is not None:
            text += "  # " + " ".join(node.source.split())
        text += "\n"
        for block in node.blocks:
            text += self.block(block, "block", indent + "  ")
        return text

    def call(self, node: Node) -> str:
        schema = node.schema
        if schema is None or node.arguments is None:
            return ", ".join(map(self.name, node._inputs))
        values = iter(node._inputs)
        texts = [self.argument(item, values) for item in node.arguments]
        parts: list[str] = []
        given = dict(zip((a.name for a in schema.arguments), node.arguments, strict=False))
        last = max(
            (
                i
                for i, a in enumerate(schema.arguments)
                if not a.keyword_only and not _is_default(a, given.get(a.name))
            ),
            default=-1,
        )
        for i, (argument, text) in enumerate(zip(schema.arguments, texts, strict=False)):
            if argument.keyword_only:
                if not _is_default(argument, given[argument.name]):
                    parts.append(f"{argument.name}={text}")
            elif i <= last:
                parts.append(text)
        parts += [self.name(value) for value in values]  # too many inputs: lint will say so
        return ", ".join(parts)

    def argument(self, item: Any, values: Any) -> str:
        if item is HOLE:
            value = next(values, None)
            return "%?" if value is None else self.name(value)
        if isinstance(item, tuple):
            return f"[{', '.join(self.argument(part, values) for part in item)}]"
        return literal_text(item, self.large)


def _is_default(argument: Any, value: Any) -> bool:
    """Whether a literal is what a reader would get who finds nothing."""
    return type(value) is type(argument.default) and literal_key(value) == literal_key(
        argument.default
    )
