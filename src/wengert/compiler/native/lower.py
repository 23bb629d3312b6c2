"""A graph as loops: each node becomes loops, or a step that calls the operator as it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backends.host import is_plain
from ...backends.layout import row_major
from ...core.scalar.expressions import Unsupported, type_of
from ...core.tensor import Tensor
from ..interpret.instructions import Instruction
from ..interpret.program import InstructionBuilder
from ..ir import primitives as prim
from ..ir.blocks import node_reads
from ..ir.graph import Graph
from ..ir.literals import fill
from ..ir.nodes import Node
from ..ir.nodes import Value as Symbol
from ..ir.types import TensorType
from . import control
from .arrays import CheckedBuilder, SymbolicArray
from .building import Growing, Value
from .control import Signature
from .forms import Operand, form_of
from .loops import Buffer, Group
from .namespace import ArrayNamespace
from .products import product_sum
from .sums import Sum, sums_of


class Late:
    """A buffer that is bound when a step has run: to the memory of the tensor in a register."""

    __slots__ = ("register", "buffer", "signature")

    def __init__(self, register: int, buffer: Buffer, signature: Signature) -> None:
        self.register = register
        self.buffer = buffer
        self.signature = signature


class Export:
    """A buffer that is a tensor of its own: a result, or what a step reads."""

    __slots__ = ("register", "buffer", "shape", "dtype")

    def __init__(self, register: int, buffer: Buffer, shape: tuple[int, ...], dtype: Any) -> None:
        self.register = register
        self.buffer = buffer
        self.shape = shape
        self.dtype = dtype


class Lowered:
    """The groups of a graph, and how its inputs and outputs relate to buffers and registers."""

    groups: list[Group]
    buffers: list[Buffer]
    inputs: list[Buffer | None]
    exports: list[Export]
    registers: int
    input_registers: tuple[int, ...]
    output_registers: tuple[int, ...]
    #: Why nodes are called as they are, by kind.
    reasons: dict[str, str]
    #: Nodes that became loops, and in all.
    native: int
    total: int


def lower(graph: Graph, signatures: list[Signature]) -> Lowered:
    """Loops for a graph whose inputs have these signatures."""
    return _Lowering(graph, signatures).result()


#: Operators that are views in NumPy's eyes and copies in a graph's only where layout demands it.
_RESHAPES = {"view", "_reshape_alias", "_unsafe_view", "reshape"}
#: Operators whose result is their first operand, as far as values go.
_COPIES = {"clone", "_contiguous", "_tied"}


class _Lowering:
    def __init__(
        self, graph: Graph, signatures: list[Signature], may_check: bool | None = None
    ) -> None:
        self.graph = graph
        nodes = list(graph.nodes())
        if may_check is None:
            may_check = not any(node.has_effects for node in nodes)
        self.builder = CheckedBuilder(may_check)
        self.namespace = ArrayNamespace(self.builder)
        self.values: dict[Symbol, Any] = {}
        #: Values of rounds of unknown number, which only loops can go through.
        self.growing: dict[Symbol, Growing] = {}
        self.instructions = InstructionBuilder()
        self.tensors: set[Symbol] = set()  # those that have a register with a tensor
        self.exports: list[Export] = []
        self.reasons: dict[str, str] = {}
        self.native = 0
        self.nodes = nodes
        self.sums = sums_of(nodes)
        #: What is computed with the sum that reads it.
        self.parts = {part for each in self.sums.values() for part in each.parts}
        self.inputs: list[Buffer | None] = []
        for symbol, signature in zip(graph.inputs, signatures, strict=True):
            self.instructions.register(symbol)
            self.tensors.add(symbol)
            try:
                value = self.builder.input(
                    signature.dtype, signature.shape, signature.strides
                )
            except Unsupported:
                self.inputs.append(None)
                continue
            self.inputs.append(value.buffer)
            self.values[symbol] = value

    def lower_nodes(self) -> None:
        for node in self.nodes:
            self.node(node)

    def result(self) -> Lowered:
        self.lower_nodes()
        outputs = tuple([self.tensor(symbol) for symbol in self.graph.outputs])
        self.check()
        made = Lowered()
        made.input_registers = tuple(
            [self.instructions.register(symbol) for symbol in self.graph.inputs]
        )
        made.output_registers = outputs
        made.groups = self.builder.finished()
        made.buffers = self.builder.buffers
        made.inputs = self.inputs
        made.exports = self.exports
        made.registers = len(self.instructions.registers)
        made.reasons = self.reasons
        made.native, made.total = self.native, len(self.nodes)
        return made

    def check(self) -> None:
        """A store at a place that is out of range where a check fails, which sets the flag."""
        builder = self.builder
        if not builder.checks:
            return
        failed = builder.checks[0]
        for other in builder.checks[1:]:
            failed = builder.pointwise(lambda x, y: x | y, [failed, other], ())
        failed = builder.in_memory(builder.cast(failed, "i64"))
        written = builder.scatter(
            (1,), builder.uniform((1,), "i64", 0), builder.uniform((), "i64", 0),
            lambda view: view, [failed], [0], False,
        )  # fmt: skip
        assert written.buffer is not None
        builder.kept.add(written.buffer.id)

    # Nodes -------------------------------------------------------------------------------------

    def node(self, node: Node) -> None:
        if node in self.parts:
            return
        try:
            if self.lowered(node):
                self.native += 1
                return
            reason = "it is no operator"
        except Unsupported as error:
            reason = str(error)
        except Exception as error:  # see forms.py
            reason = f"{type(error).__name__}: {error}"
        self.reasons.setdefault(node.kind, reason)
        self.eager(node)

    def lowered(self, node: Node) -> bool:
        """Make loops of a node; False, or `Unsupported`, where there are none for it."""
        if node in self.sums and self._with_product(node, self.sums[node]):
            return True
        if self._goes_by_rounds(node):
            return self._keep(node, control.each_round(self, node))
        if node.operator is None:
            return self._primitive(node)
        operator = node.operator
        if prim.is_custom(operator) or operator.mutates or getattr(operator, "mutated", ()):
            raise Unsupported("it is a program's own, or changes its arguments")
        if operator.facts.get("called"):
            raise Unsupported("its own machine code is faster")
        arguments = self._arguments(node)
        name = operator.name
        if node.is_view or name in _RESHAPES:
            results = self._view(node, arguments)
        elif name in _COPIES:
            results = [arguments[0]]
        elif name == "_with_value":
            results = [arguments[1]]
        elif operator.family == "elementwise" or operator.broadcasts:
            try:
                results = self._elementwise(node, arguments)
            except (Unsupported, ValueError):  # operands that write to parts have other shapes
                results = self._by_kernel(node, arguments)
        else:
            results = self._by_kernel(node, arguments)
        return self._keep(node, results)

    def _with_product(self, node: Node, found: Sum) -> bool:
        """Make one step of a sum and its product; if that cannot be, make what it consists of."""
        builder = self.builder
        try:
            operands = (found.left, found.right, found.start)
            left, right, start = [SymbolicArray(builder, self._known(x)) for x in operands]
            left, right = [
                x.T if turned else x for x, turned in zip((left, right), found.turned, strict=True)
            ]
            made = product_sum(
                builder, left.value, right.value, start.value, found.factor, found.least
            )
            self._keep(node, [made])
        except Unsupported:
            self.parts.difference_update(found.parts)
            for part in found.parts:
                self.node(part)
            return False
        self.native += len(found.parts)
        return True

    def _goes_by_rounds(self, node: Node) -> bool:
        """Whether a node does to the values of all rounds what it would do to those of each."""
        if not self.growing or not any(symbol in self.growing for symbol in node.inputs):
            return False
        operator = node.operator
        if operator is None:
            return bool(node.kind == prim.AUTOGRAD_ADD)
        return bool(operator.family == "elementwise" or operator.broadcasts)

    def _keep(self, node: Node, results: list[Value]) -> bool:
        """Note the values of a node's outputs, if they are what its types say."""
        if len(results) != len(node.outputs):
            raise Unsupported("another number of results")
        for symbol, value in zip(node.outputs, results, strict=True):
            known = symbol.type
            if not isinstance(known, TensorType):
                raise Unsupported("a result that is no tensor")
            if known.dtype is not None and type_of(known.dtype.numpy) != value.kind:
                raise Unsupported(f"a result of {value.kind} in place of {known.dtype}")
            if known.concrete_shape is not None and known.concrete_shape != value.shape:
                raise Unsupported(f"a result of {value.shape} in place of {known.shape}")
        for symbol, value in zip(node.outputs, results, strict=True):
            if isinstance(value, Growing):
                self.growing[symbol] = value
            else:
                self.values[symbol] = value
        return True

    def _arguments(self, node: Node) -> tuple:
        """The arguments of a node, with values in the places of its inputs."""
        found = [self._known(symbol) for symbol in node.inputs]
        return fill(node.arguments if node.arguments is not None else (), found)

    def _known(self, symbol: Symbol | None) -> Value:
        """The value of a symbol that loops can read."""
        if symbol is None or symbol not in self.values:
            raise Unsupported("an operand is not known before the graph runs")
        value: Value = self.values[symbol]
        return value

    def _primitive(self, node: Node) -> bool:
        if node.kind == prim.CONSTANT:
            value = node.attributes["value"]
            if isinstance(value, Tensor):
                if not is_plain(value.array):
                    raise Unsupported("a constant of another array class")
                self.values[node.output] = self.builder.constant(value.array)
                return True
            raise Unsupported("a constant that is no tensor")
        if node.kind == prim.FULL:
            size, number, dtype, device = node.bound_arguments()
            if device is not None and device.type != "cpu":
                raise Unsupported("a tensor on another device")
            kind = type_of(dtype.numpy)
            made = self.builder.uniform(tuple(size), kind, np.asarray(number).astype(dtype.numpy))
            return self._keep(node, [made])
        if node.kind == prim.AUTOGRAD_ADD:
            x, y = (self.values.get(symbol) for symbol in node.inputs)
            if x is None or y is None or x.shape != y.shape or x.kind != y.kind:
                raise Unsupported("a sum with an undefined gradient")
            return self._keep(
                node, [self.builder.pointwise(lambda a, b: a + b, [x, y], x.shape)]
            )
        if node.kind in control.KINDS:
            return self._keep(node, control.lowered(self, node))
        return False

    def _elementwise(self, node: Node, arguments: tuple) -> list[Value]:
        """An operator that broadcasts, by its scalar form."""
        operator = node.operator
        values = [a for a in arguments if isinstance(a, Value)]
        types = [symbol.type for symbol in node.outputs]
        if not values or any(not isinstance(t, TensorType) or t.dtype is None for t in types):
            raise Unsupported("types that are not known")
        shape = np.broadcast_shapes(*[v.shape for v in values])
        operands = [
            Operand(a.kind, not a.shape) if isinstance(a, Value) else a for a in arguments
        ]
        goals = [t.dtype.numpy for t in types]  # type: ignore[attr-defined]
        form = form_of(operator, operands, goals)
        return self.builder.replayed(form, values, shape)

    def _by_kernel(self, node: Node, arguments: tuple) -> list[Value]:
        """Any other operator, by its kernel on arrays that are not there yet."""
        operator = node.operator
        builder = self.builder

        def wrapped(a: Any) -> Any:
            if isinstance(a, Value):
                return SymbolicArray(builder, a)
            if isinstance(a, (list, tuple)) and any(isinstance(b, Value) for b in a):
                return [wrapped(b) for b in a]
            return a

        given = tuple([wrapped(a) for a in arguments])
        checks = len(builder.checks)
        try:
            with np.errstate(all="ignore"):
                if operator.dtype_rule is not None:
                    given = operator.promoted(given)
                out = operator.compute(self.namespace, given)
        except BaseException:
            del builder.checks[checks:]  # they belong to what is called as it is now
            raise
        outs = out if isinstance(out, (tuple, list)) else (out,)
        results = []
        for value in outs:
            if isinstance(value, SymbolicArray):
                results.append(value.value)
            elif hasattr(value, "shape"):
                results.append(builder.constant(value))
            else:
                raise Unsupported("a result that is no array")
        return results

    def _view(self, node: Node, arguments: tuple) -> list[Value]:
        """A view, read off the declared kernel; a copy where the layout allows no view."""
        operator = node.operator
        source, *rest = arguments
        if not isinstance(source, Value):
            raise Unsupported("a view of what is no array")
        outputs = node.outputs
        if len(outputs) == 1 and isinstance(outputs[0].type, TensorType):
            known = outputs[0].type.concrete_shape
            if operator.name in _RESHAPES:
                size = known if known is not None else tuple(rest[0])
                return [self.builder.reshaped(source, tuple(size))]
            if operator.name == "_stop_gradient":
                return [source]
        if any(isinstance(a, Value) for a in rest):
            raise Unsupported("a view by the values of a tensor")
        if source.size == 0:
            raise Unsupported("views of no elements")
        builder = self.builder

        def kernel(array: Any) -> Any:
            return operator.kernel(np, array, *rest)

        if source.number is not None:
            array = np.broadcast_to(np.empty((), np.int8), source.shape)
            made = kernel(array)
            parts = made if isinstance(made, (tuple, list)) else [made]
            return [builder.uniform(p.shape, source.kind, source.number) for p in parts]
        builder.in_memory(source)
        try:
            made = kernel(source.view)
        except RuntimeError:
            source = builder.packed(source)
            made = kernel(source.view)
        parts = made if isinstance(made, (tuple, list)) else [made]
        assert source.buffer is not None
        results = []
        for part in parts:
            if part.dtype != source.view.dtype or (
                part.size and not np.may_share_memory(part, source.view)
            ):
                raise Unsupported("a view that copies or changes the type")
            results.append(builder.seen(source.buffer, part, source.ready))
        return results

    # Steps that call operators -----------------------------------------------------------------

    def tensor(self, symbol: Symbol) -> int:
        """The register that has a tensor for a value, which gets one if it has none."""
        register = self.instructions.register(symbol)
        if symbol in self.tensors:
            return register
        node = symbol.node
        if node.operator is not None and self._shares_memory(node):
            # Made by the same view as in the program, so that what is shared is shared again.
            self.eager(node)
            return register
        if node.kind == prim.CONSTANT or symbol in self.growing:
            self.eager(node)
            return register
        value = self.values[symbol]
        buffer = self.builder.export(value)
        dtype = symbol.type.dtype  # type: ignore[attr-defined]
        self.exports.append(Export(register, buffer, value.shape, dtype))
        self.tensors.add(symbol)
        return register

    def _shares_memory(self, node: Node) -> bool:
        """Whether a node's result is a view of a tensor that the caller sees too."""
        if node.operator.name == "_stop_gradient":
            source = node.inputs[0]
            return source in self.tensors or (
                source.node.operator is not None and self._shares_memory(source.node)
            )
        return node.is_view or node.operator.name in _RESHAPES

    def eager(self, node: Node) -> None:
        """A step that calls an operator, or runs a node with blocks, on tensors."""
        builder = self.builder
        for symbol in dict.fromkeys(node_reads(node)):
            # Else it is inside of the node, or a tensor already.
            if symbol in self.values or symbol in self.growing:
                self.tensor(symbol)
        instruction: Instruction = self.instructions.instruction(node)
        registers = {self.instructions.register(symbol) for symbol in node_reads(node)}
        reads = {each.buffer.id for each in self.exports if each.register in registers}
        lates: list[Late] = []
        for symbol in node.outputs:
            self.tensors.add(symbol)
            if symbol in self.values:
                continue  # a view that loops read where it is already
            late = self._late(symbol)
            if late is not None:
                lates.append(late)
        step = builder.call(
            "eager", reads, {late.buffer.id for late in lates}, instruction=instruction, lates=lates
        )
        for symbol, late in [
            (s, each) for each in lates for s in node.outputs
            if self.instructions.register(s) == each.register
        ]:  # fmt: skip
            self.values[symbol] = builder.whole(late.buffer, step.order + 0.5)

    def _late(self, symbol: Symbol) -> Late | None:
        known = symbol.type
        if not isinstance(known, TensorType) or not known.is_complete:
            return None
        assert known.dtype is not None
        shape = known.concrete_shape
        assert shape is not None
        dtype = known.dtype.numpy
        strides = row_major(shape, dtype.itemsize)
        try:
            value = self.builder.input(dtype, shape, strides)
        except Unsupported:
            return None
        assert value.buffer is not None
        register = self.instructions.register(symbol)
        return Late(register, value.buffer, Signature(dtype, shape, strides))
