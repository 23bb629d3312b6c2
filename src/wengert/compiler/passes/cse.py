"""Common subexpressions: of nodes that compute the same, the first one serves all."""

from __future__ import annotations

from typing import Any

from ..ir import primitives as prim
from ..ir.aliasing import Aliases
from ..ir.blocks import Block
from ..ir.graph import Graph
from ..ir.literals import literal_key
from ..ir.nodes import Node

#: While gradients are collected, each value's own sum must stay its own.
_NOT_MERGED = {prim.AUTOGRAD_ADD, prim.AUTOGRAD_ZERO}


def eliminate_common_subexpressions(graph: Graph) -> Graph:
    """Merge nodes of one kind with the same inputs; inner blocks see the nodes around them."""
    merge_equal_nodes(graph.block, Aliases(graph.block))
    return graph


def merge_equal_nodes(block: Block, aliases: Aliases | None) -> None:
    """Merge nodes of one kind with the same inputs in a block.

    Without `aliases`, the outputs of the block are allowed to share memory.
    """
    _visit(block, aliases, [{}])


def _visit(block: Block, aliases: Aliases | None, scopes: list[dict]) -> None:
    for node in block.nodes():
        for inner in node.blocks:
            _visit(inner, aliases, [*scopes, {}])
        key = key_of(node)
        if key is None or (aliases is not None and aliases.touches_written(node)):
            continue
        earlier = next((scope[key] for scope in scopes if key in scope), None)
        if earlier is None:
            scopes[-1][key] = node
        elif aliases is None or all(map(aliases.may_replace, node._outputs, earlier._outputs)):
            for old, new in zip(node._outputs, earlier._outputs, strict=True):
                old.replace_all_uses_with(new)
                if aliases is not None:
                    aliases.replaced(old, new)
            node.destroy()


def key_of(node: Node) -> Any:
    """What nodes that compute the same have in common; None for nodes that are never merged."""
    if node.blocks or node.has_effects or not node._outputs or node.kind in _NOT_MERGED:
        return None
    attributes: Any = ()
    if node.attributes:
        if node.kind == prim.CONSTANT and literal_is_large(node.attributes["value"]):
            attributes = id(node.attributes["value"])
        else:
            attributes = literal_key(tuple(node.attributes.items()))
    arguments = None if node.arguments is None else literal_key(node.arguments)
    return (node.kind, arguments, attributes, len(node._outputs), *node._inputs)


def literal_is_large(value: Any) -> bool:
    """Whether comparing a constant by its contents would take long."""
    return getattr(getattr(value, "array", None), "size", 0) > 1000
