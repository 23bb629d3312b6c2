"""Nodes that may raise because of the values they get, which dead code elimination must not hide.

Shapes and dtypes are checked while a function is traced. An index that is out of bounds shows only
when the graph runs, and then it must, even if nobody uses the result.
"""

from __future__ import annotations

from ..ir import primitives as prim
from ..ir.blocks import node_reads
from ..ir.graph import Graph
from ..ir.nodes import Node, Value
from ..ir.types import TensorType
from .barriers import WITH_VALUE


def may_raise(node: Node) -> bool:
    """Whether it depends on values that a node can be run."""
    if node.operator is None:
        return any(may_raise(inner) for block in node.blocks for inner in block.nodes())
    raises = node.fact("raises")
    if raises == "integers":
        return all(_is_integer(value) for value in node._outputs)
    return raises is not None


def _is_integer(value: Value) -> bool:
    dtype = value.type.dtype if isinstance(value.type, TensorType) else None
    return dtype is None or dtype.numpy.kind in "iu"


def keep_what_may_raise(graph: Graph) -> None:
    """Add a `prim::Check` behind each node that may raise and that no output depends on."""
    needed: set[Value] = set(graph.outputs)
    for node in graph.block.reverse_nodes():
        outputs = node._outputs
        is_needed = outputs[0] in needed if len(outputs) == 1 else not needed.isdisjoint(outputs)
        if not is_needed and not node.must_stay:
            if not may_raise(node):
                continue
            check = graph.create(prim.CHECK, node._outputs, ())
            check.insert_after(node)
        # Of a value that was replaced only the gradient is needed.
        needed.update(node._inputs[1:] if node.kind == WITH_VALUE else node_reads(node))


def drop_checks(graph: Graph) -> Graph:
    """Remove the checks, for a graph that runs after another one that has them."""
    for node in list(graph.all_nodes()):
        if node.kind == prim.CHECK:
            node.destroy()
    return graph
