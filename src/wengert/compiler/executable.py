"""A graph as a function of tensors that eager autograd can differentiate, to any order.

Without gradients the graph runs on the interpreter. With them `f` of its `Gradient` runs, and a
node of eager autograd holds what `df` needs. A backward that is itself recorded calls the joint
graph of `f` and `df`, which is an executable again: every order is made of differentiated graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.function import Function
from ..levels import LevelArray
from ..state import thread_state
from ..tensor import Tensor, requires_of
from . import primitives as prim
from .autodiff import Gradient, differentiate
from .interpreter import Program
from .ir import Graph
from .passes.barriers import drop_barriers
from .passes.cse import eliminate_common_subexpressions
from .passes.dce import eliminate_dead_code
from .passes.inline import inline
from .passes.peephole import peephole
from .passes.rematerialize import Policy
from .passes.shapes import without_grad
from .passes.zeros import specialize_zeros
from .types import TensorType

Pass = Callable[[Graph], Graph]
DEFAULT_PASSES: tuple[Pass, ...] = (
    peephole,
    eliminate_common_subexpressions,
    eliminate_dead_code,
)


class Executable:
    """A graph made ready to run. The graph is not changed.

    With `recompute`, the reverse computes again what costs more to keep, as far as it allows.
    """

    def __init__(
        self,
        graph: Graph,
        passes: Sequence[Pass] = DEFAULT_PASSES,
        recompute: Policy | None = None,
    ) -> None:
        self.graph = graph
        self.passes = tuple(passes)
        self.recompute = recompute
        self._program: Program | None = None
        self._eager: Program | None = None
        self._differentiated: dict[tuple[bool, ...], Differentiated] = {}

    def __call__(self, *inputs: Tensor) -> tuple:
        """The graph's outputs; recorded if an input requires grad and gradients are enabled."""
        state = thread_state()
        if state.layers or any(type(t.array) is LevelArray for t in inputs):
            return self.run_eagerly(inputs)
        if state.recording():
            needs = tuple([requires_of(t) for t in inputs])
            if any(needs):
                return self.differentiated(needs)(inputs)
        return self.program(*inputs)

    def run_eagerly(self, inputs: Sequence[Tensor]) -> tuple:
        """Run operator by operator, for transforms and modes that must see each of them."""
        if self._eager is None:
            self._eager = Program(self.graph)
        return self._eager(*inputs)

    @property
    def program(self) -> Program:
        """The graph without gradients, after the passes."""
        if self._program is None:
            self._program = Program(optimized(drop_barriers(self.graph.copy()), self.passes))
        return self._program

    def differentiated(self, needs: tuple[bool, ...]) -> Differentiated:
        """The graph with gradients for the inputs that `needs` marks; made once."""
        if needs not in self._differentiated:
            self._differentiated[needs] = Differentiated(self, needs)
        return self._differentiated[needs]


def optimized(graph: Graph, passes: Sequence[Pass]) -> Graph:
    """A graph after the passes, in their order."""
    for run in passes:
        graph = run(graph)
    return graph


class Differentiated:
    """An executable with gradients for some of its inputs."""

    def __init__(self, executable: Executable, needs: tuple[bool, ...]) -> None:
        self.executable = executable
        self.needs = needs
        self._joint: dict[tuple[bool, ...], Executable] = {}
        self.gradient = gradient = differentiate(
            marked(executable.graph.copy(), needs), once=True, recompute=executable.recompute
        )
        self.differentiable = [i for i in gradient.df_input_vjps if i < gradient.f_real_outputs]
        self.f = Program(optimized(drop_barriers(gradient.f.copy()), executable.passes))
        self._reverse: dict[tuple[bool, ...], Program] = {}

    def __call__(self, inputs: Sequence[Tensor]) -> tuple:
        outputs = CompiledFunction.apply(self, *inputs)
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def reverse(self, grads: Sequence[Any], kept: Sequence[Any]) -> tuple:
        """Gradients of the inputs, from those of the differentiable outputs that are not None."""
        defined = tuple([g is not None for g in grads])
        if defined not in self._reverse:
            graph = drop_barriers(reverse_graph(self.gradient, defined))
            self._reverse[defined] = Program(optimized(graph, self.executable.passes))
        return self._reverse[defined](*[g for g in grads if g is not None], *kept)

    def joint(self, grads: Sequence[Any], inputs: Sequence[Tensor]) -> tuple:
        """The same from the inputs of the graph, so that the result depends on them."""
        defined = tuple([g is not None for g in grads])
        if defined not in self._joint:
            executable = self.executable
            gradient = differentiate(marked(executable.graph.copy(), self.needs))
            self._joint[defined] = Executable(
                joint_graph(gradient, defined), executable.passes, executable.recompute
            )
        return self._joint[defined](*inputs, *[g for g in grads if g is not None])


