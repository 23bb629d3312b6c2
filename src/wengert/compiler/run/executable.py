"""A graph as a function of tensors that eager autograd can differentiate, to any order.

Without gradients the graph runs on the interpreter. With them `f` of its `Gradient` runs, and a
node of eager autograd holds what `df` needs. A backward that is itself recorded calls the joint
graph of `f` and `df`, which is an executable again: every order is made of differentiated graphs.

While another function is traced, a graph becomes a part of that function's graph instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...autograd.function import Function
from ...autograd.grad_mode import enable_grad, no_grad
from ...core.state import thread_state
from ...core.tensor import Tensor, requires_of
from ...creation.generator import Generator
from ...operators.copying import with_value
from ...tape.blame import already_freed_error
from ...tape.saved import Freed, unpack_item
from ..autodiff.differentiate import (
    Gradient,
    NotDifferentiable,
    Wiring,
    differentiate,
    joint_graph,
    reverse_graph,
)
from ..interpret.draws import drawing_again, generators_of, states_of
from ..interpret.program import Program
from ..ir.graph import Graph
from ..ir.identity import identity_of
from ..ir.types import TensorType
from ..native import keeping
from ..native.program import NativeProgram, uncollected
from ..native.runtime import Reversal
from ..passes.barriers import drop_derivatives
from ..passes.constants import fold_constants
from ..passes.cse import eliminate_common_subexpressions
from ..passes.dce import eliminate_dead_code
from ..passes.peephole import peephole
from ..passes.rematerialize import Policy
from ..passes.requires_grad import propagate_requires_grad
from ..passes.shapes import without_grad
from .subgraphs import graph_of, slice_differentiable

Pass = Callable[[Graph], Graph]
DEFAULT_PASSES: tuple[Pass, ...] = (
    fold_constants,
    peephole,
    eliminate_common_subexpressions,
    eliminate_dead_code,
)


class Executable:
    """A graph made ready to run. The graph is not changed.

    With `recompute`, the reverse computes again what costs more to keep, as far as it allows.
    `mutated` numbers the inputs that the caller changes after each run. `make` makes graphs without
    gradients ready to run: on the interpreter, or as machine code.
    """

    def __init__(
        self,
        graph: Graph,
        passes: Sequence[Pass] = DEFAULT_PASSES,
        recompute: Policy | None = None,
        mutated: Sequence[int] = (),
        make: Callable[[Graph], Any] = Program,
    ) -> None:
        self.graph = graph
        self.make = make
        self.passes = tuple(passes)
        self.recompute = recompute
        self.mutated = frozenset(mutated)
        self._differentiated: dict[tuple[bool, ...], Differentiated] = {}
        self._differentiable: dict[tuple[bool, ...], Callable[..., tuple]] = {}

    def __call__(self, *inputs: Tensor) -> tuple:
        """The graph's outputs; recorded if an input requires grad and gradients are enabled."""
        state = thread_state()
        if state.levels or state.modes or state.dual_level >= 0:
            return self.eager(*inputs)
        if state.recording():
            needs = tuple([requires_of(t) for t in inputs])
            if any(needs):
                return self.differentiable(needs)(*inputs)
        return self.program(*inputs)

    @functools.cached_property
    def eager(self) -> Program:
        """The graph as it is, for transforms and modes that must see each operator."""
        return Program(self.graph)

    @functools.cached_property
    def program(self) -> Any:
        """The graph without gradients, after the passes."""
        return self.ready(lambda: drop_derivatives(self.graph.copy()), "values")

    @functools.cached_property
    def identity(self) -> str | None:
        """What the graph is known by on disk; None where nothing of it is kept there."""
        if self.make is not NativeProgram or not keeping.is_wanted():
            return None
        own, passes = identity_of(self.graph), names_of(self.passes)
        if own is None or passes is None:
            return None
        return keeping.name_of(own, *passes, repr(self.recompute))

    def ready(self, build: Callable[[], Graph], *purpose: str) -> Any:
        """A graph made ready to run, after the passes. `purpose` tells it apart from others that
        are made of this one; if its code is on disk, it is not built."""

        def built() -> Graph:
            return optimized(build(), self.passes)

        if self.identity is None:
            return self.make(built())
        return NativeProgram.kept(keeping.name_of(self.identity, *purpose), built)

    @functools.cached_property
    def generators(self) -> tuple[Generator, ...]:
        """What the graph draws random numbers from."""
        return generators_of(self.graph)

    def before_changes(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The inputs as they are now, with their place in the graph, for use after the changes."""
        if not self.mutated:
            return list(inputs)
        with enable_grad():
            return [
                with_value.call((t, t.detach().clone())) if i in self.mutated else t
                for i, t in enumerate(inputs)
            ]

    def differentiable(self, needs: tuple[bool, ...]) -> Callable[..., tuple]:
        """What to call where the inputs that `needs` marks require grad."""
        if needs not in self._differentiable:
            compiled = self.differentiated(needs)
            try:
                leads_on = bool(compiled.wiring.output_vjps)
            except NotDifferentiable:
                self._differentiable[needs] = self.in_groups(needs)
            else:
                self._differentiable[needs] = compiled if leads_on else no_grad()(self.program)
        return self._differentiable[needs]

    def in_groups(self, needs: tuple[bool, ...]) -> Program:
        """The graph with its differentiable parts as executables; the rest is recorded eagerly."""
        graph = slice_differentiable(marked(self.graph.copy(), needs))
        return Program(
            graph,
            lambda group: Executable(
                graph_of(group), self.passes, self.recompute, make=self.make
            ),
        )

    def differentiated(self, needs: tuple[bool, ...]) -> Differentiated:
        """The graph with gradients for the inputs that `needs` marks; made once."""
        if needs not in self._differentiated:
            self._differentiated[needs] = Differentiated(self, needs)
        return self._differentiated[needs]


    def made(self) -> Iterator[tuple[str, Any]]:
        """What has been made ready to run so far, with a name for each."""
        program = self.__dict__.get("program")
        if program is not None:
            yield "without gradients", program
        for compiled in self._differentiated.values():
            if "f" in compiled.__dict__:
                yield "forward", compiled.f
            for program in compiled._reverse.values():
                yield "reverse", program
            for joint in compiled._joint.values():
                for name, program in joint.made():
                    yield "second order, " + name, program


def optimized(graph: Graph, passes: Sequence[Pass]) -> Graph:
    """A graph after the passes, in their order."""
    for run in passes:
        graph = run(graph)
    return graph


def names_of(passes: Sequence[Pass]) -> list[str] | None:
    """The names of passes, by which another process finds the same; None if a program has some."""
    package = __name__.partition(".")[0] + "."
    names = [f"{each.__module__}.{each.__qualname__}" for each in passes]
    return names if all(each.startswith(package) for each in names) else None


class Differentiated:
    """An executable with gradients for some of its inputs."""

    def __init__(self, executable: Executable, needs: tuple[bool, ...]) -> None:
        self.executable = executable
        self.needs = needs
        self._reverse: dict[tuple[bool, ...], Any] = {}
        self._joint: dict[tuple[bool, ...], Executable] = {}
        #: What serves backward calls that are like an earlier one.
        self.reversal: Any = None

    @functools.cached_property
    def gradient(self) -> Gradient:
        """The graph differentiated once."""
        executable = self.executable
        graph = marked(executable.graph.copy(), self.needs)
        return differentiate(graph, once=True, recompute=executable.recompute)

    @functools.cached_property
    def wiring(self) -> Wiring:
        """How forward and reverse go together, which disks may know before either is made."""
        identity = self.executable.identity
        if identity is None:
            return self.gradient
        name = keeping.name_of(identity, "wiring", repr(self.needs))
        known = keeping.kept_fields(name)
        if known is None:
            gradient = self.gradient
            keeping.keep_fields(name, {each: getattr(gradient, each) for each in Wiring.FIELDS})
            return gradient
        wiring = Wiring()
        wiring.__dict__.update(known)
        return wiring

    @functools.cached_property
    def f(self) -> Any:
        """The outputs, and what `df` needs."""
        return self.executable.ready(
            lambda: drop_derivatives(self.gradient.f.copy()), "forward", repr(self.needs)
        )

    @functools.cached_property
    def route(self) -> tuple[list[int], list[int], list[int]]:
        """Of a backward that is not recorded: the outputs whose gradients it takes, the saved
        tensors it reads, and for each input where its gradient is among the results, or -1."""
        gradient, count = self.wiring, len(self.needs)
        made = {place: i for i, place in enumerate(gradient.df_output_vjps)}
        temporaries = range(count, count + len(gradient.df_input_captured_outputs))
        return (
            gradient.output_vjps,
            [*gradient.df_input_captured_inputs, *temporaries],
            [made.get(i, -1) for i in range(count)],
        )

    @functools.cached_property
    def repeatable(self) -> Gradient:
        """The graph differentiated such that it can be differentiated again."""
        return differentiate(marked(self.executable.graph.copy(), self.needs))

    @functools.cached_property
    def recorded_outputs(self) -> list[int]:
        """The outputs that require grad."""
        graph = propagate_requires_grad(marked(self.executable.graph.copy(), self.needs))
        return [i for i, value in enumerate(graph.outputs) if value.requires_grad]

    def __call__(self, *inputs: Tensor) -> tuple:
        outputs = CompiledFunction.apply(self, *inputs)
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def reverse(self, grads: Sequence[Tensor | None], kept: Sequence[Any]) -> tuple:
        """Gradients of the inputs, from those of the differentiable outputs that are not None."""
        defined = tuple([g is not None for g in grads])
        try:
            program = self._reverse[defined]
        except KeyError:
            place = device_of(grads)
            with uncollected():
                program = self.executable.ready(
                    lambda: drop_derivatives(reverse_graph(self.gradient, defined, place)),
                    "reverse", repr(self.needs), repr(defined), str(place),
                )  # fmt: skip
            self._reverse[defined] = program
        results = program(*[g for g in grads if g is not None], *kept)
        if Reversal is not None and all(defined):
            self.reversal = self._reversal(program)
        return results

    def _reversal(self, program: Any) -> Any:
        """The short way of calls like the last one of a program; None if there is none."""
        latest = program.latest if isinstance(program, NativeProgram) else None
        if latest is None:
            return None
        taken, read, found = self.route
        return Reversal(
            latest.caller, taken, read, [i if i < 0 else latest.order[i] for i in found]
        )

    def backward(self, grads: Sequence[Tensor | None], kept: Sequence[Any]) -> tuple:
        """What the backward of a node returns, one gradient or None for each of its arguments."""
        results = self.reverse(grads, kept)
        return (None, *[None if i < 0 else results[i] for i in self.route[2]])

    def joint(self, grads: Sequence[Tensor | None]) -> Executable:
        """A graph from the inputs and those gradients that are not None to what `reverse` gives,
        so that the result depends on the inputs."""
        defined = tuple([g is not None for g in grads])
        if defined not in self._joint:
            executable = self.executable
            with uncollected():
                graph = joint_graph(
                    self.repeatable, defined, values=False, device=device_of(grads)
                )
            self._joint[defined] = Executable(
                graph, executable.passes, executable.recompute, make=executable.make
            )
        return self._joint[defined]


class CompiledFunction(Function):
    """The node of one call of a differentiated graph.

    It saves all inputs, which only a backward that is recorded needs, and reads them one by one.
    """

    @staticmethod
    def forward(ctx: Any, compiled: Differentiated, *inputs: Tensor) -> Any:  # type: ignore[override]
        wiring, executable = compiled.wiring, compiled.executable
        states = states_of(executable.generators) if executable.generators else ()
        outputs = compiled.f(*inputs)
        real = outputs[: wiring.f_real_outputs]
        if len(real) > 1:
            real = distinct(real)
        kept = [outputs[i] for i in wiring.df_input_captured_outputs]
        others = [None if isinstance(value, Tensor) else value for value in kept]
        ctx.save_for_backward(
            *(executable.before_changes(inputs) if executable.mutated else inputs),
            *[value if isinstance(value, Tensor) else None for value in kept],
        )
        ctx.call = (compiled, states, others)
        differentiable = wiring.output_vjps
        if len(differentiable) < len(real):
            ctx.mark_non_differentiable(
                *[t for i, t in enumerate(real) if t is not None and i not in differentiable]
            )
        ctx.set_materialize_grads(False)
        return real[0] if len(real) == 1 else real

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple:
        compiled, states, others = ctx.call
        if thread_state().grad_enabled:
            gradient = compiled.repeatable
            given = [grads[i] for i in gradient.output_vjps]
            inputs = saved_values(ctx, range(len(compiled.needs)))
            with drawing_again(states):
                results = compiled.joint(given)(*inputs, *[g for g in given if g is not None])
            return (None, *gradient.by_input(results))
        if compiled.reversal is not None and others.count(None) == len(others):
            results = compiled.reversal.gradients(ctx, grads, compiled.backward)
            if results is not None:
                return results
        taken, read, _ = compiled.route
        kept = saved_values(ctx, read)
        for i, value in enumerate(others, len(kept) - len(others)):
            if value is not None:
                kept[i] = value
        return compiled.backward([grads[i] for i in taken], kept)


# An attribute that is there already: through what it knows of a call, no cycle leads back.
CompiledFunction._backward_cls.call = None


def distinct(outputs: tuple) -> tuple:
    """Outputs of which none is there twice: each may get gradients of its own."""
    seen: set[int] = set()
    found = []
    for t in outputs:
        found.append(t.detach() if id(t) in seen and t is not None else t)
        seen.add(id(t))
    return tuple(found)


def saved_values(ctx: Any, places: Sequence[int]) -> list:
    """Some of the saved tensors; the others are neither unpacked nor checked for changes."""
    saved = ctx.saved
    if type(saved) is Freed:
        raise already_freed_error(ctx, saved)
    return [unpack_item(saved[i], ctx) for i in places]


class GraphCall(Function):
    """A graph called while a function is traced: it becomes a part of that function's graph."""

    traces_itself = True

    @staticmethod
    def forward(executable: Executable, *inputs: Tensor) -> tuple:  # type: ignore[override]
        level: Any = thread_state().levels[-1]
        return level.call_graph(executable.graph, inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        executable, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.set_materialize_grads(False)
        ctx.compiled = executable.differentiated(ctx.needs_input_grad[1:])
        if ctx.next_nodes:  # the call is recorded
            known = ctx.compiled.recorded_outputs
            ctx.mark_non_differentiable(
                *[t for i, t in enumerate(output) if t is not None and i not in known]
            )

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple:
        compiled = ctx.compiled
        gradient = compiled.repeatable
        given = [grads[i] for i in gradient.output_vjps]
        results = GraphCall.apply(
            compiled.joint(given), *ctx.saved_tensors, *[g for g in given if g is not None]
        )
        return (None, *gradient.by_input(results))


def marked(graph: Graph, needs: Sequence[bool]) -> Graph:
    """A graph whose inputs require gradients as given; of other values nothing is known yet."""
    for node in graph.all_nodes():
        for value in node.outputs:
            value.type = without_grad(value.type)
    for value, need in zip(graph.inputs, needs, strict=True):
        if isinstance(value.type, TensorType):
            value.type = value.type.with_requires_grad(need)
    return graph


def device_of(grads: Sequence[Tensor | None]) -> Any:
    """Where gradients lie, unless it is in the memory of the host or nothing is given."""
    place = next((g.device for g in grads if g is not None), None)
    return None if place is None or place.type == "cpu" else place
