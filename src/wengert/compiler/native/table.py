"""The table of steps that one native call runs, and the machine code of its kernels.

Kernels that read alike are compiled once, for all programs of the process. A step names a kernel,
where its buffers are, the number of rows, and how many of them make a chunk.
"""

from __future__ import annotations

import ctypes
import math
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.scalar.expressions import SIZES
from . import blas, host
from .emitter import Emitter, Kernel, kernel_head, shape_of, slots_of
from .frames import Layout
from .loops import Access, Call
from .nests import CHUNKS, Nest, Step
from .rounds import control_kernel
from .running import running_chunks, running_kernel

#: Products with fewer multiplications are not worth waking other threads.
_WORTH_SPLITTING = 400_000
#: A product is split into so many chunks at most, since BLAS brings one factor into its own order
#: for each of them again; chunks have at least so many rows or columns, in multiples of the grain.
_PARTS, _SMALLEST, _GRAIN = 4, 64, 16


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
#: By itself LLVM does not use the widest vectors of some processors.
_WIDTHS = '"prefer-vector-width"="512" "min-legal-vector-width"="512"'
ATTRIBUTES = f"attributes #0 = {{ nounwind {_WIDTHS} }}"


def compile_kernels(kernels: Sequence[Kernel], bits: int) -> list[Code]:
    """The machine code of kernels, of which those that are new are compiled together."""
    with _lock:
        found = {k.text: _codes.get((bits, k.text)) for k in kernels}
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
            engine = host.compiled("\n".join([*declarations, *bodies, ATTRIBUTES]), bits)
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
                kernel, numbers = _product(step)
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
        return _product_chunks(call)
    return running_chunks(call) if call.name == "running" else (1, 1, 1)


def _product(call: Call) -> tuple[Kernel, list[int]]:
    """The step of a product of matrices: its kernel, and the numbers after its slots."""
    assert call.name == "gemm"
    given = call.arguments
    left, right, shape, inner = given["left"], given["right"], given["shape"], given["inner"]
    rows, columns = shape[-2:]
    batch = math.prod(shape[:-2])
    left_step, left_turned = _leading(left, rows, inner)
    right_step, right_turned = _leading(right, inner, columns)
    numbers = [
        rows, columns, inner, left_step, right_step, columns,
        112 if left_turned else 111, 112 if right_turned else 111,
        batch, _between(left, shape), _between(right, shape), rows * columns,
        blas.address(given["kind"]),
    ]  # fmt: skip
    slots = [(left.buffer, left.offset), (right.buffer, right.offset), (given["out"], 0)]
    split = "batch" if batch > 1 else "columns" if _by_columns(call) else "rows"
    text = _product_text(given["kind"], given["adds"], split)
    return Kernel(text, set(), slots), numbers


def _by_columns(call: Call) -> bool:
    """Whether chunks of a product are columns: the factor that is not split is the smaller one.

    Of a factor that lies turned BLAS reads rows, which are its columns in memory, faster by chunks.
    """
    given = call.arguments
    rows, columns = given["shape"][-2:]
    turned = _leading(given["left"], rows, given["inner"])[1]
    return bool(columns >= rows and not (turned and rows >= _PARTS * _SMALLEST))


