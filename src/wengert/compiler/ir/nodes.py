"""Values, and nodes that compute them: what a graph consists of.

Every value is defined once, by a node or as a parameter of a block, and knows its uses. Nodes of a
block stand in an order in which they can run. A node may have blocks inside, which see the values
around them.

A node of an operator has one entry per schema argument in `arguments`: a literal, or `HOLE` where
the next of the node's inputs goes. So numbers, sizes and dtypes need no nodes of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ...dispatch.declaration import Declaration
from . import primitives as prim
from .base import GraphError, text_of
from .blocks import Block
from .literals import HOLE, fill
from .types import TENSOR, ListType, TensorType, Type

if TYPE_CHECKING:
    from .graph import Graph


class Use(NamedTuple):
    """One use of a value: as the input number `offset` of `user`."""

    user: Node
    offset: int


class Value:
    """What a node computes or a block is given; `name` is a wish for the printed text."""

    __slots__ = ("node", "index", "type", "name", "_uses")

    def __init__(self, node: Node, index: int, type: Type, name: str | None = None) -> None:
        self.node = node
        self.index = index
        self.type = type
        self.name = name
        self._uses: dict[Use, None] = {}

    @property
    def graph(self) -> Graph:
        """The graph it belongs to."""
        return self.node.graph

    @property
    def uses(self) -> list[Use]:
        """All uses, oldest first; outputs of a block are uses by its return node."""
        return list(self._uses)

    @property
    def is_used(self) -> bool:
        """Whether a node or a result of a block uses it."""
        return bool(self._uses)

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient is wanted, which an unknown answer does not exclude."""
        t = self.type
        if type(t) is not TensorType:
            return isinstance(t, ListType) and isinstance(t.element, TensorType)
        if t.requires_grad is None:
            return t.can_require_grad
        return t.requires_grad

    def copy_metadata(self, other: Value) -> Value:
        """Take over type and name of another value."""
        self.type = other.type
        self.name = other.name
        return self

    def replace_all_uses_with(self, other: Value) -> None:
        """Use `other` wherever this value is used now."""
        if other is self:
            return
        if other.graph is not self.graph:
            raise GraphError("a value can be replaced only by a value of its own graph")
        uses, self._uses = self._uses, {}
        for use in uses:
            use.user._inputs[use.offset] = other
            other._uses[use] = None

    def __repr__(self) -> str:
        return text_of(self)


