"""Runs tables of steps: one native call for all, with threads for what is split.

`runtime.pyx` beside this file is the compiled form; an extension module wins at import. Here the
threads are Python's, which take their chunks in native code without the interpreter's lock.
"""

from __future__ import annotations

import ctypes
import os
import queue
import threading
from typing import Any

from . import host
from .table import RUN



class Runtime:
    """What runs tables; one instance, `runtime`."""

    def __init__(self) -> None:
        self._engine: Any = None
        self._lock = threading.Lock()
        self._helpers = 0
        self._jobs: queue.SimpleQueue = queue.SimpleQueue()
        self._process = os.getpid()

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

    def run(self, bases: int, records: int, begin: int, end: int, table: Any) -> None:
        """Run the steps from one number to another."""
        if self._engine is None:
            self._prepare()
        self._run(bases, records, begin, end)


runtime = Runtime()
