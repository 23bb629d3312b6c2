"""Tracing programs that take gradients: what they call has a derivative in the graph, too.

A graph that is called, such as one of control flow, is differentiated as a graph. A custom autograd
Function is one node with two blocks, its `forward` and its `backward`, each traced. What `backward`
has saved of the forward pass, other than inputs and results, is an additional output of the first
block and a parameter of the second. So a gradient of the graph is what the Function says it is, and
its `backward` can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...autograd import grad
from ...autograd.function import Function
from ...autograd.function_call import call_recorded
from ...autograd.function_node import Error, user_backward
from ...core.state import ThreadState, thread_state
from ...core.tensor import Tensor, requires_of, set_fields
from ..interpret.control import keep_for_backward
from ..ir import primitives as prim
from ..ir.blocks import Block
from ..ir.functions import backward_graph, by_input
from ..ir.graph import Graph
from ..ir.layout import shape_example
from ..ir.nodes import Node, Value
from ..ir.types import without_grad
from ..trace.blocks import BlockLevel
from ..trace.capture import record
from ..trace.traced import Traced
from .executable import Executable, GraphCall


def trace(function: Callable, *examples: Any, **keywords: Any) -> Traced:
    """Record what `function` does with arguments like `examples`.

    Tensors among them are inputs; everything else is fixed at the value it has here.

    >>> import wengert
    >>> from wengert.compiler import trace
    >>> traced = trace(lambda x, n: (x * n).sin(), wengert.ones(2), 3)
    >>> [node.kind for node in traced.graph.nodes()]
    ['wengert::mul', 'wengert::sin']
    """
    return record(DifferentiableLevel(), function, examples, keywords)


class DifferentiableLevel(BlockLevel):
    """The level of a program, which may differentiate what it has computed."""

    __slots__ = ()

    def of_body(self) -> DifferentiableLevel:
        return DifferentiableLevel()

    def apply_graph(self, graph: Graph, tensors: Sequence[Tensor]) -> tuple:
        return GraphCall.apply(Executable(graph, ()), *tensors)

    def call_function(self, function: Any, state: ThreadState, args: tuple, setup: Any) -> Any:
        inputs = tuple([self.inside(a) if isinstance(a, Tensor) else a for a in args])
        recorded = any(isinstance(a, Tensor) and a.requires() for a in inputs)
        if recorded and state.recording() and not getattr(function, "traces_itself", False):
            return _call_as_node(function, inputs, setup)
        return BlockLevel.call_function(self, function, state, inputs, setup)


# Custom Functions ---------------------------------------------------------------------------------


def _call_as_node(function: Any, args: tuple, setup: Any) -> Any:
    """A call of a Function with tensors of a trace level; what it returns, at that level."""
    inner = _MethodsLevel(args)
    with inner.released():
        return inner.traced(function, args, setup)


class _MethodsLevel(DifferentiableLevel):
    """The level at which the two methods of a Function are traced, one after the other."""

    __slots__ = (
        "args", "results", "several", "last", "vjps", "differentiable", "wanted",
        "grads", "once", "captured",
    )  # fmt: skip

    args: tuple[Any, ...]
    results: tuple[Any, ...]
    grads: tuple[Any, ...]
    captured: list[Tensor]  # what the methods have from elsewhere
    vjps: range  # the places among the inputs of the gradients that backward is given

    def __init__(self, args: tuple) -> None:
        DifferentiableLevel.__init__(self)
        self.args = tuple(
            [self.add_argument(a) if isinstance(a, Tensor) else a for a in args]
        )
        self.arguments = len(self.inputs)

    def traced(self, function: Any, args: tuple, setup: Any) -> Any:
        """Trace the Function and call what it has become."""
        with self.entered():
            self.run(function, setup)
        tensors = [a for a in args if isinstance(a, Tensor)]
        graph = self.finish(function.__name__)
        arrays: list[Any] = [t.array for t in self.results if isinstance(t, Tensor)]
        examples = [array.value.array for array in arrays]
        outputs = TracedCall.apply(graph, examples, *tensors, *self.captured)
        supply = iter(outputs)
        made = tuple([next(supply) if isinstance(t, Tensor) else t for t in self.results])
        return made if self.several else made[0]

    def release(self) -> None:
        DifferentiableLevel.release(self)
        self.args = self.results = self.grads = ()
        self.captured = []

    def add_argument(self, t: Tensor) -> Tensor:
        """An input for an argument. It is no leaf, so that the Function may change it, which is
        refused afterwards."""
        stand_in = self.add_input(shape_example(t))
        if stand_in.needs_grad:
            why = "a Function is traced from its own arguments on"
            set_fields(stand_in, node=Error(why, (stand_in,)))
        return stand_in

    def run(self, function: Any, setup: Any) -> None:
        """Trace both methods."""
        out = call_recorded(function, thread_state(), self.args, setup, function.forward)
        self.several = isinstance(out, tuple)
        self.results = out if isinstance(out, tuple) else (out,)
        self.refuse_changes(function)
        self.last = self.graph.insert_point.previous
        tensors = [t for t in self.results if isinstance(t, Tensor)]
        self.differentiable = [i for i, t in enumerate(tensors) if requires_of(t)]
        self.vjps = range(len(self.inputs), len(self.inputs) + len(self.differentiable))
        vjps = [self.add_vjp(tensors[i]) for i in self.differentiable]
        self.wanted = [i for i, t in enumerate(self.inputs[: self.arguments]) if requires_of(t)]
        self.grads = grad(
            [tensors[i] for i in self.differentiable],
            [self.inputs[i] for i in self.wanted],
            vjps,
            create_graph=True,
            allow_unused=True,
        )
        self.refuse_changes(function)
        self.once = getattr(user_backward(function), "once_differentiable", False)

    def refuse_changes(self, function: Any) -> None:
        for t, value in zip(self.inputs, self.input_values, strict=True):
            if self.symbol_of(t) is not value:
                raise self.refusal(
                    f"{function.__name__}: a custom autograd Function that changes a tensor in "
                    "place cannot be traced"
                )

    def add_vjp(self, result: Tensor) -> Tensor:
        """An input for the gradient of a result."""
        return self.add_input(shape_example(result))

    def finish(self, name: str) -> Graph:
        """A graph of the one node; `captured` are then the tensors to give it after the
        arguments."""
        results = [self.symbol_of(t) for t in self.results if isinstance(t, Tensor)]
        wanted = [i for i, g in zip(self.wanted, self.grads, strict=True) if g is not None]
        grads = [self.symbol_of(g) for g in self.grads if g is not None]
        inputs, self.captured = self.input_values[: self.arguments], []
        for i in range(self.arguments, len(self.inputs)):
            value = self.input_values[i]
            if i not in self.vjps and (value.uses or value in results or value in grads):
                inputs.append(value)
                self.captured.append(self.originals[i])
        first, second = self._nodes()
        outputs = [*results, *_kept(first, second, grads, results)]
        graph = Graph()
        node = graph.create(
            prim.FUNCTION,
            [graph.add_input(without_grad(value.type)) for value in inputs],
            [without_grad(value.type) for value in outputs],
            attributes={
                "name": name,
                "differentiable": tuple(self.differentiable),
                "gradients": tuple(wanted),
            },
        )
        graph.insert_node(node)
        _fill(node, inputs, first, outputs)
        received = [self.input_values[i] for i in self.vjps]
        _fill(node, [*inputs, *outputs, *received], second, grads)
        if self.once:
            _guard(node.blocks[1], len(received))
        for value in node.outputs:
            graph.register_output(value)
        return graph

    def _nodes(self) -> tuple[list[Node], list[Node]]:
        """The nodes of the two methods."""
        nodes = list(self.graph.nodes())
        count = nodes.index(self.last) + 1 if self.last in nodes else 0
        return nodes[:count], nodes[count:]


def _kept(
    first: list[Node], second: list[Node], grads: list[Value], results: list[Value]
) -> list[Value]:
    """The values of the first nodes that the second ones need, apart from results."""
    own = {value for node in first for value in node._outputs}.difference(results)
    used = [value for node in second for value in node._inputs] + grads
    return [value for value in dict.fromkeys(used) if value in own]


def _fill(
    node: Node, parameters: Sequence[Value], nodes: list[Node], outputs: Sequence[Value]
) -> None:
    """A block of copies of some nodes."""
    block = node.add_block()
    values: dict[Value, Value] = {}
    for value in parameters:
        made = block.add_input(without_grad(value.type))
        values.setdefault(value, made)
    for each in nodes:
        block.append(node.graph.create_clone(each, values))
    for value in outputs:
        block.register_output(values[value])


def _guard(block: Block, received: int) -> None:
    """Let the results of a backward that is differentiable once depend on nothing but its grads."""
    graph, results = block.graph, block.outputs
    grads = block.inputs[len(block.inputs) - received :]
    guard = graph.create(
        prim.ONCE_DIFFERENTIABLE,
        [*grads, *results],
        [value.type for value in results],
        attributes={"grads": received},
    )
    block.append(guard)
    for i, value in enumerate(guard.outputs):
        block.return_node.replace_input(i, value)


class TracedCall(Function):
    """The node of a Function called while a function is traced, and recorded there.

    The backward takes what the forward has kept, so that nothing is computed or drawn again.
    """

    traces_itself = True

    @staticmethod
    def forward(graph: Graph, examples: list, *inputs: Tensor) -> tuple:  # type: ignore[override]
        level: Any = thread_state().levels[-1]
        return level.call_graph(graph, inputs, examples)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        graph, _, *tensors = inputs
        (ctx.function,) = graph.nodes()
        ctx.reverse, needed = backward_graph(ctx.function)
        keep_for_backward(ctx, ctx.function, needed, tensors, output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        function = ctx.function
        given = [grads[i] for i in function.attributes["differentiable"]]
        found = GraphCall.apply(Executable(ctx.reverse, ()), *ctx.saved_tensors, *given)
        return (None, None, *by_input(function, found))
