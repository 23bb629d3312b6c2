"""Nests of loops as text for LLVM, with vectors written out.

Nothing is left to an optimiser: vectors, unrolling, accumulators and what is computed once per row
are in the text, which takes LLVM a fraction of the time that its passes would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.scalar.expressions import SIZES, is_float, is_signed, operands_of
from .loops import Access, Loop, Reduction, Store
from .nests import Nest

#: LLVM's types in registers; in memory truth values take a byte.
REGISTER = {
    "f16": "half", "bf16": "i16", "f32": "float", "f64": "double", "bool": "i1",
    **{f"{sign}{bits}": f"i{bits}" for sign in "iu" for bits in (8, 16, 32, 64)},
}  # fmt: skip
MEMORY = {**REGISTER, "bool": "i8"}
SUFFIX = {"float": "f32", "double": "f64", "half": "f16"}
#: Sums longer than this are made of sums of blocks: rounding errors grow with the length.
BLOCK = 2048
SIGNATURE = "(ptr %bases, ptr %slots, i64 %lo, i64 %hi, i64 %part)"


class Kernel:
    """The text of one nest, and what its slots have to hold: buffers with offsets in elements."""

    def __init__(self, text: str, declarations: set[str], slots: list[tuple[int, int]]) -> None:
        self.text = text
        self.declarations = declarations
        self.slots = slots


class Text:
    """Instructions of one function as they are written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self.label = "entry"
        self._count = 0

    def fresh(self) -> int:
        self._count += 1
        return self._count

    def value(self, text: str) -> str:
        """An instruction with a result, whose name is returned."""
        name = f"%v{self.fresh()}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append("  " + text)

    def begin(self, label: str) -> None:
        self.lines.append(label + ":")
        self.label = label

    def loop(
        self,
        low: Any,
        high: Any,
        step: Any,
        carried: Sequence[tuple[str, str]],
        body: Callable[[str, list[str]], list[str]],
    ) -> list[str]:
        """A loop with values that each turn hands on; what they are after the last one.

        `carried` has the types of the values and what they begin with.
        """
        if isinstance(low, int) and isinstance(high, int) and isinstance(step, int):
            if high <= low:
                return [begin for _, begin in carried]
            if high - low <= step:
                return body(str(low), [begin for _, begin in carried])
        k = self.fresh()
        before = self.label
        self.do(f"br label %head{k}")
        self.begin(f"head{k}")
        index = f"%i{k}"
        names = [f"%c{k}_{j}" for j in range(len(carried))]
        place = len(self.lines)
        self.lines += [""] * (1 + len(carried))
        more = self.value(f"icmp slt i64 {index}, {high}")
        self.do(f"br i1 {more}, label %body{k}, label %done{k}")
        self.begin(f"body{k}")
        results = body(index, names)
        following = self.value(f"add nsw i64 {index}, {step}")
        last = self.label
        self.do(f"br label %head{k}")
        self.begin(f"done{k}")
        self.lines[place] = (
            f"  {index} = phi i64 [ {low}, %{before} ], [ {following}, %{last} ]"
        )
        for j, (kind, begin) in enumerate(carried):
            self.lines[place + 1 + j] = (
                f"  {names[j]} = phi {kind} [ {begin}, %{before} ], [ {results[j]}, %{last} ]"
            )
        return names

    def intrinsic(self, name: str, kind: str, result: str, *args: tuple[str, str]) -> str:
        """A call of one of LLVM's functions; arguments are pairs of type and value."""
        types = ", ".join([t for t, _ in args])
        self.declarations.add(f"declare {result} @llvm.{name}.{kind}({types})")
        given = ", ".join([f"{t} {v}" for t, v in args])
        return self.value(f"call {result} @llvm.{name}.{kind}({given})")


def vector(kind: str, width: int) -> str:
    """The type of a value, or of a vector of them."""
    return REGISTER[kind] if width == 1 else f"<{width} x {REGISTER[kind]}>"


def in_memory(kind: str, width: int) -> str:
    return MEMORY[kind] if width == 1 else f"<{width} x {MEMORY[kind]}>"


