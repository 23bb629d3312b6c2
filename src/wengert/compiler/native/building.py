"""Builds loops from operations on whole arrays, in one pass and without looking back.

An operation joins the loop that computes its operands where it can, and opens a new one otherwise:
a loop can take it if it runs over the same space and not before all operands are there. So groups
need no sorting, and a chain of elementwise operations becomes one loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...core.scalar.expressions import DTYPES, Scalar, Unsupported, is_float, type_of
from .forms import Form
from .loops import (
    CONSTANT,
    GROWN,
    INPUT,
    OUTPUT,
    SCRATCH,
    Access,
    Buffer,
    Call,
    Group,
    Loop,
    Reduction,
    Store,
    access_of,
    broadcast,
)

#: A loop with more instructions is closed: registers and LLVM's patience are limited.
MOST_INSTRUCTIONS = 500
#: After so many instructions of operators, those of longer ones over few elements are functions
#: that loops call: LLVM takes longest of all, and the calls of small loops are worth little.
MOST_REPLAYED, FEW = 20_000, 4096
#: What running sums and the like are computed in.
_RUN = {"f32", "f64", *[f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64)]}
_FIRST = -1.0


class Value:
    """An array that loops compute: one number everywhere, an instruction of a loop, or memory.

    `ready` says after which group the memory can be read: the number of the group and a half.
    """

    __slots__ = ("shape", "kind", "number", "loop", "at", "buffer", "view", "ready")

    def __init__(self, shape: tuple[int, ...], kind: str) -> None:
        self.shape = shape
        self.kind = kind
        self.number: Any = None
        self.loop: Loop | None = None
        self.at = -1
        self.buffer: Buffer | None = None
        self.view: Any = None
        self.ready = _FIRST

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __repr__(self) -> str:
        return f"<{self.kind}{list(self.shape)} {self.number or self.buffer or self.loop}>"


class Growing(Value):
    """Arrays of one shape, one after the other, as many as a step finds there are: `count` has
    the number once it has run. Seen as an array of two of them."""

    __slots__ = ("count",)

    def __init__(self, builder: Builder, kind: str, shape: tuple[int, ...], count: Buffer) -> None:
        super().__init__((2, *shape), kind)
        self.buffer = builder.buffer(kind, self.shape, GROWN)
        self.view = builder.whole(self.buffer).view
        self.count = count


class Builder:
    """The groups and buffers of one graph as they are made."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self.groups: list[Group] = []
        #: Scratch buffers that must be written though nobody reads them.
        self.kept: set[int] = set()
        self._shadows: dict[int, Any] = {}
        self._latest: dict[tuple[int, ...], Loop] = {}
        self._copies: dict[tuple, Value] = {}
        #: How many instructions of operators were written.
        self._replayed = 0
        #: Inputs that are the same in all rounds of a loop around these groups.
        self.fixed: set[int] = set()
        #: Copies of parts of them, to be made before the loop: the buffer here, the input, and the
        #: offset in bytes, shape and strides of the part.
        self.hoisted: dict[tuple, tuple[Buffer, int, int, tuple[int, ...], tuple[int, ...]]] = {}

    # Buffers and values ------------------------------------------------------------------------

    def buffer(self, kind: str, shape: tuple[int, ...], source: str, value: Any = None) -> Buffer:
        """A new buffer for an array in row-major order."""
        made = Buffer(len(self.buffers), kind, source, math.prod(shape), value)
        self.buffers.append(made)
        self._shadows[made.id] = np.empty(shape, DTYPES[kind])
        return made

    def whole(self, buffer: Buffer, ready: float = _FIRST) -> Value:
        """A buffer's array as a value."""
        shadow = self._shadows[buffer.id]
        return self.seen(buffer, shadow, ready)

    def seen(self, buffer: Buffer, view: Any, ready: float) -> Value:
        """A part of a buffer, given as a view of its shadow, as a value."""
        value = Value(view.shape, buffer.kind)
        value.buffer, value.view, value.ready = buffer, view, ready
        return value

    def input(self, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Value:
        """An array that comes from outside, with strides in bytes."""
        kind = type_of(dtype)
        made = Buffer(len(self.buffers), kind, INPUT, math.prod(shape))
        self.buffers.append(made)
        steps = [s if n > 1 else 0 for n, s in zip(shape, strides, strict=True)]
        if any(s % dtype.itemsize for s in steps):
            raise Unsupported("elements are not aligned")
        reach = [(n - 1) * s for n, s in zip(shape, steps, strict=True)] if made.size else [0]
        low = sum([r for r in reach if r < 0])
        high = sum([r for r in reach if r > 0]) + dtype.itemsize
        memory = np.empty(high - low, np.uint8)
        first = memory[-low : dtype.itemsize - low].view(dtype)
        self._shadows[made.id] = as_strided(first, shape, strides)
        return self.whole(made)

    def constant(self, array: Any) -> Value:
        """An array whose elements are known."""
        array = np.asarray(array)
        kind = type_of(array.dtype)
        if array.size and kind != "bf16":
            first = array.flat[0]
            if (array == first).all() and not (is_float(kind) and first == 0):
                return self.uniform(array.shape, kind, first.item())
            if is_float(kind) and first == 0 and not (array.view(f"u{array.itemsize}").any()):
                return self.uniform(array.shape, kind, 0.0)
        buffer = self.buffer(kind, array.shape, CONSTANT, np.array(array, order="C"))
        return self.whole(buffer)

    def uniform(self, shape: tuple[int, ...], kind: str, number: Any) -> Value:
        """One number in every place."""
        value = Value(shape, kind)
        value.number = DTYPES[kind].type(number).item() if kind != "bf16" else float(number)
        return value

    # Loops -------------------------------------------------------------------------------------

    def _open(self, space: tuple[int, ...]) -> Loop:
        loop = Loop(len(self.groups), space)
        self.groups.append(loop)
        self._latest[space] = loop
        return loop

    def _needed(self, value: Value, space: tuple[int, ...]) -> float:
        """From which group on a value can be read in a loop over a space."""
        if value.number is not None:
            return _FIRST
        if value.loop is not None:
            return value.loop.order + (0.0 if value.shape == space else 0.5)
        return value.ready

    def loop_for(
        self, space: tuple[int, ...], values: Sequence[Value], after: float = _FIRST
    ) -> Loop:
        """A loop over a space in which all values can be read."""
        needed = max([after, *[self._needed(value, space) for value in values]])
        best = self._latest.get(space)
        for value in values:
            loop = value.loop
            if loop is not None and loop.space == space and loop.order >= needed:
                best = loop
        if best is None or best.order < needed or len(best.code) > MOST_INSTRUCTIONS:
            best = self._open(space)
        return best

    def in_memory(self, value: Value) -> Value:
        """A value that has memory from now on: itself."""
        if value.buffer is None:
            if value.number is not None:
                array = np.full(value.shape, value.number, DTYPES[value.kind])
                value.buffer = self.buffer(value.kind, value.shape, CONSTANT, array)
                value.ready = _FIRST
            else:
                assert value.loop is not None
                value.buffer = self.buffer(value.kind, value.shape, SCRATCH)
                shadow = self._shadows[value.buffer.id]
                access = access_of(value.buffer, shadow, shadow)
                value.loop.stores.append(Store(access, value.at))
                value.ready = value.loop.order + 0.5
            value.view = self._shadows[value.buffer.id]
        return value

    def access(self, value: Value, space: tuple[int, ...] | None = None) -> Access:
        """How the elements of a value in memory are found, for a loop over a space."""
        assert value.buffer is not None
        view = value.view if space is None else broadcast(value.view, space)
        return access_of(value.buffer, self._shadows[value.buffer.id], view)

    def read(self, loop: Loop, value: Value) -> int:
        """The instruction of a loop that has a value's element."""
        if value.number is not None:
            return loop.body.constant(value.number, value.kind)
        if value.loop is loop:
            return value.at
        self.in_memory(value)
        return loop.body.write("load", value.kind, self.access(value, loop.space))

    def scalars(self, loop: Loop, values: Sequence[Any]) -> list[Any]:
        """The elements of values in a loop; numbers stay what they are."""
        return [
            Scalar(loop.body, self.read(loop, v), len(v.shape)) if isinstance(v, Value) else v
            for v in values
        ]

    def computed(self, loop: Loop, at: int) -> Value:
        """The value that an instruction of a loop computes."""
        made = Value(loop.space, loop.body.kind(at))
        number = loop.body.value_of(at)
        if number is not None:
            return self.uniform(loop.space, made.kind, number)
        made.loop, made.at = loop, at
        return made

    def pointwise(
        self, function: Callable[..., Scalar], values: Sequence[Any], space: tuple[int, ...]
    ) -> Value:
        """A function of the elements of values, which are broadcast to a space."""
        arrays = [v for v in values if isinstance(v, Value)]
        loop = self.loop_for(space, arrays)
        return self.computed(loop, function(*self.scalars(loop, values)).at)

    def replayed(
        self, form: Form, values: Sequence[Value], space: tuple[int, ...]
    ) -> list[Value]:
        """The form of an operator, with values as its inputs."""
        loop = self.loop_for(space, values)
        inputs = [self.read(loop, value) for value in values]
        if self._replayed > MOST_REPLAYED and form.is_function and math.prod(space) <= FEW:
            at = loop.body.write("form", form.code[form.results[0]][1], form, *inputs)
            return [self.computed(loop, at)]
        self._replayed += len(form.code)
        places = loop.body.replay(form.code, inputs)
        return [self.computed(loop, places[i]) for i in form.results]

    def cast(self, value: Value, kind: str) -> Value:
        if value.kind == kind:
            return value
        return self.pointwise(lambda x: x.to(kind), [value], value.shape)

    def reduce(self, name: str, value: Value, dims: frozenset[int], keep: bool) -> Value:
        """Elements combined over dimensions, which are dropped or stay with length one."""
        if value.kind in ("f16", "bf16"):
            wide = self.reduce(name, self.cast(value, "f32"), dims, keep)
            return self.cast(wide, value.kind)
        shape = value.shape
        kept = tuple([1 if d in dims else n for d, n in enumerate(shape)])
        result = kept if keep else tuple([n for d, n in enumerate(shape) if d not in dims])
        if all(shape[d] == 1 for d in dims):
            return self.viewed(value, lambda array: array.reshape(result))
        loop = self.loop_for(shape, [value])
        at = self.read(loop, value)
        buffer = self.buffer(value.kind, result, SCRATCH)
        strides = np.empty(kept, np.int8).strides
        access = Access(
            buffer.id, 0, tuple([0 if kept[d] == 1 else strides[d] for d in range(len(shape))])
        )
        loop.reductions.append(Reduction(name, at, dims, access))
        return self.whole(buffer, loop.order + 0.5)

    # Memory ------------------------------------------------------------------------------------

    def viewed(self, value: Value, view: Callable[[Any], Any]) -> Value:
        """What a function of NumPy's views makes of a value, without copying."""
        if value.number is not None:
            shape = view(np.broadcast_to(np.empty((), np.int8), value.shape)).shape
            return self.uniform(shape, value.kind, value.number)
        if value.size == 0:
            shape = view(np.empty(value.shape, np.int8)).shape
            return self.whole(self.buffer(value.kind, shape, SCRATCH))
        self.in_memory(value)
        assert value.buffer is not None
        made = view(value.view)
        if made.dtype != value.view.dtype or not np.may_share_memory(made, value.view):
            raise Unsupported("a view copies or changes the type")
        return self.seen(value.buffer, made, value.ready)

    def copy_into(self, value: Value, buffer: Buffer, view: Any, after: float = _FIRST) -> float:
        """Write a value to a part of a buffer; after which group it is there."""
        loop = self.loop_for(view.shape, [value], after)
        at = self.read(loop, self.cast(value, buffer.kind) if value.number is not None else value)
        if loop.body.kind(at) != buffer.kind:
            at = Scalar(loop.body, at).to(buffer.kind).at
        access = access_of(buffer, self._shadows[buffer.id], view)
        loop.stores.append(Store(access, at))
        return loop.order + 0.5

    def packed(self, value: Value) -> Value:
        """A copy in row-major order; the same value if it has that order already."""
        self.in_memory(value)
        if value.view.flags.c_contiguous:
            return value
        assert value.buffer is not None
        interface = value.view.__array_interface__
        key = (value.buffer.id, interface["data"], value.shape, value.view.strides, value.ready)
        if key not in self._copies and value.buffer.id in self.fixed:
            buffer = self.buffer(value.kind, value.shape, INPUT)
            whole = self._shadows[value.buffer.id].__array_interface__
            offset = interface["data"][0] - whole["data"][0]
            self.hoisted[key] = (
                buffer, value.buffer.id, offset, value.shape, value.view.strides
            )
            self._copies[key] = self.whole(buffer)
        if key not in self._copies:
            buffer = self.buffer(value.kind, value.shape, SCRATCH)
            source = self.seen(value.buffer, value.view, value.ready)
            ready = self.copy_into(source, buffer, self._shadows[buffer.id])
            self._copies[key] = self.whole(buffer, ready)
        return self._copies[key]

    def joined(
        self, parts: Sequence[tuple[Value, Any]], shape: tuple[int, ...], kind: str
    ) -> Value:
        """An array made of parts, each with the key of its place in the whole."""
        buffer = self.buffer(kind, shape, SCRATCH)
        shadow = self._shadows[buffer.id]
        ready = _FIRST
        for value, key in parts:
            ready = max(ready, self.copy_into(value, buffer, shadow[key]))
        return self.whole(buffer, ready)

    def written(self, value: Value, part: Value, key: Callable[[Any], Any]) -> Value:
        """A copy of a value in which a part, given as a view, has other elements."""
        buffer = self.buffer(value.kind, value.shape, SCRATCH)
        shadow = self._shadows[buffer.id]
        ready = self.copy_into(value, buffer, shadow)
        view = key(shadow)
        if view.size:
            if not np.may_share_memory(view, shadow):
                raise Unsupported("a part is no view")
            part = self.expanded(part, view.shape)
            ready = self.copy_into(part, buffer, view, ready)
        return self.whole(buffer, ready)

    def expanded(self, value: Value, shape: tuple[int, ...]) -> Value:
        """A value broadcast to a shape."""
        if value.shape == shape:
            return value
        return self.viewed(value, lambda array: np.broadcast_to(array, shape))

    # Computed places ---------------------------------------------------------------------------

    def gather(
        self,
        source: Value,
        view: Callable[[Any], Any],
        indices: Sequence[Value],
        dims: Sequence[int],
        space: tuple[int, ...],
    ) -> Value:
        """The elements of a value at computed places.

        `indices` choose in the dimensions `dims` of the source; `view` says how the others lie in
        the result: it is given the source at index zero of those dimensions.
        """
        self.in_memory(source)
        assert source.buffer is not None
        itemsize = source.view.itemsize
        if any(source.shape[d] == 0 for d in dims):
            raise Unsupported("nothing to choose from")
        zero: list[Any] = [slice(None)] * len(source.shape)
        for d in dims:
            zero[d] = 0
        rest = broadcast(view(source.view[(*zero, ...)]), space)
        loop = self.loop_for(space, [source_of(source), *indices])
        access = access_of(source.buffer, self._shadows[source.buffer.id], rest)
        steps = tuple([source.view.strides[d] // itemsize for d in dims])
        lengths = tuple([source.shape[d] for d in dims])
        chosen = [self.read(loop, index) for index in indices]
        return self.computed(
            loop, loop.body.write("gather", source.kind, access, steps, lengths, *chosen)
        )

    def scatter(
        self,
        shape: tuple[int, ...],
        begin: Value,
        values: Value,
        view: Callable[[Any], Any],
        indices: Sequence[Value],
        dims: Sequence[int],
        adds: bool,
    ) -> Value:
        """A copy of `begin` in which elements at computed places are replaced or added to."""
        if any(shape[d] == 0 for d in dims):
            raise Unsupported("nothing to choose from")
        buffer = self.buffer(begin.kind, shape, SCRATCH)
        shadow = self._shadows[buffer.id]
        ready = self.copy_into(begin, buffer, shadow)
        zero: list[Any] = [slice(None)] * len(shape)
        for d in dims:
            zero[d] = 0
        space = values.shape
        rest = broadcast(view(shadow[(*zero, ...)]), space)
        values = self.cast(values, begin.kind)
        # Values of its own loop would run as slowly as it does.
        loop = Loop(0, space)
        sources = [values if values.number is not None else self.in_memory(values)]
        sources += [i if i.number is not None else self.in_memory(i) for i in indices]
        loop.order = len(self.groups)
        self.groups.append(loop)
        assert loop.order > ready - 0.5
        at, *chosen = [self.read(loop, source_of(source)) for source in sources]
        loop.stores.append(
            Store(
                access_of(buffer, shadow, rest), at, tuple(chosen),
                tuple([shadow.strides[d] // shadow.itemsize for d in dims]),
                tuple([shape[d] for d in dims]), adds,
            )
        )  # fmt: skip
        return self.whole(buffer, loop.order + 0.5)

    # Products and calls ------------------------------------------------------------------------

    def call(self, name: str, reads: set[int], writes: set[int], **arguments: Any) -> Call:
        made = Call(len(self.groups), name, reads, writes, **arguments)
        self.groups.append(made)
        return made

    def running(self, name: str, value: Value, dim: int) -> Value:
        """Each element combined with all before it along a dimension."""
        if value.kind not in _RUN or not value.size:
            raise Unsupported(f"running results of {value.kind}, or of nothing")
        self.in_memory(value)
        if value.number is not None:
            assert value.buffer is not None
            value = self.seen(value.buffer, value.view, value.ready)
        value = self.packed(value)
        source = self.access(value)
        shape = value.shape
        inner = math.prod(shape[dim + 1 :])
        out = self.buffer(value.kind, shape, SCRATCH)
        made = self.call(
            "running",
            {source.buffer},
            {out.id},
            operation=name,
            kind=value.kind,
            source=(source.buffer, source.offset),
            out=out.id,
            rows=math.prod(shape[:dim]),
            row=shape[dim] * inner,
            inner=inner,
        )
        return self.whole(out, made.order + 0.5)

    def export(self, value: Value) -> Buffer:
        """The value in memory of its own, in row-major order, that can be handed out."""
        if value.number is None and value.buffer is None:
            self.in_memory(value)
        buffer = value.buffer
        if (
            value.number is not None
            or buffer is None
            or buffer.source != SCRATCH
            or buffer.size != value.size
            or not value.view.flags.c_contiguous
        ):
            buffer = self.buffer(value.kind, value.shape, OUTPUT)
            shadow = self._shadows[buffer.id]
            source = source_of(value)
            self.copy_into(source, buffer, shadow)
        buffer.source = OUTPUT
        return buffer

    # The end -----------------------------------------------------------------------------------

    def finished(self) -> list[Group]:
        """The groups without what nobody reads."""
        live = {b.id for b in self.buffers if b.source == OUTPUT} | self.kept
        kept: list[Group] = []
        for group in reversed(self.groups):
            if isinstance(group, Call):
                if group.name == "eager" or group.writes & live:
                    live |= group.reads
                    kept.append(group)
                continue
            group.stores = [s for s in group.stores if s.access.buffer in live]
            group.reductions = [r for r in group.reductions if r.access.buffer in live]
            group._used = None
            if group.has_results:
                live |= group.read_buffers()
                kept.append(group)
        self._shadows.clear()
        self._latest.clear()
        self._copies.clear()
        return kept[::-1]


def source_of(value: Value) -> Value:
    """The memory of a value, whatever loop computes it."""
    if value.number is not None:
        return value
    made = Value(value.shape, value.kind)
    made.buffer, made.view = value.buffer, value.view
    made.ready = value.ready if value.loop is None else value.loop.order + 0.5
    return made
