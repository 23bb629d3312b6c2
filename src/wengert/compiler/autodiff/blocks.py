"""Blocks in reverse: what the reverse of a block reads, and the graph that it is.

The reverse of a block may compute the block again, and then reads what the block read. The reverse
of a loop that goes through slices may also read what the loop has kept of each of its rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import primitives as prim
from ..ir.blocks import Block, node_reads
from ..ir.graph import Graph
from ..ir.nodes import Node, Value
from ..ir.types import TensorType, Type, length_of, stacked, without_grad
from ..passes.rematerialize import Policy
from .differentiate import Gradient, differentiate, joint_graph, reverse_graph


def types_of(values: Sequence[Value]) -> list[Type]:
    """The types of some values."""
    return [value.type for value in values]


def insert_node(
    graph: Graph, kind: str, inputs: list[Value], types: list[Type], **attributes: object
) -> Node:
    """Insert a node of a kind, whose outputs have types, at the insertion point."""
    node = graph.create(kind, inputs, map(without_grad, types), attributes=attributes or None)
    return graph.insert_node(node)


def free_values(block: Block) -> set[Value]:
    """What a block uses from outside."""
    own: set[Value] = set(block.inputs)
    used: set[Value] = set(block.outputs)
    for node in block.all_nodes():
        own.update(node._outputs)
        used.update(node._inputs)
        for inner in node.blocks:
            own.update(inner.inputs)
            used.update(inner.outputs)
    return used - own


def _as_graph(block: Block) -> tuple[Graph, list[Value]]:
    """A block as a graph of its inputs and of the values that it uses from outside."""
    graph = Graph()
    free = sorted(free_values(block), key=lambda value: value.node.position)
    values: dict[Value, Value] = {}
    for value in (*block.inputs, *free):
        values[value] = graph.add_input().copy_metadata(value)
    graph.block.clone_nodes(block, values)
    for value in block.outputs:
        graph.register_output(values[value])
    return graph, free


class Reversed:
    """The reverse of a block as a graph of its inputs and of the gradients of some outputs.

    `wanted` are the inputs with a gradient, `given` the outputs whose gradients it takes.
    """

    def __init__(self, block: Block) -> None:
        source, self.free = _as_graph(block)
        gradient = differentiate(source)
        self.given = gradient.output_vjps
        self.wanted = gradient.df_output_vjps
        self.graph = joint_graph(gradient, values=False)

    def insert(self, graph: Graph, inputs: list[Value], grads: list[Value]) -> dict[int, Value]:
        """Insert it; the gradients of inputs by their numbers."""
        results = graph.insert_graph(self.graph, [*inputs, *self.free, *grads])
        return dict(zip(self.wanted, results, strict=True))


# Loops through slices -----------------------------------------------------------------------------


class Recomputed:
    """The rounds of a loop in reverse, which compute again what they need.

    They read `stacked`, slice by slice, and `shared` as they are. `wanted` are the inputs of the
    loop's block with a gradient, `given` the outputs whose gradients a round takes.
    """

    def __init__(self, node: Node) -> None:
        carried = node.attributes.get("carried", 0)
        first_shared = carried + node.attributes["mapped"]
        self._reverse = Reversed(node.blocks[0])
        self.given, self.wanted = self._reverse.given, self._reverse.wanted
        begins = _starts_of_rounds(node) if carried else []
        self.stacked = [*begins, *node._inputs[carried:first_shared]]
        self.shared = list(node._inputs[first_shared:])

    def insert(
        self, graph: Graph, slices: list[Value], shared: list[Value], grads: list[Value]
    ) -> dict[int, Value]:
        """Insert one round; the gradients of the block's inputs by their numbers."""
        return self._reverse.insert(graph, [*slices, *shared], grads)