def constant(value: Any, kind: str, width: int) -> str:
    """A literal of an instruction, in each lane."""
    if is_float(kind):
        text = f"0x{value & 0xFFFFFFFFFFFFFFFF:016X}"
        if kind == "f16":
            import numpy as np

            bits = np.int64(value).view("float64").astype("float16").view("uint16")
            text = f"0xH{int(bits):04X}"
    else:
        text = ("true" if value else "false") if kind == "bool" else str(value)
    return lanes(text, kind, width)


def lanes(text: str, kind: str, width: int) -> str:
    if width == 1:
        return text
    return "<" + ", ".join([f"{REGISTER[kind]} {text}"] * width) + ">"


def name_of(kind: str, width: int) -> str:
    """A type as it is spelled in the names of intrinsics."""
    base = REGISTER[kind]
    base = SUFFIX.get(base, base)
    return base if width == 1 else f"v{width}{base}"


_IDENTITIES: dict[str, Callable[[str], Any]] = {
    "add": lambda kind: 0, "mul": lambda kind: 1, "and": lambda kind: 1, "or": lambda kind: 0,
    "max": lambda kind: _extreme(kind, -1), "min": lambda kind: _extreme(kind, 1),
}  # fmt: skip


def _extreme(kind: str, sign: int) -> Any:
    if is_float(kind):
        return sign * float("inf")
    if kind == "bool":
        return sign > 0
    bits = 8 * SIZES[kind]
    if is_signed(kind):
        return 2 ** (bits - 1) - 1 if sign > 0 else -(2 ** (bits - 1))
    return 2**bits - 1 if sign > 0 else 0


def identity(name: str, kind: str, width: int) -> str:
    """What a reduction begins with."""
    from ...core.scalar.expressions import literal

    return constant(literal(_IDENTITIES[name](kind), kind), kind, width)


class Emitter:
    """Writes the kernel of one nest for vectors of a number of bytes."""

    def __init__(self, nest: Nest, kinds: Sequence[str], vector_bytes: int) -> None:
        self.nest = nest
        self.kinds = kinds
        self.bytes = vector_bytes
        self.text = Text()
        self.slots: list[tuple[int, int]] = []
        self._places: dict[tuple[int, int], int] = {}

    def emit(self) -> Kernel:
        text, nest = self.text, self.nest
        self._begin_reductions()
        if len(nest.loops) == 1 and len(nest.loops[0].space) == 1 and not nest.row_wise:
            rows = Rows(self, nest.loops[0])
            rows.enter(0)
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
        head = ["entry:"]
        for k in range(len(self.slots)):
            head += [
                f"  %sa{k} = getelementptr i64, ptr %slots, i64 {2 * k}",
                f"  %sb{k} = load i64, ptr %sa{k}",
                f"  %sc{k} = getelementptr ptr, ptr %bases, i64 %sb{k}",
                f"  %sd{k} = load ptr, ptr %sc{k}",
                f"  %se{k} = getelementptr i64, ptr %slots, i64 {2 * k + 1}",
                f"  %sf{k} = load i64, ptr %se{k}",
                f"  %p{k} = getelementptr i8, ptr %sd{k}, i64 %sf{k}",
            ]
        lines = [f"define void @NAME{SIGNATURE} {{", *head, *text.lines, "}"]
        return Kernel("\n".join(lines) + "\n", text.declarations, self.slots)

    def pointer(self, buffer: int, offset: int = 0) -> str:
        """The name of a pointer to an element of a buffer."""
        key = (buffer, offset)
        if key not in self._places:
            self._places[key] = len(self.slots)
            self.slots.append(key)
        return f"%p{self._places[key]}"

    def address(self, access: Access, indices: Sequence[str], more: str | None = None) -> str:
        """The address of an element; `more` is a further distance in elements."""
        text = self.text
        kind = MEMORY[self.kinds[access.buffer]]
        total: str | None = more
        fixed = 0
        for index, step in zip(indices, access.strides, strict=True):
            if step == 0:
                continue
            if not index.startswith("%"):
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

    def from_memory(self, value: str, kind: str, width: int) -> str:
        if kind != "bool":
            return value
        return self.text.value(
            f"icmp ne {in_memory(kind, width)} {value}, {'0' if width == 1 else 'zeroinitializer'}"
        )

    def load(self, place: str, kind: str, width: int, step: int) -> str:
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
            at = place
            if lane:
                at = text.value(f"getelementptr {kind_text}, ptr {place}, i64 {lane * step}")
            value = text.value(f"load {kind_text}, ptr {at}, align {SIZES[kind]}")
            result = text.value(f"insertelement {whole} {result}, {kind_text} {value}, i64 {lane}")
        return self.from_memory(result, kind, width)

    def store(self, place: str, kind: str, width: int, step: int, value: str) -> None:
        text = self.text
        if kind == "bool":
            value = text.value(f"zext {vector(kind, width)} {value} to {in_memory(kind, width)}")
        whole, kind_text = in_memory(kind, width), MEMORY[kind]
        if width == 1 or step == 1:
            text.do(f"store {whole} {value}, ptr {place}, align {SIZES[kind]}")
            return
        for lane in range(width):
            at = place
            if lane:
                at = text.value(f"getelementptr {kind_text}, ptr {place}, i64 {lane * step}")
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

    def part_place(self, reduction: Reduction, loop: Loop) -> Access:
        return reduction.access

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

        self.text.loop(0, loop.space[depth], 1, [], each)


