"""Instructions: one for each node of a block, on numbered registers that hold the values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...autograd.function import once_only
from ...creation.drawing import DRAWS
from ..ir import primitives as prim
from ..ir.literals import HOLE
from ..ir.nodes import Node
from ..ir.primitives import Primitive
from ..ir.types import join, type_of
from .meanings import callable_of, short_operands


class Code:
    """What to do for one block: its instructions and the registers of its inputs and outputs."""

    __slots__ = ("inputs", "outputs", "instructions", "unused")

    def __init__(self) -> None:
        self.inputs: tuple[int, ...] = ()
        self.outputs: tuple[int, ...] = ()
        self.instructions: list[Instruction] = []
        self.unused: tuple[int, ...] = ()

    def run(self, registers: list) -> None:
        for i in self.unused:
            registers[i] = None
        for instruction in self.instructions:
            try:
                instruction.run(registers)
            except Exception as error:
                if not getattr(error, "__notes__", None):
                    error.add_note(f"while running {instruction.text()}")
                raise
            for i in instruction.dead:
                registers[i] = None

    def call(self, registers: list, values: Iterable[Any]) -> list:
        """The outputs for given inputs; used by the nodes that run a block again and again."""
        for i, value in zip(self.inputs, values, strict=True):
            registers[i] = value
        self.run(registers)
        return [registers[i] for i in self.outputs]


class Instruction:
    """One node: the registers it reads and writes, and those that are dropped after it."""

    __slots__ = ("node", "inputs", "outputs", "dead")

    def __init__(self, node: Node, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> None:
        self.node = node
        self.inputs = inputs
        self.outputs = outputs
        self.dead: tuple[int, ...] = ()

    def run(self, registers: list) -> None:
        raise NotImplementedError

    def text(self) -> str:
        """The node's line, for errors."""
        return repr(self.node).split("\n")[0].strip()

    def store(self, registers: list, results: Sequence[Any]) -> None:
        """Write results into the output registers."""
        if len(results) != len(self.outputs):
            raise RuntimeError(
                f"the node has {len(self.outputs)} outputs but {len(results)} results were computed"
            )
        for i, value in zip(self.outputs, results, strict=True):
            registers[i] = value


class Call(Instruction):
    """A function of arguments, some of them literals."""

    __slots__ = ("function", "arguments", "places", "lists")

    def __init__(self, node: Node, inputs: tuple, outputs: tuple, function: Callable) -> None:
        Instruction.__init__(self, node, inputs, outputs)
        self.function = function
        arguments = (HOLE,) * len(inputs) if node.arguments is None else node.arguments
        self.arguments = list(arguments)
        supply = iter(inputs)
        places, lists = [], []
        for position, item in enumerate(arguments):
            if item is HOLE:
                places.append((position, next(supply)))
            elif _is_tensor_list(node, position):
                lists.append(
                    (position, [(next(supply) if part is HOLE else None, part) for part in item])
                )
        self.places, self.lists = tuple(places), tuple(lists)

    def run(self, registers: list) -> None:
        arguments = self.arguments.copy()
        for position, register in self.places:
            arguments[position] = registers[register]
        for position, items in self.lists:
            arguments[position] = [part if i is None else registers[i] for i, part in items]
        result = self.function(tuple(arguments))
        if len(self.outputs) == 1 and not isinstance(result, (tuple, list)):
            registers[self.outputs[0]] = result
        else:
            self.store(registers, result)


class UnaryCall(Instruction):
    """An operator of one operand with one result, the short way."""

    __slots__ = ("function", "operand", "result")

    def __init__(self, node: Node, inputs: tuple, outputs: tuple) -> None:
        Instruction.__init__(self, node, inputs, outputs)
        self.function = node.operator.call1
        (self.operand,) = inputs
        (self.result,) = outputs

    def run(self, registers: list) -> None:
        registers[self.result] = self.function(registers[self.operand])


class BinaryCall(Instruction):
    """An operator of two operands with one result, the short way; one may be a number."""

    __slots__ = ("function", "left", "right", "number", "result")

    def __init__(self, node: Node, inputs: tuple, outputs: tuple) -> None:
        Instruction.__init__(self, node, inputs, outputs)
        self.function = node.operator.call2
        supply = iter(inputs)
        left, right = (node.arguments or ())[:2]
        self.left = next(supply) if left is HOLE else None
        self.right = next(supply) if right is HOLE else None
        self.number = left if right is HOLE else right
        (self.result,) = outputs

    def run(self, registers: list) -> None:
        left, right = self.left, self.right
        registers[self.result] = self.function(
            self.number if left is None else registers[left],
            self.number if right is None else registers[right],
        )