def _starts_of_rounds(node: Node) -> list[Value]:
    """The carried values as each round of a scan finds them, stacked."""
    carried = node.attributes["carried"]
    length = length_of(node._inputs[carried].type)
    block = node.blocks[0]
    types = [*types_of(block.inputs[:carried])]
    again = insert_node(
        node.graph,
        prim.SCAN,
        list(node._inputs),
        [*types, *[stacked(t, length) for t in types]],
        **node.attributes,
    )
    copy = again.add_block()
    copy.clone_from(block)
    while len(copy.outputs) > carried:
        copy.erase_output(carried)
    for value in copy.inputs[:carried]:
        copy.register_output(value)
    return list(again._outputs[carried:])


class Kept:
    """The rounds of a loop in reverse, which read what the loop has kept; else as `Recomputed`.

    The loop is changed: its block also returns what is to be kept. A gradient with respect to that
    has no place, so the reverse cannot be differentiated.
    """

    def __init__(self, node: Node, gradient: Gradient, free: list[Value]) -> None:
        carried = node.attributes.get("carried", 0)
        first_shared = carried + node.attributes["mapped"]
        self.given, self.wanted = gradient.output_vjps, gradient.df_output_vjps
        self._graph = reverse_graph(gradient)
        block, f = node.blocks[0], gradient.f
        values = dict(zip(f.inputs, [*block.inputs, *free], strict=True))
        block.clear()
        block.clone_nodes(f.block, values)
        for value in f.outputs[: gradient.f_real_outputs]:
            block.register_output(values[value])
        length = length_of(node._inputs[carried].type)

        def keep(value: Value) -> Value:
            """The values of all rounds, which are among the results of the loop already or not."""
            for i, known in enumerate(block.outputs):
                if known is value and i >= carried:
                    return node._outputs[i]
            block.register_output(value)
            return node.add_output(without_grad(stacked(value.type, length)))

        self.stacked: list[Value] = []
        self.shared: list[Value] = []
        #: Where a round finds what it reads: whether among slices, and at which place.
        self._places: list[tuple[bool, int]] = []
        for i in gradient.df_input_captured_inputs:
            if i < carried:
                self._read(keep(block.inputs[i]), True)
            elif i < len(block.inputs):
                self._read(node._inputs[i], i < first_shared)
            else:
                self._read(free[i - len(block.inputs)], False)
        for i in gradient.df_input_captured_outputs:
            self._read(keep(values[f.outputs[i]]), True)

    def _read(self, value: Value, is_stacked: bool) -> None:
        values = self.stacked if is_stacked else self.shared
        if value not in values:
            values.append(value)
        self._places.append((is_stacked, values.index(value)))

    def insert(
        self, graph: Graph, slices: list[Value], shared: list[Value], grads: list[Value]
    ) -> dict[int, Value]:
        """Insert one round; the gradients of the block's inputs by their numbers."""
        read = [(slices if is_slice else shared)[i] for is_slice, i in self._places]
        results = graph.insert_graph(self._graph, [*grads, *read])
        return dict(zip(self.wanted, results, strict=True))


def kept(node: Node, policy: Policy | None) -> Kept | None:
    """The rounds of a loop in reverse, which read what the loop keeps if `policy` finds that this
    costs less than to compute it again. None where it would keep what cannot be stacked, or what
    is the same in all rounds."""
    if length_of(node._inputs[node.attributes.get("carried", 0)].type) is None:
        return None
    source, free = _as_graph(node.blocks[0])
    gradient = differentiate(source, once=True, recompute=policy)
    changing = _changing(gradient.f, node)
    for i in gradient.df_input_captured_outputs:
        value = gradient.f.outputs[i]
        if value not in changing or not is_complete(value):
            return None
    return Kept(node, gradient, free)


def is_complete(value: Value) -> bool:
    """Whether a value is a tensor whose dtype and shape are known."""
    return isinstance(value.type, TensorType) and value.type.is_complete


def _changing(graph: Graph, node: Node) -> set[Value]:
    """The values of a loop's block that differ from round to round."""
    count = node.attributes.get("carried", 0) + node.attributes["mapped"]
    found = set(graph.inputs[:count])
    for inner in graph.nodes():
        if not found.isdisjoint(node_reads(inner)):
            found.update(inner._outputs)
    return found
