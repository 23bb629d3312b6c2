"""Gradients of control flow: the reverse of a block is a block, run by a node of the same kind.

Nothing is kept of what happens inside: the reverse of a block first computes the block again. Only
the values that a loop carries are collected, since each round needs those it began with. A loop of
unknown length collects them in `prim::rounds`, and its reverse is a scan, so that both can be
differentiated again.
"""

from __future__ import annotations

from ..ir import primitives as prim
from ..ir.blocks import Block
from ..ir.graph import Graph
from ..ir.nodes import Node, Value
from ..ir.types import TensorType, Type, length_of, stacked, without_grad
from .differentiate import differentiate, joint_graph
from .gradients import Gradients, obstacle, or_zero, register_gradient


def obstacle_inside(node: Node) -> str | None:
    """Why a node with blocks is not differentiable; None if it is."""
    for block in node.blocks:
        free = _free_values(block)
        if any(value.requires_grad for value in free):
            return "a block uses a value from outside that is not among its inputs"
        for value in (*block.inputs, *block.outputs):
            if value.requires_grad and not _complete(value):
                return "a dtype or a shape in a block is not known"
    body = node.blocks[-1:] if node.kind in prim.LOOPS else node.blocks
    for block in body:
        for inner in block.nodes():
            reason = obstacle(inner)
            if reason is not None and any(value.requires_grad for value in inner._outputs):
                return f"{inner.kind} inside it: {reason}"
    if node.has_effects:
        return (
            "a block has effects, such as random draws, which its reverse would have again: draw "
            "before it and pass the numbers in"
        )
    return None


def _free_values(block: Block) -> set[Value]:
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