class Rows:
    """Writes one loop of a nest, from the outermost dimension inwards.

    An instruction is written at the depth where all that it reads is fixed, so that what belongs to
    a row is computed once per row.
    """

    def __init__(self, emitter: Emitter, loop: Loop) -> None:
        self.emitter = emitter
        self.text = emitter.text
        self.loop = loop
        self.rank = len(loop.space)
        self.used = loop.used()
        self.levels = self._levels()
        self.values: dict[int, str] = {}

    def _levels(self) -> list[int]:
        """For each instruction the number of dimensions that it needs to be fixed."""
        levels: list[int] = []
        for instruction in self.loop.code:
            name, _, args = instruction
            level = 0
            if name in ("load", "gather"):
                level = _depth(args[0])
            elif name == "dot":
                level = max(_depth(args[1]), _depth(args[2]))
            for operand in operands_of(instruction):
                level = max(level, levels[operand])
            levels.append(level)
        return levels

    def enter(self, depth: int, indices: Sequence[str] = ()) -> None:
        """Write the instructions that need no more than `depth` dimensions, for one element."""
        for i, instruction in enumerate(self.loop.code):
            if self.used[i] and self.levels[i] <= depth and i not in self.values:
                padded = [*indices, *["0"] * (self.rank - len(indices))]
                self.values[i] = Body(self, padded, 1, self.values).write(instruction)

    def inside(self, indices: list[str]) -> None:
        """Everything inside of what the indices fix."""
        depth = len(indices)
        loop = self.loop
        self.enter(depth, indices)
        for reduction in loop.reductions:
            # In a row of its own a result in memory begins anew.
            if depth == 1 and 0 not in reduction.dims and not self._in_row(reduction):
                self.emitter.clear(loop, reduction, indices, 1)
        if depth == self.rank:
            self._leaf(indices, 1, [None] * len(loop.reductions), dict(self.values))
        elif depth == self.rank - 1:
            self.along(indices, 0, loop.space[depth])
        else:
            known = dict(self.values)

            def each(index: str, _: list[str]) -> list[str]:
                self.values = dict(known)
                self.inside_deeper([*indices, index])
                return []

            self.text.loop(0, loop.space[depth], 1, [], each)
            self.values = known

    def inside_deeper(self, indices: list[str]) -> None:
        depth = len(indices)
        self.enter(depth, indices)
        if depth == self.rank - 1:
            self.along(indices, 0, self.loop.space[depth])
            return
        known = dict(self.values)

        def each(index: str, _: list[str]) -> list[str]:
            self.values = dict(known)
            self.inside_deeper([*indices, index])
            return []

        self.text.loop(0, self.loop.space[depth], 1, [], each)
        self.values = known

    def _in_row(self, reduction: Reduction) -> bool:
        """Whether a result is complete after one run along the last dimension."""
        return reduction.dims == {self.rank - 1} and self.rank > 1

    # Along the last dimension --------------------------------------------------------------------

    def width(self) -> int:
        """How many elements a vector of this loop has."""
        loop = self.loop
        last = self.rank - 1
        for store in loop.stores:
            if store.indices and (
                any(self.levels[i] > last for i in store.indices) or store.access.strides[-1] != 1
            ):
                return 1
        sizes = [1]
        for i, (name, kind, _) in enumerate(loop.code):
            if self.used[i] and self.levels[i] > last:
                if name in ("call", "rescue"):
                    sizes.append(SIZES[kind])
                elif name in ("load", "gather", "dot") or is_float(kind):
                    sizes.append(SIZES[kind])
        for store in loop.stores:
            sizes.append(SIZES[loop.body.kind(store.value)])
        for reduction in loop.reductions:
            sizes.append(SIZES[loop.body.kind(reduction.value)])
        width = max(1, self.emitter.bytes // max(sizes))
        width = min(width, 16)
        while width > 1 and width > loop.space[last]:
            width //= 2
        return width

    def along(self, indices: list[str], low: Any, high: Any) -> None:
        """The last dimension from `low` to `high`: vectors, then single elements."""
        text, loop, emitter = self.text, self.loop, self.emitter
        last = self.rank - 1
        width = self.width()
        kept = [last in r.dims for r in loop.reductions]  # in registers
        length = loop.space[last]
        amount = sum(self.used)
        unroll = 1
        if length >= 4 * width and not loop.is_serial:
            unroll = (4 if amount < 40 else 2) if any(kept) else (2 if amount < 60 else 1)
        wide = self._splats(width) if width > 1 else self.values
        stride = width * unroll
        middle: Any
        if isinstance(low, int):
            middle = low + (high - low) // stride * stride
        else:
            span = text.value(f"sub i64 {high}, {low}")
            count = text.value(f"sdiv i64 {span}, {stride}")
            middle = text.value(f"mul i64 {count}, {stride}")
            middle = text.value(f"add i64 {low}, {middle}")
        results = self._run(indices, low, middle, width, unroll, kept, wide, length)
        totals = []
        for k, reduction in enumerate(loop.reductions):
            if kept[k]:
                kind = loop.body.kind(reduction.value)
                parts = results[k]
                while len(parts) > 1:
                    parts = [
                        emitter.combine(reduction.name, kind, width, parts[i], parts[i + 1])
                        for i in range(0, len(parts), 2)
                    ]
                totals.append(emitter.across(reduction.name, kind, width, parts[0]))
            else:
                totals.append("")
        if not isinstance(low, int) or middle != high:
            totals = self._rest(indices, middle, high, kept, totals)
        for k, reduction in enumerate(loop.reductions):
            if kept[k]:
                self._finish(reduction, [*indices, "0"], totals[k])

    def _splats(self, width: int) -> dict[int, str]:
        """Vectors of what is known already, for instructions along the last dimension."""
        last = self.rank - 1
        needed: set[int] = set()
        for i, instruction in enumerate(self.loop.code):
            if self.used[i] and self.levels[i] > last:
                needed.update(operands_of(instruction))
        needed.update([s.value for s in self.loop.stores])
        needed.update([r.value for r in self.loop.reductions])
        return {
            i: self.emitter.splat(self.values[i], self.loop.body.kind(i), width)
            for i in sorted(needed)
            if i in self.values
        }

    def _run(
        self,
        indices: list[str],
        low: Any,
        high: Any,
        width: int,
        unroll: int,
        kept: list[bool],
        known: dict[int, str],
        length: int,
    ) -> list[list[str]]:
        """The turns in vectors: for each reduction in registers, its partial results."""
        loop, text, emitter = self.loop, self.text, self.emitter
        reductions = [r for k, r in enumerate(loop.reductions) if kept[k]]
        kinds = [loop.body.kind(r.value) for r in reductions]
        begin = [
            (vector(kind, width), identity(r.name, kind, width))
            for _ in range(unroll)
            for r, kind in zip(reductions, kinds, strict=True)
        ]
        count = len(reductions)

        def turn(index: str, carried: list[str]) -> list[str]:
            found = []
            for u in range(unroll):
                at = index
                if u:
                    at = (
                        text.value(f"add nsw i64 {index}, {u * width}")
                        if index.startswith("%")
                        else str(int(index) + u * width)
                    )
                supply = iter(carried[u * count : (u + 1) * count])
                given = [next(supply) if keep else None for keep in kept]
                made = self._leaf([*indices, at], width, given, dict(known))
                found += [value for value, keep in zip(made, kept, strict=True) if keep]
            return found

        def span(start: Any, end: Any) -> list[str]:
            return text.loop(start, end, width * unroll, begin, turn)

        if length > 4 * BLOCK and any(r.name == "add" for r in reductions):

            def block(start: str, totals: list[str]) -> list[str]:
                end = text.value(f"add nsw i64 {start}, {BLOCK}")
                over = text.value(f"icmp sgt i64 {end}, {high}")
                end = text.value(f"select i1 {over}, i64 {high}, i64 {end}")
                return [
                    emitter.combine(
                        reductions[i % count].name, kinds[i % count], width, total, part
                    )
                    for i, (total, part) in enumerate(zip(totals, span(start, end), strict=True))
                ]

            flat = text.loop(low, high, BLOCK, begin, block)
        else:
            flat = span(low, high)
        by_reduction = iter(range(count))
        return [
            [flat[u * count + k] for u in range(unroll)] if keep and (k := next(by_reduction)) >= 0
            else []
            for keep in kept
        ]  # fmt: skip

    def _rest(
        self, indices: list[str], low: Any, high: Any, kept: list[bool], totals: list[str]
    ) -> list[str]:
        """The turns that fill no vector."""
        loop = self.loop
        begin = [
            (REGISTER[loop.body.kind(r.value)], total)
            for r, total, keep in zip(loop.reductions, totals, kept, strict=True)
            if keep
        ]
        known = self.values

        def turn(index: str, carried: list[str]) -> list[str]:
            supply = iter(carried)
            given = [next(supply) if keep else None for keep in kept]
            made = self._leaf([*indices, index], 1, given, dict(known))
            return [value for value, keep in zip(made, kept, strict=True) if keep]

        supply = iter(self.text.loop(low, high, 1, begin, turn))
        return [next(supply) if keep else "" for keep in kept]

    def _finish(self, reduction: Reduction, indices: list[str], total: str) -> None:
        """Write the total along the last dimension, or add it to what rows have given."""
        loop, emitter = self.loop, self.emitter
        kind = loop.body.kind(reduction.value)
        place = emitter.target(loop, reduction, indices)
        if not (self._in_row(reduction) or emitter.nest.in_registers(loop, reduction)):
            before = emitter.load(place, kind, 1, 0)
            total = emitter.combine(reduction.name, kind, 1, before, total)
        emitter.store(place, kind, 1, 0, total)

    def _leaf(
        self, indices: list[str], width: int, carried: list[str | None], known: dict[int, str]
    ) -> list[Any]:
        """One turn: all instructions left, stores, and what reductions have become."""
        loop, emitter = self.loop, self.emitter
        body = Body(self, indices, width, known)
        for i, instruction in enumerate(loop.code):
            if self.used[i] and i not in known:
                known[i] = body.write(instruction)
        for store in loop.stores:
            self._store(store, indices, width, known, body)
        found: list[Any] = []
        for reduction, before in zip(loop.reductions, carried, strict=True):
            kind = loop.body.kind(reduction.value)
            value = known[reduction.value]
            if before is not None:
                found.append(emitter.combine(reduction.name, kind, width, before, value))
                continue
            place = emitter.target(loop, reduction, indices)
            step = reduction.access.strides[-1] if indices else 0
            old = emitter.load(place, kind, width, step)
            value = emitter.combine(reduction.name, kind, width, old, value)
            emitter.store(place, kind, width, step, value)
            found.append(None)
        return found

    def _store(
        self, store: Store, indices: list[str], width: int, known: dict[int, str], body: Body
    ) -> None:
        emitter = self.emitter
        kind = self.loop.body.kind(store.value)
        more = None
        if store.indices:
            chosen = [self.values.get(i, known[i]) for i in store.indices]
            kinds = [self.loop.body.kind(i) for i in store.indices]
            more = body.distance(chosen, kinds, store.steps, store.lengths, 1)
        place = emitter.address(store.access, indices, more)
        step = store.access.strides[-1] if store.access.strides else 0
        value = known[store.value]
        if store.adds:
            old = emitter.load(place, kind, width, step)
            value = emitter.combine("add", kind, width, old, value)
        emitter.store(place, kind, width, step, value)


def _depth(access: Access) -> int:
    """The number of dimensions that must be fixed to know an address."""
    return max([d + 1 for d, step in enumerate(access.strides) if step], default=0)


#: The relations of comparisons: those of floats are false for NaN but for ``ne``.
_FLOAT_RELATIONS = {"ne": "une", "uno": "uno"}
_INTRINSICS = {
    "sqrt": "sqrt", "rint": "rint", "floor": "floor", "ceil": "ceil", "trunc": "trunc",
    "abs": "fabs", "copysign": "copysign", "fma": "fma",
}  # fmt: skip


class Body:
    """Writes scalar instructions for one index, or for as many as a vector has."""

    def __init__(
        self, rows: Rows, indices: Sequence[str], width: int, known: dict[int, str]
    ) -> None:
        self.rows = rows
        self.emitter = rows.emitter
        self.text = rows.text
        self.loop = rows.loop
        self.indices = indices
        self.width = width
        self.known = known

    def write(self, instruction: tuple[str, str, tuple]) -> str:
        name, kind, args = instruction
        special = getattr(self, "_" + name, None)
        if special is not None:
            return special(kind, args)
        values = [self.known[i] for i in args]
        whole = vector(kind, self.width)
        if name in _INTRINSICS:
            return self.text.intrinsic(
                _INTRINSICS[name], name_of(kind, self.width), whole, *[(whole, v) for v in values]
            )
        if name in ("add", "sub", "mul", "div"):
            if is_float(kind):
                word = "f" + name
            else:
                word = name if name != "div" else ("sdiv" if is_signed(kind) else "udiv")
            return self.text.value(f"{word} {whole} {values[0]}, {values[1]}")
        word = {"shr": "lshr", "sar": "ashr"}.get(name, name)  # and or xor shl
        return self.text.value(f"{word} {whole} {values[0]}, {values[1]}")

    def _neg(self, kind: str, args: tuple) -> str:
        return self.text.value(f"fneg {vector(kind, self.width)} {self.known[args[0]]}")

    def _const(self, kind: str, args: tuple) -> str:
        return constant(args[0], kind, self.width)

    def _load(self, kind: str, args: tuple) -> str:
        access = args[0]
        step = access.strides[-1] if access.strides else 0
        place = self.emitter.address(access, self.indices)
        return self.emitter.load(place, kind, self.width, step)

    def _cmp(self, kind: str, args: tuple) -> str:
        relation, *operands = args
        given = self.loop.body.kind(operands[0])
        x, y = (self.known[i] for i in operands)
        if is_float(given):
            word = "fcmp " + _FLOAT_RELATIONS.get(relation, "o" + relation)
        else:
            sign = "" if relation in ("eq", "ne") else "s" if is_signed(given) else "u"
            word = f"icmp {sign}{relation}"
        return self.text.value(f"{word} {vector(given, self.width)} {x}, {y}")

    def _select(self, kind: str, args: tuple) -> str:
        flag, x, y = (self.known[i] for i in args)
        whole = vector(kind, self.width)
        return self.text.value(
            f"select {vector('bool', self.width)} {flag}, {whole} {x}, {whole} {y}"
        )

    def _bits(self, kind: str, args: tuple) -> str:
        given = vector(self.loop.body.kind(args[0]), self.width)
        value = self.known[args[0]]
        whole = vector(kind, self.width)
        return value if given == whole else self.text.value(f"bitcast {given} {value} to {whole}")

    def _convert(self, kind: str, args: tuple) -> str:
        given = self.loop.body.kind(args[0])
        return self.converted(self.known[args[0]], given, kind)

    def converted(self, value: str, given: str, kind: str) -> str:
        """A value in another type."""
        text, width = self.text, self.width
        if given == "bf16":
            wide = vector("i32", width)
            value = text.value(f"zext {vector(given, width)} {value} to {wide}")
            value = text.value(f"shl {wide} {value}, {lanes('16', 'i32', width)}")
            value = text.value(f"bitcast {wide} {value} to {vector('f32', width)}")
            return value if kind == "f32" else self.converted(value, "f32", kind)
        if kind == "bf16":
            if given != "f32":
                value = self.converted(value, given, "f32")
            return self._to_bf16(value)
        small, large = SIZES[given], SIZES[kind]
        if is_float(given) and is_float(kind):
            word = "fpext" if large > small else "fptrunc"
        elif is_float(given):
            word = "fptosi" if is_signed(kind) else "fptoui"
            if kind == "u8":  # negative values wrap around as NumPy's do
                value = text.value(
                    f"fptosi {vector(given, width)} {value} to {vector('i32', width)}"
                )
                return text.value(
                    f"trunc {vector('i32', width)} {value} to {vector(kind, width)}"
                )
        elif is_float(kind):
            word = "sitofp" if is_signed(given) else "uitofp"
        elif given == "bool":
            word = "zext"
        elif small == large:
            return value
        else:
            word = "trunc" if large < small else ("sext" if is_signed(given) else "zext")
        return text.value(f"{word} {vector(given, width)} {value} to {vector(kind, width)}")

    def _to_bf16(self, value: str) -> str:
        """The nearest of the shorter floats, halves to even; NaN stays NaN."""
        text, width = self.text, self.width
        wide, flags = vector("i32", width), vector("bool", width)
        source = vector("f32", width)

        def number(n: int) -> str:
            return lanes(str(n), "i32", width)

        bits = text.value(f"bitcast {source} {value} to {wide}")
        odd = text.value(f"lshr {wide} {bits}, {number(16)}")
        odd = text.value(f"and {wide} {odd}, {number(1)}")
        up = text.value(f"add {wide} {bits}, {number(0x7FFF)}")
        up = text.value(f"add {wide} {up}, {odd}")
        nan = text.value(f"fcmp uno {source} {value}, {value}")
        up = text.value(f"select {flags} {nan}, {wide} {number(0x7FC00000)}, {wide} {up}")
        up = text.value(f"lshr {wide} {up}, {number(16)}")
        return text.value(f"trunc {wide} {up} to {vector('bf16', width)}")

    # Functions of the C library ----------------------------------------------------------------

    def _call(self, kind: str, args: tuple) -> str:
        name, *operands = args
        values = [self.known[i] for i in operands]
        return self.each_lane(name, kind, values)

    def each_lane(self, name: str, kind: str, values: list[str]) -> str:
        text = self.text
        base = REGISTER[kind]
        text.declarations.add(f"declare {base} @{name}({', '.join([base] * len(values))})")
        if self.width == 1:
            return text.value(f"call {base} @{name}({', '.join(f'{base} {v}' for v in values)})")
        whole = vector(kind, self.width)
        result = "poison"
        for lane in range(self.width):
            items = [text.value(f"extractelement {whole} {v}, i64 {lane}") for v in values]
            item = text.value(f"call {base} @{name}({', '.join(f'{base} {v}' for v in items)})")
            result = text.value(f"insertelement {whole} {result}, {base} {item}, i64 {lane}")
        return result

    def _rescue(self, kind: str, args: tuple) -> str:
        """A value that the C library computes where a flag is set; mostly none is."""
        name, flag, value, operand = args
        text, width = self.text, self.width
        k = text.fresh()
        flags, usual, x = (self.known[i] for i in (flag, value, operand))
        any_set = flags
        if width > 1:
            bits = text.value(f"bitcast {vector('bool', width)} {flags} to i{width}")
            any_set = text.value(f"icmp ne i{width} {bits}, 0")
        before = text.label
        text.do(f"br i1 {any_set}, label %far{k}, label %near{k}")
        text.begin(f"far{k}")
        found = self.each_lane(name, kind, [x])
        whole = vector(kind, width)
        mixed = text.value(
            f"select {vector('bool', width)} {flags}, {whole} {found}, {whole} {usual}"
        )
        text.do(f"br label %near{k}")
        text.begin(f"near{k}")
        return text.value(f"phi {whole} [ {usual}, %{before} ], [ {mixed}, %far{k} ]")

    # Products and indices ------------------------------------------------------------------------

    def _dot(self, kind: str, args: tuple) -> str:
        """The sum of products of two rows, whose steps come last in their accesses."""
        length, left, right, left_step, right_step = args
        text, width = self.text, self.width
        whole = vector(kind, width)

        def product(k: str, total: str) -> str:
            factors = []
            for access, step in ((left, left_step), (right, right_step)):
                extended = Access(access.buffer, access.offset, (*access.strides, step))
                lane = access.strides[-1] if access.strides else 0
                place = self.emitter.address(extended, [*self.indices, k])
                if width > 1 and lane == 0:
                    one = self.emitter.load(place, kind, 1, 0)
                    factors.append(self.emitter.splat(one, kind, width))
                else:
                    factors.append(self.emitter.load(place, kind, width, lane))
            return text.intrinsic(
                "fma", name_of(kind, width), whole, *[(whole, v) for v in (*factors, total)]
            )

        zero = constant(0, kind, width)
        if length <= 16:
            sums = [zero] * (2 if length >= 8 else 1)
            for k in range(length):
                sums[k % len(sums)] = product(str(k), sums[k % len(sums)])
        else:
            count = 4 if length % 4 == 0 else 1

            def turn(k: str, carried: list[str]) -> list[str]:
                found = []
                for u in range(count):
                    at = k if u == 0 else text.value(f"add nsw i64 {k}, {u}")
                    found.append(product(at, carried[u]))
                return found

            sums = text.loop(0, length, count, [(whole, zero)] * count, turn)
        while len(sums) > 1:
            sums = [
                text.value(f"fadd {whole} {sums[i]}, {sums[i + 1]}")
                for i in range(0, len(sums), 2)
            ]
        return sums[0]

    def distance(
        self,
        chosen: list[str],
        kinds: list[str],
        steps: Sequence[int],
        lengths: Sequence[int],
        width: int,
    ) -> str:
        """How far from the start computed indices lead; those out of range set the flag."""
        text = self.text
        whole, flags = vector("i64", width), vector("bool", width)
        total = None
        outside = None
        for value, kind, step, length in zip(chosen, kinds, steps, lengths, strict=True):
            if SIZES[kind] < 8:
                word = "sext" if is_signed(kind) else "zext"
                value = text.value(f"{word} {vector(kind, width)} {value} to {whole}")
            size = lanes(str(length), "i64", width)
            zero = lanes("0", "i64", width)
            negative = text.value(f"icmp slt {whole} {value}, {zero}")
            wrapped = text.value(f"add {whole} {value}, {size}")
            value = text.value(f"select {flags} {negative}, {whole} {wrapped}, {whole} {value}")
            beyond = text.value(f"icmp uge {whole} {value}, {size}")
            outside = beyond if outside is None else text.value(f"or {flags} {outside}, {beyond}")
            value = text.value(f"select {flags} {beyond}, {whole} {zero}, {whole} {value}")
            part = text.value(f"mul nsw {whole} {value}, {lanes(str(step), 'i64', width)}")
            total = part if total is None else text.value(f"add nsw {whole} {total}, {part}")
        assert outside is not None and total is not None
        any_set = outside
        if width > 1:
            bits = text.value(f"bitcast {flags} {outside} to i{width}")
            any_set = text.value(f"icmp ne i{width} {bits}, 0")
        k = text.fresh()
        text.do(f"br i1 {any_set}, label %wrong{k}, label %right{k}")
        text.begin(f"wrong{k}")
        flag = text.value("load ptr, ptr %bases")
        text.do(f"store i64 1, ptr {flag}")
        text.do(f"br label %right{k}")
        text.begin(f"right{k}")
        return total

    def _gather(self, kind: str, args: tuple) -> str:
        """Elements at computed places."""
        access, steps, lengths, *operands = args
        text, width = self.text, self.width
        kinds = [self.loop.body.kind(i) for i in operands]
        lane = access.strides[-1] if access.strides else 0
        along_rows = width > 1 and all(i in self.rows.values for i in operands)
        if width == 1 or (along_rows and lane):
            chosen = [self.rows.values.get(i, self.known[i]) for i in operands]
            more = self.distance(chosen, kinds, steps, lengths, 1)
            place = self.emitter.address(access, self.indices, more)
            return self.emitter.load(place, kind, width, lane)
        chosen = [self.known[i] for i in operands]
        offsets = self.distance(chosen, kinds, steps, lengths, width)
        place = self.emitter.address(access, self.indices)
        base, whole = MEMORY[kind], in_memory(kind, width)
        result = "poison"
        for i in range(width):
            at = text.value(f"extractelement {vector('i64', width)} {offsets}, i64 {i}")
            if lane and i:
                at = text.value(f"add nsw i64 {at}, {i * lane}")
            at = text.value(f"getelementptr {base}, ptr {place}, i64 {at}")
            value = text.value(f"load {base}, ptr {at}, align {SIZES[kind]}")
            result = text.value(f"insertelement {whole} {result}, {base} {value}, i64 {i}")
        return self.emitter.from_memory(result, kind, width)
