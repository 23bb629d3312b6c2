"""The gradient of one node, inserted into the reverse block as a `prim::GradOf`.

Gradients are linear, so that zero maps to zero, whatever operators compute them. A GradOf says so:
its inputs are the gradients of the node's outputs, its block computes those of the node's inputs,
and where all its inputs are undefined its outputs are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir import primitives as prim
from ..ir.functions import by_input
from ..ir.graph import Graph
from ..ir.nodes import Node, Value
from ..ir.types import INT, ListType, OptionalType, TensorType, without_grad
from ..passes.rematerialize import Policy
from ..passes.requires_grad import differentiable_inputs
from .rules import NotDifferentiable, RuleGraph, differentiable_outputs, rule_graph

#: For each input of a node its gradient, or None.
Gradients = list[Value | None]
NodeGradient = Callable[[Node, dict[int, Value]], Gradients]
OnceGradient = Callable[[Node, dict[int, Value], "Policy | None"], Gradients]
Obstacle = Callable[[Node], str | None]


def is_differentiable(item: Node | Graph) -> bool:
    """Whether the gradient of a node, or of every node of a graph, can be written as a graph."""
    if isinstance(item, Graph):
        return all(is_differentiable(node) for node in item.nodes())
    return obstacle(item) is None


def obstacle(node: Node) -> str | None:
    """Why a node is not differentiable; None if it is."""
    if node.operator is not None:
        return _operator_obstacle(node)
    if node.kind in _OBSTACLES:
        return _OBSTACLES[node.kind](node)
    if not node.has_gradient or node.kind in _GRADIENTS:
        return None
    if node.kind in (prim.AUTOGRAD_ADD, prim.GRAD_OR_ZERO):
        return None  # they become operators once it is known what is undefined
    return "it is not known how"


def _obstacle_in_block(node: Node) -> str | None:
    reasons = (obstacle(inner) for inner in node.blocks[0].nodes())
    return next((reason for reason in reasons if reason is not None), None)


def _obstacle_once(node: Node) -> str | None:
    grads = node._inputs[: node.attributes["grads"]]
    recorded = any(value.requires_grad for value in grads)
    return "a backward is marked with once_differentiable" if recorded else None


_OBSTACLES: dict[str, Obstacle] = {
    prim.GRAD_OF: _obstacle_in_block,
    prim.DIFFERENTIABLE_GRAPH: _obstacle_in_block,
    prim.ONCE_DIFFERENTIABLE: _obstacle_once,
}


def _operator_obstacle(node: Node) -> str | None:
    if node.is_inplace:
        return "it writes in place"
    if not any(value.requires_grad for value in differentiable_inputs(node)):
        return None
    try:
        rule_graph(node, _needs(node))
    except NotDifferentiable as error:
        return str(error)
    return None


def insert_gradient(
    node: Node,
    gradient: Callable[[Value], Value],
    sizes: Sizes,
    once: bool = False,
    policy: Policy | None = None,
) -> Gradients | None:
    """Insert the GradOf of a node at the insertion point; `gradient` gives those of its outputs,
    `once` is as for `rule_graph`, `policy` says what loops may compute again then.

    Returns the gradients of the inputs, where they exist.
    """
    if not node.has_gradient:
        return None
    rule = None
    wanted = list(range(len(node._outputs)))
    if node.operator is not None and not node.is_inplace:
        if not any(value.requires_grad for value in differentiable_inputs(node)):
            return None
        try:
            rule = rule_graph(node, _needs(node), once)
        except NotDifferentiable as error:
            raise _refusal(node, str(error)) from None
        wanted = differentiable_outputs(node)
    elif (reason := obstacle(node)) is not None:
        raise _refusal(node, reason)
    graph = node.graph
    grads = {i: gradient(node._outputs[i]) for i in wanted}
    linear = graph.create(prim.GRAD_OF, grads.values(), (), attributes={"name": node.kind})
    graph.insert_node(linear)
    block = linear.add_block()
    outer, graph.insert_point = graph.insert_point, block.return_node
    try:
        if rule is not None:
            results = _operator_gradient(node, rule, grads, sizes)
        elif once and node.kind in _ONCE:
            results = _ONCE[node.kind](node, grads, policy)
        else:
            results = _GRADIENTS[node.kind](node, grads)
    finally:
        graph.insert_point = outer
    out: Gradients = []
    for value in results:
        if value is None:
            out.append(None)
            continue
        block.register_output(value)
        out.append(linear.add_output(value.type))
    return out


def _needs(node: Node) -> tuple[bool, ...]:
    return tuple([value.requires_grad for value in node._inputs])


def _refusal(node: Node, reason: str) -> NotDifferentiable:
    line = repr(node).split("\n")[0].strip()
    return NotDifferentiable(
        f"differentiation of {node.kind} is not supported, or it is missing necessary type "
        f"information: {reason}\nin {line}"
    )


class Sizes:
    """Sizes of values of the forward graph, computed there once they are asked for."""

    def __init__(self) -> None:
        self.known: dict[Value, Value] = {}

    def of(self, value: Value) -> Value:
        """A `prim::size` right after the definition of a value."""
        if value not in self.known:
            graph = value.graph
            size = graph.create(prim.SIZE, [value], [ListType(INT)])
            size.insert_after(value.node)
            self.known[value] = size.output
        return self.known[value]

    def to_fit(self, value: Value, result: Value) -> Value:
        """The size of `value` if it is not that of `result`, of whose node it is an input."""
        graph = value.graph
        pair = [self.of(value), self.of(result)]
        node = graph.create(prim.SIZE_IF_NOT_EQUAL, pair, [OptionalType(ListType(INT))])
        node.insert_after(pair[1].node)
        return node.output


def _operator_gradient(
    node: Node, rule: RuleGraph, grads: dict[int, Value], sizes: Sizes
) -> Sequence[Value | None]:
    graph = node.graph
    if len(grads) > 1:
        grads = _defined(node, grads)
    inputs = []
    for source in rule.sources:
        i = source.number
        if source.kind == "grad":
            inputs.append(grads[i])
        elif source.kind == "input":
            inputs.append(node._inputs[i])
        elif source.kind == "output":
            inputs.append(node._outputs[i])
        elif source.kind == "fit":
            inputs.append(sizes.to_fit(node._inputs[i], node._outputs[0]))
        else:
            values = node._inputs if source.kind == "input_size" else node._outputs
            inputs.append(sizes.of(values[i]))
    results = graph.insert_graph(rule.graph, inputs)
    return [None if i is None else results[i] for i in rule.results]


def size_of(value: Value) -> Any:
    """The size of a value if it is known, else a `prim::size` of it at the insertion point."""
    shape = value.type.concrete_shape if isinstance(value.type, TensorType) else None
    if shape is not None:
        return shape
    size = value.graph.insert(prim.SIZE, value)
    size.type = ListType(INT)
    return size


def or_zero(value: Value, g: Value) -> Value:
    """The gradient of a value, or zeros where it is undefined."""
    t = value.type
    assert isinstance(t, TensorType)
    out: Value = value.graph.insert(prim.GRAD_OR_ZERO, g, size_of(value), t.dtype)
    out.type = without_grad(t)
    return out


def _defined(node: Node, grads: dict[int, Value]) -> dict[int, Value]:
    """Gradients of outputs with zeros for those that are undefined while others are not."""
    found = {}
    for i, g in grads.items():
        t = node._outputs[i].type
        assert isinstance(t, TensorType)
        if t.concrete_shape is None:
            raise NotDifferentiable(f"{node.kind}: the shape of output {i} is not known")
        found[i] = or_zero(node._outputs[i], g)
    return found


# Primitives ---------------------------------------------------------------------------------------


def _same(node: Node, grads: dict[int, Value]) -> Gradients:
    return [grads[0], *[None] * (len(node._inputs) - 1)]


def _joined(node: Node, grads: dict[int, Value]) -> Gradients:
    """The gradients of the parts, joined."""
    parts = list(_defined(node, grads).values())
    shapes = [part.type.shape for part in parts]  # type: ignore[attr-defined]
    dim = node.attributes["dim"] % len(shapes[0])
    sizes = tuple([shape[dim] for shape in shapes])
    g = node.graph.insert("wengert::_cat", parts, dim, sizes)
    t = node._inputs[0].type
    if isinstance(t, TensorType):
        g.type = t.with_requires_grad(None)
    return [g]


def _sum_to_size(node: Node, grads: dict[int, Value]) -> Gradients:
    """What was summed is expanded again."""
    graph = node.graph
    x = node._inputs[0]
    g = graph.insert("wengert::expand", grads[0], size_of(x))
    if isinstance(x.type, TensorType):
        g.type = x.type.with_requires_grad(None)
    return [g, *[None] * (len(node._inputs) - 1)]


def _custom_function(node: Node, grads: dict[int, Value]) -> Gradients:
    """The gradients of the inputs: the second block, at the insertion point."""
    graph = node.graph
    given = [or_zero(node._outputs[i], grads[i]) for i in node.attributes["differentiable"]]
    block = node.blocks[1]
    values = dict(zip(block.inputs, [*node._inputs, *node._outputs, *given], strict=True))
    for inner in block.nodes():
        graph.insert_node(graph.create_clone(inner, values))
    return by_input(node, [values[value] for value in block.outputs])


def register_gradient(
    kind: str, gradient: NodeGradient, obstacle: Obstacle, once: OnceGradient
) -> None:
    """Make known how nodes of a kind that is no operator are differentiated.

    `gradient` gets a node and the gradients of its outputs by number, and inserts those of its
    inputs at the insertion point; `once` does so where they are not differentiated again, and may
    change the node; `obstacle` says why that is not possible for a node.
    """
    _GRADIENTS[kind] = gradient
    _ONCE[kind] = once
    _OBSTACLES[kind] = obstacle


_ONCE: dict[str, OnceGradient] = {}
_GRADIENTS: dict[str, NodeGradient] = {
    prim.PROFILE: _same,
    prim.PROFILE_IVALUE: _same,
    prim.CONSTANT_CHUNK: _joined,
    prim.GRAD_SUM_TO_SIZE: _sum_to_size,
    prim.FUNCTION: _custom_function,
}
