"""Differentiating a graph: one graph for the values and what to keep, one for the gradients.

`differentiate` walks the graph backward and writes the gradient of each node into a reverse block,
which may use any value of the forward graph. After some cleaning the block is lifted out: what it
uses becomes an additional output of the forward graph or is taken from its inputs, and the block
becomes a graph of its own. Both are ordinary graphs, so they can be differentiated again.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from ...core.tensor import Tensor
from ..ir import primitives as prim
from ..ir.aliasing import Aliases
from ..ir.blocks import Block
from ..ir.graph import Graph
from ..ir.literals import HOLE
from ..ir.nodes import Node, Value
from ..ir.types import TensorType, without_grad
from ..passes.cse import merge_equal_nodes
from ..passes.dce import eliminate_dead_code, remove_dead_nodes
from ..passes.inline import inline
from ..passes.raising import drop_checks
from ..passes.rematerialize import Policy, rematerialize
from ..passes.requires_grad import clear_requires_grad, cut_off_values, propagate_requires_grad
from ..passes.shapes import propagate_shapes
from ..passes.tuples import lower_tuples
from ..passes.zeros import specialize_zeros
from .gradients import Sizes, insert_gradient
from .gradients import is_differentiable as is_differentiable
from .rules import NotDifferentiable as NotDifferentiable

isDifferentiable = is_differentiable


class Wiring:
    """How to call a graph `f` and its reverse `df` one after the other.

    - `f` takes the inputs of the original graph. Its first `f_real_outputs` outputs are the
      original ones; the others are temporaries that `df` needs.
    - `df` takes, in this order: gradients of the outputs of `f` with the numbers `df_input_vjps`;
      the inputs of `f` numbered in `df_input_captured_inputs`; its outputs numbered in
      `df_input_captured_outputs`.
    - `df` returns gradients for the inputs of `f` with the numbers `df_output_vjps`.

    Gradients for temporaries arise when `df` itself is differentiated. An undefined gradient is
    None, at both ends.
    """

    FIELDS = (
        "f_real_outputs", "df_input_vjps", "df_input_captured_inputs",
        "df_input_captured_outputs", "df_output_vjps",
    )  # fmt: skip

    def __init__(self) -> None:
        self.f_real_outputs = 0
        self.df_input_vjps: list[int] = []
        self.df_output_vjps: list[int] = []
        self.df_input_captured_inputs: list[int] = []
        self.df_input_captured_outputs: list[int] = []

    def df_inputs(
        self, inputs: Sequence[Any], outputs: Sequence[Any], vjps: Sequence[Any]
    ) -> list[Any]:
        """What to call `df` with, after `f` made `outputs` of `inputs`; `vjps` are the gradients
        of all outputs of `f`, or of the real ones only."""
        given = [*vjps, *[None] * (len(outputs) - len(vjps))]
        return [
            *[given[i] for i in self.df_input_vjps],
            *[inputs[i] for i in self.df_input_captured_inputs],
            *[outputs[i] for i in self.df_input_captured_outputs],
        ]

    @property
    def output_vjps(self) -> list[int]:
        """The original outputs whose gradients `df` takes."""
        return [i for i in self.df_input_vjps if i < self.f_real_outputs]


class Gradient(Wiring):
    """A graph `f`, its reverse `df`, and how to call the one after the other."""

    def __init__(self, f: Graph) -> None:
        super().__init__()
        self.f = f
        self.df = Graph()
        self.cut_off: set[Value] = set()

    def by_input(self, results: Sequence[Tensor | None]) -> list[Tensor | None]:
        """What `df` has returned, as one gradient or None for each input of `f`."""
        found = dict(zip(self.df_output_vjps, results, strict=True))
        return [found.get(i) for i in range(len(self.f.inputs))]

    @property
    def saved_bytes(self) -> int:
        """The memory of the temporaries that `f` returns for `df`, as far as it is known."""
        temporaries = dict.fromkeys(self.f.outputs[self.f_real_outputs :])
        types = [value.type for value in temporaries]
        return sum(t.nbytes or 0 for t in types if isinstance(t, TensorType))

    def __str__(self) -> str:
        fields = "".join(f"{name}: {getattr(self, name)}\n" for name in self.FIELDS)
        return f"f: {self.f}df: {self.df}{fields}"

    __repr__ = __str__


def differentiate(
    graph: Graph,
    undefined: Collection[int] = (),
    *,
    once: bool = False,
    recompute: Policy | None = None,
) -> Gradient:
    """The reverse of a graph. The graph is used up: pass a copy to keep it.

    Gradients are made for the inputs that require grad or may do so. If the graph computes
    gradients itself, `undefined` numbers the inputs that are undefined ones; all others are taken
    to be tensors. `once` promises that `df` will not be differentiated, which saves work in some
    rules. With `recompute`, `df` computes again what costs more to keep. Raises NotDifferentiable
    if the gradient of a node that is needed cannot be written as a graph.
    """
    with _collector_paused():
        gradient = Gradient(prepare(graph.take("differentiate"), undefined))
        gradient.cut_off = cut_off_values(gradient.f)
        without_vjp = {value for value in gradient.f.outputs if _seen_without_grad(value)}
        propagate_requires_grad(gradient.f)
        reverse = _Reverse(gradient, once, without_vjp, recompute)
        reverse.add_inline()
        reverse.optimize()
        if recompute is not None:
            rematerialize(gradient.f.block, reverse.block, recompute)
            eliminate_dead_code(gradient.f)
        reverse.lift()
        clear_requires_grad(gradient.f)
    return gradient


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """The garbage collector would walk a growing graph again and again, and find nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def joint_graph(
    gradient: Gradient,
    defined: Sequence[bool] | None = None,
    values: bool = True,
    device: Any = None,
) -> Graph:
    """`f` and `df` in one graph. Its inputs are those of `f` and then the gradients of the real
    outputs that have one; its outputs are the real outputs and then the gradients of inputs.

    `defined` says which of those gradients are given; the others are undefined, and where a rule
    needs zeros for them, these are on `device`. Without `values` the real outputs are left out.
    """
    graph = Graph()
    known = {value: graph.add_input().copy_metadata(value) for value in gradient.f.inputs}
    inputs = list(known.values())
    vjps = add_vjps(graph, gradient, defined)
    graph.block.clone_nodes(gradient.f.block, known)
    for old, new in known.items():
        if isinstance(new.type, TensorType):
            new.type = new.type.with_requires_grad(False if old in gradient.cut_off else None)
    outputs = [known[value] for value in gradient.f.outputs]
    kept = gradient.df_inputs(inputs, outputs, ())[len(gradient.df_input_vjps) :]
    results = graph.insert_graph(gradient.df, [*vjps, *kept])
    for value in (*outputs[: gradient.f_real_outputs if values else 0], *results):
        graph.register_output(value)
    if not values:
        drop_checks(graph)  # `f` has run by itself
    return eliminate_dead_code(specialize_zeros(graph, device=device))


