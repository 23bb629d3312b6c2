"""Runs a graph on eager operators: the meaning of graphs, which every other way to run one shares.

Values live in numbered registers and are dropped after their last use. Operators run as they would
in a Python program, so under the modes of the caller, and are recorded if he records.

Memory layout is no part of a graph's meaning: where an operator wants its argument to lie in memory
in a certain way, as `view` does, the interpreter copies if it has to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...autograd.function import once_only
from ...core.state import thread_state
from ...core.tensor import Tensor
from ...creation.drawing import DRAWS
from ...creation.factories import full
from ...dispatch import operator as dispatch
from ...operators.copying import clone, pack
from ...operators.joining import stack
from ...operators.views import reshape
from ..ir import primitives as prim
from ..ir.graph import Graph
from ..ir.nodes import HOLE, Block, Node, Value, node_reads
from ..ir.printer import literal_key
from ..ir.types import TensorType, Type, join, type_of

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
        builder = _Builder(group)
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


class _Call(Instruction):
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


class _Evaluate(_Call):
    """A primitive that is a plain function; with one output, the result is that output."""

    __slots__ = ()

    def run(self, registers: list) -> None:
        arguments = self.arguments.copy()
        for position, register in self.places:
            arguments[position] = registers[register]
        result = self.function(*arguments)
        if self.node.kind in _UNPACKING:
            self.store(registers, result)
        else:
            registers[self.outputs[0]] = result


_UNPACKING = {prim.LIST_UNPACK, prim.TUPLE_UNPACK, prim.CHECK}


class _Constant(Instruction):
    __slots__ = ("value",)

    def __init__(self, node: Node, inputs: tuple, outputs: tuple) -> None:
        Instruction.__init__(self, node, inputs, outputs)
        self.value = node.attributes["value"]

    def run(self, registers: list) -> None:
        registers[self.outputs[0]] = self.value


class _Random(Instruction):
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


class _Once(Instruction):
    """Results of a backward that can be differentiated once, behind the gradients it was given."""

    __slots__ = ()

    def run(self, registers: list) -> None:
        values = [registers[i] for i in self.inputs]
        count = self.node.attributes["grads"]
        self.store(registers, once_only(values[count:], values[:count]))


class _Chunk(Instruction):
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


class _Profile(Instruction):
    """The value itself; what is seen of its type is noted in the node."""

    __slots__ = ()

    def run(self, registers: list) -> None:
        value = registers[self.inputs[0]]
        seen = type_of(value)
        known = self.node.attributes.get("profiled_type")
        self.node.attributes["profiled_type"] = seen if known is None else join(known, seen)
        registers[self.outputs[0]] = value


class _WithBlocks(Instruction):
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


class _GradOf(_WithBlocks):
    """The gradient of one node: undefined if all it starts from is, since it is linear."""

    __slots__ = ()

    def run(self, registers: list) -> None:
        if all(registers[i] is None for i in self.inputs):
            self.store(registers, [None] * len(self.outputs))
        else:
            self.store(registers, self.codes[0].call(registers, ()))


class _Inner(_WithBlocks):
    """A block as a function of the inputs."""

    __slots__ = ()

    def run(self, registers: list) -> None:
        self.store(registers, self.codes[0].call(registers, self.values(registers)))


class _Function(_WithBlocks):
    """A custom Function: the first block, of which the second is the derivative."""

    __slots__ = ("forward", "backward", "needed")

    def __init__(self, node: Node, inputs: tuple, outputs: tuple, codes: list[Code]) -> None:
        _WithBlocks.__init__(self, node, inputs, outputs, codes)
        self.forward: Program | None = None
        self.backward: Program | None = None
        self.needed: list[int] = []  # what the backward takes of inputs and outputs

    def run(self, registers: list) -> None:
        values = self.values(registers)
        state = thread_state()
        if not state.levels and not (state.recording() and any(t.requires() for t in values)):
            self.store(registers, self.codes[0].call(registers, values))
            return
        from ..trace.functions import FunctionCall, backward_graph
        from .subgraphs import block_graph

        if self.forward is None:
            reverse, self.needed = backward_graph(self.node)
            self.backward = Program(reverse)
            self.forward = Program(block_graph(self.node.blocks[0]))
        self.store(registers, FunctionCall.apply(self, *values))


class _Group(Instruction):
    """A block that something else runs."""

    __slots__ = ("function",)

    def __init__(self, node: Node, inputs: tuple, outputs: tuple, function: Callable) -> None:
        Instruction.__init__(self, node, inputs, outputs)
        self.function = function

    def run(self, registers: list) -> None:
        self.store(registers, self.function(*[registers[i] for i in self.inputs]))


class _Cond(_WithBlocks):
    __slots__ = ()

    def run(self, registers: list) -> None:
        condition, *values = self.values(registers)
        if _seen_by_levels([condition, *values]):
            from ..trace.control_flow import cond

            chosen, other = self.block(registers, 0), self.block(registers, 1)
            self.store(registers, cond(condition, chosen, other, values))
            return
        code = self.codes[0] if condition else self.codes[1]
        self.store(registers, code.call(registers, values))


class _While(_WithBlocks):
    __slots__ = ()

    def run(self, registers: list) -> None:
        condition, body = self.codes
        values = self.values(registers)
        count = len(self.outputs)
        if _seen_by_levels(values):
            from ..trace.control_flow import while_loop

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


class _Rounds(_WithBlocks):
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


class _Scan(_WithBlocks):
    """A block over the slices of some inputs, which carries values from each slice to the next."""

    __slots__ = ("carried", "mapped", "reverse")

    def __init__(self, node: Node, inputs: tuple, outputs: tuple, codes: list[Code]) -> None:
        _WithBlocks.__init__(self, node, inputs, outputs, codes)
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


_select = dispatch.operator_named("select")
_WITH_BLOCKS: dict[str, Any] = {
    prim.GRAD_OF: _GradOf,
    prim.DIFFERENTIABLE_GRAPH: _Inner,
    prim.COND: _Cond,
    prim.WHILE: _While,
    prim.ROUNDS: _Rounds,
    prim.SCAN: _Scan,
    prim.MAP: _Scan,
    prim.FUNCTION: _Function,
}


def _reshape(args: tuple) -> Tensor:
    return reshape(args[0], args[1])


def _unsafe_view(args: tuple) -> Tensor:
    """Unlike a reshape no view, which a result of the graph would stay for who gets it."""
    x, size = args
    return dispatch.operator_named("_unsafe_view").call(
        (x if x.array.flags.c_contiguous else pack.call1(x), size)
    )


def _view_as_complex(args: tuple) -> Tensor:
    x = args[0]
    return dispatch.operator_named("view_as_complex").call(
        (x if x.array.flags.c_contiguous else pack.call1(x),)
    )


def _view_dtype(args: tuple) -> Tensor:
    x, dtype = args
    return dispatch.operator_named("view.dtype").call(
        (x if x.array.flags.c_contiguous else pack.call1(x), dtype)
    )


def _copy(args: tuple) -> Tensor:
    """What `copy_` would write, in memory of its own."""
    return clone.call1(dispatch.operator_named("copy").call(args))


def _stop_gradient(args: tuple) -> Tensor:
    """No view for autograd, which would require grad as what it is a view of does."""
    return args[0].detach()


#: Operators that want a certain layout or return a view where it does not matter, by what they mean
#: in a graph.
_MEANINGS: dict[str, Callable[[tuple], Any]] = {
    "view": _reshape,
    "_reshape_alias": _reshape,
    "_unsafe_view": _unsafe_view,
    "view_as_complex": _view_as_complex,
    "view.dtype": _view_dtype,
    "copy": _copy,
    "_stop_gradient": _stop_gradient,
}


def function_of(operator: Any) -> Callable[[tuple], Any]:
    """What an operator means in a graph, where memory layout is nothing that counts."""
    return _MEANINGS.get(operator.name, operator.call)


def callable_of(node: Node) -> Callable[[tuple], Any]:
    """The function of all arguments that an operator's node stands for.

    With one or two operands and defaults, that is the short way which eager programs take too: its
    loops may round otherwise than the general kernel.
    """
    operator = node.operator
    if prim.is_custom(operator):
        return operator.call_converted
    if operator.name in _MEANINGS or operator.mutates:
        return function_of(operator)
    count = operator.operands
    rest = (node.arguments or ())[count:]
    if operator.tail_has_defaults and literal_key(rest) == literal_key(operator.tail):
        if count == 1:
            return lambda args: operator.call1(args[0])
        if count == 2:
            return lambda args: operator.call2(args[0], args[1])
    return operator.call


def _is_tensor_list(node: Node, position: int) -> bool:
    return node.schema is not None and node.schema.arguments[position].type.startswith(
        ("Tensor[]", "Tensor?[]")
    )


class _Builder:
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
            return _Call(node, inputs, outputs, callable_of(node))
        if node.kind == prim.CONSTANT:
            return _Constant(node, inputs, outputs)
        if node.kind == prim.RANDOM:
            return _Random(node, inputs, outputs)
        if node.kind == prim.ONCE_DIFFERENTIABLE:
            return _Once(node, inputs, outputs)
        if node.kind == prim.CONSTANT_CHUNK:
            return _Chunk(node, inputs, outputs)
        if node.kind in prim.PROFILES:
            return _Profile(node, inputs, outputs)
        if node.kind == prim.DIFFERENTIABLE_GRAPH and self.group is not None:
            return _Group(node, inputs, outputs, self.group(node))
        if node.kind in _WITH_BLOCKS:
            return _WITH_BLOCKS[node.kind](node, inputs, outputs, codes)
        primitive = prim.PRIMITIVES[node.kind]
        if primitive.evaluate is None:
            raise RuntimeError(f"{node.kind} cannot be run")
        return _Evaluate(node, inputs, outputs, primitive.evaluate)

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
