"""Which functions written in C do more than compute a result from their arguments.

What such a function changes in containers and objects is found by comparing these afterwards. Here
are those whose effect, or what their result depends on, is out of sight: output, time, chance,
files and other parts of the system.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

#: What they compute follows from their arguments, as far as they do not call back.
LIBRARIES = frozenset(("wengert", "numpy", "scipy", "ml_dtypes"))
STANDARD = frozenset(sys.stdlib_module_names) - {"__main__", "test"}

_BUILTIN = frozenset(("print", "input", "open", "breakpoint"))
_MODULES = frozenset((
    "time", "posix", "nt", "_io", "io", "random", "_random", "_socket", "socket", "select",
    "signal", "_signal", "_posixsubprocess", "mmap", "_ctypes", "_queue", "queue", "_sqlite3",
    "sqlite3", "_uuid", "resource", "fcntl", "termios", "gc", "_tracemalloc", "faulthandler",
    "atexit", "_asyncio", "_multiprocessing", "_warnings", "syslog", "_curses", "readline",
    "_winapi", "msvcrt", "ssl", "_ssl",
))  # fmt: skip
#: Exceptions, by module: these and no others are pure, or these and no others are not.
_PURE = {"posix": frozenset(("fspath",)), "nt": frozenset(("fspath",))}
_IMPURE = {"datetime": frozenset(("now", "today", "utcnow"))}


def reaches_outside(function: Any) -> bool:
    """Whether a function or method written in C has an effect, or a cause, that cannot be seen."""
    owner = getattr(function, "__self__", None)
    if owner is None or isinstance(owner, ModuleType):
        module = getattr(function, "__module__", None)
    else:
        module = getattr(owner if isinstance(owner, type) else type(owner), "__module__", None)
    if not isinstance(module, str):
        return False
    name = function.__name__
    if module == "builtins":
        return name in _BUILTIN and isinstance(owner, ModuleType)
    if module in _MODULES:
        return name not in _PURE.get(module, ())
    if module.startswith("numpy.random"):
        return True
    root = module.partition(".")[0]
    return name in _IMPURE.get(root, ()) or (root not in LIBRARIES and root not in STANDARD)


def shown(function: Any) -> str:
    """A function as a program would write it: `time.sleep`."""
    owner = getattr(function, "__self__", None)
    if owner is None or isinstance(owner, ModuleType):
        prefix = getattr(function, "__module__", "")
        return function.__name__ if prefix == "builtins" else f"{prefix}.{function.__name__}"
    return str(function.__qualname__)
