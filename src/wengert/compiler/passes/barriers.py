"""Barriers that gradients do not pass, which are of no use once a graph is differentiated."""

from __future__ import annotations

from ..ir import Graph

STOP_GRADIENT = "wengert::_stop_gradient"
WITH_VALUE = "wengert::_with_value"


def drop_barriers(graph: Graph) -> Graph:
    """Let every use of a barrier use the value that it has."""
    for node in list(graph.all_nodes()):
        if node.kind in (STOP_GRADIENT, WITH_VALUE):
            node.output.replace_all_uses_with(node.inputs[-1])
            node.destroy()
    return graph