def reverse_graph(
    gradient: Gradient, defined: Sequence[bool] | None = None, device: Any = None
) -> Graph:
    """`df` as a graph of those gradients that are defined, and of what `df` keeps.

    `defined` may end with the real outputs, since gradients of temporaries arise in higher orders
    only; without it all of the real ones are.
    """
    graph = Graph()
    given = add_vjps(graph, gradient, defined)
    kept = [
        graph.add_input(value.type) for value in gradient.df.inputs[len(gradient.df_input_vjps) :]
    ]
    for value in graph.insert_graph(gradient.df, [*given, *kept]):
        graph.register_output(value)
    return specialize_zeros(graph, device=device)


def add_vjps(graph: Graph, gradient: Gradient, defined: Sequence[bool] | None = None) -> list:
    """The first arguments of `df`: inputs for gradients that are given, zeros for the others.

    `defined` may end with the real outputs; without it all of these have gradients.
    """
    given = []
    flags = iter(defined or ())
    for i in gradient.df_input_vjps:
        if i < gradient.f_real_outputs if defined is None else next(flags, False):
            given.append(graph.add_input(without_grad(gradient.f.outputs[i].type)))
        else:
            given.append(graph.insert(prim.AUTOGRAD_ZERO))
    return given


def prepare(graph: Graph, undefined: Collection[int] = ()) -> Graph:
    """A graph without tuples, inner functions and gradient blocks, with all types."""
    lower_tuples(inline(graph))
    if any(node.kind in _OF_GRADIENTS for node in graph.nodes()):
        eliminate_dead_code(specialize_zeros(graph, undefined))
    if any(not _typed(value) for node in graph.all_nodes() for value in node._outputs):
        propagate_shapes(graph)
    return graph


