"""Profiling: types that are seen at run time, for graphs whose inputs tell too little."""

from __future__ import annotations

from .. import primitives as prim
from ..ir import Graph
from ..nodes import Value
from ..types import TensorType
from .shapes import refined


def insert_profiles(graph: Graph) -> Graph:
    """Let the graph note the type of every tensor at each run."""
    for value in graph.inputs:
        _watch(value)
    for node in list(graph.nodes()):
        if node.kind != prim.PROFILE:
            for value in node.outputs:
                _watch(value)
    return graph


def _watch(value: Value) -> None:
    if not isinstance(value.type, TensorType):
        return
    graph = value.graph
    node = graph.create(prim.PROFILE, (), (value.type,))
    value.replace_all_uses_with(node.output)
    node.add_input(value)
    if value.node.kind == prim.PARAM:
        graph.block.prepend(node)
    else:
        node.insert_after(value.node)


def remove_profiles(graph: Graph) -> Graph:
    """Give the values the types that were seen, and stop watching."""
    for node in list(graph.all_nodes()):
        if node.kind != prim.PROFILE:
            continue
        value = node._inputs[0]
        seen = node.attributes.get("profiled_type")
        if isinstance(seen, TensorType):
            value.type = refined(value.type, seen)
            if isinstance(value.type, TensorType):
                value.type = value.type.with_requires_grad(seen.requires_grad)
        node.output.replace_all_uses_with(value)
        node.destroy()
    return graph
