"""What a program of machine code consists of, as plain data: a table in memory is made of it, and
so is the file that the next process makes its table of.

Nothing in it is an address: what is one in memory is named by an `Address`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.scalar.expressions import SIZES
from .emitter import Kernel, kernels_of
from .frames import Layout
from .loops import Call
from .nests import Nest, Step
from .products import product_chunks, product_step
from .rounds import Address, control_kernel
from .running import running_chunks, running_kernel


class StepPlan(NamedTuple):
    """One step: the number of its kernel, the words that the kernel reads, the number of rows, how
    many of them make a chunk, and how many chunks there are."""

    kernel: int
    words: list[int | Address]
    rows: int
    chunk: int
    parts: int


class Blueprint:
    """The steps of a program, and what memory they need.

    `segments` has, in their order, the numbers of native steps from one to another and the calls of
    operators between them. `inner` are the blocks that steps run.
    """

    def __init__(
        self,
        bits: int,
        count: int,
        arena: int,
        grown: list[int],
        constants: list[tuple[int, Any]],
        steps: list[StepPlan],
        segments: list[tuple[int, int] | Call],
        inner: list[Blueprint],
        uses_blas: bool,
    ) -> None:
        self.bits = bits
        #: How many addresses a frame has.
        self.count = count
        self.arena = arena
        self.grown = grown
        self.constants = constants
        self.steps = steps
        self.segments = segments
        self.inner = inner
        self.uses_blas = uses_blas
        #: The texts of the kernels; none where their machine code comes from a file.
        self.kernels: list[Kernel] = []
        #: Of each kernel the name of its module on disk, and its own name there.
        self.places: list[tuple[str, str]] = []


def drawn(layout: Layout, bits: int) -> Blueprint:
    """The steps of a layout with the texts of their kernels, for vectors of a number of bits."""
    kinds = [buffer.kind for buffer in layout.buffers]
    made = Blueprint(
        bits, layout.count, layout.arena, layout.grown, layout.constants, [], [], [], False
    )
    nests = [step for step in layout.steps if isinstance(step, Nest)]
    of_nests = iter(kernels_of(nests, kinds, bits // 8))
    numbers: dict[str, int] = {}
    start = 0

    def close() -> None:
        if len(made.steps) > start:
            made.segments.append((start, len(made.steps)))

    for step in layout.steps:
        if isinstance(step, Call) and step.name == "eager":
            close()
            start = len(made.steps)
            made.segments.append(step)
            continue
        further: Sequence[int | Address] = ()
        if isinstance(step, Nest):
            kernel, further = next(of_nests)
        elif step.name == "gemm":
            kernel, further = product_step(step)
            made.uses_blas = True
        elif step.name == "running":
            kernel, further = running_kernel(step)
        else:
            inner = [drawn(body.layout, bits) for body in step.arguments["bodies"]]
            first = len(made.inner)
            made.inner += inner
            made.uses_blas |= any(each.uses_blas for each in inner)
            kernel, further = control_kernel(
                step, [(first + i, len(each.steps)) for i, each in enumerate(inner)]
            )
        number = numbers.setdefault(kernel.text, len(numbers))
        if number == len(made.kernels):
            made.kernels.append(kernel)
        words: list[int | Address] = []
        for buffer, offset in kernel.slots:
            where = layout.buffers[buffer]
            words += [where.base, where.offset + offset * SIZES[where.kind]]
        words += [each if isinstance(each, Address) else int(each) for each in further]
        made.steps.append(StepPlan(number, words, *_chunks(step)))
    close()
    return made


def _chunks(step: Step) -> tuple[int, int, int]:
    """The rows of a step, how many make a chunk, and how many chunks there are."""
    if isinstance(step, Nest):
        return step.rows, step.chunk, step.parts
    if step.name == "gemm":
        return product_chunks(step)
    return running_chunks(step) if step.name == "running" else (1, 1, 1)