def _product_chunks(call: Call) -> tuple[int, int, int]:
    """The rows of a product's step, how many make a chunk, and how many chunks there are.

    Chunks are matrices of a batch, or rows or columns of a single one.
    """
    shape, inner = call.arguments["shape"], call.arguments["inner"]
    batch = math.prod(shape[:-2])
    rows = batch if batch > 1 else shape[-1] if _by_columns(call) else shape[-2]
    if math.prod(shape) * inner < _WORTH_SPLITTING:
        return rows, rows, 1
    if batch > 1:
        chunk = -(-rows // CHUNKS)
    else:
        chunk = max(-(-rows // (_PARTS * _GRAIN)) * _GRAIN, _SMALLEST)
    return rows, chunk, -(-rows // chunk)


def _leading(access: Access, rows: int, columns: int) -> tuple[int, bool]:
    """The distance between rows, or between columns where the matrix lies turned."""
    down, along = access.strides[-2:]
    if along == 1 or columns == 1:
        return max(down, columns, 1), False
    assert down == 1 or rows == 1
    return max(along, rows, 1), True


def _between(access: Access, shape: tuple[int, ...]) -> int:
    """The distance between the matrices of a batch."""
    lengths = zip(shape[:-2], access.strides[:-2], strict=True)
    return next((step for n, step in reversed(list(lengths)) if n > 1), 0)


def _product_text(kind: str, adds: bool, split: str) -> str:
    """A kernel that calls NumPy's BLAS for some matrices of a batch, or for some rows or columns
    of one."""
    batched = split == "batch"
    real = {"f32": "float", "f64": "double"}[kind]
    integer = f"i{blas.integer_bits()}"
    lines = kernel_head(3)
    for k in range(13):
        lines += [
            f"  %na{k} = getelementptr i64, ptr %slots, i64 {6 + k}",
            f"  %n{k} = load i64, ptr %na{k}",
        ]
    if batched:
        first, last = "%lo", "%hi"
        starts = {0: "%n9", 1: "%n10", 2: "%n11"}
    elif split == "rows":
        # One turn, in which the matrices begin at the first row of the chunk.
        first, last = "0", "1"
        starts = {}
        lines += [
            "  %part_rows = sub i64 %hi, %lo",
            "  %plain = icmp eq i64 %n6, 111",
            "  %down = select i1 %plain, i64 %n3, i64 1",
            "  %skip0 = mul i64 %lo, %down",
            "  %skip1 = add i64 0, 0",
            "  %skip2 = mul i64 %lo, %n5",
        ]
    else:
        first, last = "0", "1"
        starts = {}
        lines += [
            "  %part_columns = sub i64 %hi, %lo",
            "  %plain = icmp eq i64 %n7, 111",
            "  %along = select i1 %plain, i64 1, i64 %n4",
            "  %skip0 = add i64 0, 0",
            "  %skip1 = mul i64 %lo, %along",
            "  %skip2 = add i64 %lo, 0",
        ]
    short = {k: f"%n{k}" for k in range(12)}
    if split == "rows":
        short[0] = "%part_rows"
    elif split == "columns":
        short[1] = "%part_columns"
    for k in range(8):
        target = "i32" if k > 5 else integer
        if target != "i64":
            lines.append(f"  %t{k} = trunc i64 {short[k]} to {target}")
            short[k] = f"%t{k}"
    one = "1.0"
    begin = "1.0" if adds else "0.0"
    lines += [
        "  br label %head",
        "head:",
        f"  %i = phi i64 [ {first}, %entry ], [ %next, %body ]",
        f"  %more = icmp slt i64 %i, {last}",
        "  br i1 %more, label %body, label %done",
        "body:",
        *[
            line
            for k in range(3)
            for line in (
                f"  %d{k} = mul i64 %i, {starts[k]}" if batched
                else f"  %d{k} = add i64 %skip{k}, 0",
                f"  %q{k} = getelementptr {real}, ptr %p{k}, i64 %d{k}",
            )
        ],
        "  %blas = inttoptr i64 %n12 to ptr",
        f"  call void %blas(i32 101, i32 {short[6]}, i32 {short[7]}, {integer} {short[0]}, "
        f"{integer} {short[1]}, {integer} {short[2]}, {real} {one}, ptr %q0, {integer} {short[3]}, "
        f"ptr %q1, {integer} {short[4]}, {real} {begin}, ptr %q2, {integer} {short[5]})",
        "  %next = add i64 %i, 1",
        "  br label %head",
        "done:",
        "  ret void",
        "}",
    ]
    return "\n".join(lines) + "\n"
