"""Where scratch buffers lie in the arena: one stretch of memory for all of them.

Buffers that are never needed at the same time share their place.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from .loops import SCRATCH, Buffer, Call
from .nests import Step

#: Buffers begin at multiples of this, the length of a line of the cache.
ALIGNMENT = 64


def place_buffers(steps: Sequence[Step], buffers: Sequence[Buffer]) -> tuple[int, int]:
    """Give scratch buffers their offsets; the size of the arena, and what it would be unshared."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, step in enumerate(steps):
        reads, writes = (
            (step.reads, step.writes) if isinstance(step, Call) else (step.reads(), step.writes())
        )
        for written in writes:
            first.setdefault(written, number)
        for touched in reads | writes:
            last[touched] = number
    placed = sorted(
        [b for b in buffers if b.source == SCRATCH and b.id in first], key=lambda b: first[b.id]
    )
    busy: list[tuple[int, int, int]] = []  # when it ends, where it is, how long
    free: dict[int, list[int]] = {}  # where, by length
    top = unshared = 0
    for buffer in placed:
        while busy and busy[0][0] < first[buffer.id]:
            _, offset, size = heapq.heappop(busy)
            free.setdefault(size, []).append(offset)
        size = -(-buffer.nbytes // ALIGNMENT) * ALIGNMENT
        unshared += size
        fitting = size
        if not free.get(size):
            lengths = [n for n, gaps in free.items() if gaps and size <= n <= 4 * size]
            fitting = min(lengths, default=0)
        if fitting:
            size, buffer.offset = fitting, free[fitting].pop()
        else:
            buffer.offset, top = top, top + size
        heapq.heappush(busy, (last[buffer.id], buffer.offset, size))
    return top, unshared