class Node:
    """One step of a graph. Made by `Graph.create`, placed by insertion, removed by `destroy`."""

    __slots__ = (
        "graph", "block", "kind", "operator", "arguments", "attributes", "source", "blocks",
        "previous", "next", "position", "_inputs", "_outputs",
    )  # fmt: skip

    def __init__(
        self,
        graph: Graph,
        kind: str,
        inputs: Iterable[Value] = (),
        types: Iterable[Type] = (),
        arguments: tuple | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> None:
        self.graph = graph
        self.block: Block | None = None
        self.kind = kind
        self.operator: Any = prim.operator_of(kind)
        self.arguments = arguments
        self.attributes = attributes if attributes is not None else {}
        self.source: str | None = None
        self.blocks: list[Block] = []
        self.previous: Node | None = None
        self.next: Node | None = None
        self.position: float = 0
        self._inputs: list[Value] = []
        self._outputs: list[Value] = [Value(self, i, t) for i, t in enumerate(types)]
        for value in inputs:
            self.add_input(value)

    # What it is ----------------------------------------------------------------------------

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values it uses, in order."""
        return tuple(self._inputs)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The values it defines."""
        return tuple(self._outputs)

    @property
    def output(self) -> Value:
        """The only output."""
        if len(self._outputs) != 1:
            raise GraphError(f"{self.kind} has {len(self._outputs)} outputs, not one")
        return self._outputs[0]

    @property
    def schema(self) -> Any:
        """The schema of the operator or primitive, None if it takes any number of values."""
        if self.operator is not None:
            return self.operator.schema
        return None if self.primitive is None else self.primitive.schema

    @property
    def primitive(self) -> prim.Primitive | None:
        """What is declared of its kind, None for an operator."""
        return None if self.operator is not None else prim.PRIMITIVES.get(self.kind)

    @property
    def is_operator(self) -> bool:
        """Whether it calls an operator, and not a primitive of graphs."""
        return self.operator is not None

    @property
    def is_inplace(self) -> bool:
        """Whether it writes into its first argument."""
        return self.operator is not None and self.operator.mutates

    @property
    def is_view(self) -> bool:
        """Whether its outputs share memory with its first input."""
        return getattr(self.operator, "is_view", False) and not self.operator.mutates

    @property
    def has_effects(self) -> bool:
        """Whether it must run exactly once and in its place, whoever uses the result."""
        if self.operator is not None:
            return self.is_inplace or bool(getattr(self.operator, "mutated", ()))
        primitive = self.primitive
        if primitive is None or primitive.effects:
            return True
        return any(node.has_effects for block in self.blocks for node in block.nodes())

    @property
    def has_gradient(self) -> bool:
        """Whether gradients may pass through it, by its kind."""
        return self.primitive is None or self.primitive.has_gradient

    @property
    def must_stay(self) -> bool:
        """Whether it may not be left out, whoever uses the result."""
        primitive = self.primitive
        if self.has_effects or (primitive is not None and primitive.stays):
            return True
        return any(node.must_stay for block in self.blocks for node in block.nodes())

    def fact(self, name: str) -> Any:
        """What the declaration of its operator says under a name of `declare.Facts`, else None."""
        operator = self.operator
        return operator.facts.get(name) if isinstance(operator, Declaration) else None

    def argument(self, name: str) -> Any:
        """An argument by its name: a literal, a Value, or a tuple with Values in it."""
        position = self.schema.names[name]
        return self.bound_arguments()[position]

    def bound_arguments(self) -> tuple:
        """All arguments, with the inputs in their places."""
        return fill(self.arguments if self.arguments is not None else (), self._inputs)

    def is_before(self, other: Node) -> bool:
        """Whether it runs before `other`; for nested nodes, the nodes around them count."""
        mine, its = _aligned(self, other)
        if mine is its:
            raise GraphError("of a node and a node inside it, neither comes first")
        return mine.position < its.position

    def is_after(self, other: Node) -> bool:
        """Whether it runs after `other`."""
        return other.is_before(self)

    # Inputs and outputs --------------------------------------------------------------------

    def add_input(self, value: Value) -> Value:
        """Use `value` as a further input."""
        if value.node.graph is not self.graph:
            raise GraphError(f"{self.kind}: an input belongs to another graph")
        value._uses[Use(self, len(self._inputs))] = None
        self._inputs.append(value)
        return value

    def replace_input(self, index: int, value: Value) -> Value:
        """Use `value` in place of one input, which is returned."""
        if value.node.graph is not self.graph:
            raise GraphError(f"{self.kind}: an input belongs to another graph")
        use = Use(self, index)
        old = self._inputs[index]
        del old._uses[use]
        self._inputs[index] = value
        value._uses[use] = None
        return old

    def replace_input_with(self, old: Value, new: Value) -> None:
        """Use `new` in place of `old`, however often it is an input."""
        for i, value in enumerate(self._inputs):
            if value is old:
                self.replace_input(i, new)

    def remove_input(self, index: int) -> None:
        """Let go of one input; the later ones move up."""
        rest = self._inputs[index + 1 :]
        self._drop_inputs(index)
        for value in rest:
            self.add_input(value)

    def remove_all_inputs(self) -> None:
        """Let go of all inputs."""
        self._drop_inputs(0)

    def _drop_inputs(self, start: int) -> None:
        for i in range(start, len(self._inputs)):
            del self._inputs[i]._uses[Use(self, i)]
        del self._inputs[start:]

    def add_output(self, type: Type = TENSOR, name: str | None = None) -> Value:
        """A further output."""
        value = Value(self, len(self._outputs), type, name)
        self._outputs.append(value)
        return value

    def erase_output(self, index: int) -> None:
        """Remove an output that nobody uses."""
        if self._outputs[index]._uses:
            raise GraphError(f"{self.kind}: output {index} is still used")
        del self._outputs[index]
        for i, value in enumerate(self._outputs):
            value.index = i

    def add_block(self) -> Block:
        """A further block inside the node."""
        block = Block(self.graph, self)
        self.blocks.append(block)
        return block

    # Its place -----------------------------------------------------------------------------

    def insert_before(self, other: Node) -> Node:
        """Place a node that has no place yet before `other`."""
        if self.block is not None:
            raise GraphError(f"{self.kind}: the node is in a block already, move it")
        if other.block is None or other.graph is not self.graph or other.kind == prim.PARAM:
            raise GraphError(f"{self.kind}: this is no place in the graph of the node")
        before = other.previous
        self.block = other.block
        self.previous, self.next = before, other
        before.next = other.previous = self  # type: ignore[union-attr]
        self.block._place(self)
        return self

    def insert_after(self, other: Node) -> Node:
        """Place a node that has no place yet after `other`."""
        if other.next is None:
            raise GraphError(f"{self.kind}: nothing comes after the outputs of a block")
        return self.insert_before(other.next)

    def move_before(self, other: Node) -> None:
        """Move to before `other`, also across blocks; order of definitions is the caller's care."""
        if other is not self:
            self._unlink()
            self.insert_before(other)

    def move_after(self, other: Node) -> None:
        """Move to after `other`."""
        if other is not self:
            self._unlink()
            self.insert_after(other)

    def _unlink(self) -> None:
        if self.block is None:
            raise GraphError(f"{self.kind}: the node is in no block")
        self.previous.next = self.next  # type: ignore[union-attr]
        self.next.previous = self.previous  # type: ignore[union-attr]
        self.block = self.previous = self.next = None

    def destroy(self) -> None:
        """Remove the node with its blocks; nobody may use its outputs."""
        for i, value in enumerate(self._outputs):
            if value._uses:
                raise GraphError(f"{self.kind}: output {i} of a node to be removed is still used")
        for block in self.blocks:
            block.clear()
        self.remove_all_inputs()
        if self.block is not None:
            if self.graph.insert_point is self:
                self.graph.insert_point = self.next  # type: ignore[assignment]
            self._unlink()
        # Its outputs know it: without this only the cyclic collector would free them.
        self._outputs = []

    def __repr__(self) -> str:
        return text_of(self)


def split_arguments(arguments: Iterable[Any]) -> tuple[tuple, list[Value]]:
    """The converse of `fill`: literals with holes, and the values that go there."""
    inputs: list[Value] = []
    return tuple([_literal(item, inputs) for item in arguments]), inputs


def _literal(item: Any, inputs: list[Value]) -> Any:
    """An argument with holes for values, which are added to the list."""
    if isinstance(item, Value):
        inputs.append(item)
        return HOLE
    if isinstance(item, (tuple, list)):
        return tuple([_literal(part, inputs) for part in item])
    return item


def _aligned(a: Node, b: Node) -> tuple[Node, Node]:
    """The nodes of the innermost common block that are, or contain, two nodes."""
    paths = []
    for node in (a, b):
        path = [node]
        while path[-1].block is not None and path[-1].block.owner is not None:
            path.append(path[-1].block.owner)
        if path[-1].block is None:
            raise GraphError(f"{node.kind}: the node is in no block")
        paths.append(path[::-1])
    for mine, its in zip(*paths, strict=False):
        if mine is not its:
            if mine.block is not its.block:
                break
            return mine, its
    else:
        return paths[0][0], paths[0][0]
    raise GraphError("the nodes are in different blocks of one node, neither comes first")
