"""Nodes of custom Functions, which have two blocks: what they compute, and their derivative.

The second block takes inputs and outputs of the node and then the gradients of those outputs that
the attribute `differentiable` numbers. It returns the gradients of the inputs numbered in
`gradients`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from .graph import Graph, block_graph
from .nodes import Node

Item = TypeVar("Item")


def backward_graph(function: Node) -> tuple[Graph, list[int]]:
    """The second block as a graph of the gradients it gets and, before these, of only those inputs
    and outputs of the node that it needs, with their numbers."""
    graph = block_graph(function.blocks[1])
    count = len(function._inputs) + len(function._outputs)
    needed = [i for i, value in enumerate(graph.inputs[:count]) if value.uses]
    for i in reversed(range(count)):
        if i not in needed:
            graph.block.erase_input(i)
    return graph, needed


def by_input(function: Node, found: Sequence[Item]) -> list[Item | None]:
    """What a Function's second block returns, as one gradient per input or None."""
    results: list[Item | None] = [None] * len(function._inputs)
    for i, g in zip(function.attributes["gradients"], found, strict=True):
        results[i] = g
    return results
