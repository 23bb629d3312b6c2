"""Checks that a graph is well formed, and says where it is not."""

from __future__ import annotations

from typing import Any

from . import primitives as prim
from .base import problems_of
from .blocks import Block
from .graph import Graph, output_count
from .literals import HOLE
from .nodes import Node, Use, Value
from .types import ANY, NONE, NUMBER, ListType, OptionalType, TensorType, Type, of_schema


@problems_of.register
def _graph_problems(graph: Graph) -> list[str]:
    return _Verifier(graph).run()


class _Verifier:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.problems: list[str] = []
        self.names: dict[Value, str] | None = None

    def run(self) -> list[str]:
        self.block(self.graph.block, set(), None)
        return self.problems

    def complain(self, node: Node, message: str) -> None:
        where = repr(node).split("\n")[0].strip()
        if node.kind in (prim.PARAM, prim.RETURN):
            owner = node.block.owner if node.block is not None else None
            inside = "the graph" if owner is None else f"a block of `{_line(owner)}`"
            where = f"{'parameters' if node.kind == prim.PARAM else 'outputs'} of {inside}"
        else:
            where = f"`{where}`"
        self.problems.append(f"{where}: {message}")

    def name(self, value: Value) -> str:
        if self.names is None:
            self.names = self.graph.block.names()
        return "%" + self.names.get(value, "?")

    def block(self, block: Block, defined: set[Value], owner: Node | None) -> None:
        if block.graph is not self.graph or block.owner is not owner:
            self.complain(block.return_node, "the block belongs to another graph or node")
        inner: list[Value] = []
        previous = block.param_node
        for node in (block.param_node, *block.nodes(), block.return_node):
            if node.block is not block or node.graph is not self.graph:
                self.complain(node, "the node belongs to another block or graph")
            if node is not block.param_node:
                if node.previous is not previous or previous.position >= node.position:
                    self.complain(node, "the order of the nodes is broken")
                previous = node
            self.inputs(node, defined)
            if node.kind not in (prim.PARAM, prim.RETURN):
                self.shape_of(node)
            for each in node.blocks:
                self.block(each, defined, node)
            for i, value in enumerate(node._outputs):
                self.output(node, i, value)
                defined.add(value)
                inner.append(value)
        defined.difference_update(inner)

    def inputs(self, node: Node, defined: set[Value]) -> None:
        for i, value in enumerate(node._inputs):
            if value.node.graph is not self.graph:
                self.complain(node, f"input {i} belongs to another graph")
            elif value not in defined:
                self.complain(node, f"input {i}, {self.name(value)}, is not defined before it")
            if Use(node, i) not in value._uses:
                self.complain(node, f"{self.name(value)} does not know that it is input {i}")

    def output(self, node: Node, index: int, value: Value) -> None:
        if value.node is not node or value.index != index:
            self.complain(node, f"output {index} says that it is the output of another node")
        for use in value._uses:
            inputs = use.user._inputs
            if use.offset >= len(inputs) or inputs[use.offset] is not value:
                self.complain(node, f"{self.name(value)} lists a use that does not exist")
            elif use.user.block is None:
                self.complain(node, f"{self.name(value)} is used by a node outside of the graph")

    def shape_of(self, node: Node) -> None:
        """Numbers of arguments, outputs and blocks, as the kind wants them."""
        primitive = node.primitive
        if node.operator is None:
            if primitive is None:
                self.complain(node, "no such primitive is declared")
                return
            for name in primitive.attributes:
                if name not in node.attributes:
                    self.complain(node, f"the attribute '{name}' is missing")
            if len(node.blocks) != primitive.blocks:
                self.complain(node, f"has {len(node.blocks)} blocks, not {primitive.blocks}")
                return
        if node.schema is not None:
            self.arguments(node)
        elif node.arguments is not None:
            self.complain(node, "has arguments but no schema")
        check = _CHECKS.get(node.kind)
        problem = check(node) if check is not None else None
        if problem:
            self.complain(node, problem)

    def arguments(self, node: Node) -> None:
        schema = node.schema
        if node.arguments is None or len(node.arguments) != len(schema.arguments):
            self.complain(node, f"the arguments do not fit {schema}")
            return
        if _holes(node.arguments) != len(node._inputs):
            self.complain(
                node, f"{_holes(node.arguments)} arguments are values, {len(node._inputs)} given"
            )
            return
        count = output_count(schema)
        if count is not None and count != len(node._outputs):
            self.complain(node, f"has {len(node._outputs)} outputs, not {count}")
        for argument, value in zip(schema.arguments, node.bound_arguments(), strict=True):
            if isinstance(value, Value) and not _fits(of_schema(argument.type), value.type):
                self.complain(
                    node,
                    f"argument '{argument.name}' is a {argument.type}, not {value.type}",
                )


def _line(node: Node) -> str:
    return repr(node).split("\n")[0].strip()


def _holes(item: Any) -> int:
    if item is HOLE:
        return 1
    return sum(map(_holes, item)) if type(item) is tuple else 0


