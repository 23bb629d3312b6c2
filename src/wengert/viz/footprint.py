"""The memory that a program holds for its backward, and what checkpointing its parts would save."""

from __future__ import annotations

import linecache
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..autograd.memory import Memory, memory_of, recorded_nodes, saved_arrays
from ..autograd.memory import memory as saved_memory
from ..autograd.profiler_util import format_memory, format_time
from ..core.tensor import Tensor
from ..core.trees.pytree import tree_leaves
from ..tape.node import AccumulateGrad
from .pages import frame, page, write
from .scopes import Scope, Watch, arguments_of, title_of


@dataclass(frozen=True)
class Advice:
    """What happens if every call of `block` is checkpointed.

    `saves` bytes are no longer held between forward and backward. Backward runs the calls again,
    which took `seconds`, and meanwhile holds up to `again` bytes for one of them.
    """

    block: str
    calls: int
    saves: int
    again: int
    seconds: float

    def __str__(self) -> str:
        calls = f"{self.calls} calls of {self.block}" if self.calls > 1 else self.block
        return (
            f"checkpoint {calls}: saves {format_memory(self.saves)}, runs "
            f"{format_time(1e6 * self.seconds)} again, {format_memory(self.again)} at a time"
        )


class Footprint:
    """The bytes a run of a program held for backward: by line, over time, with advice.

    `peak` is the most that was allocated at a time while the function ran, results of operators
    that are soon dropped included: None unless it was asked for.
    """

    def __init__(
        self, table: Memory, advice: list[Advice], title: str, peak: int | None = None
    ) -> None:
        self.table = table
        self.advice = advice
        self.title = title
        self.peak = peak

    @property
    def total(self) -> int:
        """Bytes that the graph alone kept when the function returned."""
        return self.table.total

    def html(self) -> str:
        """One page: held bytes by line, over the run, and what checkpointing would save."""
        lines = [
            {
                "file": line.file if line else "unknown",
                "number": line.number if line else 0,
                "function": line.function if line else "",
                "text": linecache.getline(line.file, line.number).strip() if line else "",
                "held": held,
            }
            for line, held in self.table.by_line().items()
        ]
        rows = [
            {
                "node": row.node,
                "name": row.name,
                "shape": row.shape,
                "dtype": row.dtype.name,
                "held": row.held,
                "line": f"{Path(row.line.file).name}:{row.line.number}" if row.line else "",
            }
            for row in self.table
        ]
        advice = [vars(each) for each in self.advice]
        data = {"total": self.total, "lines": lines, "rows": rows, "advice": advice}
        return page("memory", self.title, data)

    def save(self, path: str | Path) -> Path:
        """Write the page (``.html``) or the text (``.txt``), by the ending of `path`."""
        return write(path, {".html": self.html, ".txt": self.__str__})

    def _repr_html_(self) -> str:
        return frame(self.html(), 560)

    def __str__(self) -> str:
        peak = [] if self.peak is None else [f"{self.peak:>14,}  bytes at the peak of the run"]
        return "\n".join([str(self.table), *peak, *map(str, self.advice)])

    def __repr__(self) -> str:
        return f"<Footprint of {self.title}: {format_memory(self.total)}>"


class _Peak:
    """The most bytes that were allocated at a time."""

    bytes: int | None = None


@contextmanager
def _peak_of_allocations(wanted: bool) -> Iterator[_Peak]:
    """Count what Python and NumPy allocate within, which slows it down; nothing unless wanted."""
    peak = _Peak()
    if not wanted:
        yield peak
        return
    running = tracemalloc.is_tracing()
    if not running:
        tracemalloc.start()
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    try:
        yield peak
        peak.bytes = tracemalloc.get_traced_memory()[1] - before
    finally:
        if not running:
            tracemalloc.stop()


