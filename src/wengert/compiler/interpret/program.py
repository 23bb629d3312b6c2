"""Runs a graph on eager operators: the meaning of graphs, which every other way to run one shares.

Values live in numbered registers and are dropped after their last use. Operators run as they would
in a Python program: under the modes of the caller, and recorded where the caller's operators are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir import primitives as prim
from ..ir.blocks import Block, node_reads
from ..ir.graph import Graph
from ..ir.nodes import Node, Value
from . import control, instructions
from .instructions import Code, Instruction

Group = Callable[[Node], Callable[..., tuple]]


def run(graph: Graph, *inputs: Any) -> tuple:
    """The outputs of a graph. To run it several times, make a `Program` of it once."""
    return Program(graph)(*inputs)


class Program:
    """A graph made ready to run. Later changes of the graph do not reach it.

    `group` makes of each `prim::DifferentiableGraph` the function to call in its place.
    """

    def __init__(self, graph: Graph, group: Group | None = None) -> None:
        self.inputs = len(graph.inputs)
        builder = InstructionBuilder(group)
        self.code = builder.block(graph.block)
        self.size = len(builder.registers)

    def __call__(self, *inputs: Any) -> tuple:
        return self.run(list(inputs))

    def run(self, inputs: list) -> tuple:
        """The outputs; the list is emptied, so that inputs too can be dropped after their use."""
        if len(inputs) != self.inputs:
            raise TypeError(f"the graph takes {self.inputs} inputs, {len(inputs)} were given")
        registers: list[Any] = [None] * self.size
        for register in reversed(self.code.inputs):
            registers[register] = inputs.pop()
        self.code.run(registers)
        return tuple([registers[i] for i in self.code.outputs])


class InstructionBuilder:
    """Gives registers to values and instructions to nodes."""

    def __init__(self, group: Group | None = None) -> None:
        self.registers: dict[Value, int] = {}
        self.group = group

    def register(self, value: Value) -> int:
        return self.registers.setdefault(value, len(self.registers))

    def block(self, block: Block) -> Code:
        code = Code()
        code.inputs = tuple([self.register(value) for value in block.inputs])
        nodes = list(block.nodes())
        code.instructions = [self.instruction(node) for node in nodes]
        code.outputs = tuple([self.register(value) for value in block.outputs])
        self.mark_dead(block, nodes, code)
        return code

    def instruction(self, node: Node) -> Instruction:
        inputs = tuple([self.register(value) for value in node.inputs])
        codes = [self.block(block) for block in node.blocks]
        outputs = tuple([self.register(value) for value in node.outputs])
        if node.operator is not None:
            return instructions.of_operator(node, inputs, outputs)
        if node.kind in instructions.OF_KINDS:
            return instructions.OF_KINDS[node.kind](node, inputs, outputs)
        if node.kind == prim.DIFFERENTIABLE_GRAPH and self.group is not None:
            return control.Group(node, inputs, outputs, self.group(node))
        if node.kind == prim.FUNCTION:
            return control.CustomFunction(node, inputs, outputs, codes, Program)
        if node.kind in control.OF_KINDS:
            return control.OF_KINDS[node.kind](node, inputs, outputs, codes)
        return instructions.Evaluate(node, inputs, outputs, prim.PRIMITIVES[node.kind])

    def mark_dead(self, block: Block, nodes: list[Node], code: Code) -> None:
        """Values of this block die with the last node that reads them, inside or directly."""
        own = set(block.inputs).union(*[node.outputs for node in nodes])
        kept = set(block.outputs)
        for node, instruction in zip(reversed(nodes), reversed(code.instructions), strict=True):
            dying = []
            for value in (*node.outputs, *node_reads(node)):
                if value in own and value not in kept:
                    kept.add(value)
                    dying.append(self.registers[value])
            instruction.dead = tuple(dying)
        code.unused = tuple([self.registers[v] for v in block.inputs if v not in kept])