def of_operator(node: Node, inputs: tuple, outputs: tuple) -> Instruction:
    """The instruction of an operator's node."""
    if node.schema.returns == ("Tensor",):
        holes = [item is HOLE for item in node.arguments or ()]
        count = short_operands(node)
        if count == 1 and holes[0]:
            return UnaryCall(node, inputs, outputs)
        if count == 2 and (holes[0] or holes[1]):
            return BinaryCall(node, inputs, outputs)
    return Call(node, inputs, outputs, callable_of(node))


class Evaluate(Call):
    """A primitive that is a plain function; what it returns is the output, or all of several."""

    __slots__ = ("several",)

    def __init__(self, node: Node, inputs: tuple, outputs: tuple, primitive: Primitive) -> None:
        if primitive.evaluate is None:
            raise RuntimeError(f"{node.kind} cannot be run")
        Call.__init__(self, node, inputs, outputs, primitive.evaluate)
        self.several = primitive.several

    def run(self, registers: list) -> None:
        arguments = self.arguments.copy()
        for position, register in self.places:
            arguments[position] = registers[register]
        result = self.function(*arguments)
        if self.several:
            self.store(registers, result)
        else:
            registers[self.outputs[0]] = result


class Constant(Instruction):
    """A value that the node holds."""

    __slots__ = ("value",)

    def __init__(self, node: Node, inputs: tuple, outputs: tuple) -> None:
        Instruction.__init__(self, node, inputs, outputs)
        self.value = node.attributes["value"]

    def run(self, registers: list) -> None:
        registers[self.outputs[0]] = self.value


class Random(Instruction):
    """A draw: the function is called again and draws other numbers."""

    __slots__ = ("function", "args", "tensors", "kwargs")

    def __init__(self, node: Node, inputs: tuple, outputs: tuple) -> None:
        Instruction.__init__(self, node, inputs, outputs)
        self.function = DRAWS[node.attributes["function"]]
        self.args = list(node.attributes["args"])
        self.tensors = node.attributes["tensors"]
        self.kwargs = dict(node.attributes["kwargs"])

    def run(self, registers: list) -> None:
        args = self.args.copy()
        for position, register in zip(self.tensors, self.inputs, strict=True):
            args[position] = registers[register]
        registers[self.outputs[0]] = self.function(*args, **self.kwargs)


class Once(Instruction):
    """Results of a backward that can be differentiated once, behind the gradients it was given."""

    __slots__ = ()

    def run(self, registers: list) -> None:
        values = [registers[i] for i in self.inputs]
        count = self.node.attributes["grads"]
        self.store(registers, once_only(values[count:], values[:count]))


class Chunk(Instruction):
    """A tensor cut into a number of parts that is known."""

    __slots__ = ()

    def run(self, registers: list) -> None:
        attributes = self.node.attributes
        parts = registers[self.inputs[0]].chunk(attributes["chunks"], attributes["dim"])
        if len(parts) != len(self.outputs):
            raise RuntimeError(
                f"{self.node.kind}: expected {len(self.outputs)} chunks along dimension "
                f"{attributes['dim']}, got {len(parts)}"
            )
        self.store(registers, parts)


class Profile(Instruction):
    """The value itself; what is seen of its type is noted in the node."""

    __slots__ = ()

    def run(self, registers: list) -> None:
        value = registers[self.inputs[0]]
        seen = type_of(value)
        known = self.node.attributes.get("profiled_type")
        self.node.attributes["profiled_type"] = seen if known is None else join(known, seen)
        registers[self.outputs[0]] = value


def _is_tensor_list(node: Node, position: int) -> bool:
    return node.schema is not None and node.schema.arguments[position].type.startswith(
        ("Tensor[]", "Tensor?[]")
    )


#: The instructions of nodes without blocks that are neither operators nor plain functions.
OF_KINDS: dict[str, Callable[[Node, tuple, tuple], Instruction]] = {
    prim.CONSTANT: Constant,
    prim.RANDOM: Random,
    prim.ONCE_DIFFERENTIABLE: Once,
    prim.CONSTANT_CHUNK: Chunk,
    prim.PROFILE: Profile,
    prim.PROFILE_IVALUE: Profile,
}
