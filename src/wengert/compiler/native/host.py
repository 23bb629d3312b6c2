"""The processor at hand: how wide its vectors are, and LLVM's compiler for it."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
import threading
import weakref
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


class Module:
    """Functions as machine code; they live as long as it does. `key` is the name that the code is
    kept under on disk, where it is."""

    __slots__ = ("engine", "key", "__weakref__")

    def __init__(self, engine: Any, key: str) -> None:
        self.engine = engine
        self.key = key

    def get_function_address(self, name: str) -> int:
        """Where a function begins."""
        address: int = self.engine.get_function_address(name)
        return address


#: Modules by the names of their files, for several programs to share them.
_kept: weakref.WeakValueDictionary[str, Module] = weakref.WeakValueDictionary()


def compiled(text: str, bits: int) -> Module:
    """The functions of a text."""
    with _lock:
        machine = _machine(bits)
        if cache.folder() is None:
            return Module(_engine(text, machine), "")
        key = cache.key_of(text, *processor(bits))
        made = _fetched(key, machine)
        if made is None:
            engine = _engine(text, machine, functools.partial(cache.store, key))
            made = _kept[key] = Module(engine, key)
        return made


def kept(key: str, bits: int) -> Module | None:
    """The functions that are kept under a name; None if they are not there any more."""
    with _lock:
        return _fetched(key, _machine(bits))


def processor(bits: int) -> tuple[str, str, str, str]:
    """What machine code depends on: the system, the processor, what it has, LLVM's version."""
    target, cpu, features = _target(bits)
    return target.triple, cpu, features, ".".join(map(str, llvm().llvm_version_info))


def _machine(bits: int) -> Any:
    target, cpu, features = _target(bits)
    return target.create_target_machine(
        cpu=cpu, features=features, opt=2, codemodel="jitdefault", jit=True
    )


def _fetched(key: str, machine: Any) -> Module | None:
    """The functions of a file; None if there is none. From a file that has gone since, they may be
    in memory still."""
    known = _kept.get(key)
    if known is None:
        code = cache.fetch(key)
        if code is None:
            return None
        engine = _engine("", machine)
        engine.add_object_file(llvm().ObjectFileRef.from_data(code))
        engine.finalize_object()
        known = _kept[key] = Module(engine, key)
    return known


def _engine(text: str, machine: Any, keep: Callable | None = None) -> Any:
    """An engine with the functions of a text, whose machine code is given to `keep`."""
    binding = llvm()
    module = binding.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    engine = binding.create_mcjit_compiler(module, machine)
    made: list[bytes] = []
    if keep is not None:
        engine.set_object_cache(lambda _, code: made.append(code))
    engine.finalize_object()
    if keep is not None and made:
        keep(made[0])
    return engine
