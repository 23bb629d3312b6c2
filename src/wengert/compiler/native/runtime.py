"""Runs tables of steps, and whole calls of programs that consist of nothing else.

`runtime.pyx` beside this file is the compiled form; an extension module wins at import. Here
threads are Python's: each takes chunks of a step in native code, without the interpreter's lock.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ...backends.geometry import address_of
from ...backends.host import is_plain
from ...core.pool import thread_count
from ...core.state import thread_state
from ...core.tensor import Tensor, wrap_as
from . import host
from .rounds import RUN
from .table import Record

#: So many frames wait for the next calls.
_MOST_FRAMES = 4
#: Waking a thread of Python's takes as long as this many rows of a simple step.
_WORTH_A_THREAD = 1 << 19


class Runtime:
    """What runs tables; one instance, `runtime`."""

    def __init__(self) -> None:
        self._engine: Any = None
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._process = 0

    def _prepare(self) -> None:
        with self._lock:
            if self._engine is None:
                engine = host.compiled(RUN, host.native_bits())
                steps = ctypes.CFUNCTYPE(
                    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
                )
                self._run = steps(engine.get_function_address("run"))
                chunks = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
                self._work = chunks(engine.get_function_address("work"))
                self._engine = engine

    def run(self, bases: int, records: int, begin: int, end: int, uses_blas: bool) -> None:
        """Run the steps from one number to another; BLAS has its own threads here."""
        if self._engine is None:
            self._prepare()
        helpers = thread_count() - 1
        if helpers:
            size = ctypes.sizeof(Record)
            for i in range(begin, end):
                record = Record.from_address(records + i * size)
                if record.parts > 1 and record.rows >= _WORTH_A_THREAD:
                    self._run(bases, records, begin, i)
                    self._split(bases, records + i * size, helpers)
                    begin = i + 1
        self._run(bases, records, begin, end)

    def _split(self, bases: int, record: int, helpers: int) -> None:
        """Run one step with the help of other threads."""
        counter = ctypes.c_int64(0)
        place = ctypes.addressof(counter)
        executor = self._threads(helpers)
        waiting = [executor.submit(self._work, bases, record, place) for _ in range(helpers)]
        self._work(bases, record, place)
        for each in waiting:
            each.result()

    def _threads(self, helpers: int) -> ThreadPoolExecutor:
        if self._executor is None or self._process != os.getpid():
            self._executor = ThreadPoolExecutor(helpers, "wengert-native")
            self._process = os.getpid()
        return self._executor


runtime = Runtime()


class Caller:
    """One call of a program without other steps: checks, memory for results, and the native call.

    `inputs` and `outputs` are pairs of an array like those to come, and the number of its base.
    """

    def __init__(
        self,
        inputs: list,
        outputs: list,
        make_frame: Callable[[], Any],
        records: int,
        steps: int,
        uses_blas: bool,
    ) -> None:
        self._uses_blas = uses_blas
        self._kinds = [(a.dtype, a.shape, a.strides) for a, _ in inputs]
        self._places = [(i, base) for i, (_, base) in enumerate(inputs) if base >= 0]
        self._outputs = [(a.shape, a.dtype, base) for a, base in outputs]
        self._make_frame = make_frame
        self._records, self._steps = records, steps
        self._frames: list[Any] = []

    def fits(self, inputs: list) -> bool:
        """Whether the arrays of tensors are of the kind that the code was made for."""
        if len(inputs) != len(self._kinds):
            return False
        for t, (dtype, shape, strides) in zip(inputs, self._kinds, strict=True):
            if not isinstance(t, Tensor) or not is_plain(t.array):
                return False
            array = t.array
            if array.dtype != dtype or array.shape != shape or array.strides != strides:
                return False
        return True

    def call(self, inputs: list) -> list | None:
        """The results for tensors that fit; None where an index was out of range."""
        frame = self._frames.pop() if self._frames else self._make_frame()
        bases = frame.bases
        for i, base in self._places:
            bases[base] = address_of(inputs[i].array)
        inference = thread_state().inference
        results = []
        for shape, dtype, base in self._outputs:
            array = np.empty(shape, dtype)
            bases[base] = address_of(array)
            results.append(wrap_as(array, inference))
        runtime.run(frame.address, self._records, 0, self._steps, self._uses_blas)
        if frame.flag[0]:
            return None
        if len(self._frames) < _MOST_FRAMES:
            self._frames.append(frame)
        return results


#: The short ways of a compiled function and of its backward, which only an extension makes short.
Lane: Any = None
Recording: Any = None
Reversal: Any = None


class Entry:
    """What Python calls: the method `take` of a subclass with the arguments. Once `plain` is set,
    that is called in place of everything else."""

    plain: Any = None
    lane: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.take(args, kwargs) if self.plain is None else self.plain(*args, **kwargs)

    def take(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a call."""
        raise NotImplementedError


def by_vector(cls: type) -> type:
    """Nothing to be done without C."""
    return cls
