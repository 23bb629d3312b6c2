"""How the buffers of a list of groups lie in memory: an arena, and addresses for all others.

A frame is a list of addresses, `bases`, by which kernels find buffers: first a flag that wrong
indices set, then the arena, then what is not scratch.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Sequence
from typing import Any

from .loops import CONSTANT, GROWN, SCRATCH, Buffer, Call, Group
from .nests import Step, form_nests
from .plan import place_buffers

#: bases[0] is the flag that wrong indices set, bases[1] the arena.
FLAG, ARENA, FIRST_FREE = 0, 1, 2


@functools.cache
def c_memory() -> tuple[Any, Any]:
    """The C library's `realloc` and `free`."""
    library = ctypes.CDLL("ucrtbase" if os.name == "nt" else None)
    library.free.argtypes, library.free.restype = [ctypes.c_void_p], None
    return library.realloc, library.free


def realloc_address() -> int:
    """The address of `realloc`, for kernels to call."""
    address = ctypes.cast(c_memory()[0], ctypes.c_void_p).value
    assert address is not None
    return address


class Layout:
    """The steps of some groups, and where their buffers lie."""

    def __init__(self, groups: Sequence[Group], buffers: list[Buffer]) -> None:
        self.buffers = buffers
        self.steps: list[Step] = form_nests(groups, buffers, True)
        self.arena, self.unshared = place_buffers(self.steps, buffers)
        count = FIRST_FREE
        for buffer in buffers:
            if buffer.source == SCRATCH:
                buffer.base = ARENA
            else:
                buffer.base, buffer.offset = count, 0
                count += 1
        self.count = count
        #: The addresses of memory that steps have made larger, which a frame gives back.
        self.grown = [b.base for b in buffers if b.source == GROWN]
        #: The elements of constants, by the places of their addresses.
        self.constants = [(b.base, b.value) for b in buffers if b.source == CONSTANT]

    def moved(self) -> int:
        """The bytes that a call reads and writes, each buffer once for each step."""
        total = 0
        for step in self.steps:
            if isinstance(step, Call):
                rounds = step.arguments.get("length", 1)
                bodies = step.arguments.get("bodies", ())
                total += sum([rounds * body.layout.moved() for body in bodies])
                if bodies:
                    continue
                touched = step.reads | step.writes
            else:
                touched = step.reads() | step.writes()
            total += sum([self.buffers[i].nbytes for i in touched])
        return total
