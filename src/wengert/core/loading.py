"""Importing parts of the package when they are first asked for.

A fork waits for such an import: a child has none of the other threads, so a module that one of them
was importing could never be finished there. No module asks for this while it is imported itself,
or two threads could wait for each other.
"""

from __future__ import annotations

import os
from _thread import RLock
from importlib import import_module
from types import ModuleType

_lock = RLock()
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)


def load(name: str) -> ModuleType:
    """The module of that name below the package, imported now if it was not yet needed."""
    with _lock:
        return import_module("wengert." + name)
