"""Barriers that gradients do not pass, which are of no use once a graph is differentiated."""

from __future__ import annotations

from ..ir import primitives as prim
from ..ir.graph import Graph
from .inline import inline_kind

STOP_GRADIENT = "wengert::_stop_gradient"
WITH_VALUE = "wengert::_with_value"


def has_barriers(graph: Graph) -> bool:
    """Whether some value lets no gradient pass though an operator computes it."""
    return any(node.kind in (STOP_GRADIENT, WITH_VALUE) for node in graph.all_nodes())


def drop_barriers(graph: Graph) -> Graph:
    """Let every use of a barrier use the value that it has."""
    for node in list(graph.all_nodes()):
        if node.kind in (STOP_GRADIENT, WITH_VALUE):
            node.output.replace_all_uses_with(node.inputs[-1])
            node.destroy()
    return graph


def drop_derivatives(graph: Graph) -> Graph:
    """Drop the barriers of a graph that is not differentiated any more, and all derivatives: custom
    Functions become part of it as what they compute."""
    inline_kind(graph.block, prim.FUNCTION)
    for node in list(graph.all_nodes()):
        if node.kind == prim.ONCE_DIFFERENTIABLE:
            values = node.inputs[node.attributes["grads"] :]
            for old, new in zip(node.outputs, values, strict=True):
                old.replace_all_uses_with(new)
            node.destroy()
    return drop_barriers(graph)
