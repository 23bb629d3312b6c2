"""Traced graphs in the form in which recorded ones are drawn."""

from __future__ import annotations

from collections.abc import Mapping

from ..autograd.memory import Line
from ..compiler.ir.graph import Graph
from ..compiler.ir.nodes import Node, Value
from ..compiler.ir.types import TensorType
from .recorded import RecordedGraph, Vertex


def of_graph(graph: Graph, names: Mapping[int, str]) -> RecordedGraph:
    """A graph's nodes and inputs; inputs are named by their place in `names`, or as printed."""
    printed = graph.block.names()
    vertices: list[Vertex] = []
    number: dict[Value, int] = {}
    arrows: dict[tuple[int, int], None] = {}
    for i, value in enumerate(graph.inputs):
        number[value] = len(vertices)
        shape, kind = _type(value)
        vertices.append(Vertex("input", names.get(i, printed[value]), shape, kind))
    for sequence, node in enumerate(graph.nodes()):
        own = len(vertices)
        shape, kind = _type(node.outputs[0]) if node.outputs else ((), "")
        vertices.append(
            Vertex(
                node.kind, shape=shape, dtype=kind, line=_line(node.source), sequence=sequence,
                note=str(node).strip(),
            )  # fmt: skip
        )
        for value in (*node.inputs, *_used_inside(node)):
            if value in number:
                arrows[number[value], own] = None
        for value in node.outputs:
            number[value] = own
    results = [number[value] for value in graph.outputs if value in number]
    return RecordedGraph(vertices, list(arrows), list(dict.fromkeys(results)))


def _used_inside(node: Node) -> list[Value]:
    """What the blocks of a node use; of that, what is defined outside of them counts."""
    inner = [each for block in node.blocks for each in block.all_nodes()]
    returned = [value for block in node.blocks for value in block.outputs]
    return [value for each in inner for value in each.inputs] + returned


def _type(value: Value) -> tuple[tuple[int | None, ...], str]:
    kind = value.type
    if not isinstance(kind, TensorType):
        return (), ""
    return kind.shape or (), kind.dtype.name if kind.dtype else ""


def _line(source: str | None) -> Line | None:
    """The line that a traced node notes as ``file:number: text``."""
    file, _, rest = (source or "").partition(":")
    number = rest.partition(":")[0]
    return Line(file, int(number), "") if number.isdigit() else None
