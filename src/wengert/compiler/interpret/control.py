"""Instructions of nodes with blocks: branches, loops, gradients, custom Functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ...autograd.function import Function
from ...core.registry import operator_named
from ...core.state import thread_state
from ...core.tensor import Tensor
from ...creation.factories import full
from ...operators.joining import stack
from ..ir import primitives as prim
from ..ir.functions import backward_graph, by_input
from ..ir.graph import Graph, block_graph
from ..ir.nodes import Node
from ..ir.types import TensorType, Type
from .control_flow import cond, while_loop
from .instructions import Code, Instruction


class Runnable(Protocol):
    """A graph made ready to run."""

    def __call__(self, *inputs: Any) -> tuple: ...


class WithBlocks(Instruction):
    """A node with blocks, whose code it runs as often as it needs."""

    __slots__ = ("codes",)

    def __init__(self, node: Node, inputs: tuple, outputs: tuple, codes: list[Code]) -> None:
        Instruction.__init__(self, node, inputs, outputs)
        self.codes = codes

    def values(self, registers: list) -> list:
        return [registers[i] for i in self.inputs]

    def block(self, registers: list, number: int) -> Callable[..., tuple]:
        """A block as a function."""
        return lambda *values: tuple(self.codes[number].call(registers, values))


def _seen_by_levels(values: list) -> bool:
    """Whether a transform may have to see the control flow, and not only what it does."""
    return bool(thread_state().levels) and all(isinstance(value, Tensor) for value in values)


class GradOf(WithBlocks):
    """The gradient of one node: undefined if all it starts from is, since it is linear."""

    __slots__ = ()

    def run(self, registers: list) -> None:
        if all(registers[i] is None for i in self.inputs):
            self.store(registers, [None] * len(self.outputs))
        else:
            self.store(registers, self.codes[0].call(registers, ()))


class Inner(WithBlocks):
    """A block as a function of the inputs."""

    __slots__ = ()

    def run(self, registers: list) -> None:
        self.store(registers, self.codes[0].call(registers, self.values(registers)))


class CustomFunction(WithBlocks):
    """A custom Function: the first block, of which the second is the derivative.

    Where it is recorded, or a transform must see it, it runs as an autograd Function over two
    programs; `program` makes one of a graph.
    """

    __slots__ = ("program", "forward", "backward", "needed")

    def __init__(
        self,
        node: Node,
        inputs: tuple,
        outputs: tuple,
        codes: list[Code],
        program: Callable[[Graph], Runnable],
    ) -> None:
        WithBlocks.__init__(self, node, inputs, outputs, codes)
        self.program = program
        self.forward: Runnable | None = None
        self.backward: Runnable | None = None
        self.needed: list[int] = []  # what the backward takes of inputs and outputs

    def run(self, registers: list) -> None:
        values = self.values(registers)
        state = thread_state()
        if not state.levels and not (state.recording() and any(t.requires() for t in values)):
            self.store(registers, self.codes[0].call(registers, values))
            return
        if self.forward is None:
            reverse, self.needed = backward_graph(self.node)
            self.backward = self.program(reverse)
            self.forward = self.program(block_graph(self.node.blocks[0]))
        self.store(registers, FunctionCall.apply(self, *values))


def keep_for_backward(
    ctx: Any, function: Node, needed: list[int], inputs: Sequence[Tensor], outputs: tuple
) -> None:
    """Save what the second block of a Function's node takes, and mark the outputs that have no
    gradient; `needed` numbers inputs and outputs, as of `backward_graph`."""
    values = [*inputs, *outputs]
    ctx.save_for_backward(*[values[i] for i in needed])
    known = function.attributes["differentiable"]
    ctx.mark_non_differentiable(*[t for i, t in enumerate(outputs) if i not in known])


class FunctionCall(Function):
    """A node of a Function that is run, and recorded, by the interpreter."""

    generate_vmap_rule = True

    @staticmethod
    def forward(function: CustomFunction, *inputs: Tensor) -> tuple:  # type: ignore[override]
        assert function.forward is not None
        return function.forward(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        ctx.called, *tensors = inputs
        keep_for_backward(ctx, ctx.called.node, ctx.called.needed, tensors, output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        called = ctx.called
        given = [grads[i] for i in called.node.attributes["differentiable"]]
        return (None, *by_input(called.node, called.backward(*ctx.saved_tensors, *given)))


class Group(Instruction):
    """A block that something else runs."""

    __slots__ = ("function",)

    def __init__(self, node: Node, inputs: tuple, outputs: tuple, function: Callable) -> None:
        Instruction.__init__(self, node, inputs, outputs)
        self.function = function

    def run(self, registers: list) -> None:
        self.store(registers, self.function(*[registers[i] for i in self.inputs]))


class Cond(WithBlocks):
    """One of two blocks, as a condition tells."""

    __slots__ = ()

    def run(self, registers: list) -> None:
        condition, *values = self.values(registers)
        if _seen_by_levels([condition, *values]):
            chosen, other = self.block(registers, 0), self.block(registers, 1)
            self.store(registers, cond(condition, chosen, other, values))
            return
        code = self.codes[0] if condition else self.codes[1]
        self.store(registers, code.call(registers, values))


class While(WithBlocks):
    """A block that is repeated as long as another one returns True."""

    __slots__ = ()

    def run(self, registers: list) -> None:
        condition, body = self.codes
        values = self.values(registers)
        count = len(self.outputs)
        if _seen_by_levels(values):
            rest = values[count:]
            holds, following = self.block(registers, 0), self.block(registers, 1)
            results = while_loop(
                lambda *carried: holds(*carried, *rest)[0],
                lambda *carried: following(*carried, *rest),
                values[:count],
            )
            self.store(registers, results)
            return
        while condition.call(registers, values)[0]:
            values[:count] = body.call(registers, values)
        self.store(registers, values[:count])


class Rounds(WithBlocks):
    """A loop that collects what each round began with."""

    __slots__ = ()

    def run(self, registers: list) -> None:
        condition, body = self.codes
        values = self.values(registers)
        count = len(self.outputs)
        collected: list[list] = [[] for _ in self.outputs]
        while condition.call(registers, values)[0]:
            for items, value in zip(collected, values, strict=False):
                items.append(value)
            values[:count] = body.call(registers, values)
        types = [value.type for value in self.node.blocks[1].inputs]
        self.store(registers, list(map(_stacked, collected, types)))


class Scan(WithBlocks):
    """A block over the slices of some inputs, which carries values from each slice to the next."""

    __slots__ = ("carried", "mapped", "reverse")

    def __init__(self, node: Node, inputs: tuple, outputs: tuple, codes: list[Code]) -> None:
        WithBlocks.__init__(self, node, inputs, outputs, codes)
        self.carried = node.attributes.get("carried", 0)
        self.mapped = node.attributes["mapped"]
        self.reverse = node.attributes.get("reverse", False)

    def run(self, registers: list) -> None:
        values = self.values(registers)
        carry, rest = values[: self.carried], values[self.carried + self.mapped :]
        slices = values[self.carried : self.carried + self.mapped]
        length = slices[0].array.shape[0]
        if any(x.array.shape[0] != length for x in slices):
            raise RuntimeError(
                f"{self.node.kind}: the inputs to go through differ in length: "
                f"{[x.array.shape[0] for x in slices]}"
            )
        collected: list[list] = [[] for _ in self.outputs[self.carried :]]
        for i in range(length - 1, -1, -1) if self.reverse else range(length):
            parts = [_select.call((x, 0, i)) for x in slices]
            results = self.codes[0].call(registers, [*carry, *parts, *rest])
            carry = results[: self.carried]
            for items, result in zip(collected, results[self.carried :], strict=True):
                items.append(result)
        types = [value.type for value in self.node.blocks[0].outputs[self.carried :]]
        if self.reverse:
            collected = [items[::-1] for items in collected]
        self.store(registers, [*carry, *map(_stacked, collected, types)])


def _stacked(items: list[Tensor], known: Type) -> Tensor:
    """What all rounds of a loop have made; if there were none, nothing of a known shape."""
    if items:
        return stack.call((items, 0))
    if not isinstance(known, TensorType) or known.concrete_shape is None:
        raise RuntimeError("a loop over nothing: its result has no known shape")
    return full((0, *known.concrete_shape), 0, dtype=known.dtype)


_select = operator_named("select")
#: The instructions of nodes with blocks; a custom Function needs programs in addition.
OF_KINDS: dict[str, Callable[[Node, tuple, tuple, list[Code]], Instruction]] = {
    prim.GRAD_OF: GradOf,
    prim.DIFFERENTIABLE_GRAPH: Inner,
    prim.COND: Cond,
    prim.WHILE: While,
    prim.ROUNDS: Rounds,
    prim.SCAN: Scan,
    prim.MAP: Scan,
}
