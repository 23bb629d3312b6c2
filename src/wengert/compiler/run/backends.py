"""What runs the graphs of a compiled function: machine code, or the interpreter."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable
from typing import Any

from ..interpret.program import Program
from ..ir.graph import Graph
from ..native.program import NativeProgram, is_available

NAMES = ("native", "interpreter")
#: Backends of PyTorch by what stands for them; None is the usual one.
PYTORCH_NAMES = {"inductor": None, "eager": "interpreter", "aot_eager": "interpreter"}
#: The environment variable that says what `compile` takes where it is told nothing.
VARIABLE = "WENGERT_BACKEND"


@functools.cache
def _warn_of_missing_llvm() -> None:
    warnings.warn(
        "compile() makes machine code with llvmlite, which is not installed: compiled functions "
        "run on the interpreter. `pip install wengert[compile]` installs it, "
        "backend='interpreter' says that it is not wanted",
        stacklevel=4,
    )


def chosen(backend: str | None) -> Callable[[Graph], Any]:
    """What makes a graph ready to run, by the name of the backend."""
    name = PYTORCH_NAMES.get(backend or "", backend) or os.environ.get(VARIABLE) or "native"
    if name not in NAMES:
        raise ValueError(
            f"compile(): backend={name!r} is not supported; there are {', '.join(NAMES)}"
        )
    if name == "interpreter":
        return Program
    if not is_available():
        _warn_of_missing_llvm()
        return Program
    return NativeProgram
