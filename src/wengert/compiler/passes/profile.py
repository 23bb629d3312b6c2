"""Profiling: types that are seen at run time, for graphs whose inputs tell too little."""

from __future__ import annotations

from ..ir import primitives as prim
from ..ir.graph import Graph
from ..ir.nodes import Value
from ..ir.types import TensorType
from .shapes import refined


def insert_profiles(graph: Graph) -> Graph:
    """Let the graph note the type of every value at each run, by `prim::profile` for tensors and by
    `prim::profile_ivalue` for others."""
    for value in graph.inputs:
        _watch(value)
    for node in list(graph.nodes()):
        if node.kind not in prim.PROFILES and node.kind != prim.CONSTANT:
            for value in node.outputs:
                _watch(value)
    return graph


def _watch(value: Value) -> None:
    graph = value.graph
    kind = prim.PROFILE if isinstance(value.type, TensorType) else prim.PROFILE_IVALUE
    node = graph.create(kind, (), (value.type,))
    value.replace_all_uses_with(node.output)
    node.add_input(value)
    if value.node.kind == prim.PARAM:
        graph.block.prepend(node)
    else:
        node.insert_after(value.node)


def remove_profiles(graph: Graph) -> Graph:
    """Give the values the types that were seen, and stop watching."""
    for node in list(graph.all_nodes()):
        if node.kind not in prim.PROFILES:
            continue
        value = node._inputs[0]
        seen = node.attributes.get("profiled_type")
        if seen is not None:
            value.type = refined(value.type, seen)
        if isinstance(seen, TensorType) and isinstance(value.type, TensorType):
            value.type = value.type.with_requires_grad(seen.requires_grad)
        node.output.replace_all_uses_with(value)
        node.destroy()
    return graph
