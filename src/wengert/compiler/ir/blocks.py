"""Blocks: lists of nodes in an order in which they can run, with parameters and outputs."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from . import primitives as prim
from .base import GraphError, text_of
from .types import TENSOR, Type

if TYPE_CHECKING:
    from .graph import Graph
    from .nodes import Node, Value

#: Bits of the gaps between the positions of neighbours at first, and at most. Half a gap is used
#: up by each insertion in one place; gaps that were too small are made larger.
_BITS, _MOST_BITS = 20, 1280


class Block:
    """A list of nodes with parameters in front and outputs at its end."""

    __slots__ = ("graph", "owner", "param_node", "return_node", "_bits")

    def __init__(self, graph: Graph, owner: Node | None = None) -> None:
        self.graph = graph
        self.owner = owner
        self._bits = _BITS
        self.param_node = graph.create(prim.PARAM, (), ())
        self.return_node = graph.create(prim.RETURN, (), ())
        first, last = self.param_node, self.return_node
        first.block = last.block = self
        first.next, last.previous = last, first
        first.position, last.position = 0, float("inf")

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The parameters of the block."""
        return tuple(self.param_node._outputs)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The results of the block."""
        return tuple(self.return_node._inputs)

    def nodes(self) -> Iterator[Node]:
        """The nodes in order; the one that was just given may be moved or removed."""
        node = self.param_node.next
        last = self.return_node
        while node is not last:
            following = node.next  # type: ignore[union-attr]
            yield node  # type: ignore[misc]
            node = following

    def reverse_nodes(self) -> Iterator[Node]:
        """The nodes from the last to the first."""
        node = self.return_node.previous
        first = self.param_node
        while node is not first:
            following = node.previous  # type: ignore[union-attr]
            yield node  # type: ignore[misc]
            node = following

    def all_nodes(self) -> Iterator[Node]:
        """The nodes with those of inner blocks, each node before what is inside it."""
        for node in self.nodes():
            yield node
            for block in node.blocks:
                yield from block.all_nodes()

    def readers(self) -> list[Node]:
        """All nodes that read values, with those of inner blocks; return nodes come last."""
        nodes = list(self.all_nodes())
        inner = [block.return_node for node in nodes for block in node.blocks]
        return [*nodes, self.return_node, *inner]

    def add_input(self, type: Type = TENSOR, name: str | None = None) -> Value:
        """A further parameter."""
        return self.param_node.add_output(type, name)

    def erase_input(self, index: int) -> None:
        """Remove a parameter that nobody uses."""
        self.param_node.erase_output(index)

    def register_output(self, value: Value) -> int:
        """Return `value` too; its place among the outputs."""
        self.return_node.add_input(value)
        return len(self.return_node._inputs) - 1

    def erase_output(self, index: int) -> None:
        """Return one value less."""
        self.return_node.remove_input(index)

    def replace_output(self, index: int, value: Value) -> Value:
        """Return `value` in place of another one, which is returned here."""
        return self.return_node.replace_input(index, value)

    def append(self, node: Node) -> Node:
        """Place a node at the end."""
        return node.insert_before(self.return_node)

    def prepend(self, node: Node) -> Node:
        """Place a node at the beginning."""
        return node.insert_after(self.param_node)

    def clear(self) -> None:
        """Remove all nodes and outputs."""
        self.return_node.remove_all_inputs()
        for node in self.reverse_nodes():
            node.destroy()

    def contains(self, node: Node) -> bool:
        """Whether a node is in this block or in a block inside it."""
        block = node.block
        while block is not None:
            if block is self:
                return True
            block = block.owner.block if block.owner is not None else None
        return False

    def _place(self, node: Node) -> None:
        """Give a node that was just linked a position between its neighbours."""
        before, after = node.previous.position, node.next.position  # type: ignore[union-attr]
        if after == float("inf"):
            node.position = before + (1 << self._bits)
        else:
            node.position = (before + after) // 2
        if node.position == before:
            self._bits = min(4 * self._bits, _MOST_BITS)
            for i, each in enumerate(self.nodes()):
                each.position = (i + 1) << self._bits

    def topological_order(self) -> list[Node]:
        """The nodes in an order in which they can run, kept as they are where possible."""
        nodes = list(self.nodes())
        waiting: dict[Node, int] = {}
        users: dict[Node, list[Node]] = {}
        own = set(nodes)
        for node in nodes:
            needed = {
                source for value in node_reads(node) if (source := _ancestor_in(value.node, own))
            }
            needed.discard(node)
            waiting[node] = len(needed)
            for source in needed:
                users.setdefault(source, []).append(node)
        places = {node: i for i, node in enumerate(nodes)}
        ready = [places[node] for node in nodes if not waiting[node]]
        order = []
        while ready:
            node = nodes[heapq.heappop(ready)]
            order.append(node)
            for user in users.get(node, ()):
                waiting[user] -= 1
                if not waiting[user]:
                    heapq.heappush(ready, places[user])
        if len(order) != len(nodes):
            stuck = next(node for node in nodes if waiting[node])
            raise GraphError(f"{stuck.kind} depends on its own result")
        return order

    def sort(self) -> None:
        """Bring the nodes into an order in which they can run."""
        for node in self.topological_order():
            node.move_before(self.return_node)

    def clone_from(
        self,
        source: Block,
        values: dict[Value, Value] | None = None,
        outer: Callable[[Value], Value] | None = None,
    ) -> dict[Value, Value]:
        """Append copies of parameters, nodes and outputs; returns the map from old values to new.

        Values from outside of `source` stay as they are, or are replaced by what `outer` says.
        """
        values = {} if values is None else values
        for value in source.inputs:
            values[value] = self.add_input().copy_metadata(value)
        self.clone_nodes(source, values, outer)
        for value in source.outputs:
            self.register_output(look_up(value, values, outer))
        return values

    def clone_nodes(
        self,
        source: Block,
        values: dict[Value, Value],
        outer: Callable[[Value], Value] | None = None,
    ) -> None:
        """Append copies of the nodes only."""
        for node in source.nodes():
            self.append(self.graph.create_clone(node, values, outer))

    def names(self) -> dict[Value, str]:
        """Names for all values: their own where those are free, numbers for the others."""
        names: dict[Value, str] = {}
        taken: set[str] = set()
        count = 0
        for value in self._all_values():
            name = value.name
            if name is None:
                name = str(count)
                count += 1
            elif name in taken:
                number = 1
                while f"{name}.{number}" in taken:
                    number += 1
                name = f"{name}.{number}"
            taken.add(name)
            names[value] = name
        return names

    def _all_values(self) -> Iterator[Value]:
        """The values defined here and in inner blocks, in the order of the text."""
        yield from self.param_node._outputs
        for node in self.nodes():
            yield from node._outputs
            for block in node.blocks:
                yield from block._all_values()

    def __repr__(self) -> str:
        return text_of(self)


def look_up(
    value: Value, values: Mapping[Value, Value], outer: Callable[[Value], Value] | None
) -> Value:
    """What stands for `value` in a copy."""
    found = values.get(value)
    if found is None:
        return value if outer is None else outer(value)
    return found


def node_reads(node: Node) -> Iterator[Value]:
    """The inputs of a node and of all nodes inside it."""
    yield from node._inputs
    for block in node.blocks:
        for inner in block.nodes():
            yield from node_reads(inner)
        yield from block.return_node._inputs


def _ancestor_in(node: Node, own: set[Node]) -> Node | None:
    """The node among `own` that is `node` or contains it."""
    current: Node | None = node
    while current is not None:
        if current in own:
            return current
        current = current.block.owner if current.block is not None else None
    return None
