"""Which values require gradients, from which inputs do."""

from __future__ import annotations

from .. import primitives as prim
from ..ir import Graph
from ..nodes import Block, Node, Value
from ..types import ListType, TensorType


def propagate_requires_grad(graph: Graph) -> Graph:
    """Decide for every tensor whether it requires grad; inputs of which nothing is known do if
    their dtype allows it."""
    for value in graph.inputs:
        set_requires_grad(value, value.requires_grad)
    visit(graph.block)
    return graph


def clear_requires_grad(graph: Graph) -> Graph:
    """Let no value require grad: the graph will run on detached tensors."""
    for node in (graph.block.param_node, *graph.all_nodes()):
        for value in node._outputs:
            set_requires_grad(value, False)
        for block in node.blocks:
            for value in block.inputs:
                set_requires_grad(value, False)
    return graph


def set_requires_grad(value: Value, flag: bool) -> None:
    """Note the answer in the type of a tensor, as far as its dtype allows gradients."""
    t = value.type
    if isinstance(t, TensorType):
        value.type = t.with_requires_grad(flag and t.can_require_grad)
    elif isinstance(t, ListType) and isinstance(t.element, TensorType):
        element = t.element
        value.type = ListType(element.with_requires_grad(flag and element.can_require_grad))


def visit(block: Block) -> None:
    """The same for one block, whose inputs know."""
    for node in block.nodes():
        if node.blocks:
            _through_blocks(node)
        else:
            _mark(node)


def _mark(node: Node) -> None:
    if node.kind in (prim.CONSTANT, prim.FULL, prim.SIZE, prim.SIZE_IF_NOT_EQUAL):
        needed = False
    elif node.operator is not None:
        needed = any(value.requires_grad for value in differentiable_inputs(node))
    else:
        needed = any(value.requires_grad for value in node._inputs)
    fixed = getattr(node.operator, "nondifferentiable_outputs", ())
    for i, value in enumerate(node._outputs):
        set_requires_grad(value, needed and i not in fixed)


def differentiable_inputs(node: Node) -> list[Value]:
    """The inputs of an operator's node in which it has a derivative."""
    operator = getattr(node.operator, "functional", node.operator)
    arguments = node.bound_arguments()
    found: list[Value] = []
    for position in operator.grad_positions:
        item = arguments[position]
        if isinstance(item, Value):
            found.append(item)
        elif isinstance(item, tuple):
            found.extend(part for part in item if isinstance(part, Value))
    return found


def _through_blocks(node: Node) -> None:
    if node.kind == prim.GRAD_OF:
        visit(node.blocks[0])
        results = [value.requires_grad for value in node.blocks[0].outputs]
    elif node.kind == prim.WHILE:
        results = _loop(node.blocks[1], node._inputs, len(node._outputs))
        _enter(node.blocks[0], [value.requires_grad for value in node.blocks[1].inputs])
    elif node.kind in (prim.SCAN, prim.MAP):
        results = _loop(node.blocks[0], node._inputs, node.attributes.get("carried", 0))
    else:
        given = node._inputs[1:] if node.kind == prim.COND else node._inputs
        for block in node.blocks:
            _enter(block, [value.requires_grad for value in given])
        results = [
            any(value.requires_grad for value in each)
            for each in zip(*[block.outputs for block in node.blocks], strict=True)
        ]
    for value, flag in zip(node._outputs, results, strict=True):
        set_requires_grad(value, flag)


def _enter(block: Block, flags: list[bool]) -> None:
    for value, flag in zip(block.inputs, flags, strict=True):
        set_requires_grad(value, flag)
    visit(block)


def _loop(block: Block, inputs: list[Value], carried: int) -> list[bool]:
    """A carried value requires grad if it does so in any round."""
    flags = [value.requires_grad for value in inputs]
    while True:
        _enter(block, flags)
        results = [value.requires_grad for value in block.outputs]
        if not any(b and not a for a, b in zip(flags[:carried], results, strict=False)):
            return results[: max(carried, len(results))]
        flags[:carried] = [a or b for a, b in zip(flags[:carried], results, strict=False)]