def _fits(wanted: Type, given: Type) -> bool:
    """Whether a value may be given for an argument, as far as its type tells."""
    if given is ANY or wanted is ANY or wanted.accepts(given):
        return True
    if isinstance(wanted, OptionalType):
        return given is NONE or _fits(wanted.element, given)
    if isinstance(given, OptionalType):
        return _fits(wanted, given.element)
    if isinstance(wanted, ListType):
        return isinstance(given, ListType) and _fits(wanted.element, given.element)
    return isinstance(wanted, TensorType) and NUMBER.accepts(given)


# What single kinds want ---------------------------------------------------------------------------


def _counts(node: Node, inputs: int | None, outputs: int | None) -> str | None:
    if inputs is not None and len(node._inputs) != inputs:
        return f"has {len(node._inputs)} inputs, not {inputs}"
    if outputs is not None and len(node._outputs) != outputs:
        return f"has {len(node._outputs)} outputs, not {outputs}"
    return None


def _check_returns(node: Node) -> str | None:
    """Every block returns what the node does."""
    for block in node.blocks:
        if len(block.outputs) != len(node._outputs):
            return f"a block returns {len(block.outputs)} values for {len(node._outputs)} outputs"
    return None


def _check_call(node: Node) -> str | None:
    """The block is a function of the inputs."""
    if len(node.blocks[0].inputs) != len(node._inputs):
        return f"the block takes {len(node.blocks[0].inputs)} values, {len(node._inputs)} given"
    return _check_returns(node)


def _check_cond(node: Node) -> str | None:
    if not node._inputs:
        return "has no condition"
    for block in node.blocks:
        if len(block.inputs) != len(node._inputs) - 1:
            return f"a block takes {len(block.inputs)} values, {len(node._inputs) - 1} given"
    return _check_returns(node)


def _check_while(node: Node) -> str | None:
    condition, body = node.blocks
    for block in node.blocks:
        if len(block.inputs) != len(node._inputs):
            return f"a block takes {len(block.inputs)} values, {len(node._inputs)} given"
    if len(condition.outputs) != 1:
        return "the condition returns more or less than one value"
    if len(node._outputs) > len(node._inputs):
        return "has more outputs than inputs"
    if len(body.outputs) != len(node._outputs):
        return f"the body returns {len(body.outputs)} values for {len(node._outputs)} outputs"
    return None


def _check_scan(node: Node) -> str | None:
    carried, mapped = node.attributes["carried"], node.attributes["mapped"]
    if carried + mapped > len(node._inputs) or mapped < 1:
        return f"cannot carry {carried} and map {mapped} of {len(node._inputs)} inputs"
    if carried > len(node._outputs):
        return f"carries {carried} values but has {len(node._outputs)} outputs"
    return _check_call(node)


def _check_map(node: Node) -> str | None:
    mapped = node.attributes["mapped"]
    if not 1 <= mapped <= len(node._inputs):
        return f"cannot map {mapped} of {len(node._inputs)} inputs"
    return _check_call(node)


def _check_function(node: Node) -> str | None:
    forward, backward = node.blocks
    differentiable, gradients = node.attributes["differentiable"], node.attributes["gradients"]
    if not all(0 <= i < len(node._outputs) for i in differentiable):
        return f"not all of {differentiable} are outputs"
    if not all(0 <= i < len(node._inputs) for i in gradients):
        return f"not all of {gradients} are inputs"
    if len(forward.inputs) != len(node._inputs):
        return f"the first block takes {len(forward.inputs)} values, {len(node._inputs)} given"
    if len(forward.outputs) != len(node._outputs):
        return f"a block returns {len(forward.outputs)} values for {len(node._outputs)} outputs"
    count = len(node._inputs) + len(node._outputs) + len(differentiable)
    if len(backward.inputs) != count:
        return f"the second block takes {len(backward.inputs)} values, not {count}"
    if len(backward.outputs) != len(gradients):
        return f"the second block returns {len(backward.outputs)} values, not {len(gradients)}"
    return None


def _check_once(node: Node) -> str | None:
    return _counts(node, node.attributes["grads"] + len(node._outputs), None)


_CHECKS = {
    prim.CONSTANT: lambda node: _counts(node, 0, 1),
    prim.LIST_CONSTRUCT: lambda node: _counts(node, None, 1),
    prim.TUPLE_CONSTRUCT: lambda node: _counts(node, None, 1),
    prim.LIST_UNPACK: lambda node: _counts(node, 1, None),
    prim.TUPLE_UNPACK: lambda node: _counts(node, 1, None),
    prim.AUTOGRAD_ZERO: lambda node: _counts(node, 0, 1),
    prim.AUTOGRAD_ADD: lambda node: _counts(node, 2, 1),
    prim.PROFILE: lambda node: _counts(node, 1, 1),
    prim.PROFILE_IVALUE: lambda node: _counts(node, 1, 1),
    prim.CONSTANT_CHUNK: lambda node: _counts(node, 1, None),
    prim.GRAD_OF: _check_returns,
    prim.DIFFERENTIABLE_GRAPH: _check_call,
    prim.COND: _check_cond,
    prim.WHILE: _check_while,
    prim.ROUNDS: _check_while,
    prim.SCAN: _check_scan,
    prim.MAP: _check_map,
    prim.FUNCTION: _check_function,
    prim.ONCE_DIFFERENTIABLE: _check_once,
}