_OF_GRADIENTS = {prim.GRAD_OF, prim.AUTOGRAD_ADD, prim.GRAD_OR_ZERO}


def _typed(value: Value) -> bool:
    return not isinstance(value.type, TensorType) or value.type.is_complete


class _Reverse:
    """The work of `differentiate`: the reverse block, and the gradient of each forward value."""

    def __init__(
        self, gradient: Gradient, once: bool, without_vjp: set[Value], policy: Policy | None
    ) -> None:
        self.gradient = gradient
        self.without_vjp = without_vjp
        self.once = once
        self.policy = policy
        self.graph = gradient.f
        # The holder of the block is never placed in the graph, where passes would find it.
        self.holder: Node = self.graph.create(prim.REVERSE, (), ())
        self.block: Block = self.holder.add_block()
        self.grads: dict[Value, Value] = {}
        self.sizes = Sizes()

    # The reverse block ---------------------------------------------------------------------

    def gradient_of(self, value: Value) -> Value:
        """The gradient that a value has so far, undefined if it has none."""
        if value not in self.grads:
            zero = self.graph.insert(prim.AUTOGRAD_ZERO)
            zero.type = without_grad(value.type)
            self.grads[value] = zero
        return self.grads[value]

    def add_gradient(self, value: Value, g: Value) -> None:
        known = self.grads.get(value)
        if known is None:
            self.grads[value] = g
        else:
            total = self.graph.insert(prim.AUTOGRAD_ADD, known, g)
            total.type = without_grad(value.type)
            self.grads[value] = total

    def add_inline(self) -> None:
        """Fill the reverse block: parameters for the outputs' gradients, a GradOf per node."""
        graph, gradient = self.graph, self.gradient
        graph.insert_point = self.block.return_node
        for i, value in enumerate(graph.outputs):
            if value.requires_grad and value not in self.without_vjp:
                g = self.block.add_input(value.type)
                self.add_gradient(value, g)
                gradient.df_input_vjps.append(i)
        for node in graph.block.reverse_nodes():
            # Where no gradient arrives, none goes on.
            if not any(value.requires_grad and value in self.grads for value in node._outputs):
                continue
            results = insert_gradient(node, self.gradient_of, self.sizes, self.once, self.policy)
            for value, result in zip(node._inputs, results or (), strict=False):
                if result is not None and value.requires_grad:
                    self.add_gradient(value, result)
        for i, value in enumerate(graph.inputs):
            if value.requires_grad and value in self.grads:
                self.block.register_output(self.grads[value])
                gradient.df_output_vjps.append(i)
        graph.insert_point = graph.block.return_node

    # Cleaning up ---------------------------------------------------------------------------

    def optimize(self) -> None:
        self.lift_constants()
        fold_sizes(self.block)
        merge_equal_nodes(self.graph.block, Aliases(self.graph.block))
        merge_equal_nodes(self.block, None)
        self.deduplicate_sizes()
        removed: set[Value] = set()
        remove_dead_nodes(self.block, removed.add)
        self.grads = {v: g for v, g in self.grads.items() if g not in removed}
        eliminate_dead_code(self.graph)

    def lift_constants(self) -> None:
        """Constants are copied into the reverse block rather than captured."""
        copies: dict[Value, Value] = {}
        for node in self.block.readers():
            for i, value in enumerate(node._inputs):
                if value.node.kind != prim.CONSTANT or value.node.block is not self.graph.block:
                    continue
                if value not in copies:
                    self.block.prepend(self.graph.create_clone(value.node, copies))
                node.replace_input(i, copies[value])

    def deduplicate_sizes(self) -> None:
        """The size of a value that is captured anyway is computed from it."""
        captured = self.captures()
        known = set(captured)
        for value in captured:
            node = value.node
            if node.kind != prim.SIZE or node._inputs[0] not in known:
                continue
            if all(self.block.contains(use.user) for use in value.uses):
                copy = self.graph.create(prim.SIZE, node._inputs, [value.type])
                self.block.prepend(copy)
                value.replace_all_uses_with(copy.output)
                node.destroy()

    def captures(self) -> list[Value]:
        """The values of the forward graph that the reverse block uses, in their order."""
        used: set[Value] = set()
        for node in self.block.readers():
            used.update(node._inputs)
        graph = self.graph
        nodes = (graph.block.param_node, *graph.nodes())
        return [value for node in nodes for value in node._outputs if value in used]

    # Lifting -------------------------------------------------------------------------------

    def lift(self) -> None:
        """Make the reverse block a graph: captured values become its parameters."""
        graph, gradient = self.graph, self.gradient
        captured = self.captures()
        gradient.f_real_outputs = len(graph.outputs)
        outputs: dict[Value, int] = {}
        for i, value in enumerate(graph.outputs):
            outputs.setdefault(value, i)
        inputs = {value: i for i, value in enumerate(graph.inputs)}
        for value in captured:
            if value in outputs:
                gradient.df_input_captured_outputs.append(outputs[value])
            elif value in inputs:
                gradient.df_input_captured_inputs.append(inputs[value])
            else:
                place = graph.register_output(value)
                gradient.df_input_captured_outputs.append(place)
        self.add_vjps_of_temporaries()
        given, made = graph.inputs, graph.outputs
        parameters = [
            *[given[i] for i in gradient.df_input_captured_inputs],
            *[made[i] for i in gradient.df_input_captured_outputs],
        ]
        formal = {value: self.block.add_input().copy_metadata(value) for value in parameters}
        for node in self.block.readers():
            for i, value in enumerate(node._inputs):
                if value in formal:
                    node.replace_input(i, formal[value])
        gradient.df = Graph(self.block)

    def add_vjps_of_temporaries(self) -> None:
        """Temporaries that have a gradient accept a further one from outside."""
        graph, gradient = self.graph, self.gradient
        for i, value in enumerate(graph.outputs):
            g = self.grads.get(value) if i >= gradient.f_real_outputs else None
            if g is None:
                continue
            given = self.block.add_input(value.type)
            total = graph.create(prim.AUTOGRAD_ADD, (), [without_grad(value.type)])
            g.replace_all_uses_with(total.output)
            total.add_input(given)
            total.add_input(g)
            if g.node.kind == prim.PARAM:
                self.block.prepend(total)
            else:
                total.insert_after(g.node)
            gradient.df_input_vjps.append(i)


def _seen_without_grad(value: Value) -> bool:
    """Whether a profile has seen a value only where it did not require grad, and nothing else is
    known of it."""
    declared, seen = value.type, value.node.attributes.get("profiled_type")
    known = isinstance(declared, TensorType) and declared.requires_grad is not None
    return not known and isinstance(seen, TensorType) and seen.requires_grad is False


def fold_sizes(block: Block) -> None:
    """Compare the sizes that are known: where they are equal, no sum is needed."""
    for node in list(block.all_nodes()):
        if node.kind != prim.GRAD_SUM_TO_SIZE or len(node._inputs) != 2:
            continue
        g, size = node._inputs
        if size.node.kind != prim.SIZE_IF_NOT_EQUAL:
            continue
        own, result = [_known_size(value) for value in size.node._inputs]
        if own is None or result is None:
            continue
        if own == result:
            node.output.replace_all_uses_with(g)
            node.destroy()
        else:
            node.remove_input(1)
            node.arguments = (HOLE, own)


def _known_size(size: Value) -> tuple[int, ...] | None:
    t = size.node._inputs[0].type if size.node.kind == prim.SIZE else None
    return t.concrete_shape if isinstance(t, TensorType) else None
