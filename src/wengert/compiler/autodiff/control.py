"""Gradients of control flow: the reverse of a block is a block, run by a node of the same kind.

A gradient that may be differentiated again keeps nothing of what happens inside: the reverse of a
block first computes the block again. Only the values that a loop carries are collected, since each
round needs those it began with. A loop of unknown length collects them in `prim::rounds`, and its
reverse is a scan, so that both can be differentiated again.

Where a gradient is taken once, a loop through slices keeps what is cheaper to keep.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir import primitives as prim
from ..ir.graph import Graph
from ..ir.nodes import Node, Value
from ..ir.types import TensorType, Type, length_of, slice_of, stacked, without_grad
from ..passes.rematerialize import Policy
from .blocks import (
    Kept,
    Recomputed,
    Reversed,
    free_values,
    insert_node,
    is_complete,
    kept,
    types_of,
)
from .gradients import Gradients, obstacle, or_zero, register_gradient

#: What the reverse of a loop through slices reads of its rounds.
Rounds = Kept | Recomputed


def obstacle_inside(node: Node) -> str | None:
    """Why a node with blocks is not differentiable; None if it is."""
    for block in node.blocks:
        free = free_values(block)
        if any(value.requires_grad for value in free):
            return "a block uses a value from outside that is not among its inputs"
        for value in (*block.inputs, *block.outputs):
            if value.requires_grad and not is_complete(value):
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


def gradient(node: Node, grads: dict[int, Value]) -> Gradients:
    """The gradients of the inputs of a node with blocks, at the insertion point."""
    return _RULES[node.kind](node, _defined(node, grads))


def gradient_once(node: Node, grads: dict[int, Value], policy: Policy | None) -> Gradients:
    """Gradients that will not be differentiated; `policy` says what they may compute again."""
    if node.kind not in _THROUGH_SLICES:
        return gradient(node, grads)
    given = _defined(node, grads)
    return _THROUGH_SLICES[node.kind](node, given, kept(node, policy) or Recomputed(node))


def _defined(node: Node, grads: dict[int, Value]) -> dict[int, Value]:
    """The gradients of the outputs that require any, with zeros for those that are undefined."""
    return {
        i: or_zero(node._outputs[i], g)
        for i, g in grads.items()
        if node._outputs[i].requires_grad
    }


def _zeros(graph: Graph, like: Type) -> Value:
    assert isinstance(like, TensorType)
    out: Value = graph.insert(prim.FULL, like.shape, 0, like.dtype)
    out.type = without_grad(like)
    return out


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


# Branches -----------------------------------------------------------------------------------------


def _cond(node: Node, grads: dict[int, Value]) -> Gradients:
    graph = node.graph
    condition, *inputs = node._inputs
    wanted = [i for i, value in enumerate(inputs) if value.requires_grad]
    types = types_of(inputs)
    out = insert_node(
        graph, prim.COND, [condition, *inputs, *grads.values()], [types[i] for i in wanted]
    )
    for block in node.blocks:
        reverse = Reversed(block)
        with _Inside(out, [*types, *types_of(list(grads.values()))]) as inside:
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


def _map(node: Node, grads: dict[int, Value], rounds: Rounds | None = None) -> Gradients:
    graph = node.graph
    block = node.blocks[0]
    mapped = node.attributes["mapped"]
    rounds = rounds or Recomputed(node)
    given = [grads[i] for i in rounds.given]
    wanted = [i for i in rounds.wanted if node._inputs[i].requires_grad]
    length = length_of(node._inputs[0].type)
    through = [*rounds.stacked, *given]
    out = insert_node(
        graph,
        prim.MAP,
        [*through, *rounds.shared],
        [stacked(block.inputs[i].type, length) for i in wanted],
        mapped=len(through),
    )
    types = [*map(slice_of, types_of(through)), *types_of(rounds.shared)]
    with _Inside(out, types) as inside:
        slices, shared = inside.inputs[: len(through)], inside.inputs[len(through) :]
        count = len(rounds.stacked)
        found = rounds.insert(graph, slices[:count], shared, slices[count:])
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


def _scan(node: Node, grads: dict[int, Value], rounds: Rounds | None = None) -> Gradients:
    graph = node.graph
    block = node.blocks[0]
    carried, mapped = node.attributes["carried"], node.attributes["mapped"]
    rounds = rounds or Recomputed(node)
    inputs = node._inputs
    moving = [i for i in range(carried) if block.inputs[i].requires_grad]
    shared = [i for i in rounds.wanted if i >= carried + mapped]
    sliced = [i for i in rounds.wanted if carried <= i < carried + mapped]
    length = length_of(inputs[carried].type)
    # The reverse carries the gradients of what was carried, and sums of those of shared inputs.
    sources = [i for i in rounds.given if i >= carried]
    start = [
        grads[i] if i in grads else _zeros(graph, block.inputs[i].type) for i in moving
    ] + [_zeros(graph, block.inputs[i].type) for i in shared]
    through = [*rounds.stacked, *[grads[i] for i in sources]]
    out = insert_node(
        graph,
        prim.SCAN,
        [*start, *through, *rounds.shared],
        [*types_of(start), *[stacked(block.inputs[i].type, length) for i in sliced]],
        carried=len(start),
        mapped=len(through),
        reverse=not node.attributes["reverse"],
    )
    types = [*types_of(start), *map(slice_of, types_of(through)), *types_of(rounds.shared)]
    with _Inside(out, types) as inside:
        supply = iter(inside.inputs)
        carry = {i: next(supply) for i in (*moving, *shared)}
        slices = [next(supply) for _ in rounds.stacked]
        given = {i: next(supply) for i in sources}
        found = rounds.insert(
            graph,
            slices,
            list(supply),
            [carry[i] if i < carried else given[i] for i in rounds.given],
        )
        for i in moving:
            inside.give(found[i] if i in found else _zeros(graph, block.inputs[i].type))
        for i in shared:
            inside.give(_sum(carry[i], found[i]))
        inside.give(*[found[i] for i in sliced])
    results: Gradients = [None] * len(inputs)
    for i, value in zip((*moving, *shared, *sliced), out._outputs, strict=True):
        results[i] = value
    return results


def _sum(a: Value, b: Value) -> Value:
    total: Value = a.graph.insert("wengert::add", a, b)
    total.type = without_grad(a.type)
    return total


# Loops of unknown length --------------------------------------------------------------------------


def _while(node: Node, grads: dict[int, Value]) -> Gradients:
    """The loop runs again to collect what its rounds began with."""
    types = [stacked(value.type, None) for value in node._outputs]
    rounds = insert_node(node.graph, prim.ROUNDS, list(node._inputs), types)
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
    out = insert_node(
        graph,
        prim.SCAN,
        [*start, *begins, *begin_grads.values(), *rest],
        types_of(start),
        carried=len(start),
        mapped=count + len(begin_grads),
        reverse=True,
    )
    types = [*types_of(start), *types_of(body.inputs[:count])]
    types += [body.inputs[i].type for i in begin_grads] + types_of(rest)
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


_THROUGH_SLICES: dict[str, Callable[..., Gradients]] = {prim.MAP: _map, prim.SCAN: _scan}
_RULES: dict[str, Callable[..., Gradients]] = {
    **_THROUGH_SLICES,
    prim.COND: _cond,
    prim.WHILE: _while,
    prim.ROUNDS: _rounds,
}
for _kind in _RULES:
    register_gradient(_kind, gradient, obstacle_inside, gradient_once)
