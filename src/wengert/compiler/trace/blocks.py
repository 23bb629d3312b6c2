"""Control flow in a traced function: one node, whose blocks are the branches or bodies, traced.

What a block uses from outside becomes an input of the node and a parameter of every block. The node
is first a graph of its own, which is called like any graph while tracing (`GraphCall`), so that
the program can differentiate through it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.arrays import LevelArray
from ...core.state import thread_state
from ...core.tensor import Tensor
from ...core.trees.pytree import TreeSpec, tree_flatten, tree_unflatten
from ...transforms.levels import GradLevel
from ..ir import primitives as prim
from ..ir.graph import Graph
from ..ir.layout import shape_example
from ..ir.nodes import Node
from ..ir.types import TensorType, Type, type_of, without_grad
from ..run.executable import Executable, GraphCall
from .level import TraceError, record, where
from .traced import TENSOR, Traced


def as_node() -> bool:
    """Whether control flow is to become a node: inside a trace, with gradients inside at most."""
    levels = thread_state().levels
    traces = [i for i, level in enumerate(levels) if level.traces]
    return bool(traces) and all(isinstance(level, GradLevel) for level in levels[traces[-1] + 1 :])


class _Body:
    """A function traced as the block of a node, and the tensors that it got from elsewhere."""

    def __init__(self, name: str, function: Callable, args: tuple) -> None:
        self.name = name
        traced = self.traced = record(function, args, {})
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


def _call(
    kind: str,
    inputs: Sequence[Tensor],
    bodies: Sequence[_Body],
    types: Sequence[Type],
    **attributes: Any,
) -> tuple:
    """Make the node of the bodies and call it; tensors for its outputs."""
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
    return GraphCall.apply(Executable(graph, ()), *[_at_trace(t) for t in tensors])


def _at_trace(t: Tensor) -> Tensor:
    """A tensor as one of the innermost trace, unless it is of a level further in."""
    levels = thread_state().levels
    level: Any = next(level for level in reversed(levels) if level.traces)
    array = t.array
    further = type(array) is LevelArray and array.level.number > level.number
    return t if further else level.inside(t)


def _leaves(traced: Traced, outputs: Sequence[Any]) -> list:
    supply = iter(outputs)
    return [next(supply) if literal is TENSOR else literal for literal in traced.literals]


# The four -----------------------------------------------------------------------------------------


def traced_cond(
    pred: Tensor, true_fn: Callable, false_fn: Callable, operands: tuple
) -> Any:
    """`cond` as a node."""
    chosen, other = (
        _Body("cond", function, _examples(operands)) for function in (true_fn, false_fn)
    )
    _check_branches(chosen, other)
    outputs = _call(prim.COND, [pred, *_tensors(operands)], [chosen, other], chosen.types)
    return tree_unflatten(_leaves(chosen.traced, outputs), chosen.traced.out_tree)


def _check_branches(chosen: _Body, other: _Body) -> None:
    from .control_flow import check_alike

    left, right = (
        [types.pop(0) if literal is TENSOR else literal for literal in body.traced.literals]
        for body, types in ((chosen, chosen.types), (other, other.types))
    )
    check_alike("cond", left, chosen.traced.out_tree, right, other.traced.out_tree)


def traced_while(cond_fn: Callable, body_fn: Callable, carried: tuple) -> tuple:
    """`while_loop` as a node."""
    condition = _Body("while_loop", cond_fn, _examples(carried))
    if condition.traced.literals != [TENSOR] or not _is_flag(condition.types[0]):
        raise RuntimeError(
            "while_loop(): cond_fn must return a boolean scalar tensor or a boolean that depends "
            f"on what is carried; {where()}"
        )
    body = _Body("while_loop", body_fn, _examples(carried))
    _check_carried("while_loop", "body_fn", carried, body, body.traced.out_tree)
    outputs = _call(
        prim.WHILE, _tensors(carried), [condition, body], body.types
    )
    return tree_unflatten(_leaves(body.traced, outputs), body.traced.out_tree)


def _is_flag(t: Type) -> bool:
    shape = t.concrete_shape if isinstance(t, TensorType) else None
    single = shape is not None and all(n == 1 for n in shape)
    return single and isinstance(t, TensorType) and not t.can_require_grad


def _check_carried(name: str, function: str, before: Any, body: _Body, tree: TreeSpec) -> None:
    """Refuse a body that does not return what it carries as it got it."""
    from .control_flow import check_carried

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


def traced_scan(
    combine_fn: Callable, init: Any, leaves: list[Tensor], tree: TreeSpec, reverse: bool
) -> tuple[Any, Any]:
    """`scan` as a node; the leaves of xs lie along their first dimension."""
    from .control_flow import check_pair

    trees: list[TreeSpec] = []

    def combine(carry: Any, x: Any) -> Any:
        result = combine_fn(carry, x)
        check_pair(result)
        trees.append(tree_flatten(result[0])[1])
        return result

    slices = tree_unflatten([shape_example(x, x.array.shape[1:]) for x in leaves], tree)
    body = _Body("scan", combine, (_examples(init), slices))
    carry = _tensors(init)
    _check_carried("scan", "combine_fn", init, body, trees[0])
    length = leaves[0].array.shape[0]
    count = len(carry)
    types = [*body.types[:count], *[_stacked(t, length) for t in body.types[count:]]]
    outputs = _call(
        prim.SCAN, [*carry, *leaves], [body], types,
        carried=count, mapped=len(leaves), reverse=bool(reverse),
    )  # fmt: skip
    return tree_unflatten(_leaves(body.traced, outputs), body.traced.out_tree)


def _stacked(t: Type, length: int) -> Type:
    assert isinstance(t, TensorType) and t.shape is not None
    return TensorType(t.dtype, (length, *t.shape))


def traced_map(f: Callable, leaves: list[Tensor], tree: TreeSpec, args: tuple) -> Any:
    """`map` as a node."""
    slices = tree_unflatten([shape_example(x, x.array.shape[1:]) for x in leaves], tree)
    body = _Body("map", f, (slices, *_examples(args)))
    length = leaves[0].array.shape[0]
    types = [_stacked(t, length) for t in body.types]
    outputs = _call(prim.MAP, [*leaves, *_tensors(args)], [body], types, mapped=len(leaves))
    return tree_unflatten(_leaves(body.traced, outputs), body.traced.out_tree)