class CompiledFunction(Function):
    """The node of one call of a differentiated graph."""

    @staticmethod
    def forward(ctx: Any, compiled: Differentiated, *inputs: Tensor) -> Any:  # type: ignore[override]
        gradient = compiled.gradient
        outputs = compiled.f(*inputs)
        real = outputs[: gradient.f_real_outputs]
        ctx.compiled = compiled
        ctx.inputs = inputs
        kept = [
            *[inputs[i] for i in gradient.df_input_captured_inputs],
            *[outputs[i] for i in gradient.df_input_captured_outputs],
        ]
        ctx.others = [None if isinstance(value, Tensor) else value for value in kept]
        ctx.places = [i for i, value in enumerate(kept) if isinstance(value, Tensor)]
        ctx.save_for_backward(*[kept[i] for i in ctx.places])
        ctx.mark_non_differentiable(
            *[t for i, t in enumerate(real) if i not in compiled.differentiable]
        )
        ctx.set_materialize_grads(False)
        return real

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        compiled = ctx.compiled
        gradient = compiled.gradient
        given = [grads[i] for i in compiled.differentiable]
        if thread_state().grad_enabled:
            results = compiled.joint(given, ctx.inputs)
        else:
            kept = list(ctx.others)
            for place, t in zip(ctx.places, ctx.saved_tensors, strict=True):
                kept[place] = t
            results = compiled.reverse(given, kept)
        by_input = dict(zip(gradient.df_output_vjps, results, strict=True))
        return (None, *[by_input.get(i) for i in range(len(ctx.inputs))])


def marked(graph: Graph, needs: Sequence[bool]) -> Graph:
    """A graph whose inputs require gradients as given; of other values nothing is known yet."""
    for node in graph.all_nodes():
        for value in node.outputs:
            value.type = without_grad(value.type)
    for value, need in zip(graph.inputs, needs, strict=True):
        if isinstance(value.type, TensorType):
            value.type = value.type.with_requires_grad(need)
    return graph


def reverse_graph(gradient: Gradient, defined: Sequence[bool]) -> Graph:
    """`df` as a graph of those gradients of real outputs that are defined, and of what `df` keeps.

    Gradients of temporaries arise in higher orders only, which go through `joint_graph`.
    """
    graph = Graph()
    given = _add_vjps(graph, gradient, defined)
    kept = [
        graph.add_input(value.type) for value in gradient.df.inputs[len(gradient.df_input_vjps) :]
    ]
    for value in graph.insert_graph(gradient.df, [*given, *kept]):
        graph.register_output(value)
    return specialize_zeros(graph)


def joint_graph(gradient: Gradient, defined: Sequence[bool]) -> Graph:
    """`f` and `df` in one: from inputs and gradients of outputs to gradients of inputs."""
    graph = Graph()
    inputs = [graph.add_input(value.type, value.name) for value in gradient.f.inputs]
    given = _add_vjps(graph, gradient, defined)
    outputs = graph.insert_graph(gradient.f, inputs)
    kept = [
        *[inputs[i] for i in gradient.df_input_captured_inputs],
        *[outputs[i] for i in gradient.df_input_captured_outputs],
    ]
    for value in graph.insert_graph(gradient.df, [*given, *kept]):
        graph.register_output(value)
    return eliminate_dead_code(specialize_zeros(inline(graph)))


def _add_vjps(graph: Graph, gradient: Gradient, defined: Sequence[bool]) -> list:
    """The first arguments of `df`: inputs for defined gradients, zeros for the others."""
    flags = iter(defined)
    given = []
    for i in gradient.df_input_vjps:
        if i < gradient.f_real_outputs and next(flags):
            given.append(graph.add_input(without_grad(gradient.f.outputs[i].type)))
        else:
            given.append(graph.insert(prim.AUTOGRAD_ZERO))
    return given
