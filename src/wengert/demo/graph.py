"""The graph behind a tensor, read from the nodes that were recorded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wengert import Tensor


@dataclass(frozen=True)
class Vertex:
    """One recorded node: its class name, and for a leaf the name and shape of its tensor."""

    kind: str
    leaf: str | None = None
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class RecordedGraph:
    """Vertices, and (producer, consumer) pairs of vertex numbers; the last consumer is vertex 0."""

    vertices: list[Vertex]
    edges: list[tuple[int, int]]

    @property
    def node_count(self) -> int:
        return len(self.vertices)


def record_graph(root: Any, names: Mapping[str, Tensor]) -> RecordedGraph:
    """Follows ``next_functions`` from a ``grad_fn`` to the leaves, without recursion."""
    name_of = {id(tensor): name for name, tensor in names.items()}
    number = {root: 0}
    pending = [root]
    edges: dict[tuple[int, int], None] = {}
    while pending:
        node = pending.pop()
        for producer, _ in node.next_functions:
            if producer is None:
                continue
            if producer not in number:
                number[producer] = len(number)
                pending.append(producer)
            edges[number[producer], number[node]] = None
    return RecordedGraph([describe(node, name_of) for node in number], list(edges))


def describe(node: Any, name_of: Mapping[int, str]) -> Vertex:
    if node.name().endswith("AccumulateGrad"):
        tensor = node.variable
        return Vertex("AccumulateGrad", name_of.get(id(tensor), ""), tuple(tensor.shape))
    return Vertex(node.name())
