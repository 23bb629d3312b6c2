"""How the inputs and outputs of a program of machine code relate to its buffers."""

from __future__ import annotations

from typing import Any, NamedTuple

from .frames import Layout
from .lower import Lowered


class Result(NamedTuple):
    """An array that a call makes: a result, or what a step that calls an operator reads. `base` is
    the place of its address, `register` that of its tensor."""

    register: int
    base: int
    shape: tuple[int, ...]
    dtype: Any


class Interface(NamedTuple):
    """What a caller has to know of a program, and what can be said of it.

    `bases` has the place of each input's address, -1 where only operators read it.
    """

    bases: list[int]
    exports: list[Result]
    registers: int
    input_registers: tuple[int, ...]
    output_registers: tuple[int, ...]
    #: Why nodes are called as they are, by kind.
    reasons: dict[str, str]
    #: Nodes that became loops, and in all.
    native: int
    total: int
    #: The bytes of all scratch buffers, and those that a call reads and writes.
    unshared: int
    moved: int

    @classmethod
    def of(cls, lowered: Lowered, layout: Layout) -> Interface:
        """The interface of what was lowered and laid out."""
        return cls(
            [-1 if buffer is None else buffer.base for buffer in lowered.inputs],
            [
                Result(e.register, e.buffer.base, e.shape, e.dtype.numpy) for e in lowered.exports
            ],
            lowered.registers,
            lowered.input_registers,
            lowered.output_registers,
            lowered.reasons,
            lowered.native,
            lowered.total,
            layout.unshared,
            layout.moved(),
        )
