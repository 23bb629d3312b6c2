"""Inlining: blocks that stand for functions become part of the block around them."""

from __future__ import annotations

from collections.abc import Callable

from ..ir import primitives as prim
from ..ir.blocks import Block
from ..ir.graph import Graph
from ..ir.nodes import Node, Value


def inline(graph: Graph) -> Graph:
    """Put the nodes of every `prim::DifferentiableGraph` in its place, inner ones first."""
    inline_kind(graph.block, prim.DIFFERENTIABLE_GRAPH)
    return graph


def inline_kind(block: Block, kind: str) -> None:
    """Put the nodes of the first block of every node of a kind in its place, inner ones first."""
    for node in block.nodes():
        for inner in node.blocks:
            inline_kind(inner, kind)
        if node.kind == kind:
            inline_block(node, node.inputs)


def inline_block(
    node: Node, inputs: tuple[Value, ...], replaced: Callable[[Value, Value], None] | None = None
) -> None:
    """Replace a node by the contents of its first block, called with `inputs`; nodes are moved."""
    block = node.blocks[0]
    for parameter, value in zip(block.inputs, inputs, strict=True):
        parameter.replace_all_uses_with(value)
    for inner in block.nodes():
        inner.move_before(node)
    for value, result in zip(node._outputs, block.outputs, strict=True):
        if result.name is None:
            result.name = value.name
        value.replace_all_uses_with(result)
        if replaced is not None:
            replaced(value, result)
    node.destroy()
