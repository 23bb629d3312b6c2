"""Programs kept on disk as they were lowered, beside the machine code that they refer to.

A file holds a blueprint and its interface as JSON, and behind it the elements of constants. It is
found under what the program was made from: its graph, the kind of its inputs, the processor, and
all that has a part in making it. A program with steps that call operators is not kept.
"""

from __future__ import annotations

import functools
import json
import math
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

from ...backends.matrices import matrices
from ...core.dtypes import bfloat16
from ...core.scalar.expressions import DTYPES, type_of
from . import cache, host
from .blueprint import Blueprint, StepPlan
from .interface import Interface, Result
from .rounds import Address

#: Constants of more bytes than this are not written to disk.
MOST_BYTES = 1 << 24


def is_wanted() -> bool:
    """Whether the environment names a folder for programs."""
    return cache.folder() is not None


def name_of(*parts: str) -> str:
    """A name for what depends on some texts."""
    return cache.key_of(*parts)


def kept_fields(identity: str) -> dict[str, Any] | None:
    """Numbers that are kept under names; None if there are none."""
    data = cache.fetch(_name(identity, ()))
    return None if data is None else json.loads(data)


def keep_fields(identity: str, fields: dict[str, Any]) -> None:
    """Write numbers, and lists of them, to disk."""
    cache.store(_name(identity, ()), json.dumps(fields).encode())


def kept(identity: str, kind: tuple) -> tuple[Blueprint, Interface] | None:
    """What is kept for a graph and inputs of a kind; None if there is nothing."""
    data = cache.fetch(_name(identity, kind))
    if data is None:
        return None
    length = int.from_bytes(data[:8], "little")
    said = json.loads(data[8 : 8 + length])
    return _Reading(data, 8 + length).blueprint(said["blueprint"]), _interface(said["interface"])


def keep(identity: str, kind: tuple, plan: Blueprint, interface: Interface) -> None:
    """Write a program to disk, if it is one that can be kept."""
    written = _Writing()
    said = {"blueprint": written.blueprint(plan), "interface": _as_json(interface)}
    if written.is_whole and sum(map(len, written.arrays)) <= MOST_BYTES:
        head = json.dumps(said, separators=(",", ":")).encode()
        length = len(head).to_bytes(8, "little")
        cache.store(_name(identity, kind), b"".join([length, head, *written.arrays]))


def _name(identity: str, kind: tuple) -> str:
    bits = host.vector_bits()
    inputs = [(dtype.name, shape, strides) for dtype, shape, strides in kind]
    return cache.key_of(
        "program", identity, repr(inputs), str(bits), *host.processor(bits), *_makers()
    )


@functools.cache
def _makers() -> tuple[str, ...]:
    """What makes programs of graphs: the versions of Python and NumPy, whether products of matrices
    have steps, and the files of this package as they are."""
    package = Path(__file__).parents[2]
    files = []
    for folder, _, names in os.walk(package):
        for name in names:
            if name.endswith((".py", ".so", ".pyd")):
                path = os.path.join(folder, name)
                status = os.stat(path)
                files.append(
                    (os.path.relpath(path, package), status.st_size, status.st_mtime_ns)
                )
    return (
        platform.python_version(), np.__version__, str(bool(matrices.step)), repr(sorted(files))
    )  # fmt: skip


class _Writing:
    """Blueprints as what JSON can say, and the arrays that it cannot."""

    def __init__(self) -> None:
        self.arrays: list[bytes] = []
        #: Whether all that was written can be found again in another process.
        self.is_whole = True

    def blueprint(self, plan: Blueprint) -> dict[str, Any]:
        if not all(isinstance(segment, tuple) for segment in plan.segments) or not all(
            module for module, _ in plan.places
        ):
            self.is_whole = False
            return {}
        constants = []
        for base, value in plan.constants:
            constants.append((base, type_of(value.dtype), value.shape))
            self.arrays.append(value.tobytes())
        return {
            "bits": plan.bits, "count": plan.count, "arena": plan.arena, "grown": plan.grown,
            "constants": constants, "steps": plan.steps, "segments": plan.segments,
            "uses_blas": plan.uses_blas, "places": plan.places,
            "inner": [self.blueprint(each) for each in plan.inner],
        }  # fmt: skip


class _Reading:
    """Blueprints as they were before they were written; arrays stand in the order of writing."""

    def __init__(self, data: bytes, place: int) -> None:
        self.data = data
        self.place = place

    def blueprint(self, said: dict[str, Any]) -> Blueprint:
        constants = [(base, self._array(*kind)) for base, *kind in said["constants"]]
        steps = [
            StepPlan(kernel, [w if isinstance(w, int) else Address(*w) for w in words], *counts)
            for kernel, words, *counts in said["steps"]
        ]
        made = Blueprint(
            said["bits"], said["count"], said["arena"], said["grown"], constants, steps,
            [tuple(segment) for segment in said["segments"]],
            [self.blueprint(each) for each in said["inner"]], said["uses_blas"],
        )  # fmt: skip
        made.places = [(module, name) for module, name in said["places"]]
        return made

    def _array(self, kind: str, shape: list[int]) -> Any:
        dtype = _dtype(kind)
        count = math.prod(shape)
        found = np.frombuffer(self.data, dtype, count, self.place)
        self.place += count * dtype.itemsize
        return found.reshape(shape).copy()


def _dtype(kind: str) -> Any:
    """NumPy's dtype of a type; that of 16-bit floats with a long exponent is imported here."""
    return bfloat16.numpy if kind == "bf16" else DTYPES[kind]


def _as_json(interface: Interface) -> dict[str, Any]:
    exports = [(*each[:3], type_of(each.dtype)) for each in interface.exports]
    return {**interface._asdict(), "exports": exports}


def _interface(said: dict[str, Any]) -> Interface:
    exports = [
        Result(register, base, tuple(shape), _dtype(kind))
        for register, base, shape, kind in said["exports"]
    ]
    registers = {
        name: tuple(said[name]) for name in ("input_registers", "output_registers")
    }
    return Interface(**{**said, "exports": exports, **registers})
