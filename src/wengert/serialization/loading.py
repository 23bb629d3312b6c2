"""Loading objects from files."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..backends import meta
from ..core import dtypes
from ..core.errors import warn_user
from .archive import ArchiveReader, Record, damaged, open_archive
from .locations import is_meta, restore_function
from .mapping import mapped
from .names import ALLOWED, OURS, full_name, public_object, refuse_absent
from .safe_globals import allowed_by_name
from .storage import Storage, StorageKind, is_count
from .unpickler import LocationError, SafeUnpickler


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load an object that `save` or PyTorch has saved: from a path or a file that can seek.

    Unless `weights_only` is False, no code of the file runs: it may contain tensors, parameters,
    plain values, and what `add_safe_globals` allows. `map_location` is the device for all tensors,
    a dict from saved devices to others, or a function of a storage and its saved device. With
    `mmap`, memory is that of the file and read when it is used; changes stay in this process.
    """
    weights_only = _weights_only(weights_only, pickle_module)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if weights_only and pickle_load_args:
        raise TypeError(
            "load(): arguments of the unpickler only work if weights_only=False: "
            f"{', '.join(pickle_load_args)}"
        )
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    with _opened(f) as file:
        archive = open_archive(file)
        storages = Storages(archive, map_location, mapped(f) if mmap else None)
        content = archive.read("data.pkl")
        if weights_only:
            return _load_safely(content, storages)
        return _load_pickle(content, storages, pickle_module or pickle, pickle_load_args)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a file that `load` refuses unless `add_safe_globals` allows them."""
    with _opened(f) as file:
        content = open_archive(file).read("data.pkl")
    known = {*ALLOWED, *allowed_by_name()}
    found: list[str] = []
    try:
        for operation, argument, _ in pickletools.genops(content):
            if operation.name == "STACK_GLOBAL":
                raise ValueError("get_unsafe_globals_in_checkpoint reads protocols 2 and 3 only")
            if operation.name == "GLOBAL":
                module, name = str(argument).split(" ", 1)
                module = "builtins" if module == "__builtin__" else module
                found.append(full_name(module, name))
    except Exception as error:  # pickletools raises nearly anything for forged pickles
        raise pickle.UnpicklingError(str(error)) from error
    return sorted(set(found) - known)


def _opened(f: Any) -> Any:
    if isinstance(f, (str, os.PathLike)):
        return open(f, "rb")
    missing = [name for name in ("read", "seek", "tell") if not hasattr(f, name)]
    if missing:
        raise AttributeError(
            "You can only load from a file that is seekable: expected a path or a file-like "
            f"object with read, seek and tell; {type(f).__name__} has no '{missing[0]}'"
        )
    return nullcontext(f)


def _weights_only(given: bool | None, pickle_module: Any) -> bool:
    """Whether no code may run: by the argument, or by the environment as PyTorch has it."""
    forced = _is_set("TORCH_FORCE_WEIGHTS_ONLY_LOAD")
    freed = _is_set("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    if forced and freed:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` "
            "should be set, but both were set."
        )
    if forced:
        return True
    if given is not None:
        return bool(given)
    if freed:
        warn_user(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected: load() runs the code "
            "of the file, since its argument weights_only is not given"
        )
        return False
    return pickle_module is None


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "0").lower() in ("1", "y", "yes", "true")


def _load_safely(content: bytes, storages: Storages) -> Any:
    try:
        return SafeUnpickler(content, storages.named).load()
    except LocationError as error:
        raise error.args[0] from None
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(f"Weights only load failed. {error}") from None


def _load_pickle(content: bytes, storages: Storages, pickle_module: Any, options: dict) -> Any:
    class Unpickler(pickle_module.Unpickler):  # type: ignore[misc]
        def find_class(self, module: str, name: str) -> Any:
            full = full_name(module, name)
            if full in OURS:
                return OURS[full]
            refuse_absent(full)
            if module.partition(".")[0] == "torch":
                return public_object(module, name)
            return super().find_class(module, name)

        def persistent_load(self, named: Any) -> Any:
            return storages.named(named)

    try:
        return Unpickler(io.BytesIO(content), **{"encoding": "utf-8", **options}).load()
    except LocationError as error:
        raise error.args[0] from None


class Storages:
    """The storages of a file, each read when the pickle first names it."""

    def __init__(self, archive: ArchiveReader, map_location: Any, mapping: Any) -> None:
        self.archive = archive
        self.mapping = mapping
        self.restore: Callable = restore_function(map_location)
        self.without_memory = is_meta(map_location)
        self.swapped = archive.is_swapped()
        self._loaded: dict[str, tuple[StorageKind, int, Storage]] = {}

    def named(self, name: Any) -> Storage:
        """The storage that a pickle names by ``("storage", kind, key, location, count)``."""
        if type(name) is not tuple or len(name) != 5 or name[0] != "storage":
            raise pickle.UnpicklingError("Only persistent_load of storage is allowed")
        _, kind, key, location, count = name
        if not isinstance(kind, StorageKind) or type(key) is not str:
            raise pickle.UnpicklingError("a storage is not named as saved files name it")
        if type(location) is not str or not is_count(count):
            raise pickle.UnpicklingError(f"storage {key!r} has no place or no size")
        if key not in self._loaded:
            storage = self._read(kind.dtype, key, count)
            try:
                placed = storage if self.without_memory else self.restore(storage, location)
            except Exception as error:
                raise LocationError(error) from error
            self._loaded[key] = kind, count, placed
        known, size, placed = self._loaded[key]
        if (known, size) != (kind, count):
            raise pickle.UnpicklingError(f"storage {key!r} is named with two types or sizes")
        return placed

    def _read(self, dtype: dtypes.dtype, key: str, count: int) -> Storage:
        record = self.archive.find(f"data/{key}")
        # PyTorch also writes what is left of a storage that is no whole number of elements.
        if not 0 <= record.size - count * dtype.itemsize < dtype.itemsize:
            raise damaged(
                f"storage {key!r} should have {count} elements of {dtype.itemsize} bytes, and its "
                f"record has {record.size} bytes"
            )
        if self.without_memory:
            return Storage(meta.empty((count,), dtype.numpy), dtype)
        array = self._elements(record, dtype, count)
        if self.swapped:
            parts = dtype.to_real().numpy  # a complex number is two numbers
            array.view(f"u{parts.itemsize}").byteswap(inplace=True)
        return Storage(array, dtype)

    def _elements(self, record: Record, dtype: dtypes.dtype, count: int) -> Any:
        if self.mapping is not None and count and not record.start % dtype.itemsize:
            # Each storage is the root of its tensors, so it must not be a view of all the file.
            return np.frombuffer(self.mapping, dtype.numpy, count, record.start)
        array = np.empty(count, dtype.numpy)
        if count:
            self.archive.read_into(record.start, array.view(np.uint8).data)
        return array
