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
from collections.abc import Callable, Iterator, Sequence
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
from . import host, keeping
from .blueprint import Blueprint, drawn
from .control import Signature
from .frames import ARENA, FLAG, Layout, c_memory
from .interface import Interface
from .listing import listing
from .loops import Call
from .lower import Late, lower
from .plan import ALIGNMENT
from .runtime import Caller, address_of, runtime
from .table import Table

_log = logging.getLogger("wengert.compiler.native")
_llvm_log = logging.getLogger("wengert.compiler.llvm")
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

    def __init__(self, graph: Graph | None) -> None:
        self._graph = graph
        #: What makes the graph where it is not there yet, and what its code is kept under on disk.
        self._build: Callable[[], Graph] | None = None
        self._identity: str | None = None
        self.variants: dict[tuple, Variant | None] = {}
        #: The one that was used last, if it has a caller.
        self.latest: Any = None
        self._interpreter: Program | None = None
        self._lock = threading.Lock()

    @classmethod
    def kept(cls, identity: str, build: Callable[[], Graph]) -> NativeProgram:
        """A graph whose machine code is kept on disk under a name. `build` makes the graph, which
        is not needed if the code is there."""
        made = cls(None)
        made._build, made._identity = build, identity
        return made

    @property
    def graph(self) -> Graph:
        """The graph, made now if it was not needed yet."""
        if self._graph is None:
            assert self._build is not None
            self._graph = self._build()
        return self._graph

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
            identity = self._identity
            if identity is None:
                return make_variant(self.graph, key, inputs)
            variant = None
            # Who wants to read loops or LLVM's text has them made.
            if not (_log.isEnabledFor(logging.INFO) or _llvm_log.isEnabledFor(logging.INFO)):
                variant = _kept_variant(identity, key, inputs)
            if variant is None:
                variant = make_variant(self.graph, key, inputs)
                if variant is not None:
                    keeping.keep(identity, key, variant.plan, variant.interface)
            return variant
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
    written = time.perf_counter()
    layout = Layout(lowered.groups, lowered.buffers)
    plan = drawn(layout, host.vector_bits())
    seconds = {"lowering": written - begin, "writing": time.perf_counter() - written}
    variant = Variant(plan, Interface.of(lowered, layout), _arrays(inputs), seconds, layout)
    if _log.isEnabledFor(logging.INFO):
        _log.info("%s\n%s", variant.text(), listing(layout))
    return variant


def _kept_variant(identity: str, key: tuple, inputs: list) -> Variant | None:
    """The machine code that an earlier process has made for such inputs; None if there is none."""
    begin = time.perf_counter()
    found = keeping.kept(identity, key)
    if found is None:
        return None
    try:
        return Variant(*found, _arrays(inputs), {"reading": time.perf_counter() - begin})
    except LookupError:  # the machine code itself was removed
        return None


def _arrays(inputs: list) -> list:
    return [t.array for t in inputs]


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
    """The machine code of a graph for one kind of inputs, which `arrays` are examples of.

    `layout` has the loops that it was made of, where it does not come from disk.
    """

    def __init__(
        self,
        plan: Blueprint,
        interface: Interface,
        arrays: list,
        seconds: dict[str, float],
        layout: Layout | None = None,
    ) -> None:
        self.plan = plan
        self.interface = interface
        self.layout = layout
        begin = time.perf_counter()
        self.table = Table(plan)
        self._records = ctypes.addressof(self.table.records)
        self._frames: list[Frame] = []
        self._inputs = [(i, base) for i, base in enumerate(interface.bases) if base >= 0]
        self.seconds = {**seconds, "llvm": time.perf_counter() - begin}
        self.seconds["all"] = sum(self.seconds.values())
        self.caller = self._make_caller(arrays)

    def _frame(self) -> Frame:
        return Frame(self.table.template, self.plan.arena, self.plan.grown)

    def _make_caller(self, arrays: list) -> Any:
        """What makes whole calls, where all steps are native and results are no inputs."""
        interface = self.interface
        places = {export.register: i for i, export in enumerate(interface.exports)}
        if any(isinstance(segment, Call) for segment in self.table.segments) or not all(
            register in places for register in interface.output_registers
        ):
            return None
        self.order = [places[register] for register in interface.output_registers]
        self._in_order = self.order == list(range(len(interface.exports)))
        inputs = list(zip(arrays, interface.bases, strict=True))
        outputs = [
            (np.empty(export.shape, export.dtype), export.base) for export in interface.exports
        ]
        plan, template = self.plan, self.table.template
        arena, grown = plan.arena, plan.grown
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
        interface = self.interface
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = self._frame()
        registers: list[Any] = [None] * interface.registers
        for register, t in zip(interface.input_registers, inputs, strict=True):
            registers[register] = t
        bases = frame.bases
        for i, base in self._inputs:
            bases[base] = address_of(inputs[i].array)
        inference = thread_state().inference
        for export in interface.exports:
            array = np.empty(export.shape, export.dtype)
            bases[export.base] = address_of(array)
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
        return tuple([registers[i] for i in interface.output_registers])

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
        interface, table = self.interface, self.table
        lines = [
            f"{interface.native} of {interface.total} nodes in {table.steps} steps with"
            f" {table.kernels} kernels, vectors of {table.bits} bits; arena {self.plan.arena} bytes"
            f" ({interface.unshared} unshared), {interface.moved} bytes moved;"
            + "".join([f" {name} {seconds * 1e3:.1f} ms" for name, seconds in self.seconds.items()])
        ]
        for kind, reason in interface.reasons.items():
            lines.append(f"  calls {kind}: {reason}")
        return "\n".join(lines)
