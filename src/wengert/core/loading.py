"""Finding and importing parts of the package.

The compiled modules that every program needs lie in one shared library: opening forty would take
as long as a third of the import. The others are imported when they are first asked for. A fork
waits for such an import: a child has none of the other threads, so a module that one of them was
importing could never be finished there. No module asks for this while it is imported itself, or two
threads could wait for each other.
"""

from __future__ import annotations

import os
import sys
from _imp import extension_suffixes
from _thread import RLock
from importlib import import_module
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from types import ModuleType
from typing import Any

_lock = RLock()
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)


def load(name: str) -> ModuleType:
    """The module of that name below the package, imported now if it was not yet needed."""
    with _lock:
        return import_module("wengert." + name)


#: The modules in the shared library, which setup.py links. Their last names differ, by which they
#: are found there: `creation.declare` has a file of its own.
TOGETHER = frozenset(
    f"wengert.{room}.{name}"
    for room, names in {
        "autograd": "grad_mode",
        "backends": "copy_kernels division_kernels geometry kernels loops matrices vector_loops",
        "core": "arrays classes collector frames memory ndarrays pool reuse scopes state tensor",
        "dispatch": "base_operator binding declaration inplace layers levels operator overlap "
        "overridable rebasing recording schema",
        "operators": "arithmetic copying declare",
        "tape": "accumulation copy_slices engine node plans saved tasks",
        "tensor": "attributes",
    }.items()
    for name in names.split()
)


class SharedLibrary:
    """Finds the modules of a package that lie in one file."""

    def __init__(self, folder: str, path: str) -> None:
        self.folder = folder
        self.path = path

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """What the import system asks for every module: None where it is not in the file."""
        if name not in TOGETHER or not path[0].startswith(self.folder):
            return None
        spec = ModuleSpec(name, ExtensionFileLoader(name, self.path), origin=self.path)
        spec.has_location = True
        return spec


def find_compiled_modules(folder: str) -> None:
    """Let the modules of the shared library in a package's folder be found, if there is one."""
    path = os.path.join(folder, "_together" + extension_suffixes()[0])
    known = [each.path for each in sys.meta_path if isinstance(each, SharedLibrary)]
    if path not in known and os.path.exists(path):
        sys.meta_path.insert(0, SharedLibrary(folder, path))
