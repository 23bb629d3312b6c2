"""The graph behind a tensor: read from the nodes that were recorded, laid out in layers."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from wengert import Tensor

ORDERING_SWEEPS = 12
PLACEMENT_SWEEPS = 40
BEND_WEIGHT = 3.0


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


@dataclass(frozen=True)
class Point:
    layer: int
    offset: float


@dataclass(frozen=True)
class Layout:
    """Where each vertex lies, and the points that each edge passes on its way between layers."""

    vertices: list[Point]
    edges: list[list[Point]]
    layers: int
    breadth: float


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


def lay_out(graph: RecordedGraph) -> Layout:
    """Layers by longest path, few crossings by barycentres, straight edges by least squares."""
    layer = layers_of(graph)
    depth = max(layer) + 1
    # An edge across several layers bends in each of them, so that it is routed around vertices;
    # all edges from one producer share their bends, so that they run as one line until they part.
    bends: dict[tuple[int, int], int] = {}
    chains: list[list[int]] = []
    links: dict[tuple[int, int], None] = {}
    for producer, consumer in graph.edges:
        chain = [producer]
        for between in range(layer[producer] + 1, layer[consumer]):
            if (producer, between) not in bends:
                bends[producer, between] = len(layer)
                layer.append(between)
            chain.append(bends[producer, between])
        chain.append(consumer)
        chains.append(chain)
        links.update(dict.fromkeys(zip(chain, chain[1:])))

    before: dict[int, list[int]] = defaultdict(list)
    after: dict[int, list[int]] = defaultdict(list)
    for a, b in links:
        after[a].append(b)
        before[b].append(a)
    rows: list[list[int]] = [[] for _ in range(depth)]
    for item, its_layer in enumerate(layer):
        rows[its_layer].append(item)

    rows = fewest_crossings(rows, before, after)
    real = graph.node_count
    leaves = {i for i, vertex in enumerate(graph.vertices) if vertex.leaf is not None}
    offsets = place(rows, before, after, real, leaves)
    lowest = min(offsets.values())
    points = [Point(layer[i], offsets[i] - lowest) for i in range(len(layer))]
    return Layout(
        vertices=points[:real],
        edges=[[points[i] for i in chain] for chain in chains],
        layers=depth,
        breadth=max(point.offset for point in points),
    )


def layers_of(graph: RecordedGraph) -> list[int]:
    """The number of the layer of each vertex: leaves lie just before their first use."""
    distance = [0] * graph.node_count
    producers: dict[int, list[int]] = defaultdict(list)
    unplaced_consumers = [0] * graph.node_count
    for producer, consumer in graph.edges:
        producers[consumer].append(producer)
        unplaced_consumers[producer] += 1
    ready = [0]
    while ready:
        consumer = ready.pop()
        for producer in producers[consumer]:
            distance[producer] = max(distance[producer], distance[consumer] + 1)
            unplaced_consumers[producer] -= 1
            if not unplaced_consumers[producer]:
                ready.append(producer)
    deepest = max(distance)
    return [deepest - d for d in distance]


Neighbours = Mapping[int, list[int]]


def fewest_crossings(
    rows: list[list[int]], before: Neighbours, after: Neighbours
) -> list[list[int]]:
    """Sweeps to and fro, sorting each row by the mean position of its neighbours."""
    best, best_count = rows, crossings(rows, after)
    for sweep in range(ORDERING_SWEEPS):
        forward = sweep % 2 == 0
        rows = [list(row) for row in rows]
        neighbours = before if forward else after
        for index in range(1, len(rows)) if forward else range(len(rows) - 2, -1, -1):
            fixed = rows[index - 1 if forward else index + 1]
            position = {item: place for place, item in enumerate(fixed)}
            own = {item: place for place, item in enumerate(rows[index])}
            rows[index].sort(key=lambda i: mean((position[n] for n in neighbours[i]), own[i]))
        count = crossings(rows, after)
        if count < best_count:
            best, best_count = rows, count
    return best


def mean(values: Iterable[float], default: float) -> float:
    collected = list(values)
    return sum(collected) / len(collected) if collected else default


def crossings(rows: list[list[int]], after: Neighbours) -> int:
    total = 0
    for row, following in zip(rows, rows[1:]):
        position = {item: place for place, item in enumerate(following)}
        ends = [end for item in row for end in sorted(position[n] for n in after[item])]
        total += sum(a > b for i, a in enumerate(ends) for b in ends[i + 1 :])
    return total


def place(
    rows: list[list[int]], before: Neighbours, after: Neighbours, real: int, leaves: set[int]
) -> dict[int, float]:
    """Offsets that keep the order and the distances, each near the mean of its neighbours.

    Bends pull hardest, which straightens long lines; leaves give way to what is computed.
    """

    def weight(item: int) -> float:
        return 0.01 if item in leaves else BEND_WEIGHT if item >= real else 1.0

    offsets = {item: float(place) for row in rows for place, item in enumerate(row)}
    for sweep in range(PLACEMENT_SWEEPS):
        for row in rows if sweep % 2 else reversed(rows):
            wishes = []
            for item in row:
                near = before[item] + after[item]
                total = sum(map(weight, near))
                pull = sum(weight(n) * offsets[n] for n in near)
                wishes.append(pull / total if near else offsets[item])
            room = [0.0]
            for left, right in zip(row, row[1:]):
                is_bend = left >= real or right >= real
                room.append(room[-1] + (0.6 if is_bend else 1.0))
            for item, offset in zip(row, spread(wishes, room, list(map(weight, row)))):
                offsets[item] = offset
    return offsets


def spread(wishes: list[float], room: list[float], weights: list[float]) -> list[float]:
    """The values nearest to the wishes, in least squares, that differ at least as room does."""
    blocks: list[tuple[float, float, int]] = []
    for wish, start, mass in zip(wishes, room, weights):
        level, count = wish - start, 1
        while blocks and blocks[-1][0] > level:
            previous, previous_mass, previous_count = blocks.pop()
            level = (level * mass + previous * previous_mass) / (mass + previous_mass)
            mass, count = mass + previous_mass, count + previous_count
        blocks.append((level, mass, count))
    levels = [level for level, _, count in blocks for _ in range(count)]
    return [level + start for level, start in zip(levels, room)]
