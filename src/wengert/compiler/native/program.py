"""A graph made ready to run as machine code, called as the interpreter's programs are.

Code is made at the first call for each combination of dtypes, shapes and strides of the inputs.
What cannot be made loops of runs on the eager operators, step by step; a call with arrays of other
kinds, or with values that an operator refuses, runs on the interpreter as a whole.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...backends.host import is_plain
from ...core.dtypes import from_numpy
from ...core.state import thread_state
from ...core.tensor import Tensor, wrap_as
from ..interpret.instructions import Instruction
from ..interpret.program import Program
from ..ir.graph import Graph
from ..ir.types import TensorType
from ..passes.shapes import propagate_shapes
from . import host
from .control import Signature
from .frames import ARENA, FLAG, Layout, c_memory
from .listing import listing
from .loops import Call
from .lower import Export, Late, Lowered, lower
from .plan import ALIGNMENT
from .runtime import Caller, address_of, runtime
from .table import Table

_log = logging.getLogger("wengert.compiler.native")
#: So many combinations of strides get code of their own; others run on the interpreter.
MOST_VARIANTS = 8
#: So many frames wait for the next calls; more were needed by threads that called at once.
MOST_FRAMES = 4
#: Whether a failure to make code is raised. Otherwise the interpreter runs the graph, which raises
#: what is wrong with a call if anything is.
STRICT = False


def is_available() -> bool:
    """Whether machine code can be made here."""
    return host.llvm() is not None


class NativeProgram:
    """A graph without gradients, as machine code. Later changes of the graph do not reach it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.variants: dict[tuple, Variant | None] = {}
        #: The one that was used last, if it has a caller.
        self.latest: Any = None
        self._interpreter: Program | None = None
        self._lock = threading.Lock()

    @property
    def interpreter(self) -> Program:
        """The graph on eager operators, for calls that machine code is not made for."""
        if self._interpreter is None:
            self._interpreter = Program(self.graph)
        return self._interpreter

    def __call__(self, *inputs: Any) -> tuple:
        return self.run(list(inputs))

    def run(self, inputs: list) -> tuple:
        """The outputs; the list is emptied."""
        latest = self.latest
        if latest is not None and latest.caller.fits(inputs):
            results = latest.call(inputs)
            return self.interpreter.run(inputs) if results is None else results
        key = []
        for t in inputs:
            if not isinstance(t, Tensor) or not is_plain(t.array):
                return self.interpreter.run(inputs)
            array = t.array
            key.append((array.dtype, array.shape, array.strides))
        found = tuple(key)
        try:
            variant = self.variants[found]
        except KeyError:
            variant = self._made(found, inputs)
        if variant is None:
            return self.interpreter.run(inputs)
        if variant.caller is not None:
            self.latest = variant
            results = variant.call(inputs)
        else:
            results = variant.run(inputs)
        return self.interpreter.run(inputs) if results is None else results

    def text(self) -> str:
        """What has been made of the graph so far, in words."""
        made = [
            "runs on the interpreter" if variant is None else variant.text()
            for variant in self.variants.values()
        ]
        return "\n".join(made) or "not called yet"

    def _made(self, key: tuple, inputs: list) -> Variant | None:
        """Code for arrays of a kind; None where the interpreter is to run them."""
        with self._lock:
            if key not in self.variants:
                if len(self.variants) >= MOST_VARIANTS:
                    return None
                with uncollected():
                    self.variants[key] = self._try(key, inputs)
            return self.variants[key]

    def _try(self, key: tuple, inputs: list) -> Variant | None:
        try:
            return make_variant(self.graph, key, inputs)
        except Exception as error:
            if STRICT:
                raise
            _log.warning(
                "a graph runs on the interpreter, since no machine code could be made of it: %r",
                error,
            )
            return None


