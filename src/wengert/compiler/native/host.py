"""The processor at hand: how wide its vectors are, and LLVM's compiler for it."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
import threading
from collections.abc import Callable
from typing import Any

from . import cache

#: The environment variable that forces a width of vectors, in bits; 128 does without AVX.
VARIABLE = "WENGERT_VECTOR_BITS"
WIDTHS = (128, 256, 512)
#: Functions of the C library that kernels call, beside those in double precision their f32 forms.
_LIBRARY = (
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "asinh", "acosh",
    "atanh", "hypot", "fmod", "cbrt", "erfc", "lgamma", "nextafter", "pow", "fma",
    "rint", "floor", "ceil", "trunc",
)  # fmt: skip
_lock = threading.Lock()


@functools.cache
def llvm() -> Any:
    """The binding of llvmlite, made ready; None where it is not installed."""
    try:
        from llvmlite import binding
    except ImportError:
        return None
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    library = _mathematics()
    for function in _LIBRARY:
        for spelled in (function, function + "f"):
            address = ctypes.cast(getattr(library, spelled), ctypes.c_void_p).value
            binding.add_symbol(spelled, address)
    return binding


def _mathematics() -> Any:
    """The C library's functions of numbers."""
    if os.name == "nt":
        return ctypes.CDLL("ucrtbase")
    return ctypes.CDLL(ctypes.util.find_library("m"))


@functools.cache
def native_bits() -> int:
    """The width of the processor's vectors."""
    features = llvm().get_host_cpu_features()
    if features.get("avx512f") and features.get("avx512dq") and features.get("avx512vl"):
        return 512
    return 256 if features.get("avx2") and features.get("fma") else 128


def converts_halves(bits: int) -> bool:
    """Whether the processor, or one with no wider vectors than these, converts 16-bit floats."""
    return bits > 128 and bool(llvm().get_host_cpu_features().get("f16c"))


def vector_bits() -> int:
    """The width to write vectors in, which the environment may force."""
    given = os.environ.get(VARIABLE)
    if not given:
        return native_bits()
    if given not in map(str, WIDTHS):
        raise ValueError(f"{VARIABLE}: {given!r} is none of {', '.join(map(str, WIDTHS))}")
    return int(given)


@functools.cache
def _target(bits: int) -> Any:
    binding = llvm()
    target = binding.Target.from_default_triple()
    if bits >= native_bits():
        cpu = binding.get_host_cpu_name()
        features = binding.get_host_cpu_features().flatten()
    else:  # a processor with nothing wider
        cpu = {128: "x86-64-v2", 256: "x86-64-v3"}[bits] if "x86" in target.triple else ""
        features = ""
    return target, cpu, features


def compiled(text: str, bits: int) -> Any:
    """The engine that has the functions of a text; they live as long as it does."""
    binding = llvm()
    with _lock:
        target, cpu, features = _target(bits)
        machine = target.create_target_machine(
            cpu=cpu, features=features, opt=2, codemodel="jitdefault", jit=True
        )
        if cache.folder() is None:
            return _engine(text, target, machine)
        version = ".".join(map(str, binding.llvm_version_info))
        key = cache.key_of(text, target.triple, cpu, features, version)
        known = cache.fetch(key)
        if known is not None:
            engine = _engine("", target, machine)
            engine.add_object_file(binding.ObjectFileRef.from_data(known))
            engine.finalize_object()
            return engine
        return _engine(text, target, machine, functools.partial(cache.store, key))


def _engine(text: str, target: Any, machine: Any, keep: Callable | None = None) -> Any:
    """An engine with the functions of a text, whose machine code is given to `keep`."""
    binding = llvm()
    module = binding.parse_assembly(text)
    module.triple = target.triple
    module.data_layout = str(machine.target_data)
    engine = binding.create_mcjit_compiler(module, machine)
    made: list[bytes] = []
    if keep is not None:
        engine.set_object_cache(lambda _, code: made.append(code))
    engine.finalize_object()
    if keep is not None and made:
        keep(made[0])
    return engine
