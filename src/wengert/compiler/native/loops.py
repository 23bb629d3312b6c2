"""Loops: what a graph is made of before it becomes machine code.

A graph becomes a list of groups that run one after the other. A group is a `Loop` over a space of
indices, with scalar expressions for each of them, or a `Call` of something that is no loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...core.scalar.expressions import DTYPES, Expressions, operands_of

#: Where the memory of a buffer comes from.
INPUT, OUTPUT, SCRATCH, CONSTANT = "input", "output", "scratch", "constant"
#: Memory that a step makes as large as it finds it has to be, and the place where it notes for how
#: many rounds there is room. Both stay with the frame, so that the next call has them.
GROWN, ROOM = "grown", "room"


class Buffer:
    """A stretch of memory of one type.

    `value` holds the elements of a constant. Positions are given to buffers by the memory plan.
    """

    __slots__ = ("id", "kind", "source", "size", "value", "base", "offset")

    def __init__(self, id: int, kind: str, source: str, size: int, value: Any = None) -> None:
        self.id = id
        self.kind = kind
        self.source = source
        self.size = size
        self.value = value
        self.base = -1
        self.offset = 0

    @property
    def nbytes(self) -> int:
        return self.size * DTYPES[self.kind].itemsize

    def __repr__(self) -> str:
        return f"{self.source}{self.id}:{self.kind}[{self.size}]"


class Access(NamedTuple):
    """Which element of a buffer belongs to an index: an offset, and a step for each dimension."""

    buffer: int
    offset: int
    strides: tuple[int, ...]


class Store(NamedTuple):
    """Elements that a loop writes. With `indices`, they go to places that are computed.

    `steps` and `lengths` belong to the indices; `adds` says to add to what is there.
    """

    access: Access
    value: int
    indices: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    lengths: tuple[int, ...] = ()
    adds: bool = False


class Reduction(NamedTuple):
    """Values of a loop that are combined over some of its dimensions."""

    name: str  # add, mul, max, min, and, or
    value: int
    dims: frozenset[int]
    access: Access


#: About how many instructions those take that are not one.
_LONGER = {
    "dot": lambda args: 2 * args[0], "call": lambda args: 8, "form": lambda args: len(args[0].code)
}  # fmt: skip


class Loop:
    """Scalar expressions for every index of a space, and what becomes of the values."""

    def __init__(self, order: int, space: tuple[int, ...]) -> None:
        self.order = order
        self.space = space
        self.body = Expressions()
        self.stores: list[Store] = []
        self.reductions: list[Reduction] = []
        self._used: tuple[tuple, list[bool]] | None = None

    @property
    def code(self) -> list[tuple[str, str, tuple]]:
        return self.body.code

    @property
    def size(self) -> int:
        return math.prod(self.space)

    @property
    def has_results(self) -> bool:
        return bool(self.stores or self.reductions)

    @property
    def is_serial(self) -> bool:
        """Whether indices must be taken one after the other, since results may meet."""
        return any(store.indices for store in self.stores)

    def used(self) -> list[bool]:
        """For each instruction whether a result needs it."""
        state = (len(self.code), len(self.stores), len(self.reductions))
        if self._used is not None and self._used[0] == state:
            return self._used[1]
        needed = [False] * len(self.code)
        for store in self.stores:
            needed[store.value] = True
            for index in store.indices:
                needed[index] = True
        for reduction in self.reductions:
            needed[reduction.value] = True
        for i in range(len(self.code) - 1, -1, -1):
            if needed[i]:
                for operand in operands_of(self.code[i]):
                    needed[operand] = True
        self._used = (state, needed)
        return needed

    def reads(self) -> Iterator[Access]:
        """What the instructions that are needed read, with all that a gather or a dot may."""
        for instruction, needed in zip(self.code, self.used(), strict=True):
            if needed:
                yield from accesses_of(instruction)

    def read_buffers(self) -> set[int]:
        found = {access.buffer for access in self.reads()}
        return found | {s.access.buffer for s in self.stores if s.adds}

    def written_buffers(self) -> set[int]:
        return {s.access.buffer for s in self.stores} | {
            r.access.buffer for r in self.reductions
        }

    def work(self) -> int:
        """About how many instructions it takes."""
        each = 0
        for (name, _, args), needed in zip(self.code, self.used(), strict=True):
            if needed:
                each += 1 if name not in _LONGER else _LONGER[name](args)
        return self.size * (each + len(self.stores))


class Call:
    """A group that is no loop: a product of matrices, or an operator that is called as it is.

    `arguments` are for the one who makes the step.
    """

    def __init__(
        self, order: int, name: str, reads: set[int], writes: set[int], **arguments: Any
    ) -> None:
        self.order = order
        self.name = name
        self.reads = reads
        self.writes = writes
        self.arguments = arguments


Group = Loop | Call


def accesses_of(instruction: tuple[str, str, tuple]) -> Iterator[Access]:
    """The accesses to memory of one instruction."""
    name, _, args = instruction
    if name in ("load", "gather"):
        yield args[0]
    elif name == "dot":
        yield args[1]
        yield args[2]


def accesses_in(loop: Loop) -> Iterator[Access]:
    """All accesses to memory of a loop: what it reads, then what it writes."""
    yield from loop.reads()
    for store in loop.stores:
        yield store.access
    for reduction in loop.reductions:
        yield reduction.access


def access_of(buffer: Buffer, shadow: Any, view: Any) -> Access:
    """How the elements of a view of a buffer's shadow are found."""
    itemsize = view.itemsize
    steps = zip(view.shape, view.strides, strict=True)
    begin = view.__array_interface__["data"][0] - shadow.__array_interface__["data"][0]
    return Access(
        buffer.id,
        begin // itemsize if view.size else 0,
        tuple([0 if n == 1 else s // itemsize for n, s in steps]),
    )


def broadcast(view: Any, shape: tuple[int, ...]) -> Any:
    """A view in the shape of a loop's space."""
    return view if view.shape == shape else np.broadcast_to(view, shape)
