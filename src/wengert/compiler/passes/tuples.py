"""Tuples that are taken apart where they were put together vanish."""

from __future__ import annotations

from ..ir import primitives as prim
from ..ir.graph import Graph
from ..ir.types import TupleType

_PAIRS = {
    prim.TUPLE_UNPACK: prim.TUPLE_CONSTRUCT,
    prim.LIST_UNPACK: prim.LIST_CONSTRUCT,
}


def lower_tuples(graph: Graph) -> Graph:
    """Connect the parts of tuples and lists with those who unpack them."""
    for node in list(graph.all_nodes()):
        pack = _PAIRS.get(node.kind)
        if pack is None:
            continue
        source = node._inputs[0].node
        if source.kind != pack or len(source._inputs) != len(node._outputs):
            continue
        for value, part in zip(node._outputs, source._inputs, strict=True):
            value.replace_all_uses_with(part)
        node.destroy()
        if not source.output.is_used:
            source.destroy()
    return graph


def pack_outputs(graph: Graph) -> Graph:
    """Return one tuple of all outputs."""
    values = graph.outputs
    with graph.inserting_at_end(graph.block):
        packed = graph.insert(prim.TUPLE_CONSTRUCT, *values)
    packed.type = TupleType(*[value.type for value in values])
    graph.block.return_node.remove_all_inputs()
    graph.register_output(packed)
    return graph
