"""Groups: the differentiable parts of a graph, each as the block of a `prim::DifferentiableGraph`.

A graph may contain nodes that `differentiate` cannot handle. Slicing collects the others into
groups that can be differentiated and compiled one by one, while eager autograd records what lies
between. A group has no effects, gets everything it uses as inputs, and none of its results shares
memory with an input or with another result: views are made outside of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..autodiff.gradients import is_differentiable
from ..ir import primitives as prim
from ..ir.aliasing import Aliases
from ..ir.base import GraphError
from ..ir.blocks import Block, node_reads
from ..ir.graph import Graph, block_graph
from ..ir.nodes import Node, Value
from ..passes.dce import eliminate_dead_code, remove_dead_nodes
from ..passes.inline import inline_block
from ..passes.requires_grad import propagate_requires_grad
from ..passes.shapes import propagate_shapes

#: Smaller groups do not pay.
THRESHOLD = 2


def slice_differentiable(graph: Graph, threshold: int = THRESHOLD) -> Graph:
    """Collect the differentiable nodes of a graph into groups of at least `threshold` nodes.

    Nodes are reordered where that is needed, but never across one with effects. Groups whose
    results require no grad are not made.
    """
    propagate_requires_grad(propagate_shapes(eliminate_dead_code(graph)))
    for nodes in _components(graph.block):
        if len(nodes) < threshold or not any(_leaves_with_grad(nodes)):
            continue
        group = merge(nodes)
        separate_views(group)
        if sum(node.kind != prim.CONSTANT for node in group.blocks[0].nodes()) < threshold:
            unmerge(group)
    return eliminate_dead_code(graph)


def groups(graph: Graph) -> list[Node]:
    """The groups of a graph."""
    return [node for node in graph.nodes() if node.kind == prim.DIFFERENTIABLE_GRAPH]


def graph_of(group: Node) -> Graph:
    """The contents of a group as a graph of their own."""
    return block_graph(group.blocks[0])


def _leaves_with_grad(nodes: list[Node]) -> Iterable[bool]:
    own = set(nodes)
    for node in nodes:
        for value in node._outputs:
            yield value.requires_grad and any(use.user not in own for use in value._uses)


# What belongs together ----------------------------------------------------------------------------


def _components(block: Block) -> list[list[Node]]:
    """Connected sets of differentiable nodes such that no way from one leads out of and back into
    it; the nodes of the block are brought into an order in which each is in one piece.

    A node's level counts how often, on the way to it, one has to change between nodes that can be
    in a group and others. Ways never lead to a lower level, so what is connected on one level can
    be put together.
    """
    aliases = Aliases(block)
    levels: dict[Node, int] = {}
    lowest = 0
    highest = 0
    eligible: set[Node] = set()
    for node in block.nodes():
        if node.kind == prim.CONSTANT:
            continue
        may_join = _may_join(node, aliases)
        level = lowest
        for value in node_reads(node):
            source = value.node
            if source in levels:
                level = max(level, levels[source] + ((source in eligible) != may_join))
        if level % 2 == may_join:  # levels of groups are even
            level += 1
        if node.has_effects:
            level = max(level, highest + 1 + highest % 2)
            lowest = level
        highest = max(highest, level)
        levels[node] = level
        if may_join:
            eligible.add(node)
    found = _connected(block, levels, eligible)
    _reorder(block, levels, found)
    return found


def _may_join(node: Node, aliases: Aliases) -> bool:
    if node.has_effects or aliases.touches_written(node):
        return False
    forwards = not node.is_view and any(
        aliases.may_alias(value, given) for value in node._outputs for given in node._inputs
    )
    return not forwards and is_differentiable(node)


def _connected(
    block: Block, levels: dict[Node, int], eligible: set[Node]
) -> list[list[Node]]:
    leader: dict[Node, Node] = {}

    def find(node: Node) -> Node:
        while leader[node] is not node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    order = [node for node in block.nodes() if node in eligible]
    for node in order:
        leader[node] = node
        for value in node_reads(node):
            source = value.node
            if source in leader and levels[source] == levels[node]:
                leader[find(source)] = find(node)
    sets: dict[Node, list[Node]] = {}
    for node in order:
        sets.setdefault(find(node), []).append(node)
    return list(sets.values())


def _reorder(block: Block, levels: dict[Node, int], found: list[list[Node]]) -> None:
    """By levels, and on a level one component after the other."""
    place = {node: i for i, nodes in enumerate(found) for node in nodes}
    nodes = list(block.nodes())
    constants = [node for node in nodes if node not in levels]
    rest = sorted(
        (node for node in nodes if node in levels),
        key=lambda node: (levels[node], place.get(node, -1)),
    )
    for node in (*constants, *rest):
        node.move_before(block.return_node)


# Making and undoing groups ------------------------------------------------------------------------


def merge(nodes: list[Node]) -> Node:
    """Put nodes that follow each other into one group; constants that they use are copied."""
    _check_together(nodes)
    graph = nodes[0].graph
    group = graph.create(prim.DIFFERENTIABLE_GRAPH, (), ())
    group.insert_before(nodes[0])
    block = group.add_block()
    for node in nodes:
        node.move_before(block.return_node)
    inside: dict[Value, Value] = {}
    for node in block.readers():
        for i, value in enumerate(node._inputs):
            if block.contains(value.node):
                continue
            if value not in inside and value.node.kind == prim.CONSTANT:
                block.prepend(graph.create_clone(value.node, inside))
            elif value not in inside:
                group.add_input(value)
                inside[value] = block.add_input(value.type, value.name)
            node.replace_input(i, inside[value])
    for node in nodes:
        for value in node._outputs:
            outside = [use for use in value._uses if not block.contains(use.user)]
            if outside:
                block.register_output(value)
                result = group.add_output(value.type, value.name)
                for use in outside:
                    use.user.replace_input(use.offset, result)
    return group


def _check_together(nodes: list[Node]) -> None:
    for a, b in zip(nodes, nodes[1:], strict=False):
        if a.next is not b:
            raise GraphError("only nodes that follow each other can be put into a group")
    for node in nodes:
        if node.has_effects:
            raise GraphError(f"{node.kind} has effects and cannot be put into a group")


def unmerge(group: Node) -> None:
    """Put the nodes of a group in its place."""
    inline_block(group, group.inputs)


def separate_views(group: Node) -> None:
    """Make the results of a group that share memory outside of it, by the same views."""
    block = group.blocks[0]
    while True:
        aliases = Aliases(block)
        shared = next(
            (i for i in range(len(group._outputs)) if _shares(block, i, aliases)), None
        )
        if shared is None:
            break
        _pull_out(group, block.outputs[shared].node)
    remove_dead_nodes(block)


def _shares(block: Block, index: int, aliases: Aliases) -> bool:
    value = block.outputs[index]
    return value.node.is_view and (
        aliases.comes_from_outside(value)
        or any(
            aliases.may_alias(value, other)
            for i, other in enumerate(block.outputs)
            if i != index
        )
    )


def _pull_out(group: Node, view: Node) -> None:
    """Copy a view behind the group, and return what it is a view of instead of it."""
    graph = group.graph
    block = group.blocks[0]
    values = {value: _outside(group, value) for value in view._inputs}
    copy = graph.create_clone(view, values)
    copy.insert_after(group)
    for i in range(len(group._outputs) - 1, -1, -1):
        value = block.outputs[i]
        if value.node is view:
            group._outputs[i].replace_all_uses_with(values[value])
            group.erase_output(i)
            block.erase_output(i)


def _outside(group: Node, value: Value) -> Value:
    """What stands outside of a group for a value inside it, as an input or as an output."""
    block = group.blocks[0]
    if value.node is block.param_node:
        return group._inputs[value.index]
    for i, result in enumerate(block.outputs):
        if result is value:
            return group._outputs[i]
    block.register_output(value)
    return group.add_output(value.type, value.name)
