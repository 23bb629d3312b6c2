"""The table of steps that one native call runs, and the machine code of its kernels.

Kernels that read alike are compiled once, for all programs of the process. A step names a kernel,
where its buffers are, the number of rows, and how many of them make a chunk.
"""

from __future__ import annotations

import ctypes
import logging
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...backends.matrices import matrices
from . import host
from .blueprint import Blueprint
from .emitter import Kernel
from .frames import realloc_address
from .rounds import Address, runner


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
    """The address of a compiled kernel, with what keeps it there, and its name in that."""

    __slots__ = ("address", "module", "name", "__weakref__")

    def __init__(self, address: int, module: Any, name: str) -> None:
        self.address = address
        self.module = module
        self.name = name


_codes: weakref.WeakValueDictionary[tuple[int, str], Code] = weakref.WeakValueDictionary()
_lock = threading.Lock()
_log = logging.getLogger("wengert.compiler.llvm")
#: By itself LLVM does not use the widest vectors of some processors.
_WIDTHS = '"prefer-vector-width"="512" "min-legal-vector-width"="512"'
ATTRIBUTES = f"attributes #0 = {{ nounwind {_WIDTHS} }}"
#: What stands for the name of a module where the kernel is a product of matrices.
PRODUCTS = "products"


def compile_kernels(kernels: Sequence[Kernel], bits: int) -> list[Code]:
    """The machine code of kernels, of which those that are new are compiled together.

    A kernel without text is a product of matrices, which is there already.
    """
    with _lock:
        found = {k.text: _codes.get((bits, k.text)) for k in kernels}
        if "" in found:
            found[""] = _product()
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
            module = host.compiled(whole, bits)
            for i, text in enumerate(new):
                found[text] = _codes[bits, text] = _code(module, f"kernel{i}")
        return [found[k.text] for k in kernels]  # type: ignore[misc]


def _product() -> Code:
    return Code(matrices.step, matrices, "")


def _code(module: Any, name: str) -> Code:
    return Code(module.get_function_address(name), module, name)


def _kept_codes(places: Sequence[tuple[str, str]], bits: int) -> list[Code]:
    """The machine code of kernels that are kept on disk; a LookupError where it has gone."""
    modules: dict[str, Any] = {}
    for key in {key for key, _ in places if key != PRODUCTS}:
        modules[key] = host.kept(key, bits)
        if modules[key] is None:
            raise LookupError(f"there is no machine code {key} any more")
    return [_code(modules[key], name) if name else _product() for key, name in places]


class Table:
    """The steps of a blueprint in memory."""

    def __init__(self, plan: Blueprint) -> None:
        self.bits = plan.bits
        self.segments = plan.segments
        self.uses_blas = plan.uses_blas
        self.steps = len(plan.steps)
        self._constants = plan.constants
        #: The addresses of constants in their places; the others are filled in by calls.
        self.template: Any = (ctypes.c_void_p * plan.count)()
        for base, value in plan.constants:
            self.template[base] = value.ctypes.data
        #: The tables of blocks, which steps of this one run.
        self.inner = [Table(each) for each in plan.inner]
        if plan.kernels:
            self.codes = compile_kernels(plan.kernels, plan.bits)
            plan.places = [_place(code) for code in self.codes]
        else:
            self.codes = _kept_codes(plan.places, plan.bits)
        self.kernels = len(self.codes)
        self.records = (Record * max(self.steps, 1))()
        self._words: list[Any] = []
        for i, step in enumerate(plan.steps):
            words = np.array([self._word(each) for each in step.words], np.int64)
            self._words.append(words)
            address = self.codes[step.kernel].address
            self.records[i] = Record(address, words.ctypes.data, *step[2:])

    def _word(self, word: int | Address) -> int:
        """What a kernel reads for a word of a plan."""
        if isinstance(word, int):
            return word
        if word.of == "runner":
            return runner()
        if word.of == "realloc":
            return realloc_address()
        inner = self.inner[word.number]
        return ctypes.addressof(inner.records if word.of == "records" else inner.template)


def _place(code: Code) -> tuple[str, str]:
    return (code.module.key if code.name else PRODUCTS), code.name
