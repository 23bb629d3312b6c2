"""Compiled functions inside `grad`, `jvp` and `vmap`: what these make of a graph is a graph too.

A graph is called there as one operator. Its gradients, its tangents and its values for a batch come
from other graphs, which are made of it once, are called in the same way, and so nest as transforms
do. Only where no transform is left, code runs.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...autograd.function import Function
from ...autograd.function_batching import lifted_all, unwrapped_all
from ...autograd.function_call import call_recorded
from ...autograd.function_node import Error
from ...autograd.grad_mode import enable_grad
from ...backends.layout import copied_in_order
from ...core.arrays import LevelArray
from ...core.ndarrays import ndarrays
from ...core.state import ThreadState, thread_state
from ...core.tensor import Tensor, requires_of, set_fields
from ...core.trees.pytree import tree_map_only
from ...dispatch.declaration import Declaration
from ...dispatch.levels import Level, OutsideAllLevels, lifted, unwrapped
from ...func.forward import jvp
from ...transforms.levels import VmapLevel
from ..autodiff.differentiate import (
    Gradient,
    NotDifferentiable,
    differentiate,
    reverse_graph,
)
from ..ir import primitives as prim
from ..ir.graph import Graph
from ..ir.layout import shape_example
from ..ir.remembered import Remembered
from ..ir.types import TensorType
from ..passes.barriers import has_barriers
from ..passes.dce import eliminate_dead_code
from ..passes.reroll import reroll
from ..trace.capture import record
from ..trace.refusals import TraceError
from ..trace.traced import Traced
from .executable import Executable, device_of, distinct, marked
from .tracing import DifferentiableLevel

#: Of one graph so many batches are remembered, which differ in size or in where they lie.
MOST_BATCHES = 32
#: Nodes without operators that every transform can go through.
_PLAIN = {
    prim.CONSTANT, prim.LIST_CONSTRUCT, prim.LIST_UNPACK, prim.SIZE, prim.FULL, prim.SCAN, prim.MAP,
}  # fmt: skip
_INSIDE = "an argument of a compiled function inside a transform"


class GraphOperator:
    """A graph that is called as one operator at every level.

    `strides` has those of the outputs that do not lie in row-major order; `captured` are inputs
    after those of a call. With a `gradient`, the graph is the `f` of it: what its reverse needs are
    further outputs.
    """

    def __init__(
        self,
        executable: Executable,
        strides: Sequence[tuple[int, ...] | None] = (),
        captured: Sequence[Tensor] = (),
        gradient: Gradient | None = None,
    ) -> None:
        self.executable = executable
        self.strides = strides
        self.captured = tuple(captured)
        self.gradient = gradient
        self._differentiable: dict[tuple[bool, ...], GraphOperator | None] = {}
        self._reverse: dict[tuple, GraphOperator] = {}
        self._pushed: dict[tuple[bool, ...], Derived | None] = {}
        self._batched: Remembered[tuple[Derived | None, tuple]] = Remembered(MOST_BATCHES)

    def __call__(self, *inputs: Tensor) -> tuple:
        """The outputs of the graph, at the level of the inputs."""
        inputs = (*inputs, *self.captured)
        state = thread_state()
        if not state.levels:
            return self.laid_out(self.executable(*inputs))
        operator = self
        recording = _recording_levels(state)
        needs = tuple([_may_require_grad(t, recording) for t in inputs])
        if any(needs):
            found = self.differentiable(needs)
            if found is None:
                return self.executable.eager(*inputs)
            operator = found
        if _is_grad_alone(state.levels):
            values = [unwrapped(t, state.levels[0])[0] for t in inputs]
            if None not in recording or not any(map(requires_of, values)):
                outputs = operator.at_grad_level(state, inputs, values, any(needs))
                return outputs[: len(self.executable.graph.outputs)]
        outputs = OperatorCall.apply(operator, *inputs)
        return outputs[: len(self.executable.graph.outputs)]

    def at_grad_level(
        self, state: ThreadState, inputs: tuple, values: list[Tensor], recorded: bool
    ) -> tuple:
        """The outputs at the only level there is, which is one of reverse mode, where nothing is
        recorded of `values` outside of it: what a Function does at each level, done for one."""
        level = state.levels[0]
        with level.below():
            below = self.computed(values)
        outputs = tuple([None if t is None else lifted(t, level) for t in below])
        if not recorded:
            return outputs
        args, setup = (self, *inputs), OperatorCall.setup_context
        return call_recorded(OperatorCall, state, args, setup, lambda *same: outputs)

    def computed(self, inputs: Sequence[Tensor]) -> tuple:
        """The outputs for plain tensors, none of which is one of the inputs."""
        outputs = self.laid_out(distinct(self.executable.program(*inputs)))
        given = set(map(id, inputs))
        return tuple([t.clone() if t is not None and id(t) in given else t for t in outputs])

    def laid_out(self, outputs: tuple) -> tuple:
        """Outputs with their elements in the order that the function gives them."""
        for t, strides in zip(outputs, self.strides, strict=False):
            if strides is not None and t is not None and t.array.strides != strides:
                set_fields(t, array=copied_in_order(t.array, strides))
        return outputs

    @functools.cached_property
    def has_barriers(self) -> bool:
        """Whether some of its values let no gradient pass."""
        return has_barriers(self.executable.graph)

    def serves(self) -> bool:
        """Whether what the levels around a call ask for are graphs: tangents pass where gradients
        do not, and a graph tells nothing of it."""
        return not (self.has_barriers and any(map(_may_push, thread_state().levels)))

    def moved(self, given: tuple[bool, ...]) -> list[int]:
        """The outputs that have tangents, or gradients, where the inputs that are `given` do."""
        with OutsideAllLevels():
            return self.executable.differentiated(given).recorded_outputs

    def differentiable(self, needs: tuple[bool, ...]) -> GraphOperator | None:
        """The graph with what its reverse needs, which leads to the inputs that `needs` marks.

        There is none where a gradient cannot be a graph."""
        if needs not in self._differentiable:
            executable = self.executable
            graph = marked(executable.graph.copy(), needs)
            made = None
            with OutsideAllLevels(), contextlib.suppress(NotDifferentiable):
                gradient = differentiate(graph, recompute=executable.recompute)
                temporaries = gradient.f.outputs[gradient.f_real_outputs :]
                if all(isinstance(value.type, TensorType) for value in temporaries):
                    forward = self.alike(gradient.f)
                    made = GraphOperator(forward, self.strides, gradient=gradient)
            self._differentiable[needs] = made
        return self._differentiable[needs]

    def pulled_back(self, grads: Sequence[Tensor | None], kept: Sequence[Any]) -> list:
        """The gradients of the inputs, from those of the outputs and from what the reverse reads
        of inputs and outputs."""
        gradient = self.gradient
        assert gradient is not None
        given = [grads[i] for i in gradient.df_input_vjps]
        if all(g is None for g in given):
            return [None] * len(gradient.f.inputs)
        place = device_of(given)
        key = (tuple([g is not None for g in given]), place)
        reverse = self._reverse.get(key)
        if reverse is None:
            with OutsideAllLevels():
                graph = eliminate_dead_code(reverse_graph(gradient, *key))
            reverse = self._reverse[key] = GraphOperator(self.alike(graph))
        return gradient.by_input(reverse(*[g for g in given if g is not None], *kept))

    def pushed(
        self, given: tuple[bool, ...], inputs: Sequence[Tensor], tangents: Sequence[Tensor]
    ) -> tuple:
        """The tangents of the outputs that have any, from those of the inputs that are `given`."""
        push = _push(self.executable, given, self.moved(given))
        values = (*inputs, *tangents)
        if given not in self._pushed:
            self._pushed[given] = self.derived(push, values)
        return (self._pushed[given] or push)(*values)

    def batched(
        self, info: Any, dims: tuple[int | None, ...], inputs: Sequence[Tensor]
    ) -> tuple[tuple, tuple]:
        """The outputs for inputs with batch dimensions, and where these have theirs."""
        key = (info.batch_size, dims, tuple([t.array.strides for t in inputs]))
        known = self._batched.get(key)
        if known is None:
            places: list[tuple] = []

            def batch(*values: Tensor) -> tuple:
                results, found = _on_batch(self.executable, info, dims, values)
                places[:] = [found]
                return results

            made = self.derived(batch, inputs)
            known = self._batched[key] = (made, places[0] if made else ())
        derived, found = known
        if derived is None:
            return _on_batch(self.executable, info, dims, inputs)
        return derived(*inputs), found

    def derived(self, function: Callable, inputs: Sequence[Tensor]) -> Derived | None:
        """What a function of the inputs, traced, is as an operator.

        There is none where a rule needs values, which a graph does not know.
        """
        strides: list[tuple[int, ...] | None] = []

        def noted(*values: Tensor) -> tuple:
            results = function(*values)
            strides[:] = [
                None if t.array.flags.c_contiguous else t.array.strides
                for t in results
                if t is not None
            ]
            return results

        try:
            with OutsideAllLevels(), enable_grad():
                traced = record(DifferentiableLevel(), noted, tuple(map(example_of, inputs)), {})
        except TraceError:
            return None
        if any(node.kind in (prim.SCAN, prim.MAP) for node in self.executable.graph.nodes()):
            reroll(traced.graph)  # the rounds of a loop are noted one by one
        operator = GraphOperator(self.alike(traced.graph), strides, traced.captured)
        return Derived(operator, traced)

    def alike(self, graph: Graph) -> Executable:
        """A graph made ready to run as that of this operator is."""
        executable = self.executable
        return Executable(graph, executable.passes, executable.recompute, make=executable.make)


class Derived(NamedTuple):
    """What a transform has made of a graph: an operator, and which of its results are None."""

    operator: GraphOperator
    traced: Traced

    def __call__(self, *inputs: Tensor) -> tuple:
        results: tuple = self.traced.result_of(list(inputs), self.operator(*inputs))
        return results


class OperatorCall(Function):
    """One call of a graph, at a level or with tensors that require grad."""

    @staticmethod
    def forward(operator: GraphOperator, *inputs: Tensor) -> tuple:  # type: ignore[override]
        return operator.computed(inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        operator, *tensors = inputs
        ctx.operator, ctx.needs = operator, tuple(ctx.needs_input_grad[1:])
        ctx.save_for_forward(*tensors)
        ctx.set_materialize_grads(False)
        if any(ctx.needs):
            gradient = operator.gradient
            ctx.save_for_backward(*(_kept(gradient, tensors, output) if gradient else tensors))
            known = gradient.df_input_vjps if gradient else operator.moved(ctx.needs)
            ctx.mark_non_differentiable(
                *[t for i, t in enumerate(output) if t is not None and i not in known]
            )

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple:
        operator, kept = ctx.operator, ctx.saved_tensors
        if operator.gradient is None:  # the call was made for another level
            operator = operator.differentiable(ctx.needs)
            outputs = OperatorCall.apply(operator, *kept)
            grads = (*grads, *[None] * (len(outputs) - len(grads)))
            kept = _kept(operator.gradient, kept, outputs)
        return (None, *operator.pulled_back(grads, kept))

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Tensor | None) -> tuple:
        operator = ctx.operator
        given = tuple([t is not None for t in tangents])
        moved, results = operator.moved(given), iter(())
        if moved:
            moving = [t for t in tangents if t is not None]
            results = iter(operator.pushed(given, ctx.saved_tensors, moving))
        count = len(operator.executable.graph.outputs)
        return tuple([next(results) if i in moved else None for i in range(count)])

    @staticmethod
    def vmap(info: Any, in_dims: tuple, operator: GraphOperator, *inputs: Tensor) -> tuple:  # type: ignore[override]
        return operator.batched(info, in_dims[1:], inputs)


# Attributes that are there already: through what they know of a call, no cycle leads back.
OperatorCall._backward_cls.operator = OperatorCall._backward_cls.needs = None


def _kept(gradient: Gradient, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> list:
    """What the reverse reads of inputs and outputs."""
    return gradient.df_inputs(inputs, outputs, ())[len(gradient.df_input_vjps) :]


def _on_batch(
    executable: Executable, info: Any, dims: tuple[int | None, ...], values: Sequence[Tensor]
) -> tuple[tuple, tuple]:
    """The outputs for a batch, operator by operator, and where their batch dimensions are."""
    level = VmapLevel(info.batch_size, info.randomness)
    with level.entered():
        outputs = executable.eager(*lifted_all(values, dims, level))
        return unwrapped_all(outputs, level)


def _push(executable: Executable, given: tuple[bool, ...], moved: list[int]) -> Callable:
    """A function of the inputs and of the tangents that are given: tangents of some outputs."""

    def push(*values: Tensor) -> tuple:
        primals, tangents = values[: len(given)], values[len(given) :]

        def function(*moving: Tensor) -> tuple:
            supply = iter(moving)
            inputs = [next(supply) if has else t for t, has in zip(primals, given, strict=True)]
            outputs = executable.eager(*inputs)
            return tuple([outputs[i] for i in moved])

        return jvp(function, tuple([t for t, has in zip(primals, given) if has]), tangents)[1]

    return push


def example_of(t: Tensor) -> Tensor:
    """A tensor without data for a trace. It may have a gradient at a level further out, and so it
    requires one, as a result does."""
    made = shape_example(t)
    if ndarrays.is_differentiable(made.array):
        set_fields(made, needs_grad=True, node=Error(_INSIDE, (made,)))
    return made


def examples_of(tree: Any) -> Any:
    """Arguments of a call with examples in place of tensors."""
    return tree_map_only(Tensor, example_of, tree)


def is_plain(graph: Graph) -> bool:
    """Whether transforms can go through all nodes of a graph, and find their derivatives there."""
    return all(
        isinstance(node.operator, Declaration) or node.kind in _PLAIN for node in graph.all_nodes()
    )


def has_dual_level(state: ThreadState) -> bool:
    """Whether a `dual_level` is open, whose tangents every operator must see; not that of `jvp`."""
    for level in state.levels:
        if level.dual_level >= 0:
            return True
        if _has_tangents(level):
            return False
    return state.dual_level >= 0


def _has_tangents(level: Level) -> bool:
    """Whether the tensors of a level have tangents: it differentiates, but not in reverse."""
    return level.differentiates and not level.records


def _may_push(level: Level) -> bool:
    """Whether a level computes tangents, by a graph or at once."""
    return _has_tangents(level) or level.pushes_forward


def _recording_levels(state: ThreadState) -> set[Level | None]:
    """The levels at which a call is recorded; None if it is outside of all of them."""
    found: set[Level | None] = set()
    enabled = state.recording()
    for level in reversed(state.levels):
        if enabled or level.pushes_forward:
            found.add(level)
        if level.records:
            enabled = level.grad_enabled and (enabled or level.differentiating)
    if enabled:
        found.add(None)
    return found


def _may_require_grad(t: Tensor, recording: set[Level | None]) -> bool:
    """Whether a gradient may be asked for at the level of a tensor or below, up to a batch, which
    becomes a call of its own."""
    while True:
        array = t.array
        level = array.level if type(array) is LevelArray else None
        if requires_of(t) and level in recording:
            return True
        if level is None or not level.differentiates:
            return False
        t = array.value


def _is_grad_alone(levels: Sequence[Level]) -> bool:
    """Whether one level of reverse mode is all there is."""
    return len(levels) == 1 and levels[0].records and not levels[0].pushes_forward
