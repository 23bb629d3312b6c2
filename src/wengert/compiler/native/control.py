"""Control flow in native code: a block is a table of steps of its own, which one step runs.

The memory of a block, its addresses and its arena, is scratch of the program around it. What a loop
carries goes back and forth between two buffers; slices are addresses that move on. Nothing returns
to Python between rounds. What a block copies of something that never changes is copied before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from numpy.lib.stride_tricks import as_strided

from ...core.scalar.expressions import DTYPES, Unsupported
from ..ir import primitives as prim
from ..ir.blocks import Block
from ..ir.graph import Graph, block_graph
from ..ir.nodes import Node
from ..ir.nodes import Value as Symbol
from ..ir.types import slice_of
from ..passes.shapes import propagate_shapes
from .building import Growing, Value
from .frames import Layout
from .loops import GROWN, ROOM, SCRATCH, Buffer
from .plan import ALIGNMENT

KINDS = {prim.SCAN, prim.MAP, prim.COND, prim.WHILE, prim.ROUNDS}


class Signature:
    """Dtype, shape and strides in bytes of an array that comes from outside."""

    __slots__ = ("dtype", "shape", "strides")

    def __init__(self, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.dtype = dtype
        self.shape = shape
        self.strides = strides


class Body:
    """A block as steps, for inputs that are values of the program around it.

    `slices` are the inputs of which each round sees one index of the first dimension.
    """

    def __init__(
        self, lowering: Any, block: Block, inputs: Sequence[Value], slices: range, fixed: set[int]
    ) -> None:
        graph = block_graph(block)
        outer = lowering.builder
        signatures = [_signature(outer, value, i in slices) for i, value in enumerate(inputs)]
        inner = type(lowering)(propagate_shapes(graph), signatures, outer.may_check)
        for i, (symbol, value) in enumerate(zip(graph.inputs, inputs, strict=True)):
            if symbol not in inner.values:
                raise Unsupported("an array of another kind in a block")
            if value.number is not None:
                shape = signatures[i].shape
                inner.values[symbol] = inner.builder.uniform(shape, value.kind, value.number)
            elif i in fixed:
                inner.builder.fixed.add(inner.inputs[i].id)
        inner.lower_nodes()
        if inner.reasons:
            kind, reason = next(iter(inner.reasons.items()))
            raise Unsupported(f"{kind} inside: {reason}")
        results = [inner.values.get(symbol) for symbol in graph.outputs]
        if any(result is None for result in results):
            raise Unsupported("a block returns what is no array")
        self.outputs: list[Buffer] = [inner.builder.export(result) for result in results]
        self.shapes = [result.shape for result in results]
        inner.check()
        self.inputs: list[Buffer | None] = [
            None if value.number is not None else buffer
            for value, buffer in zip(inputs, inner.inputs, strict=True)
        ]
        hoisted = list(inner.builder.hoisted.values())
        self.layout = Layout(inner.builder.finished(), inner.builder.buffers)
        #: Memory that grows stays with the program around: a buffer there, and the one here.
        self.held: list[tuple[Buffer, Buffer]] = [
            (outer.buffer("i64", (1,), buffer.source), buffer)
            for buffer in inner.builder.buffers
            if buffer.source in (GROWN, ROOM)
        ]
        #: What was copied before the loop: a value of the program around it, and the buffer here.
        self.copies: list[tuple[Value, Buffer]] = [
            (_copied_before(outer, inputs[_index_of(inner.inputs, source)], *part), buffer)
            for buffer, source, *part in hoisted
        ]

    def source(self, i: int) -> Buffer:
        """Where a round finds an input that is in memory."""
        buffer = self.inputs[i]
        assert buffer is not None
        return buffer

    @property
    def header(self) -> int:
        """The bytes of the addresses, before the arena."""
        return -(-self.layout.count * 8 // ALIGNMENT) * ALIGNMENT

    @property
    def memory(self) -> int:
        return self.header + self.layout.arena


def _signature(outer: Any, value: Value, is_slice: bool) -> Signature:
    """What a block is told of an input, which has memory afterwards unless it is one number."""
    dtype = DTYPES[value.kind]
    if not value.size:
        raise Unsupported("a block that is given no elements")
    shape = value.shape[1:] if is_slice else value.shape
    if value.number is not None:
        return Signature(dtype, shape, (dtype.itemsize,) * len(shape))
    outer.in_memory(value)
    strides = value.view.strides
    return Signature(dtype, shape, strides[1:] if is_slice else strides)


def _index_of(buffers: Sequence[Buffer | None], number: int) -> int:
    return next(i for i, b in enumerate(buffers) if b is not None and b.id == number)


def _copied_before(
    outer: Any, value: Value, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> Value:
    """A part of a value in row-major order, `offset` bytes after its first element."""
    begin = value.view
    if offset:
        begin = as_strided(begin, (2,), (offset,))[1:]
    part = outer.seen(value.buffer, as_strided(begin, shape, strides), ready_of(value))
    return cast(Value, outer.packed(part))


def ready_of(value: Value) -> float:
    """After which group the memory of a value can be read."""
    return value.ready if value.loop is None else value.loop.order + 0.5


def _in_order(builder: Any, value: Value) -> Value:
    """A value in memory of its own order, also if it is one number everywhere."""
    builder.in_memory(value)
    if value.number is not None:
        assert value.buffer is not None
        return builder.seen(value.buffer, value.view, value.ready)
    return builder.packed(value)


def lowered(lowering: Any, node: Node) -> list[Value]:
    """The values of a node with blocks."""
    if node.kind == prim.COND:
        return _cond(lowering, node, _operands(lowering, node.inputs))
    if node.kind == prim.WHILE:
        return _while(lowering, node, _operands(lowering, node.inputs))
    if node.kind == prim.ROUNDS:
        return _rounds(lowering, node, _operands(lowering, node.inputs))
    carried, mapped = node.attributes.get("carried", 0), node.attributes["mapped"]
    slices = range(carried, carried + mapped)
    inputs = _operands(lowering, node.inputs, slices)
    backward = bool(node.attributes.get("reverse", False))
    return _scan(lowering, node.blocks[0], inputs, slices, backward)


def each_round(lowering: Any, node: Node) -> list[Value]:
    """The values of a node without blocks some of whose operands have a value for each round."""
    symbols = list(dict.fromkeys(node.inputs))
    symbols.sort(key=lambda symbol: symbol not in lowering.growing)
    slices = range(sum([symbol in lowering.growing for symbol in symbols]))
    inputs = _operands(lowering, symbols, slices)
    rank = min([len(inputs[i].shape) for i in slices])
    if any(len(value.shape) >= rank for value in inputs[slices.stop :]):
        raise Unsupported("an operand is not known before the graph runs")
    graph = Graph()
    inside = {
        symbol: graph.add_input(slice_of(symbol.type) if i in slices else symbol.type)
        for i, symbol in enumerate(symbols)
    }
    once = graph.insert_node(graph.create_clone(node, inside))
    for symbol in once.outputs:
        symbol.type = slice_of(symbol.type)
        graph.register_output(symbol)
    return _scan(lowering, graph.block, inputs, slices, backward=False)


def _operands(
    lowering: Any, symbols: Sequence[Symbol], slices: Sequence[int] = ()
) -> list[Value]:
    """The inputs of a node, of which those that a loop goes through may have any length."""
    found = []
    for i, symbol in enumerate(symbols):
        value = lowering.values.get(symbol)
        if value is None and i in slices:
            value = lowering.growing.get(symbol)
        if value is None:
            raise Unsupported("an operand is not known before the graph runs")
        found.append(value)
    return found


def _work(builder: Any, bodies: Sequence[Body]) -> Buffer:
    """Memory for whichever of some bodies runs."""
    return builder.buffer("i64", (max([body.memory for body in bodies]) // 8,), SCRATCH)


def _call(
    builder: Any, name: str, bodies: Sequence[Body], reads: Sequence[Value],
    writes: Sequence[Buffer], **arguments: Any,
) -> Any:  # fmt: skip
    everything = [*reads, *[value for body in bodies for value, _ in body.copies]]
    read = {value.buffer.id for value in everything if value.buffer is not None}
    return builder.call(
        name, read, {buffer.id for buffer in writes}, bodies=list(bodies), **arguments
    )


def _place(builder: Any, value: Value) -> tuple[int, int]:
    """The buffer and the offset in elements of a value in memory."""
    access = builder.access(value)
    return access.buffer, access.offset


def _entries(builder: Any, body: Body, inputs: Sequence[Value], skip: int = 0) -> list:
    """What each round finds where it always is: its buffer, the place, and no step."""
    found = [
        (buffer.base, _place(builder, value), 0, 0)
        for value, buffer in zip(inputs[skip:], body.inputs[skip:], strict=True)
        if buffer is not None
    ]
    return found + [
        (buffer.base, _place(builder, value), 0, 0) for value, buffer in body.copies
    ]


def _length(inputs: Sequence[Value]) -> tuple[int, Buffer | None]:
    """How long the inputs are that a loop goes through, or the buffer that will tell."""
    counts = {value.count.id: value.count for value in inputs if isinstance(value, Growing)}
    if counts:
        if len(counts) > 1 or not all(isinstance(value, Growing) for value in inputs):
            raise Unsupported("a loop through things of different lengths, not all of them known")
        return 1, next(iter(counts.values()))
    lengths = {value.shape[0] for value in inputs}
    if len(lengths) != 1 or 0 in lengths:
        raise Unsupported("a loop over nothing")
    return lengths.pop(), None


def _scan(
    lowering: Any, block: Block, inputs: list[Value], slices: range, backward: bool
) -> list[Value]:
    """A loop through slices, the number of which may be known only when it runs."""
    builder = lowering.builder
    carried = slices.start
    length, count = _length([inputs[i] for i in slices])
    carries = [_in_order(builder, value) for value in inputs[:carried]]
    given = [*carries, *inputs[carried:]]
    body = Body(lowering, block, given, slices, set(range(slices.stop, len(inputs))))
    _check_carried(carries, body)
    entries = _entries(builder, body, given, slices.stop)
    for i in slices:
        if body.inputs[i] is not None:
            step = inputs[i].view.strides[0] if length > 1 or count is not None else 0
            place = _place(builder, inputs[i])
            entries.append(_moving(body.source(i), place, step, length, backward))
    results, collected = _collected(builder, body, carried, count)
    if count is None:
        for inner, shape in zip(body.outputs[carried:], body.shapes[carried:], strict=True):
            out = builder.buffer(inner.kind, (length, *shape), SCRATCH)
            step = out.nbytes // length
            entries.append(_moving(inner, (out.id, 0), step, length, backward))
            results.append(builder.whole(out))
    work = _work(builder, [body])
    room = builder.buffer("i64", (1,), ROOM) if collected else None
    pairs = _back_and_forth(builder, carries)
    turns = [
        (body.source(i).base, body.outputs[i].base, _place(builder, value), (final.id, 0),
         (other.id, 0), final.nbytes)
        for i, (value, (final, other)) in enumerate(zip(carries, pairs, strict=True))
    ]  # fmt: skip
    made = _call(
        builder, "scan", [body], [v for v in given if v.number is None],
        [work, *sum(pairs, ()), *[value.buffer for value in results if value.buffer]],
        entries=entries, turns=turns, length=length, work=work.id, backward=backward,
        count=None if count is None else (count.id, 0), collected=collected, room=room,
    )  # fmt: skip
    if count is not None:
        made.reads.add(count.id)
    for value in results:
        value.ready = made.order + 0.5
    return [*[builder.whole(final, made.order + 0.5) for final, _ in pairs], *results]


def _moving(
    inner: Buffer, place: tuple[int, int], step: int, length: int, backward: bool
) -> tuple[int, tuple[int, int], int, int]:
    """What each round finds further on: its buffer, the place, how far from it the first round
    begins, and the step to the next."""
    start, step = (step * (length - 1), -step) if backward else (0, step)
    return inner.base, place, start, step


def _collected(
    builder: Any, body: Body, carried: int, count: Buffer | None
) -> tuple[list[Value], list[tuple[int, Buffer, int]]]:
    """What rounds of unknown number leave, in memory that grows: the values, and for each its
    buffer in a round, that memory and the bytes of a round."""
    results: list[Value] = []
    found = []
    if count is not None:
        for inner, shape in zip(body.outputs[carried:], body.shapes[carried:], strict=True):
            if not math.prod(shape):
                raise Unsupported("rounds of unknown number that give no elements")
            grown = Growing(builder, inner.kind, shape, count)
            assert grown.buffer is not None
            found.append((inner.base, grown.buffer, grown.buffer.nbytes // 2))
            results.append(grown)
    return results, found


def _back_and_forth(builder: Any, carries: Sequence[Value]) -> list[tuple[Buffer, Buffer]]:
    """Two buffers for each carried value: the one that has it after the last round, and another."""
    return [
        (builder.buffer(v.kind, v.shape, SCRATCH), builder.buffer(v.kind, v.shape, SCRATCH))
        for v in carries
    ]


def _check_carried(carries: Sequence[Value], body: Body) -> None:
    for value, shape, buffer in zip(carries, body.shapes, body.outputs, strict=False):
        if value.shape != shape or value.kind != buffer.kind:
            raise Unsupported("a carried value changes its kind")


def _cond(lowering: Any, node: Node, inputs: list[Value]) -> list[Value]:
    builder = lowering.builder
    condition, *rest = inputs
    if condition.size != 1:
        raise Unsupported("a condition with several elements")
    if condition.kind != "bool":
        condition = builder.pointwise(lambda x: x != 0, [condition], condition.shape)
    condition = builder.in_memory(condition)
    bodies = [Body(lowering, block, rest, range(0), set()) for block in node.blocks]
    first, second = bodies
    if first.shapes != second.shapes or [b.kind for b in first.outputs] != [
        b.kind for b in second.outputs
    ]:
        raise Unsupported("branches with results of different kinds")
    outs = [
        builder.buffer(inner.kind, shape, SCRATCH)
        for inner, shape in zip(first.outputs, first.shapes, strict=True)
    ]
    work = _work(builder, bodies)
    entries = []
    for body in bodies:
        found = _entries(builder, body, rest)
        for inner, out in zip(body.outputs, outs, strict=True):
            found.append((inner.base, (out.id, 0), 0, 0))
        entries.append(found)
    made = _call(
        builder, "cond", bodies, [condition, *[v for v in rest if v.number is None]],
        [work, *outs], entries=entries, condition=_place(builder, condition), work=work.id,
    )  # fmt: skip
    return [builder.whole(buffer, made.order + 0.5) for buffer in outs]


def _test_and_body(
    lowering: Any, node: Node, inputs: list[Value]
) -> tuple[list[Value], list[Value], Body, Body]:
    """The carried values and all inputs of a loop of unknown length, and its two blocks."""
    count = len(node.outputs)
    carries = [_in_order(lowering.builder, value) for value in inputs[:count]]
    given = [*carries, *inputs[count:]]
    fixed = set(range(count, len(inputs)))
    test, body = [Body(lowering, block, given, range(0), fixed) for block in node.blocks]
    if math.prod(test.shapes[0]) != 1 or test.outputs[0].kind != "bool":
        raise Unsupported("a condition that is not one truth value")
    _check_carried(carries, body)
    return carries, given, test, body


def _rounds(lowering: Any, node: Node, inputs: list[Value]) -> list[Value]:
    """What each round of a loop of unknown length begins with."""
    builder = lowering.builder
    carries, given, test, body = _test_and_body(lowering, node, inputs)
    work = _work(builder, [test, body])
    flag = builder.buffer("bool", (1,), SCRATCH)
    number = builder.buffer("i64", (1,), SCRATCH)
    room = builder.buffer("i64", (1,), ROOM)
    found = [Growing(builder, value.kind, value.shape, number) for value in carries]
    turns = []
    for i, (value, grown) in enumerate(zip(carries, found, strict=True)):
        assert grown.buffer is not None
        turns.append(
            (test.source(i).base, body.source(i).base, body.outputs[i].base,
             _place(builder, value), grown.buffer, grown.buffer.nbytes // 2)
        )  # fmt: skip
    entries = [_entries(builder, each, given, len(carries)) for each in (test, body)]
    entries[0].append((test.outputs[0].base, (flag.id, 0), 0, 0))
    written = [buffer for _, _, _, _, buffer, _ in turns]
    made = _call(
        builder, "rounds", [test, body], [v for v in given if v.number is None],
        [work, flag, number, room, *written],
        entries=entries, turns=turns, flag=(flag.id, 0), number=(number.id, 0), room=room,
        work=work.id,
    )  # fmt: skip
    for grown in found:
        grown.ready = made.order + 0.5
    return [*found]


def _while(lowering: Any, node: Node, inputs: list[Value]) -> list[Value]:
    builder = lowering.builder
    count = len(node.outputs)
    carries, given, test, body = _test_and_body(lowering, node, inputs)
    work = _work(builder, [test, body])
    flag = builder.buffer("bool", (1,), SCRATCH)
    pairs = _back_and_forth(builder, carries)
    turns = [
        (test.source(i).base, body.source(i).base, body.outputs[i].base, _place(builder, value),
         (out.id, 0), (other.id, 0), out.nbytes)
        for i, (value, (out, other)) in enumerate(zip(carries, pairs, strict=True))
    ]  # fmt: skip
    entries = [_entries(builder, each, given, count) for each in (test, body)]
    entries[0].append((test.outputs[0].base, (flag.id, 0), 0, 0))
    made = _call(
        builder, "while", [test, body], [v for v in given if v.number is None],
        [work, flag, *sum(pairs, ())],
        entries=entries, turns=turns, flag=(flag.id, 0), work=work.id,
    )  # fmt: skip
    return [builder.whole(out, made.order + 0.5) for out, _ in pairs]
