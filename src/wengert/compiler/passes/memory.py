"""When the values of a graph are alive, and how much memory they need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..ir.aliasing import Aliases, shares_memory
from ..ir.blocks import node_reads
from ..ir.graph import Graph
from ..ir.nodes import Node, Value
from ..ir.types import TensorType


class Step(NamedTuple):
    """One node: the bytes it adds, those alive while it runs, and the values dropped after it."""

    node: Node
    allocated: int
    alive: int
    dropped: tuple[Value, ...]


class MemoryReport(NamedTuple):
    """Memory of a run. Inputs and outputs count as long as the graph itself needs them."""

    steps: list[Step]
    inputs: int
    outputs: int
    peak: int
    total: int
    unknown: int

    def __str__(self) -> str:
        names: dict[Value, str] = {}
        if self.steps:
            names = self.steps[0].node.graph.block.names()
        lines = [
            f"inputs {self.inputs} B, outputs {self.outputs} B, peak {self.peak} B, "
            f"{self.total} B computed, {self.unknown} values of unknown size"
        ]
        for step in self.steps:
            made = ", ".join("%" + names[value] for value in step.node._outputs)
            gone = " ".join("%" + names[value] for value in step.dropped)
            lines.append(
                f"{step.alive:>12} B  +{step.allocated:<10} {made} = {step.node.kind}"
                + (f"  drops {gone}" if gone else "")
            )
        return "\n".join(lines)


def liveness(graph: Graph) -> MemoryReport:
    """What is alive when, by the types of the values; what shares memory dies together."""
    aliases = Aliases(graph.block)
    nodes = list(graph.nodes())
    end = _last_uses(graph, nodes, aliases)
    dying: dict[int, list[Value]] = {}
    for value in (*graph.inputs, *(v for node in nodes for v in node._outputs)):
        dying.setdefault(end.get(aliases.find(value), -1), []).append(value)
    sizes: dict[Value, int] = {}
    unknown = 0

    def allocate(values: Iterable[Value]) -> int:
        nonlocal unknown
        total = 0
        for value in values:
            size = value.type.nbytes if isinstance(value.type, TensorType) else 0
            unknown += size is None
            root = aliases.find(value)
            sizes[root] = sizes.get(root, 0) + (size or 0)
            total += size or 0
        return total

    def freed(values: Iterable[Value]) -> int:
        return sum(sizes.get(root, 0) for root in {aliases.find(value) for value in values})

    given = allocate(graph.inputs)
    alive = peak = given - freed(dying.get(-1, ()))
    steps = []
    for i, node in enumerate(nodes):
        allocated = 0 if shares_memory(node) else allocate(node._outputs)
        alive += allocated
        peak = max(peak, alive)
        dropped = dying.get(i, [])
        steps.append(Step(node, allocated, alive, tuple(dropped)))
        alive -= freed(dropped)
    total = sum(step.allocated for step in steps)
    return MemoryReport(steps, given, freed(graph.outputs), peak, total, unknown)


def _last_uses(graph: Graph, nodes: list[Node], aliases: Aliases) -> dict[Value, int]:
    """For each class of values the last node that needs it; one more for outputs."""
    last: dict[Value, int] = {}
    for i, node in enumerate(nodes):
        for value in (*node._outputs, *node_reads(node)):
            last[aliases.find(value)] = i
    for value in graph.outputs:
        last[aliases.find(value)] = len(nodes)
    return last