def _complete(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.is_complete


class Reversed:
    """The reverse of a block as a graph of its inputs and of the gradients of some outputs.

    `wanted` are the inputs with a gradient, `given` the outputs whose gradients it takes.
    """

    def __init__(self, block: Block) -> None:
        source = Graph()
        self.free = sorted(_free_values(block), key=lambda value: value.node.position)
        values: dict[Value, Value] = {}
        for value in (*block.inputs, *self.free):
            values[value] = source.add_input().copy_metadata(value)
        source.block.clone_nodes(block, values)
        for value in block.outputs:
            source.register_output(values[value])
        gradient = differentiate(source)
        self.given = gradient.output_vjps
        self.wanted = gradient.df_output_vjps
        self.graph = joint_graph(gradient, values=False)

    def insert(self, graph: Graph, inputs: list[Value], grads: list[Value]) -> dict[int, Value]:
        """Insert it; the gradients of inputs by their numbers."""
        results = graph.insert_graph(self.graph, [*inputs, *self.free, *grads])
        return dict(zip(self.wanted, results, strict=True))


def gradient(node: Node, grads: dict[int, Value]) -> Gradients:
    """The gradients of the inputs of a node with blocks, at the insertion point."""
    defined = {
        i: or_zero(node._outputs[i], g)
        for i, g in grads.items()
        if node._outputs[i].requires_grad
    }
    return _RULES[node.kind](node, defined)


def _zeros(graph: Graph, like: Type) -> Value:
    assert isinstance(like, TensorType)
    out: Value = graph.insert(prim.FULL, like.shape, 0, like.dtype)
    out.type = without_grad(like)
    return out


def _insert_node(
    graph: Graph, kind: str, inputs: list[Value], types: list[Type], **attributes: object
) -> Node:
    node = graph.create(kind, inputs, map(without_grad, types), attributes=attributes or None)
    return graph.insert_node(node)


class _Inside:
    """Builds a block: its parameters are made from types, new nodes go to its end."""

    def __init__(self, node: Node, types: list[Type]) -> None:
        self.graph = node.graph
        self.block = node.add_block()
        self.inputs = [self.block.add_input(without_grad(t)) for t in types]

    def __enter__(self) -> _Inside:
        self.outer = self.graph.insert_point
        self.graph.insert_point = self.block.return_node
        return self

    def __exit__(self, *exception: object) -> None:
        self.graph.insert_point = self.outer

    def give(self, *values: Value) -> None:
        for value in values:
            self.block.register_output(value)


def _types(values: list[Value] | tuple[Value, ...]) -> list[Type]:
    return [value.type for value in values]


# Branches -----------------------------------------------------------------------------------------


def _cond(node: Node, grads: dict[int, Value]) -> Gradients:
    graph = node.graph
    condition, *inputs = node._inputs
    wanted = [i for i, value in enumerate(inputs) if value.requires_grad]
    types = _types(inputs)
    out = _insert_node(
        graph, prim.COND, [condition, *inputs, *grads.values()], [types[i] for i in wanted]
    )
    for block in node.blocks:
        reverse = Reversed(block)
        with _Inside(out, [*types, *_types(list(grads.values()))]) as inside:
            given = dict(zip(grads, inside.inputs[len(inputs) :], strict=True))
            found = reverse.insert(
                graph, inside.inputs[: len(inputs)], [given[i] for i in reverse.given]
            )
            for i in wanted:
                inside.give(found[i] if i in found else _zeros(graph, types[i]))
    results: Gradients = [None] * len(node._inputs)
    for i, value in zip(wanted, out._outputs, strict=True):
        results[i + 1] = value
    return results


# Maps ---------------------------------------------------------------------------------------------


def _map(node: Node, grads: dict[int, Value]) -> Gradients:
    graph = node.graph
    block = node.blocks[0]
    mapped = node.attributes["mapped"]
    reverse = Reversed(block)
    xs, rest = node._inputs[:mapped], node._inputs[mapped:]
    slices = _types(block.inputs[:mapped])
    given = [grads[i] for i in reverse.given]
    wanted = [i for i in reverse.wanted if node._inputs[i].requires_grad]
    length = length_of(xs[0].type)
    out = _insert_node(
        graph,
        prim.MAP,
        [*xs, *given, *rest],
        [stacked(block.inputs[i].type, length) for i in wanted],
        mapped=mapped + len(given),
    )
    types = [*slices, *[block.outputs[i].type for i in reverse.given], *_types(rest)]
    with _Inside(out, types) as inside:
        ours, theirs = inside.inputs[:mapped], inside.inputs[mapped + len(given) :]
        found = reverse.insert(
            graph, [*ours, *theirs], inside.inputs[mapped : mapped + len(given)]
        )
        inside.give(*[found[i] for i in wanted])
    results: Gradients = [None] * len(node._inputs)
    for i, value in zip(wanted, out._outputs, strict=True):
        results[i] = value if i < mapped else _summed(value, node._inputs[i])
    return results


def _summed(value: Value, like: Value) -> Value:
    """What all rounds contribute to a value that they share."""
    total: Value = value.graph.insert("wengert::sum.dim_IntList", value, (0,))
    total.type = without_grad(like.type)
    return total


# Scans --------------------------------------------------------------------------------------------


def _scan(node: Node, grads: dict[int, Value]) -> Gradients:
    graph = node.graph
    block = node.blocks[0]
    carried, mapped = node.attributes["carried"], node.attributes["mapped"]
    reverse = Reversed(block)
    inputs = node._inputs
    xs, rest = inputs[carried : carried + mapped], inputs[carried + mapped :]
    kept = [i for i in range(carried) if block.inputs[i].requires_grad]
    shared = [i for i in reverse.wanted if i >= carried + mapped]
    sliced = [i for i in reverse.wanted if carried <= i < carried + mapped]
    length = length_of(xs[0].type)
    begins = _starts_of_rounds(node, length)
    # The reverse carries the gradients of what was carried, and sums of those of shared inputs.
    sources = [i for i in reverse.given if i >= carried]
    start = [
        grads[i] if i in grads else _zeros(graph, block.inputs[i].type) for i in kept
    ] + [_zeros(graph, block.inputs[i].type) for i in shared]
    out = _insert_node(
        graph,
        prim.SCAN,
        [*start, *xs, *begins, *[grads[i] for i in sources], *rest],
        [*_types(start), *[stacked(block.inputs[i].type, length) for i in sliced]],
        carried=len(start),
        mapped=mapped + carried + len(sources),
        reverse=not node.attributes["reverse"],
    )
    types = [
        *_types(start),
        *_types(block.inputs[carried : carried + mapped]),
        *_types(block.inputs[:carried]),
        *[block.outputs[i].type for i in sources],
        *_types(rest),
    ]
    with _Inside(out, types) as inside:
        supply = iter(inside.inputs)
        carry = {i: next(supply) for i in (*kept, *shared)}
        slices = [next(supply) for _ in range(mapped)]
        began = [next(supply) for _ in range(carried)]
        given = {i: next(supply) for i in sources}
        others = list(supply)
        found = reverse.insert(
            graph,
            [*began, *slices, *others],
            [carry[i] if i < carried else given[i] for i in reverse.given],
        )
        for i in kept:
            inside.give(found[i] if i in found else _zeros(graph, block.inputs[i].type))
        for i in shared:
            inside.give(_sum(carry[i], found[i]))
        inside.give(*[found[i] for i in sliced])
    results: Gradients = [None] * len(inputs)
    for i, value in zip((*kept, *shared, *sliced), out._outputs, strict=True):
        results[i] = value
    return results


def _sum(a: Value, b: Value) -> Value:
    total: Value = a.graph.insert("wengert::add", a, b)
    total.type = without_grad(a.type)
    return total


def _starts_of_rounds(node: Node, length: int | None) -> list[Value]:
    """The carried values as each round of a scan finds them, stacked."""
    carried = node.attributes["carried"]
    block = node.blocks[0]
    types = [*_types(block.inputs[:carried])]
    again = _insert_node(
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


# Loops of unknown length --------------------------------------------------------------------------


def _while(node: Node, grads: dict[int, Value]) -> Gradients:
    """The loop runs again to collect what its rounds began with."""
    types = [stacked(value.type, None) for value in node._outputs]
    rounds = _insert_node(node.graph, prim.ROUNDS, list(node._inputs), types)
    for block in node.blocks:
        rounds.add_block().clone_from(block)
    return _rounds_in_reverse(node, rounds._outputs, grads, {})


def _rounds(node: Node, grads: dict[int, Value]) -> Gradients:
    return _rounds_in_reverse(node, node._outputs, {}, grads)


def _rounds_in_reverse(
    node: Node, begins: list[Value], grads: dict[int, Value], begin_grads: dict[int, Value]
) -> Gradients:
    """A scan from the last round to the first. `grads` are the gradients of what the last round
    carried on, `begin_grads` those of what each round began with."""
    graph = node.graph
    body = node.blocks[1]
    count = len(node._outputs)
    rest = node._inputs[count:]
    reverse = Reversed(body)
    kept = [i for i in range(count) if body.inputs[i].requires_grad]
    shared = [i for i in reverse.wanted if i >= count]
    start = [
        grads[i] if i in grads else _zeros(graph, body.inputs[i].type) for i in (*kept, *shared)
    ]
    out = _insert_node(
        graph,
        prim.SCAN,
        [*start, *begins, *begin_grads.values(), *rest],
        _types(start),
        carried=len(start),
        mapped=count + len(begin_grads),
        reverse=True,
    )
    types = [*_types(start), *_types(body.inputs[:count])]
    types += [body.inputs[i].type for i in begin_grads] + _types(rest)
    with _Inside(out, types) as inside:
        supply = iter(inside.inputs)
        carry = {i: next(supply) for i in (*kept, *shared)}
        began = [next(supply) for _ in range(count)]
        added = {i: next(supply) for i in begin_grads}
        found = reverse.insert(graph, [*began, *supply], [carry[i] for i in reverse.given])
        for i in kept:
            g = found[i] if i in found else _zeros(graph, body.inputs[i].type)
            inside.give(_sum(g, added[i]) if i in added else g)
        for i in shared:
            inside.give(_sum(carry[i], found[i]))
    results: Gradients = [None] * len(node._inputs)
    for i, value in zip((*kept, *shared), out._outputs, strict=True):
        results[i] = value
    return results


_RULES = {
    prim.COND: _cond,
    prim.MAP: _map,
    prim.SCAN: _scan,
    prim.WHILE: _while,
    prim.ROUNDS: _rounds,
}
for _kind in _RULES:
    register_gradient(_kind, gradient, obstacle_inside)
