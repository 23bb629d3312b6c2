"""One form for graphs that differ only in the order of their nodes or in names."""

from __future__ import annotations

import heapq
from typing import Any

from ..ir.blocks import Block, node_reads
from ..ir.graph import Graph
from ..ir.literals import literal_text
from ..ir.nodes import Node, Value


def canonicalize(graph: Graph) -> Graph:
    """Order operands and nodes by what they are, and forget the names of values.

    Graphs that compute the same by the same operators get the same text. A graph that writes in
    place keeps its order.
    """
    for node in (graph.block.param_node, *graph.all_nodes()):
        for value in node._outputs:
            value.name = None
        for block in node.blocks:
            for value in block.inputs:
                value.name = None
    _visit(graph.block, {})
    return graph


def _visit(block: Block, numbers: dict[Value, int]) -> None:
    """`numbers` counts the values as they are placed; it tells equal nodes from others."""
    for value in block.inputs:
        numbers[value] = len(numbers)
    nodes = list(block.nodes())
    own = set(nodes)
    waiting: dict[Node, int] = {}
    users: dict[Node, list[Node]] = {}
    previous = None
    ordered = any(node.is_inplace for node in nodes)
    for node in nodes:
        needed = {value.node for value in node_reads(node) if value.node in own}
        if previous is not None and (ordered or node.has_effects):
            needed.add(previous)
        if ordered or node.has_effects:
            previous = node
        waiting[node] = len(needed)
        for source in needed:
            users.setdefault(source, []).append(node)
    ready: list[tuple[Any, int, Node]] = []
    for i, node in enumerate(nodes):
        if not waiting[node]:
            heapq.heappush(ready, (_key(node, numbers), i, node))
    places = {node: i for i, node in enumerate(nodes)}
    while ready:
        node = heapq.heappop(ready)[2]
        node.move_before(block.return_node)
        for inner in node.blocks:
            _visit(inner, numbers)
        for value in node._outputs:
            numbers[value] = len(numbers)
        for user in users.get(node, ()):
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, (_key(user, numbers), places[user], user))


def _key(node: Node, numbers: dict[Value, int]) -> tuple:
    """What a node is, by the numbers of its inputs; its operands are put in order first."""
    if node.fact("commutes") and len(node._inputs) == 2 and _plain(node):
        a, b = node._inputs
        if numbers[a] > numbers[b]:
            node.replace_input(0, b)
            node.replace_input(1, a)
    inputs = sorted((numbers[value] for value in node._inputs), reverse=True)
    literals = literal_text(tuple(node.attributes.items())) + repr(node.arguments)
    inner = [each.kind for block in node.blocks for each in block.all_nodes()]
    return (inputs, node.kind, literals, [numbers[value] for value in node._inputs], inner)


def _plain(node: Node) -> bool:
    """Whether all other arguments have their default values, so that nothing breaks symmetry."""
    arguments, declared = node.arguments, node.schema.arguments
    return arguments is not None and all(
        item == argument.default
        for item, argument in zip(arguments[2:], declared[2:], strict=True)
    )
