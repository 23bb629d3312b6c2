"""Nests of loops as text for LLVM, with vectors written out.

Nothing is left to an optimiser: vectors, unrolling, accumulators and what is computed once per row
are in the text, which takes LLVM a fraction of the time that its passes would.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ...core.scalar.expressions import SIZES, is_float, is_signed
from .body import UNROLLED, side_by_side
from .loops import Access, Loop, Reduction, accesses_in
from .nests import Nest
from .numbers import KINDS as READABLE
from .numbers import Numbers, reading
from .rows import LONG, Rows
from .text import MEMORY, REGISTER, Text, identity, in_memory, lanes, vector

#: The bits of a float64 that powers of two have not.
_MANTISSA = (1 << 52) - 1
#: Up to this length it decides how a loop is written: as many elements as four of the vectors
#: with most of them have.
_SHORT = 64
#: What stands for a step that might be read.
_READ = 2
SIGNATURE = "(ptr %bases, ptr %slots, i64 %lo, i64 %hi, i64 %part)"


def kernel_head(slots: int) -> list[str]:
    """How the text of a kernel begins: pointers %p0, %p1 and so on to what its slots name."""
    lines = [f"define void @NAME{SIGNATURE} {{", "entry:"]
    for k in range(slots):
        lines += [
            f"  %sa{k} = getelementptr i64, ptr %slots, i64 {2 * k}",
            f"  %sb{k} = load i64, ptr %sa{k}",
            f"  %sc{k} = getelementptr ptr, ptr %bases, i64 %sb{k}",
            f"  %sd{k} = load ptr, ptr %sc{k}",
            f"  %se{k} = getelementptr i64, ptr %slots, i64 {2 * k + 1}",
            f"  %sf{k} = load i64, ptr %se{k}",
            f"  %p{k} = getelementptr i8, ptr %sd{k}, i64 %sf{k}",
        ]
    return lines


class Kernel:
    """The text of one nest, and what its slots have to hold: buffers with offsets in elements."""

    def __init__(self, text: str, declarations: set[str], slots: list[tuple[int, int]]) -> None:
        self.text = text
        self.declarations = declarations
        self.slots = slots


def kernels_of(
    nests: Sequence[Nest], kinds: Sequence[str], vector_bytes: int
) -> list[tuple[Kernel, list[int]]]:
    """The kernels of the nests of a program, each with the numbers behind its slots. Nests that
    differ in nothing but buffers and such numbers share one."""
    functions: dict[str, set[str]] = {}
    written: dict[tuple, Kernel] = {}
    program = hash(tuple(map(_outline, nests)))
    #: Of each likeness the lengths that nests of the program have, in their order.
    variants: dict[tuple, dict[tuple, int]] = {}
    found = []
    for nest in nests:
        slots, numbers = slots_of(nest), Numbers()
        likeness = likeness_of(nest, kinds, slots, numbers)
        alike = variants.setdefault(likeness, {})
        number = alike.setdefault(numbers.lengths, len(alike))
        shape = (likeness, numbers.choose(hash(likeness), hash((program, likeness, number))))
        known = written.get(shape)
        if known is None:
            emitter = Emitter(nest, kinds, vector_bytes, numbers, functions)
            known = written[shape] = emitter.emit()
        found.append((Kernel(known.text, known.declarations, slots), numbers.words))
    return found


def _outline(nest: Nest) -> tuple:
    """What a nest computes, whatever the size of it: programs of which all nests have the same are
    taken for one program for arrays of different sizes."""
    return tuple(
        [
            (len(loop.space), len(loop.stores), len(loop.reductions),
             tuple([instruction[:2] for instruction in loop.code]))
            for loop in nest.loops
        ]
    )  # fmt: skip


def slots_of(nest: Nest) -> list[tuple[int, int]]:
    """The buffers with offsets that a nest touches, in the order in which it names them."""
    return list(
        dict.fromkeys(
            [(a.buffer, a.offset) for loop in nest.loops for a in accesses_in(loop)]
        )
    )


def likeness_of(
    nest: Nest, kinds: Sequence[str], slots: list[tuple[int, int]], numbers: Numbers
) -> tuple:
    """What the text of a nest depends on, but for numbers that it might read, which are noted in
    `numbers`.

    Of the extent of the outer loop, which is given when a kernel is called, only what decides on
    the width of vectors and on unrolling counts.
    """
    places = {slot: i for i, slot in enumerate(slots)}
    met: dict[Access, int] = {}

    def noted(access: Access) -> tuple | int:
        """An access but for steps that might be read; of one that was met before its number."""
        if access in met:
            return met[access]
        met[access] = len(met)
        steps = list(access.strides)
        for d, step in enumerate(steps):
            if step not in (0, 1):
                numbers.note((access, d), step)
                steps[d] = _READ
        return places[access.buffer, access.offset], tuple(steps)

    def multiplied(args: tuple, at: Hashable) -> tuple:
        """The arguments of a product of rows, but for what might be read."""
        length, *accesses = args[:3]
        steps = list(args[3:])
        for k, step in enumerate(steps):
            if step not in (0, 1):
                numbers.note((at, k), step)
                steps[k] = _READ
        if length > UNROLLED:
            numbers.note((at, "length"), length)
            length = _SHORT + side_by_side(length)
        return (length, *[noted(access) for access in accesses], *steps)

    def read(lengths: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([numbers.place("i64", length) for length in lengths])

    found = []
    for loop in nest.loops:
        code: list[Any] = []
        # To divide by a power of two is to multiply, as long as it is known.
        divisors = {args[1] for name, _, args in loop.code if name == "div"}
        for at, (instruction, used) in enumerate(zip(loop.code, loop.used(), strict=True)):
            name, kind, args = instruction
            if not used:
                code.append(None)
            elif name == "load":
                code.append((name, kind, noted(args[0])))
            elif name == "gather":
                access, steps, lengths, *operands = args
                code.append((name, kind, noted(access), steps, read(lengths), *operands))
            elif name == "dot":
                code.append((name, kind, *multiplied(args, (id(loop), args))))
            elif name == "const" and kind in READABLE and not (
                at in divisors and is_float(kind) and args[0] & _MANTISSA == 0
            ):
                numbers.note_constant((id(loop), kind, args[0]), kind, args[0])
                code.append((name, kind))
            else:
                code.append(instruction)
        stores = tuple(
            [(noted(s.access), *s[1:4], read(s.lengths), s.adds) for s in loop.stores]
        )
        reductions = tuple(
            [
                (r.name, r.value, r.dims, noted(r.access),
                 nest.part_size(loop, r) if 0 in r.dims and nest.parts > 1 else 0)
                for r in loop.reductions
            ]
        )  # fmt: skip
        found.append((_extents_of(nest, loop, numbers), tuple(code), stores, reductions))
    return tuple(found), nest.row_wise, tuple([kinds[buffer] for buffer, _ in slots])


def _extents_of(nest: Nest, loop: Loop, numbers: Numbers) -> tuple[int, ...]:
    """Of the extents of a loop what its text depends on; others that might be read are noted."""
    outer, *inner = loop.space
    if not inner:
        return (0,) if nest.row_wise else (_class_of(outer, _SHORT),)
    found = [0]
    for d, extent in enumerate(inner, 1):
        is_last = d == len(inner)
        if extent == 1:
            found.append(extent)
        else:
            numbers.note((id(loop), d), extent)
            found.append(_class_of(extent, 1) if is_last else 0)
    return tuple(found)


def _class_of(extent: int, most: int) -> int:
    """What stands for an extent of the last dimension: itself up to some length, beyond that one
    for which vectors are as wide, turns as many side by side, and sums as long."""
    if extent <= most:
        return extent
    if extent <= _SHORT:
        return -extent.bit_length()
    return _SHORT + 1 if extent <= LONG else LONG + 1


class Emitter:
    """Writes the kernel of one nest for vectors of a number of bytes."""

    def __init__(
        self,
        nest: Nest,
        kinds: Sequence[str],
        vector_bytes: int,
        numbers: Numbers | None = None,
        functions: dict[str, set[str]] | None = None,
    ) -> None:
        self.numbers = Numbers() if numbers is None else numbers
        #: The functions that kernels call, by their names.
        self.functions = {} if functions is None else functions
        self.nest = nest
        self.kinds = kinds
        self.bytes = vector_bytes
        self.text = Text()
        self.slots = slots_of(nest)
        self._places = {slot: i for i, slot in enumerate(self.slots)}

    def emit(self) -> Kernel:
        text, nest = self.text, self.nest
        self._begin_reductions()
        if len(nest.loops) == 1 and len(nest.loops[0].space) == 1 and not nest.row_wise:
            rows = Rows(self, nest.loops[0])
            rows.enter(0)
            length = nest.loops[0].space[0]
            if length <= _SHORT:  # so few are never split
                rows.along([], 0, length)
            else:
                rows.along([], "%lo", "%hi")
        else:

            def row(index: str, _: list[str]) -> list[str]:
                for loop in nest.loops:
                    rows = Rows(self, loop)
                    rows.enter(0)
                    rows.inside([index])
                return []

            text.loop("%lo", "%hi", 1, [], row)
        text.do("ret void")
        head = [*kernel_head(len(self.slots)), *reading(self.numbers.kinds, len(self.slots))]
        lines = [*head, *text.lines, "}"]
        return Kernel("\n".join(lines) + "\n", text.declarations, self.slots)

    def extent(self, loop: Loop, depth: int) -> int | str:
        """The extent of an inner dimension: a number, or the name of one that is read."""
        extent = loop.space[depth]
        return self.numbers.name((id(loop), depth), "i64", extent) or extent

    def pointer(self, buffer: int, offset: int = 0) -> str:
        """The name of a pointer to an element of a buffer."""
        return f"%p{self._places[buffer, offset]}"

    def address(
        self,
        access: Access,
        indices: Sequence[str],
        more: str | None = None,
        fixed: int = 0,
    ) -> str:
        """The address of an element; `more` and `fixed` are further distances in elements."""
        text = self.text
        kind = MEMORY[self.kinds[access.buffer]]
        total: str | None = more
        for index, step in zip(indices, self.steps(access), strict=True):
            if step == 0 or index == "0":
                continue
            if isinstance(step, int) and not index.startswith("%"):
                fixed += int(index) * step
                continue
            part = index if step == 1 else text.value(f"mul nsw i64 {index}, {step}")
            total = part if total is None else text.value(f"add nsw i64 {total}, {part}")
        place = self.pointer(access.buffer, access.offset)
        if total is not None:
            place = text.value(f"getelementptr {kind}, ptr {place}, i64 {total}")
        if fixed:
            place = text.value(f"getelementptr {kind}, ptr {place}, i64 {fixed}")
        return place

    def steps(self, access: Access) -> list[int | str]:
        """The steps of an access, those that are read by their names."""
        return [
            self.numbers.name((access, d), "i64", step) or step
            for d, step in enumerate(access.strides)
        ]

    def last_step(self, access: Access) -> int | str:
        """How far the elements along the last dimension are apart; zero where there is none."""
        if not access.strides:
            return 0
        d, step = len(access.strides) - 1, access.strides[-1]
        return self.numbers.name((access, d), "i64", step) or step

    def lane(self, place: str, kind: str, lane: int, step: int | str) -> str:
        """The address of an element `lane` steps after another one."""
        if not lane:
            return place
        text = self.text
        distance = lane * step if isinstance(step, int) else text.value(f"mul i64 {step}, {lane}")
        return text.value(f"getelementptr {kind}, ptr {place}, i64 {distance}")

    def from_memory(self, value: str, kind: str, width: int) -> str:
        if kind != "bool":
            return value
        return self.text.value(
            f"icmp ne {in_memory(kind, width)} {value}, {'0' if width == 1 else 'zeroinitializer'}"
        )

    def load(self, place: str, kind: str, width: int, step: int | str) -> str:
        """One element, or as many as a vector has, `step` apart."""
        text = self.text
        if width == 1 or step == 1:
            value = text.value(
                f"load {in_memory(kind, width)}, ptr {place}, align {SIZES[kind]}"
            )
            return self.from_memory(value, kind, width)
        whole, kind_text = in_memory(kind, width), MEMORY[kind]
        result = "poison"
        for lane in range(width):
            at = self.lane(place, kind_text, lane, step)
            value = text.value(f"load {kind_text}, ptr {at}, align {SIZES[kind]}")
            result = text.value(f"insertelement {whole} {result}, {kind_text} {value}, i64 {lane}")
        return self.from_memory(result, kind, width)

    def store(self, place: str, kind: str, width: int, step: int | str, value: str) -> None:
        text = self.text
        if kind == "bool":
            value = text.value(f"zext {vector(kind, width)} {value} to {in_memory(kind, width)}")
        whole, kind_text = in_memory(kind, width), MEMORY[kind]
        if width == 1 or step == 1:
            text.do(f"store {whole} {value}, ptr {place}, align {SIZES[kind]}")
            return
        for lane in range(width):
            at = self.lane(place, kind_text, lane, step)
            item = text.value(f"extractelement {whole} {value}, i64 {lane}")
            text.do(f"store {kind_text} {item}, ptr {at}, align {SIZES[kind]}")

    def splat(self, value: str, kind: str, width: int) -> str:
        if width == 1:
            return value
        if not value.startswith("%"):
            return lanes(value, kind, width)
        whole = vector(kind, width)
        one = self.text.value(
            f"insertelement {whole} poison, {REGISTER[kind]} {value}, i64 0"
        )
        return self.text.value(
            f"shufflevector {whole} {one}, {whole} poison, <{width} x i32> zeroinitializer"
        )

    def combine(self, name: str, kind: str, width: int, x: str, y: str) -> str:
        """Two partial results of a reduction as one."""
        text, whole = self.text, vector(kind, width)
        if name in ("add", "mul"):
            way = f"f{name}" if is_float(kind) else name
            if kind == "bool":
                way = "or" if name == "add" else "and"
            return text.value(f"{way} {whole} {x}, {y}")
        if name in ("and", "or"):
            return text.value(f"{name} {whole} {x}, {y}")
        relation = "gt" if name == "max" else "lt"
        flags = vector("bool", width)
        if is_float(kind):  # NaN wins, whichever of the two it is
            wins = text.value(f"fcmp o{relation} {whole} {x}, {y}")
            unordered = text.value(f"fcmp uno {whole} {x}, {x}")
            wins = text.value(f"or {flags} {wins}, {unordered}")
        else:
            sign = "s" if is_signed(kind) else "u"
            wins = text.value(f"icmp {sign}{relation} {whole} {x}, {y}")
        return text.value(f"select {flags} {wins}, {whole} {x}, {whole} {y}")

    def across(self, name: str, kind: str, width: int, x: str) -> str:
        """The lanes of a vector combined to one value."""
        text = self.text
        while width > 1:
            half = width // 2
            whole = vector(kind, width)
            parts = []
            for start in (0, half):
                mask = ", ".join([f"i32 {start + i}" for i in range(half)])
                part = text.value(
                    f"shufflevector {whole} {x}, {whole} poison, <{half} x i32> <{mask}>"
                )
                if half == 1:
                    part = text.value(f"extractelement <1 x {REGISTER[kind]}> {part}, i64 0")
                parts.append(part)
            width = half
            x = self.combine(name, kind, width, *parts)
        return x

    def target(self, loop: Loop, reduction: Reduction, indices: Sequence[str]) -> str:
        """Where a reduction's result for an index lies; each part of a split nest has its own."""
        more = None
        if 0 in reduction.dims and self.nest.parts > 1:
            size = self.nest.part_size(loop, reduction)
            more = self.text.value(f"mul nsw i64 %part, {size}")
        return self.address(reduction.access, indices, more)

    def _begin_reductions(self) -> None:
        """Set what rows add up in memory to what each reduction begins with."""
        for loop in self.nest.loops:
            for reduction in loop.reductions:
                if 0 in reduction.dims and not self.nest.in_registers(loop, reduction):
                    self.clear(loop, reduction, ["0"], 1)

    def clear(self, loop: Loop, reduction: Reduction, indices: list[str], depth: int) -> None:
        """Write what a reduction begins with, for all dimensions from `depth` on that stay."""
        kind = loop.body.kind(reduction.value)
        while depth < len(loop.space) and depth in reduction.dims:
            indices, depth = [*indices, "0"], depth + 1
        if depth == len(loop.space):
            self.store(
                self.target(loop, reduction, indices), kind, 1, 0,
                identity(reduction.name, kind, 1),
            )  # fmt: skip
            return

        def each(index: str, _: list[str]) -> list[str]:
            self.clear(loop, reduction, [*indices, index], depth + 1)
            return []

        self.text.loop(0, self.extent(loop, depth), 1, [], each)