def memory(
    function: Callable,
    inputs: Any = (),
    *,
    known: Iterable[Tensor] = (),
    title: str | None = None,
    peak: bool = False,
) -> Footprint:
    """Run a function or module and show what its graph holds for backward, line by line.

    `inputs` are the arguments of the call: a tuple, or one tensor. They, the parameters and
    buffers, and the tensors in `known` are not counted: the program has them anyway. With `peak`
    the allocator is asked as well for the most that the run needed at a time; that slows it down.

    >>> import wengert
    >>> x = wengert.ones(1000, requires_grad=True)
    >>> wengert.viz.memory(lambda x: x.sin().exp().sum(), x).total
    4000
    """
    arguments = arguments_of(inputs)
    with Watch() as watch, _peak_of_allocations(peak) as allocated:
        results = tree_leaves(function(*arguments))
    tensors = [t for t in results if isinstance(t, Tensor)]
    elsewhere = [*_tensors_in(arguments), *_closed_over(function), *known]
    elsewhere += watch.parameters().values()
    table = saved_memory(tensors, elsewhere)
    advice = _advice(tensors, elsewhere, watch.scopes)
    return Footprint(table, advice, title_of(function, title), allocated.bytes)


def _tensors_in(values: Sequence[Any]) -> list[Tensor]:
    return [t for t in tree_leaves(list(values)) if isinstance(t, Tensor)]


def _closed_over(function: Callable) -> list[Tensor]:
    """The tensors in the closure of a function: they live as long as it."""
    cells = getattr(function, "__closure__", None) or ()
    filled = []
    for cell in cells:
        try:
            filled.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            continue
    return _tensors_in(filled)


# Advice -------------------------------------------------------------------------------------------


def _advice(results: list[Tensor], known: list[Tensor], scopes: list[Scope]) -> list[Advice]:
    """What checkpointing each kind of call would save, the best first.

    Afterwards the graph holds what nodes outside of the calls hold, and the inputs of the calls.
    """
    free = {id(memory_of(t.array)) for t in known}
    sizes: dict[int, int] = {}
    holders: list[tuple[int, list[int]]] = []
    for node in recorded_nodes(results):
        if isinstance(node, AccumulateGrad):
            free.add(id(memory_of(node.variable.array)))
            continue
        owners = [memory_of(array) for _, array in saved_arrays(node)]
        sizes.update((id(owner), owner.nbytes) for owner in owners)
        holders.append((node.sequence, [id(owner) for owner in owners]))
    kinds: dict[tuple[str, bool], list[Scope]] = {}
    for scope in scopes:
        kinds.setdefault((scope.kind, scope.is_module), []).append(scope)
    found = []
    for (kind, _), calls in kinds.items():
        outermost = _outermost(calls)
        inside, outside = _held(holders, outermost)
        kept: dict[Any, int] = {owner: sizes[owner] for owner in outside}
        for call in outermost:
            for reference, size in call.inputs:
                owner = reference()
                kept[id(reference) if owner is None else id(owner)] = size
        before = sum(size for owner, size in sizes.items() if owner not in free)
        after = sum(size for owner, size in kept.items() if owner not in free)
        again = max(
            sum(sizes[owner] for owner in _held(holders, [call])[0] if owner not in free)
            for call in outermost
        )
        # Where one call holds nearly all of it, running it again needs as much as it saves.
        if inside and before - after > again:
            seconds = sum(call.seconds for call in outermost)
            found.append(Advice(kind, len(outermost), before - after, again, seconds))
    return sorted(found, key=lambda each: each.again - each.saves)


def _outermost(calls: list[Scope]) -> list[Scope]:
    """Calls without those that ran within another of them."""
    found: list[Scope] = []
    for call in sorted(calls, key=lambda each: (each.start, -each.end)):
        if not found or call.start >= found[-1].end:
            found.append(call)
    return found


def _held(holders: list[tuple[int, list[int]]], calls: list[Scope]) -> tuple[set[int], set[int]]:
    """The memory held by the nodes of some calls, and by all other nodes."""
    inside: set[int] = set()
    outside: set[int] = set()
    upcoming = iter(calls)
    current = next(upcoming, None)
    for sequence, owners in holders:
        while current is not None and current.end <= sequence:
            current = next(upcoming, None)
        within = current is not None and current.start <= sequence
        (inside if within else outside).update(owners)
    return inside, outside
