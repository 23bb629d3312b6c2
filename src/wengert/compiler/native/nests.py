"""Nests: loops with as few dimensions as they need, and several loops run row by row as one.

Where consecutive loops agree in their outer dimensions, and none reads of another row what an
earlier one writes, one outer loop runs them all, so that a row stays in the cache from one to the
next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .loops import SCRATCH, Access, Buffer, Call, Group, Loop, Reduction, Store

#: A nest with less work, about that many instructions, is not worth waking other threads.
WORTH_SPLITTING = 100_000
#: Into how many chunks a nest is split. It does not depend on the number of threads, so that
#: results do not either.
CHUNKS = 8
#: Chunks of a nest of one loop begin at multiples of this many elements.
GRAIN = 64
_MOST_LOOPS = 24
#: Loops smaller than this gain nothing from running in rows with each other.
_SMALLEST_JOINED = 128
#: A row shorter than this is not worth an outer loop of its own.
_SHORTEST_ROW = 8


class Nest:
    """Loops that run one after the other for each row; `rows` is the extent of the outer loop."""

    def __init__(self, loops: list[Loop], row_wise: bool) -> None:
        self.loops = loops
        self.row_wise = row_wise
        self.rows = loops[0].space[0]
        self.chunk = self.rows
        self.parts = 1
        self._sizes: dict[int, int] = {}

    @property
    def is_split(self) -> bool:
        """Whether several threads may take chunks of its rows."""
        return self.chunk < self.rows

    def in_registers(self, loop: Loop, reduction: Reduction) -> bool:
        """Whether a reduction is complete after one run along the rows themselves."""
        return not self.row_wise and len(loop.space) == 1

    def part_size(self, loop: Loop, reduction: Reduction) -> int:
        """How far apart the results of two chunks lie."""
        return self._sizes[reduction.access.buffer]

    def reads(self) -> set[int]:
        return set().union(*[loop.read_buffers() for loop in self.loops])

    def writes(self) -> set[int]:
        return set().union(*[loop.written_buffers() for loop in self.loops])

    def work(self) -> int:
        return sum([loop.work() for loop in self.loops])


Step = Nest | Call


def collapsed(loop: Loop, rows: int | None = None) -> Loop | None:
    """The loop with neighbouring dimensions merged as far as all accesses allow.

    With `rows`, the first dimension has that extent; None where that cannot be.
    """
    extents = loop.space
    kept = [d for d, n in enumerate(extents) if n != 1]
    accesses = _accesses(loop)
    groups: list[list[int]] = []
    covered = 1
    for d in kept:
        merges = bool(groups) and not (rows is not None and covered == rows)
        if merges:
            before = groups[-1][-1]
            merges = all(
                a.strides[before] == a.strides[d] * extents[d] for a in accesses
            ) and all((before in r.dims) == (d in r.dims) for r in loop.reductions)
        if merges:
            groups[-1].append(d)
        else:
            groups.append([d])
        covered *= extents[d]
    space = [math.prod([extents[d] for d in group]) for group in groups]
    places = [group[-1] for group in groups]
    if rows is not None and (not space or space[0] != rows):
        if rows != 1:
            return None
        space, places = [1, *space], [-1, *places]
    if not space:
        space, places = [1], [-1]
    return _with_dimensions(loop, tuple(space), places)


def _accesses(loop: Loop) -> list[Access]:
    found = dict.fromkeys(loop.reads())
    found.update(dict.fromkeys([store.access for store in loop.stores]))
    found.update(dict.fromkeys([reduction.access for reduction in loop.reductions]))
    return list(found)


def _with_dimensions(loop: Loop, space: tuple[int, ...], places: list[int]) -> Loop:
    """The loop over chosen dimensions; -1 stands for one of length one."""

    def fit(access: Access) -> Access:
        strides = tuple([access.strides[d] if d >= 0 else 0 for d in places])
        return Access(access.buffer, access.offset, strides)

    made = Loop(loop.order, space)
    for name, kind, args in loop.code:
        if name in ("load", "gather"):
            args = (fit(args[0]), *args[1:])
        elif name == "dot":
            args = (args[0], fit(args[1]), fit(args[2]), *args[3:])
        made.body.code.append((name, kind, args))
    made.stores = [store._replace(access=fit(store.access)) for store in loop.stores]
    for reduction in loop.reductions:
        dims = frozenset([k for k, d in enumerate(places) if d in reduction.dims])
        access = fit(reduction.access)
        if dims:
            made.reductions.append(reduction._replace(dims=dims, access=access))
        else:  # nothing to combine
            made.stores.append(Store(access, reduction.value))
    return made


def possible_rows(loop: Loop) -> list[int]:
    """The extents that an outer loop may have, of which there are few."""
    found = []
    product = 1
    for n in loop.space:
        product *= n
        if product > 1 and product not in found:
            found.append(product)
    return [rows for rows in found if collapsed(loop, rows) is not None]


def _span(loop: Loop, access: Access, more: int = 0) -> int:
    """How many elements lie between the first and the last that one row touches."""
    inner = zip(loop.space[1:], access.strides[1:], strict=True)
    return sum([(n - 1) * abs(step) for n, step in inner]) + more + 1


def _within_rows(
    one: tuple[Access, int], other: tuple[Access, int]
) -> bool:
    """Whether two accesses, given with their spans, meet in the same row only."""
    (a, a_span), (b, b_span) = one, other
    step = a.strides[0]
    if step <= 0 or b.strides[0] != step:
        return False
    return (
        a.offset // step == b.offset // step
        and a.offset % step + a_span <= step
        and b.offset % step + b_span <= step
    )


def _touched(loop: Loop, read: bool) -> dict[int, list[tuple[Access, int] | None]]:
    """By buffer the accesses of a loop with their spans, None for places that are computed."""
    found: dict[int, list[tuple[Access, int] | None]] = {}

    def note(access: Access, span: int | None) -> None:
        entry = None if span is None or any(s < 0 for s in access.strides) else (access, span)
        found.setdefault(access.buffer, []).append(entry)

    if read:
        for (name, _, args), needed in zip(loop.code, loop.used(), strict=True):
            if needed and name == "load":
                note(args[0], _span(loop, args[0]))
            elif needed and name == "gather":
                note(args[0], None)
            elif needed and name == "dot":
                length, left, right, left_step, right_step = args
                note(left, _span(loop, left, (length - 1) * abs(left_step)))
                note(right, _span(loop, right, (length - 1) * abs(right_step)))
    for store in loop.stores:
        note(store.access, None if store.indices else _span(loop, store.access))
    for reduction in loop.reductions:
        note(reduction.access, _span(loop, reduction.access))
    return found


def _may_follow(earlier: Sequence[Loop], new: Loop) -> bool:
    """Whether a loop may run in the same rows after others."""
    touched = _touched(new, True)
    written = _touched(new, False)
    for loop in earlier:
        for buffer, places in _touched(loop, False).items():
            for mine in touched.get(buffer, ()):
                for its in places:
                    if mine is None or its is None or not _within_rows(its, mine):
                        return False
        for buffer, places in _touched(loop, True).items():
            for mine in written.get(buffer, ()):
                for its in places:
                    if mine is None or its is None or not _within_rows(its, mine):
                        return False
    return True


class _Open:
    """Loops that may yet be joined by others, with the extents that their outer loop may have."""

    def __init__(self, loop: Loop) -> None:
        self.loops = [loop]
        self._rows: dict[int, list[Any]] | None = None

    @property
    def rows(self) -> dict[int, list[Any]]:
        """The loops for each extent that the outer loop may have."""
        if self._rows is None:
            (loop,) = self.loops
            self._rows = {rows: [collapsed(loop, rows)] for rows in possible_rows(loop)}
        return self._rows

    def takes(self, loop: Loop) -> bool:
        """Add a loop if all can run in rows together."""
        if len(self.loops) >= _MOST_LOOPS or loop.is_serial or self.loops[0].is_serial:
            return False
        if loop.size < _SMALLEST_JOINED and self.loops[-1].size < _SMALLEST_JOINED:
            return False
        found: dict[int, list[Any]] = {}
        joined = self.rows
        for rows in possible_rows(loop):
            earlier: Any = joined.get(rows)
            if earlier is None:
                continue
            longest = max(loop.size, *[each.size for each in self.loops]) // rows
            if longest < _SHORTEST_ROW:
                continue
            new = collapsed(loop, rows)
            if new is not None and _may_follow(earlier, new):
                found[rows] = [*earlier, new]
        if not found:
            return False
        self.loops.append(loop)
        self._rows = found
        return True

    def nest(self) -> Nest:
        if len(self.loops) == 1:
            only = collapsed(self.loops[0])
            assert only is not None
            return Nest([only], False)
        loops: Any = self.rows[max(self.rows)]
        return Nest(loops, True)


def form_nests(groups: Sequence[Group], buffers: list[Buffer], threads: bool) -> list[Step]:
    """The steps of a list of groups: loops joined to nests, calls as they are.

    Buffers for the partial results of nests that are split are added to the list.
    """
    steps: list[Step] = []
    current: _Open | None = None
    for group in groups:
        if isinstance(group, Call):
            if current is not None:
                steps.append(current.nest())
                current = None
            steps.append(group)
        elif group.has_results:
            if current is not None and current.takes(group):
                continue
            if current is not None:
                steps.append(current.nest())
            current = _Open(group)
    if current is not None:
        steps.append(current.nest())
    if not threads:
        return steps
    return [part for step in steps for part in split(step, buffers)]


def split(step: Step, buffers: list[Buffer]) -> list[Step]:
    """A nest with enough work made ready for several threads, and what combines their results."""
    if isinstance(step, Call) or step.work() < WORTH_SPLITTING or step.rows < 2:
        return [step]
    if any(loop.is_serial for loop in step.loops):
        return [step]
    reduced = [
        (loop, i, r)
        for loop in step.loops
        for i, r in enumerate(loop.reductions)
        if 0 in r.dims
    ]
    if sum([buffers[r.access.buffer].size for _, _, r in reduced]) * CHUNKS > 1 << 20:
        return [step]
    grain = GRAIN if not step.row_wise and len(step.loops[0].space) == 1 else 1
    chunk = -(-step.rows // CHUNKS)
    step.chunk = -(-chunk // grain) * grain
    step.parts = -(-step.rows // step.chunk)
    if step.parts == 1:
        step.chunk = step.rows
        return [step]
    made: list[Step] = [step]
    for loop, i, reduction in reduced:
        target = buffers[reduction.access.buffer]
        partial = Buffer(len(buffers), target.kind, SCRATCH, target.size * step.parts)
        buffers.append(partial)
        step._sizes[partial.id] = target.size
        loop.reductions[i] = reduction._replace(
            access=reduction.access._replace(buffer=partial.id)
        )
        total = Loop(loop.order, (step.parts, target.size))
        value = total.body.write("load", target.kind, Access(partial.id, 0, (target.size, 1)))
        total.reductions.append(
            Reduction(
                reduction.name, value, frozenset([0]), Access(target.id, 0, (0, 1))
            )
        )
        only = collapsed(total)
        assert only is not None
        made.append(Nest([only], False))
    return made
