"""Rematerialisation: which forward values to keep for the reverse, and which to compute again.

Every value that the reverse uses is either kept, which costs its memory, or computed again from
values of which the same holds, which costs time. The cheapest choice is a minimum cut between the
inputs of the graph and the reverse: the values on the cut are kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..ir import primitives as prim
from ..ir.blocks import Block, node_reads
from ..ir.nodes import Node, Value
from ..ir.types import TensorType

#: The share of its bytes that computing a value again costs, against keeping it.
_CHEAP, _REDUCING, _PRODUCT = 0.1, 0.25, 8.0
#: A value whose size is not known counts as large, and is not computed again.
_UNKNOWN = 1 << 20
#: All finite capacities together, in the 32 bits of SciPy's integers; no cut of them is as large
#: as one edge that must not be cut.
_TOTAL, _INFINITE = 1 << 29, (1 << 31) - 1


class Policy(NamedTuple):
    """What may be computed again: matrix products only if `products` says so, and what a kind of
    node costs per byte of its results where it is not as usual (None: never)."""

    products: bool = False
    prices: dict[str, float | None] = {}

    def price(self, node: Node) -> float | None:
        """The cost of computing a node's results again per byte, None to forbid it."""
        if node.kind in self.prices:
            return self.prices[node.kind]
        if node.blocks or node.has_effects:
            return None
        if node.operator is None:
            return 0.0
        cost = node.fact("cost")
        if prim.is_custom(node.operator) or cost == "slow":
            return None
        if cost == "product":
            return _PRODUCT if self.products else None
        if node.is_view:
            return 0.0
        return _CHEAP if node.operator.broadcasts else _REDUCING


def rematerialize(forward: Block, reverse: Block, policy: Policy | None = None) -> None:
    """Copy into the reverse block the nodes of the forward one that it pays to run again."""
    again = choose(forward, reverse, policy or Policy())
    if not again:
        return
    graph = forward.graph
    values: dict[Value, Value] = {}
    copies = [graph.create_clone(node, values) for node in again]
    for value, copy_value in values.items():
        for use in value.uses:
            if reverse.contains(use.user):
                use.user.replace_input(use.offset, copy_value)
    for copy in reversed(copies):
        _place_before_first_use(copy, reverse)


def _place_before_first_use(node: Node, block: Block) -> None:
    """As late as possible, so that the values live as short as possible."""
    users = [_in_block(use.user, block) for value in node._outputs for use in value._uses]
    if not users:
        node.destroy()
        return
    node.insert_before(min(users, key=lambda user: user.position))


def _in_block(node: Node, block: Block) -> Node:
    """The node of a block that is, or contains, a node."""
    while node.block is not block:
        assert node.block is not None and node.block.owner is not None
        node = node.block.owner
    return node


def choose(forward: Block, reverse: Block, policy: Policy) -> list[Node]:
    """The forward nodes that the reverse computes again, in their order."""
    nodes = list(forward.nodes())
    places: dict[Value, int] = {}
    for value in (*forward.inputs, *(v for node in nodes for v in node._outputs)):
        places[value] = len(places)
    needed = {
        value
        for node in reverse.readers()
        for value in node._inputs
        if value in places
    }
    network = _Network(len(places))
    free = {*forward.inputs, *forward.outputs}
    for value, place in places.items():
        network.keep(place, 0.0 if value in free else _size(value))
        if value in needed:
            network.need(place)
    for value in forward.inputs:
        network.compute(places[value], None)
    for node in nodes:
        price = policy.price(node)
        if any(_size_or_none(value) is None for value in node._outputs):
            price = None
        for value in node._outputs:
            place = places[value]
            network.compute(place, None if price is None else price * _size(value))
            for read in node_reads(node):
                if read in places:
                    network.use(places[read], place)
    kept_side = network.cut()
    return [
        node
        for node in nodes
        if any(not kept_side[2 * places[value]] for value in node._outputs)
    ]


def _size_or_none(value: Value) -> int | None:
    t = value.type
    return t.nbytes if isinstance(t, TensorType) else 8


def _size(value: Value) -> float:
    size = _size_or_none(value)
    return _UNKNOWN if size is None else max(size, 1)


class _Network:
    """A flow network with two vertices per value: before and after the decision to keep it.

    A value whose first vertex is on the side of the sink is computed again; one whose vertices are
    on different sides is kept.
    """

    def __init__(self, count: int) -> None:
        self.source, self.sink = 2 * count, 2 * count + 1
        self.edges: dict[tuple[int, int], float | None] = {}

    def _add(self, start: int, end: int, capacity: float | None) -> None:
        old = self.edges.get((start, end), 0.0)
        both = None if old is None or capacity is None else old + capacity
        self.edges[start, end] = both

    def keep(self, place: int, cost: float) -> None:
        self._add(2 * place, 2 * place + 1, cost)

    def compute(self, place: int, cost: float | None) -> None:
        """The cost of computing a value again; None if that is impossible."""
        self._add(self.source, 2 * place, cost)

    def use(self, source: int, user: int) -> None:
        self._add(2 * source + 1, 2 * user, None)

    def need(self, place: int) -> None:
        self._add(2 * place + 1, self.sink, None)

    def cut(self) -> np.ndarray:
        """For each vertex whether it is on the side of the source in a minimum cut."""
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import breadth_first_order, maximum_flow

        count = self.sink + 1
        total = sum(cost for cost in self.edges.values() if cost) or 1.0
        unit = _TOTAL / total
        capacities = [
            _INFINITE if cost is None else int(np.ceil(cost * unit)) for cost in self.edges.values()
        ]
        rows, columns = zip(*self.edges, strict=True)
        network = csr_matrix((np.array(capacities, np.int32), (rows, columns)), (count, count))
        flow = maximum_flow(network, self.source, self.sink).flow
        left = (network - flow).tocsr()
        left.data[left.data < 0] = 0
        left.eliminate_zeros()
        side = np.zeros(count, bool)
        side[breadth_first_order(left, self.source, return_predecessors=False)] = True
        return side
