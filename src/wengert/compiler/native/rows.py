"""One loop of a nest as text: along rows in vectors, and what belongs to a row once per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.scalar.expressions import SIZES, is_float, operands_of
from .body import Body
from .loops import Access, Loop, Reduction, Store
from .text import REGISTER, Text, identity, vector

if TYPE_CHECKING:
    from .emitter import Emitter

#: Sums longer than this are made of sums of blocks: rounding errors grow with the length.
BLOCK = 2048
LONG = 4 * BLOCK
#: Instructions from which on a turn takes longer to end than to begin the next ones.
LONG_CODE = 60


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
            self._leaf(indices, 1, [None] * len(loop.reductions), self.values)
        elif depth == self.rank - 1:
            self.along(indices, 0, self.emitter.extent(loop, depth))
        else:
            known = dict(self.values)

            def each(index: str, _: list[str]) -> list[str]:
                self.values = dict(known)
                self.inside_deeper([*indices, index])
                return []

            self.text.loop(0, self.emitter.extent(loop, depth), 1, [], each)
            self.values = known

    def inside_deeper(self, indices: list[str]) -> None:
        depth = len(indices)
        self.enter(depth, indices)
        if depth == self.rank - 1:
            self.along(indices, 0, self.emitter.extent(self.loop, depth))
            return
        known = dict(self.values)

        def each(index: str, _: list[str]) -> list[str]:
            self.values = dict(known)
            self.inside_deeper([*indices, index])
            return []

        self.text.loop(0, self.emitter.extent(self.loop, depth), 1, [], each)
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
        for i, (name, kind, args) in enumerate(loop.code):
            if self.used[i] and self.levels[i] > last:
                if is_float(kind) or name in ("load", "gather"):
                    sizes.append(SIZES[kind])
                if name == "form":
                    sizes += [SIZES[kind] for _, kind, _ in args[0].code if is_float(kind)]
        for store in loop.stores:
            sizes.append(SIZES[loop.body.kind(store.value)])
        for reduction in loop.reductions:
            sizes.append(SIZES[loop.body.kind(reduction.value)])
        width = max(1, self.emitter.bytes // max(sizes))
        width = min(width, 16)
        while width > 1 and width > loop.space[last]:
            width //= 2
        return width

    def _unrolled(self, reduces: bool) -> int:
        """How many vectors a turn computes side by side: more where each has to wait for results,
        of sums or along many instructions, if there are registers for them."""
        is_long = sum(self.used) >= LONG_CODE
        has_registers = self.emitter.bytes == 64  # AVX-512 has 32 of them
        return 4 if (has_registers if is_long else reduces) else 2

    def along(self, indices: list[str], low: Any, high: Any) -> None:
        """The last dimension from `low` to `high`: vectors, then single elements."""
        text, loop, emitter = self.text, self.loop, self.emitter
        last = self.rank - 1
        width = self.width()
        kept = [last in r.dims for r in loop.reductions]  # in registers
        length = loop.space[last]
        unroll = 1
        if length >= 4 * width and not loop.is_serial:
            unroll = self._unrolled(any(kept))
        wide = self._splats(width) if width > 1 else self.values
        stride = width * unroll
        middle: Any
        if isinstance(low, int) and isinstance(high, int):
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
        if middle != high:
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
            places = [[*indices, _further(text, index, u * width)] for u in range(unroll)]
            found = []
            for u, body in enumerate(self._computed(places, width, known)):
                supply = iter(carried[u * count : (u + 1) * count])
                given = [next(supply) if keep else None for keep in kept]
                made = self._written(body, given)
                found += [value for value, keep in zip(made, kept, strict=True) if keep]
            return found

        def span(start: Any, end: Any) -> list[str]:
            return text.loop(start, end, width * unroll, begin, turn)

        if length > LONG and any(r.name == "add" for r in reductions):

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
            made = self._leaf([*indices, index], 1, given, known)
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
        (body,) = self._computed([indices], width, known)
        return self._written(body, carried)

    def _computed(
        self, places: list[list[str]], width: int, known: dict[int, str]
    ) -> list[Body]:
        """The instructions left at several places.

        Where some have to be computed by the C library, which is seldom, all are computed again:
        branches on the usual way would part what can be computed side by side.
        """
        bodies = self._side_by_side(places, width, known, hopeful=True)
        flags = [flag for body in bodies for flag in body.missed]
        if not flags:
            return bodies
        text = self.text
        k, before = text.fresh(), text.label
        text.seldom(text.any_of(flags, width), f"again{k}", f"computed{k}")
        text.begin(f"again{k}")
        careful = self._side_by_side(places, width, known, hopeful=False)
        last = text.label
        text.do(f"br label %computed{k}")
        text.begin(f"computed{k}")
        for i in self._taken() - known.keys():
            whole = vector(self.loop.body.kind(i), width)
            for body, other in zip(bodies, careful, strict=True):
                ways = f"[ {body.known[i]}, %{before} ], [ {other.known[i]}, %{last} ]"
                body.known[i] = text.value(f"phi {whole} {ways}")
        return bodies

    def _side_by_side(
        self, places: list[list[str]], width: int, known: dict[int, str], hopeful: bool
    ) -> list[Body]:
        """The instructions in turn for one place and the next: while one waits for a result, a
        processor goes on with another, which it looks for among the next hundred or so."""
        bodies = [Body(self, indices, width, dict(known), hopeful) for indices in places]
        for i, instruction in enumerate(self.loop.code):
            if self.used[i] and i not in known:
                for body in bodies:
                    body.known[i] = body.write(instruction)
        return bodies

    def _taken(self) -> set[int]:
        """The instructions whose values stores and reductions take."""
        found = {reduction.value for reduction in self.loop.reductions}
        for store in self.loop.stores:
            found |= {store.value, *store.indices}
        return found

    def _written(self, body: Body, carried: list[str | None]) -> list[Any]:
        """The stores of a turn, and what reductions have become."""
        loop, emitter = self.loop, self.emitter
        indices, width, known = body.indices, body.width, body.known
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
            step = emitter.last_step(reduction.access)
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
        step = emitter.last_step(store.access)
        value = known[store.value]
        if store.adds:
            old = emitter.load(place, kind, width, step)
            value = emitter.combine("add", kind, width, old, value)
        emitter.store(place, kind, width, step, value)


def _further(text: Text, index: str, distance: int) -> str:
    """An index that is some elements further on."""
    if not distance:
        return index
    if index.startswith("%"):
        return text.value(f"add nsw i64 {index}, {distance}")
    return str(int(index) + distance)


def _depth(access: Access) -> int:
    """The number of dimensions that must be fixed to know an address."""
    return max([d + 1 for d, step in enumerate(access.strides) if step], default=0)
