"""Graphs as text, in static single assignment form; `parser` reads it back.

    graph(%x : float32[4, 5; grad], %w : float32[5, 3]):
      %0 : float32[4, 3] = wengert::mm(%x, %w)
      %1 : float32[4, 3] = wengert::mul(%0, 2.0)
      return (%1)

Arguments at the end that have their default values are left out. Tensors of many elements are
written as ``@0``, ``@1`` and so on; `large_constants` lists them in this order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...backends.placement import of_array, transfer
from ...core import dtypes, layouts
from ...core.devices import CPU, device
from ...core.tensor import Tensor
from .types import TensorType, Type, type_of

if TYPE_CHECKING:
    from .graph import Graph
    from .nodes import Block, Node, Value

#: Constants of more elements are not written out.
MOST_ELEMENTS = 64

Names = dict["Value", str]


def graph_text(graph: Graph) -> str:
    """The text of a graph."""
    return _Printer(names_of(graph.block), large_constants(graph)).block(graph.block, "graph", "")


def block_text(block: Block) -> str:
    """The text of a block, with the names its values have in the whole graph."""
    return _Printer(names_of(block.graph.block), []).block(block, "block", "")


def node_text(node: Node) -> str:
    """The text of a node, with the names its values have in the whole graph."""
    return _Printer(names_of(node.graph.block), []).node(node, "").rstrip("\n")


def value_text(value: Value) -> str:
    """The text of a value with its type."""
    return f"%{names_of(value.graph.block).get(value, '?')} : {value.type}"


def names_of(block: Block) -> Names:
    """The names of all values: their own where those are free, numbers for the others."""
    names: Names = {}
    taken: set[str] = set()
    count = 0

    def give(values: Iterable[Value]) -> None:
        nonlocal count
        for value in values:
            name = value.name
            if name is None:
                name = str(count)
                count += 1
            elif name in taken:
                number = 1
                while f"{name}.{number}" in taken:
                    number += 1
                name = f"{name}.{number}"
            taken.add(name)
            names[value] = name

    def visit(block: Block) -> None:
        give(block.param_node._outputs)
        for node in block.nodes():
            give(node._outputs)
            for inner in node.blocks:
                visit(inner)

    visit(block)
    return names


def large_constants(graph: Graph) -> list[Tensor]:
    """The tensors that the text of a graph refers to by number."""
    found = []
    for node in graph.all_nodes():
        value = node.attributes.get("value")
        if isinstance(value, Tensor) and value.array.size > MOST_ELEMENTS:
            found.append(value)
    return found


def literal_text(value: Any, large: Iterable[Tensor] = ()) -> str:
    """The text of a literal."""
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(literal_text(item, large) for item in value)}]"
    if isinstance(value, dtypes.dtype | layouts.layout | layouts.memory_format):
        return value.name
    if isinstance(value, device):
        return f'device("{value}")'
    if isinstance(value, Type):
        return f"type({value})"
    if isinstance(value, Tensor):
        return _tensor_text(value, large)
    if isinstance(value, complex):
        return f"complex({value.real!r}, {value.imag!r})"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _tensor_text(value: Tensor, large: Iterable[Tensor]) -> str:
    kind = TensorType(value.dtype, value.array.shape)
    for i, each in enumerate(large):
        if each is value:
            return f"tensor({kind}, @{i})"
    if value.array.size > MOST_ELEMENTS:
        return f"tensor({kind}, ...)"
    items = value.detach().reshape(-1).tolist()
    return f"tensor({kind}, {literal_text(items)})"


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
        from .nodes import HOLE

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


def literal_key(value: Any) -> Any:
    """A key that tells apart all literals that differ: 1, 1.0 and True, 0.0 and -0.0."""
    if isinstance(value, Tensor):
        place, array = of_array(value.array), transfer(value.array, CPU)
        return ("tensor", str(place), str(array.dtype), array.shape, array.tobytes())
    if isinstance(value, (tuple, list)):
        return tuple([literal_key(item) for item in value])
    return (type(value), repr(value))


def is_printable(value: Any) -> bool:
    """Whether a literal can be read back from its text."""
    if isinstance(value, (tuple, list)):
        return all(map(is_printable, value))
    return (
        isinstance(value, Tensor | Type | layouts.layout | layouts.memory_format)
        or str(type_of(value)) != "Any"
    )

