"""Barriers that gradients do not pass, which are of no use once a graph is differentiated."""

from __future__ import annotations

from ..ir import Graph

STOP_GRADIENT = "wengert::_stop_gradient"


def drop_barriers(graph: Graph) -> Graph:
    """Let every use of a barrier use what it stands for."""
    for node in list(graph.all_nodes()):
        if node.kind == STOP_GRADIENT:
            node.output.replace_all_uses_with(node.inputs[0])
            node.destroy()
    return graph
