"""Dead code: nodes whose results nobody needs, and results of blocks that nobody takes."""

from __future__ import annotations

from collections.abc import Callable

from ..ir import primitives as prim
from ..ir.blocks import Block
from ..ir.graph import Graph
from ..ir.nodes import Node, Value

#: Nodes with blocks that return, one by one, what the node does.
_RETURN_ALIKE = {prim.GRAD_OF, prim.DIFFERENTIABLE_GRAPH, prim.COND, prim.MAP}
#: Those whose blocks take the last inputs of the node one by one.
_TAKE_ALIKE = {prim.DIFFERENTIABLE_GRAPH, prim.COND}


def eliminate_dead_code(graph: Graph) -> Graph:
    """Remove the nodes that no output depends on, unless they have effects or are checks."""
    remove_dead_nodes(graph.block)
    return graph


def remove_dead_nodes(block: Block, removed: Callable[[Value], None] | None = None) -> None:
    """Remove the nodes of a block that its outputs do not depend on, as far as that may be.

    `removed` is told every value that goes.
    """
    for node in block.reverse_nodes():
        outputs = node._outputs
        is_used = outputs[0]._uses if len(outputs) == 1 else any(v._uses for v in outputs)
        if not is_used and not node.must_stay:
            if removed is not None:
                _report(node, removed)
            node.destroy()
            continue
        if node.blocks:
            _trim_outputs(node, removed)
            for inner in node.blocks:
                remove_dead_nodes(inner, removed)
            _trim_inputs(node)


def _report(node: Node, removed: Callable[[Value], None]) -> None:
    for value in node._outputs:
        removed(value)
    for block in node.blocks:
        for inner in block.nodes():
            _report(inner, removed)


def _trim_outputs(node: Node, removed: Callable[[Value], None] | None) -> None:
    """Results of the blocks that nobody takes."""
    first = 0
    if node.kind == prim.SCAN:
        first = node.attributes["carried"]
    elif node.kind not in _RETURN_ALIKE:
        return
    for i in range(len(node._outputs) - 1, first - 1, -1):
        if not node._outputs[i]._uses:
            if removed is not None:
                removed(node._outputs[i])
            node.erase_output(i)
            for block in node.blocks:
                block.erase_output(i)


def _trim_inputs(node: Node) -> None:
    """Parameters of the blocks that none of them reads."""
    if node.kind not in _TAKE_ALIKE:
        return
    first = len(node._inputs) - len(node.blocks[0].inputs)
    for i in range(len(node.blocks[0].inputs) - 1, -1, -1):
        if not any(block.inputs[i]._uses for block in node.blocks):
            for block in node.blocks:
                block.erase_input(i)
            node.remove_input(first + i)
