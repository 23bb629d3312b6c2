"""Which values require gradients, from which inputs do."""

from __future__ import annotations

from ..ir import primitives as prim
from ..ir.blocks import Block
from ..ir.graph import Graph
from ..ir.nodes import Node, Value
from ..ir.types import ListType, TensorType


def propagate_requires_grad(graph: Graph) -> Graph:
    """Decide for every tensor whether it requires grad; inputs of which nothing is known do if
    their dtype allows it. A result that is said not to require grad is cut off and stays so."""
    cut_off = cut_off_values(graph)
    for value in graph.inputs:
        set_requires_grad(value, value.requires_grad)
    visit(graph.block, cut_off)
    return graph


def cut_off_values(graph: Graph) -> set[Value]:
    """The tensors that are said not to require grad."""
    return {
        value
        for node in (graph.block.param_node, *graph.all_nodes())
        for value in node._outputs
        if isinstance(value.type, TensorType) and value.type.requires_grad is False
    }


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


def visit(block: Block, cut_off: set[Value]) -> None:
    """Decide for every tensor of a block, whose inputs are decided, whether it requires grad."""
    for node in block.nodes():
        flags = _through_blocks(node, cut_off) if node.blocks else _of_node(node)
        for value, flag in zip(node._outputs, flags, strict=True):
            set_requires_grad(value, flag and value not in cut_off)


def _of_node(node: Node) -> list[bool]:
    if not node.has_gradient:
        needed = False
    elif node.operator is not None:
        needed = any(value.requires_grad for value in differentiable_inputs(node))
    elif node.kind == prim.ONCE_DIFFERENTIABLE:
        needed = any(value.requires_grad for value in node._inputs[: node.attributes["grads"]])
    else:
        needed = any(value.requires_grad for value in node._inputs)
    fixed = getattr(node.operator, "nondifferentiable_outputs", ())
    return [needed and i not in fixed for i in range(len(node._outputs))]


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


def _through_blocks(node: Node, cut_off: set[Value]) -> list[bool]:
    if node.kind == prim.GRAD_OF:
        visit(node.blocks[0], cut_off)
        return [value.requires_grad for value in node.blocks[0].outputs]
    if node.kind == prim.FUNCTION:
        known = node.attributes["differentiable"]
        needed = any(node._inputs[i].requires_grad for i in node.attributes["gradients"])
        return [needed and i in known for i in range(len(node._outputs))]
    if node.kind in prim.LOOPS:
        results = _loop(node.blocks[1], node._inputs, len(node._outputs), cut_off)
        _enter(node.blocks[0], [value.requires_grad for value in node.blocks[1].inputs], cut_off)
        return results
    if node.kind in (prim.SCAN, prim.MAP):
        carried = node.attributes.get("carried", 0)
        return _loop(node.blocks[0], node._inputs, carried, cut_off)
    given = node._inputs[1:] if node.kind == prim.COND else node._inputs
    for block in node.blocks:
        _enter(block, [value.requires_grad for value in given], cut_off)
    return [
        any(value.requires_grad for value in each)
        for each in zip(*[block.outputs for block in node.blocks], strict=True)
    ]


def _enter(block: Block, flags: list[bool], cut_off: set[Value]) -> None:
    for value, flag in zip(block.inputs, flags, strict=True):
        set_requires_grad(value, flag)
    visit(block, cut_off)


def _loop(block: Block, inputs: list[Value], carried: int, cut_off: set[Value]) -> list[bool]:
    """A carried value requires grad if it does so in any round."""
    flags = [value.requires_grad for value in inputs]
    while True:
        _enter(block, flags, cut_off)
        results = [value.requires_grad for value in block.outputs]
        if not any(b and not a for a, b in zip(flags[:carried], results, strict=False)):
            return [*flags[:carried], *results[carried:]]
        flags[:carried] = [a or b for a, b in zip(flags[:carried], results, strict=False)]
