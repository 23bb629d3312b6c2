"""The table of steps that one native call runs, and the machine code of its kernels.

Kernels that read alike are compiled once, for all programs of the process. A step names a kernel,
where its buffers are, the number of rows, and how many of them make a chunk.
"""

from __future__ import annotations

import ctypes
import logging
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...backends.matrices import matrices
from ...core.scalar.expressions import SIZES
from . import host
from .emitter import Emitter, Kernel, shape_of, slots_of
from .frames import Layout
from .loops import Call
from .nests import Nest, Step
from .products import product_chunks, product_step
from .rounds import control_kernel
from .running import running_chunks, running_kernel


class Record(ctypes.Structure):
    """One step as native code reads it."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("slots", ctypes.c_void_p),
        ("rows", ctypes.c_int64),
        ("chunk", ctypes.c_int64),
        ("parts", ctypes.c_int64),
    )


class Code:
    """The address of a compiled kernel, with what keeps it there."""

    __slots__ = ("address", "engine", "__weakref__")

    def __init__(self, address: int, engine: Any) -> None:
        self.address = address
        self.engine = engine


_codes: weakref.WeakValueDictionary[tuple[int, str], Code] = weakref.WeakValueDictionary()
_lock = threading.Lock()
_log = logging.getLogger("wengert.compiler.llvm")
#: By itself LLVM does not use the widest vectors of some processors.
_WIDTHS = '"prefer-vector-width"="512" "min-legal-vector-width"="512"'
ATTRIBUTES = f"attributes #0 = {{ nounwind {_WIDTHS} }}"


def compile_kernels(kernels: Sequence[Kernel], bits: int) -> list[Code]:
    """The machine code of kernels, of which those that are new are compiled together.

    A kernel without text is a product of matrices, which is there already.
    """
    with _lock:
        found = {k.text: _codes.get((bits, k.text)) for k in kernels}
        if "" in found:
            found[""] = Code(matrices.step, matrices)
        new = [text for text, code in found.items() if code is None]
        if new:
            texts = set(new)
            declarations = sorted(
                set().union(*[k.declarations for k in kernels if k.text in texts])
            )
            bodies = [
                text.replace("@NAME", f"@kernel{i}").replace(") {", ") #0 {", 1)
                for i, text in enumerate(new)
            ]
            whole = "\n".join([*declarations, *bodies, ATTRIBUTES])
            _log.info("%s", whole)
            engine = host.compiled(whole, bits)
            for i, text in enumerate(new):
                code = Code(engine.get_function_address(f"kernel{i}"), engine)
                found[text] = _codes[bits, text] = code
        return [found[k.text] for k in kernels]  # type: ignore[misc]


class Table:
    """The steps of a program in memory. `ends` has the numbers of steps after which others follow
    that are no native ones."""

    def __init__(self, layout: Layout, bits: int) -> None:
        begin = time.perf_counter()
        self.bits = bits
        self.layout = layout
        steps, buffers = layout.steps, layout.buffers
        #: The tables of blocks, which steps of this one run.
        self.inner: list[Table] = []
        kinds = [buffer.kind for buffer in buffers]
        self.segments: list[tuple[int, int] | Call] = []
        made: list[tuple[Kernel, list[int], Step]] = []
        start = 0
        written_for: dict[tuple, Kernel] = {}
        functions: dict[str, set[str]] = {}
        for step in steps:
            if isinstance(step, Call) and step.name == "eager":
                if len(made) > start:
                    self.segments.append((start, len(made)))
                start = len(made)
                self.segments.append(step)
                continue
            if isinstance(step, Nest):
                slots = slots_of(step)
                shape = shape_of(step, kinds, slots)
                known = written_for.get(shape)
                if known is None:
                    known = written_for[shape] = Emitter(step, kinds, bits // 8, functions).emit()
                kernel = Kernel(known.text, known.declarations, slots)
                numbers: list[int] = []
            elif step.name == "gemm":
                kernel, numbers = product_step(step)
            elif step.name == "running":
                kernel, numbers = running_kernel(step)
            else:
                tables = [Table(body.layout, bits) for body in step.arguments["bodies"]]
                self.inner += tables
                kernel, numbers = control_kernel(step, tables)
            places = []
            for buffer, offset in kernel.slots:
                where = buffers[buffer]
                places += [where.base, where.offset + offset * SIZES[where.kind]]
            made.append((kernel, places + numbers, step))
        if len(made) > start:
            self.segments.append((start, len(made)))
        written = time.perf_counter()
        self.codes = compile_kernels([kernel for kernel, _, _ in made], bits)
        self.slots = [np.array(slots, np.int64) for _, slots, _ in made]
        self.records = (Record * max(len(made), 1))()
        for i, (code, numbers_of, (_, _, step)) in enumerate(
            zip(self.codes, self.slots, made, strict=True)
        ):
            rows, chunk, parts = (
                (step.rows, step.chunk, step.parts)
                if isinstance(step, Nest)
                else _chunks(step)
            )
            self.records[i] = Record(code.address, numbers_of.ctypes.data, rows, chunk, parts)
        self.uses_blas: bool = any(
            isinstance(step, Call) and step.name == "gemm" for _, _, step in made
        ) or any(table.uses_blas for table in self.inner)
        self.kernels = len({kernel.text for kernel, _, _ in made})
        self.steps = len(made)
        self.seconds = {"writing": written - begin, "llvm": time.perf_counter() - written}


def _chunks(call: Call) -> tuple[int, int, int]:
    """The rows of a step that is no nest, how many make a chunk, and how many chunks there are."""
    if call.name == "gemm":
        return product_chunks(call)
    return running_chunks(call) if call.name == "running" else (1, 1, 1)
