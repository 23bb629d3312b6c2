"""The graph: a function as a list of nodes, with what is needed to build, copy and check it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...dispatch.schema import REQUIRED, Schema
from . import primitives as prim
from .base import GraphError, problems_of, text_of
from .blocks import Block, look_up
from .nodes import Node, Value, split_arguments
from .types import ANY, TENSOR, Type, type_of


class Graph:
    """A function in static single assignment form. `insert_point` is where new nodes go."""

    def __init__(self, block: Block | None = None) -> None:
        """An empty graph, or the graph of a block, which must use nothing from outside."""
        if block is not None:
            block.owner = None
            for each in _all_blocks(block):
                each.graph = self
                for node in (each.param_node, *each.nodes(), each.return_node):
                    node.graph = self
        self.block = Block(self) if block is None else block
        self.insert_point: Node = self.block.return_node
        self.owner: object = None

    # Reading -------------------------------------------------------------------------------

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The parameters of the graph."""
        return self.block.inputs

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The results of the graph."""
        return self.block.outputs

    def nodes(self) -> Iterator[Node]:
        """The nodes of the outermost block in order."""
        return self.block.nodes()

    def all_nodes(self) -> Iterator[Node]:
        """All nodes, inner ones after the node they are in."""
        return self.block.all_nodes()

    def value(self, name: str) -> Value:
        """The value that is printed under a name."""
        for value, text in self.block.names().items():
            if text == name.removeprefix("%"):
                return value
        raise KeyError(f"the graph has no value %{name.removeprefix('%')}")

    def lint(self) -> None:
        """Raise a GraphError that lists everything wrong with the graph, and where."""
        problems = problems_of(self)
        if problems:
            head = "the graph is not well formed:"
            raise GraphError("\n".join([head, *(f"  {problem}" for problem in problems)]))

    # Building ------------------------------------------------------------------------------

    def add_input(self, type: Type = TENSOR, name: str | None = None) -> Value:
        """A further parameter of the graph."""
        return self.block.add_input(type, name)

    def register_output(self, value: Value) -> int:
        """A further result of the graph; its place among the outputs."""
        return self.block.register_output(value)

    def create(
        self,
        kind: str,
        inputs: Iterable[Value] = (),
        types: Iterable[Type] = (TENSOR,),
        *,
        arguments: tuple | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> Node:
        """A node that has no place yet. For kinds with a schema, `arguments` says what goes where;
        without it all inputs are arguments in order."""
        node = Node(self, kind, inputs, types, arguments, attributes)
        if arguments is None and node.schema is not None:
            node.arguments = bind(kind, node.schema, node._inputs, {})[0]
        return node

    def insert_node(self, node: Node) -> Node:
        """Place a node at the insertion point."""
        return node.insert_before(self.insert_point)

    def insert(self, kind: str, *args: Any, outputs: int | None = None, **kwargs: Any) -> Any:
        """Insert a call; literals and Values may be mixed. Returns its output, or all of several.

        The number of outputs follows from the schema; an operator that returns a list needs it.
        """
        operator = prim.operator_of(kind)
        primitive = prim.PRIMITIVES.get(kind)
        if operator is None and primitive is None:
            raise LookupError(f"{kind}: no such primitive is declared")
        schema = operator.schema if operator is not None else primitive.schema  # type: ignore[union-attr]
        arguments = None
        inputs: Iterable[Value] = args
        if schema is not None:
            arguments, inputs = bind(kind, schema, args, kwargs)
            kwargs = {}
        count = outputs if outputs is not None else (1 if schema is None else output_count(schema))
        if count is None:
            raise TypeError(f"{kind} returns a list: say how many outputs= there are")
        types = [TENSOR] * count
        if schema is not None and schema.returns == ("int[]",):
            types = [ANY]  # type: ignore[list-item]
        node = self.create(kind, inputs, types, arguments=arguments, attributes=kwargs or None)
        self.insert_node(node)
        return node.output if count == 1 else node.outputs

    def constant(self, value: Any) -> Value:
        """A constant at the insertion point."""
        node = self.create(
            prim.CONSTANT, (), (type_of(value),), attributes={"value": value}
        )
        return self.insert_node(node).output

    @contextlib.contextmanager
    def inserting_before(self, node: Node) -> Iterator[None]:
        """Insert new nodes before `node`, within a ``with`` block."""
        previous, self.insert_point = self.insert_point, node
        try:
            yield
        finally:
            self.insert_point = previous

    def inserting_after(self, node: Node) -> contextlib.AbstractContextManager[None]:
        """Insert new nodes after `node`, within a ``with`` block."""
        if node.next is None:
            raise GraphError("nothing comes after the outputs of a block")
        return self.inserting_before(node.next)

    def inserting_at_end(self, block: Block) -> contextlib.AbstractContextManager[None]:
        """Insert new nodes at the end of `block`, within a ``with`` block."""
        return self.inserting_before(block.return_node)

    # Copies --------------------------------------------------------------------------------

    def create_clone(
        self,
        node: Node,
        values: dict[Value, Value],
        outer: Callable[[Value], Value] | None = None,
    ) -> Node:
        """A copy of a node of this or another graph, its inputs looked up in `values`.

        The map is extended by the outputs; values it does not know are given to `outer`.
        """
        copy = Node(
            self,
            node.kind,
            [look_up(value, values, outer) for value in node._inputs],
            (),
            node.arguments,
            dict(node.attributes) if node.attributes else None,
        )
        copy.source = node.source
        for value in node._outputs:
            fresh = Value(copy, value.index, value.type, value.name)
            copy._outputs.append(fresh)
            values[value] = fresh
        for block in node.blocks:
            copy.add_block().clone_from(block, values, outer)
        return copy

    def copy(self) -> Graph:
        """An independent graph with the same text."""
        fresh = Graph()
        fresh.block.clone_from(self.block)
        return fresh

    def insert_graph(self, callee: Graph, inputs: Sequence[Value]) -> list[Value]:
        """Insert the nodes of another graph, called with `inputs`; returns what stands for its
        outputs."""
        if len(inputs) != len(callee.inputs):
            raise GraphError(
                f"a graph of {len(callee.inputs)} inputs cannot be called with {len(inputs)}"
            )
        values = dict(zip(callee.inputs, inputs, strict=True))
        for node in callee.nodes():
            self.insert_node(self.create_clone(node, values))
        return [values[value] for value in callee.outputs]

    # Ownership -----------------------------------------------------------------------------

    def claim(self, owner: object) -> Graph:
        """Let `owner` hold the graph: from now on nobody may take it apart."""
        if self.owner is not None and self.owner is not owner:
            raise GraphError(f"the graph belongs to {self.owner!r} already")
        self.owner = owner
        return self

    def release(self, owner: object) -> Graph:
        """Undo `claim`."""
        if self.owner is not owner:
            raise GraphError(f"the graph belongs to {self.owner!r}, not to {owner!r}")
        self.owner = None
        return self

    def take(self, purpose: str) -> Graph:
        """Move the contents into a new graph; this one is empty and unusable afterwards."""
        if self.owner is not None:
            raise GraphError(
                f"{purpose} will mutate and destroy the graph, so it requires that nobody else "
                f"uses it, but it belongs to {self.owner!r}; pass graph.copy()"
            )
        fresh = Graph(self.block)
        self.__dict__ = {"taken_by": purpose}
        return fresh

    def __getattr__(self, name: str) -> Any:
        if name in ("block", "insert_point", "owner") and "taken_by" in self.__dict__:
            raise GraphError(f"the graph was given to {self.__dict__['taken_by']} and is gone")
        raise AttributeError(f"'Graph' object has no attribute {name!r}")

    def __str__(self) -> str:
        return text_of(self)

    __repr__ = __str__


def _all_blocks(block: Block) -> Iterator[Block]:
    yield block
    for node in block.nodes():
        for inner in node.blocks:
            yield from _all_blocks(inner)


def block_graph(block: Block) -> Graph:
    """A copy of a block as a graph. What it uses from outside is computed inside, which is
    possible for constants and what follows from them."""
    graph = Graph()
    values: dict[Value, Value] = {}

    def inside(value: Value) -> Value:
        if value not in values:
            if value.node.kind == prim.PARAM or value.node.has_effects:
                raise GraphError(f"a block uses {value!r} from outside and is no graph of its own")
            graph.block.append(graph.create_clone(value.node, values, inside))
        return values[value]

    graph.block.clone_from(block, values, inside)
    return graph


def output_count(schema: Schema) -> int | None:
    """How many outputs a call has; None where that depends on the arguments."""
    if len(schema.returns) == 1 and schema.returns[0].startswith("Tensor") and (
        schema.returns[0].endswith("[]")
    ):
        return None
    return len(schema.returns)


def bind(
    kind: str, schema: Schema, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple, list[Value]]:
    """Arguments in schema order with defaults filled in, split into literals and inputs."""
    arguments = schema.arguments
    if len(args) > len(arguments):
        raise TypeError(f"{kind} takes {len(arguments)} arguments, not {len(args)}: {schema}")
    bound: list[Any] = list(args)
    left = dict(kwargs)
    for argument in arguments[len(args) :]:
        value = left.pop(argument.name, argument.default)
        if value is REQUIRED:
            raise TypeError(f"{kind} needs the argument '{argument.name}': {schema}")
        bound.append(value)
    if left:
        raise TypeError(f"{kind} has no argument '{next(iter(left))}' left to give: {schema}")
    return split_arguments(bound)