@contextmanager
def uncollected() -> Iterator[None]:
    """Hold the cyclic collector off while many small objects are made that all stay for a while."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def make_variant(graph: Graph, key: tuple, inputs: list) -> Variant | None:
    """The machine code of a graph for inputs of these dtypes, shapes and strides."""
    signatures = [Signature(*each) for each in key]
    begin = time.perf_counter()
    graph = _typed(graph, signatures)
    lowered = lower(graph, signatures)
    if not lowered.native:
        return None
    if any(b.kind == "f16" for b in lowered.buffers) and not host.converts_halves(
        host.vector_bits()
    ):
        return None
    variant = Variant(lowered, [t.array for t in inputs], begin)
    if _log.isEnabledFor(logging.INFO):
        _log.info("%s\n%s", variant.text(), listing(variant.layout))
    return variant


def _typed(graph: Graph, signatures: list[Signature]) -> Graph:
    """The graph with types for all values, which are known from those of the inputs."""
    if all(_says(symbol.type, s) for symbol, s in zip(graph.inputs, signatures, strict=True)):
        return graph
    graph = graph.copy()
    for symbol, signature in zip(graph.inputs, signatures, strict=True):
        symbol.type = TensorType(from_numpy(signature.dtype), signature.shape)
    return propagate_shapes(graph)


def _says(known: Any, signature: Signature) -> bool:
    """Whether a type tells the dtype and the shape that an input has."""
    return (
        isinstance(known, TensorType)
        and known.dtype is not None
        and known.dtype.numpy == signature.dtype
        and known.shape == signature.shape
    )


class Frame:
    """The memory of one call: the addresses of all buffers, and the arena."""

    __slots__ = ("bases", "flag", "memory", "address", "grown")

    def __init__(self, template: Any, arena: int, grown: Sequence[int]) -> None:
        self.grown = grown
        self.bases = type(template).from_buffer_copy(template)
        self.flag = np.zeros(1, np.int64)
        self.memory = np.empty(arena + ALIGNMENT, np.uint8)
        begin = self.memory.ctypes.data
        self.bases[FLAG] = self.flag.ctypes.data
        self.bases[ARENA] = begin + -begin % ALIGNMENT
        self.address = ctypes.addressof(self.bases)

    def __del__(self) -> None:
        for base in self.grown:
            if self.bases[base]:
                c_memory()[1](self.bases[base])


class Variant:
    """The machine code of a graph for one kind of inputs."""

    def __init__(self, lowered: Lowered, arrays: list, begin: float) -> None:
        self.lowered = lowered
        nested = time.perf_counter()
        bits = host.vector_bits()
        layout = self.layout = Layout(lowered.groups, lowered.buffers)
        self.arena, self.unshared = layout.arena, layout.unshared
        self._template = layout.template
        self.table = Table(layout, bits)
        self._records = ctypes.addressof(self.table.records)
        self._frames: list[Frame] = []
        self._inputs = [
            (i, buffer.base, register)
            for i, (buffer, register) in enumerate(
                zip(lowered.inputs, lowered.input_registers, strict=True)
            )
            if buffer is not None
        ]
        self._exports: list[Export] = lowered.exports
        self.seconds = {
            "lowering": nested - begin,
            **self.table.seconds,
            "all": time.perf_counter() - begin,
        }
        self.caller = self._make_caller(arrays)

    def _make_caller(self, arrays: list) -> Any:
        """What makes whole calls, where all steps are native and results are no inputs."""
        lowered = self.lowered
        places = {export.register: i for i, export in enumerate(self._exports)}
        if any(isinstance(segment, Call) for segment in self.table.segments) or not all(
            register in places for register in lowered.output_registers
        ):
            return None
        self.order = [places[register] for register in lowered.output_registers]
        self._in_order = self.order == list(range(len(self._exports)))
        bases = [-1 if buffer is None else buffer.base for buffer in lowered.inputs]
        inputs = list(zip(arrays, bases, strict=True))
        outputs = [
            (np.empty(export.shape, export.dtype.numpy), export.buffer.base)
            for export in self._exports
        ]
        template, arena, grown = self._template, self.arena, self.layout.grown
        return Caller(
            inputs,
            outputs,
            lambda: Frame(template, arena, grown),
            self._records,
            self.table.steps,
            self.table.uses_blas,
        )

    def call(self, inputs: list) -> tuple | None:
        """The outputs for inputs that fit, by one native call."""
        results = self.caller.call(inputs)
        if results is None or self._in_order:
            return results if results is None else tuple(results)
        return tuple([results[i] for i in self.order])

    def run(self, inputs: list) -> tuple | None:
        """The outputs; None where indices were out of range or a step gave something unexpected."""
        lowered = self.lowered
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = Frame(self._template, self.arena, self.layout.grown)
        registers: list[Any] = [None] * lowered.registers
        for register, t in zip(lowered.input_registers, inputs, strict=True):
            registers[register] = t
        bases = frame.bases
        for i, base, _ in self._inputs:
            bases[base] = address_of(inputs[i].array)
        inference = thread_state().inference
        for export in self._exports:
            array = np.empty(export.shape, export.dtype.numpy)
            bases[export.buffer.base] = address_of(array)
            registers[export.register] = wrap_as(array, inference)
        kept: list[Any] = []
        for segment in self.table.segments:
            if isinstance(segment, tuple):
                runtime.run(frame.address, self._records, *segment, self.table.uses_blas)
            elif not self._step(segment, registers, bases, kept):
                return None
        if frame.flag[0]:
            return None  # the frame, whose flag is set, is left to the collector
        if len(self._frames) < MOST_FRAMES:
            self._frames.append(frame)
        return tuple([registers[i] for i in lowered.output_registers])

    def _step(self, call: Call, registers: list, bases: Any, kept: list) -> bool:
        """Call an operator; whether its results are what later steps expect."""
        instruction: Instruction = call.arguments["instruction"]
        try:
            instruction.run(registers)
        except Exception as error:
            if not getattr(error, "__notes__", None):
                error.add_note(f"while running {instruction.text()}")
            raise
        lates: list[Late] = call.arguments["lates"]
        for late in lates:
            t = registers[late.register]
            wanted = late.signature
            if not isinstance(t, Tensor) or not is_plain(t.array):
                return False
            array = t.array
            if array.dtype != wanted.dtype or array.shape != wanted.shape:
                return False
            if array.strides != wanted.strides:
                array = np.ascontiguousarray(array)
            kept.append(array)
            bases[late.buffer.base] = address_of(array)
        return True

    def text(self) -> str:
        """What was made, in words: loops, calls, memory and times."""
        lowered, table = self.lowered, self.table
        lines = [
            f"{lowered.native} of {lowered.total} nodes in {table.steps} steps with {table.kernels}"
            f" kernels, vectors of {table.bits} bits; arena {self.arena} bytes"
            f" ({self.unshared} unshared), {self.layout.moved()} bytes moved;"
            + "".join([f" {name} {seconds * 1e3:.1f} ms" for name, seconds in self.seconds.items()])
        ]
        for kind, reason in lowered.reasons.items():
            lines.append(f"  calls {kind}: {reason}")
        return "\n".join(lines)


