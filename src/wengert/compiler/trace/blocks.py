"""Control flow in a traced function: one node, whose blocks are the branches or bodies, traced.

What a block uses from outside becomes an input of the node and a parameter of every block. The node
is first a graph of its own, which the level calls (`apply_graph`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.arrays import LevelArray
from ...core.tensor import Tensor
from ...core.trees.pytree import TreeSpec, tree_flatten, tree_unflatten
from ..interpret.control_flow import check_alike, check_carried, check_pair
from ..ir import primitives as prim
from ..ir.graph import Graph
from ..ir.layout import shape_example
from ..ir.nodes import Node
from ..ir.types import TensorType, Type, stacked, type_of, without_grad
from .capture import CaptureLevel, record
from .refusals import TraceError, where
from .traced import TENSOR


class _Body:
    """A function traced as the block of a node, and the tensors that it got from elsewhere."""

    def __init__(self, level: BlockLevel, name: str, function: Callable, args: tuple) -> None:
        traced = self.traced = record(level.of_body(), function, args, {})
        self.arguments = len(traced.graph.inputs) - len(traced.captured)
        self.captured = traced.captured
        if traced.mutated:
            position = traced.mutated[0]
            number = position - self.arguments
            what = f"operand {position}" if number < 0 else "a tensor from outside"
            raise TraceError(
                f"{name}(): {what} is changed in place inside, which is not supported: work on a "
                f"clone() and return it; {where()}"
            )

    @property
    def types(self) -> list[Type]:
        """The types of the tensors that it returns."""
        return [without_grad(value.type) for value in self.traced.graph.outputs]

    def results(self, outputs: Sequence[Tensor]) -> Any:
        """What the function returns, with `outputs` for the tensors."""
        supply = iter(outputs)
        literals = self.traced.literals
        leaves = [next(supply) if literal is TENSOR else literal for literal in literals]
        return tree_unflatten(leaves, self.traced.out_tree)

    def fill(self, node: Node, captured: dict[int, Tensor]) -> None:
        """Make the block of a node that all `captured` tensors are given to."""
        graph = self.traced.graph
        block = node.add_block()
        values = {}
        for value in graph.inputs[: self.arguments]:
            values[value] = block.add_input(without_grad(value.type), value.name)
        given = {key: block.add_input(without_grad(type_of(t))) for key, t in captured.items()}
        for value, t in zip(graph.inputs[self.arguments :], self.captured, strict=True):
            values[value] = given[id(t)]
        block.clone_nodes(graph.block, values)
        for value in graph.outputs:
            block.register_output(values[value])


def _examples(tree: Any) -> Any:
    leaves, spec = tree_flatten(tree)
    return tree_unflatten([shape_example(t) if isinstance(t, Tensor) else t for t in leaves], spec)


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, Tensor)]


def _slices(leaves: list[Tensor], tree: TreeSpec) -> Any:
    """Examples of what a function gets that goes through tensors along the first dimension."""
    return tree_unflatten([shape_example(x, x.array.shape[1:]) for x in leaves], tree)


class BlockLevel(CaptureLevel):
    """A level at which control flow becomes a node whose blocks are the functions, traced."""

    __slots__ = ()

    def of_body(self) -> BlockLevel:
        """A level for the functions that become blocks."""
        return BlockLevel()

    def apply_graph(self, graph: Graph, tensors: Sequence[Tensor]) -> tuple:
        """Tensors for the outputs of a graph that is called with tensors of this level."""
        return self.call_graph(graph, tensors)

    def cond(
        self, pred: Tensor, true_fn: Callable, false_fn: Callable, operands: tuple
    ) -> Any:
        chosen, other = (
            _Body(self, "cond", function, _examples(operands)) for function in (true_fn, false_fn)
        )
        _check_branches(chosen, other)
        inputs = [pred, *_tensors(operands)]
        return chosen.results(self.insert_bodies(prim.COND, inputs, [chosen, other], chosen.types))

    def while_loop(self, cond_fn: Callable, body_fn: Callable, carried: tuple) -> tuple:
        condition = _Body(self, "while_loop", cond_fn, _examples(carried))
        if condition.traced.literals != [TENSOR] or not _is_flag(condition.types[0]):
            raise RuntimeError(
                "while_loop(): cond_fn must return a boolean scalar tensor or a boolean that "
                f"depends on what is carried; {where()}"
            )
        body = _Body(self, "while_loop", body_fn, _examples(carried))
        _check_carried("while_loop", "body_fn", carried, body, body.traced.out_tree)
        bodies = [condition, body]
        return body.results(
            self.insert_bodies(prim.WHILE, _tensors(carried), bodies, body.types)
        )

    def scan(
        self, combine_fn: Callable, init: Any, leaves: list[Tensor], tree: TreeSpec, reverse: bool
    ) -> tuple[Any, Any]:
        trees: list[TreeSpec] = []

        def combine(carry: Any, x: Any) -> Any:
            result = combine_fn(carry, x)
            check_pair(result)
            trees.append(tree_flatten(result[0])[1])
            return result

        body = _Body(self, "scan", combine, (_examples(init), _slices(leaves, tree)))
        carry = _tensors(init)
        _check_carried("scan", "combine_fn", init, body, trees[0])
        length = leaves[0].array.shape[0]
        count = len(carry)
        types = [*body.types[:count], *[stacked(t, length) for t in body.types[count:]]]
        outputs = self.insert_bodies(
            prim.SCAN, [*carry, *leaves], [body], types,
            carried=count, mapped=len(leaves), reverse=bool(reverse),
        )  # fmt: skip
        return body.results(outputs)

    def map(self, f: Callable, leaves: list[Tensor], tree: TreeSpec, args: tuple) -> Any:
        body = _Body(self, "map", f, (_slices(leaves, tree), *_examples(args)))
        length = leaves[0].array.shape[0]
        types = [stacked(t, length) for t in body.types]
        inputs = [*leaves, *_tensors(args)]
        return body.results(
            self.insert_bodies(prim.MAP, inputs, [body], types, mapped=len(leaves))
        )

    def insert_bodies(
        self,
        kind: str,
        inputs: Sequence[Tensor],
        bodies: Sequence[_Body],
        types: Sequence[Type],
        **attributes: Any,
    ) -> tuple:
        """Make a node of the bodies and call it; tensors for its outputs."""
        captured = {id(t): t for body in bodies for t in body.captured}
        tensors = [*inputs, *captured.values()]
        graph = Graph()
        values = [graph.add_input(without_grad(type_of(t))) for t in tensors]
        node = graph.create(kind, values, types, attributes=attributes or None)
        graph.insert_node(node)
        for body in bodies:
            body.fill(node, captured)
        for value in node.outputs:
            graph.register_output(value)
        return self.apply_graph(graph, [self._at_least_here(t) for t in tensors])

    def _at_least_here(self, t: Tensor) -> Tensor:
        """A tensor as one of this level, unless it is of a level further in."""
        array = t.array
        further = type(array) is LevelArray and array.level.number > self.number
        return t if further else self.inside(t)


def _check_branches(chosen: _Body, other: _Body) -> None:
    left, right = (
        [types.pop(0) if literal is TENSOR else literal for literal in body.traced.literals]
        for body, types in ((chosen, chosen.types), (other, other.types))
    )
    check_alike("cond", left, chosen.traced.out_tree, right, other.traced.out_tree)


def _is_flag(t: Type) -> bool:
    shape = t.concrete_shape if isinstance(t, TensorType) else None
    single = shape is not None and all(n == 1 for n in shape)
    return single and isinstance(t, TensorType) and not t.can_require_grad


def _check_carried(name: str, function: str, before: Any, body: _Body, tree: TreeSpec) -> None:
    """Refuse a body that does not return what it carries as it got it."""
    old, old_tree = tree_flatten(before)
    types = body.types
    leaves = [
        types.pop(0) if literal is TENSOR else literal
        for literal in body.traced.literals[: tree.num_leaves]
    ]
    examples = [without_grad(type_of(t)) for t in old]
    check_carried(
        name, function, tree_unflatten(examples, old_tree), tree_unflatten(leaves, tree)
    )
