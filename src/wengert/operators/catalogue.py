"""The operators that are declared when they are first asked for, by module.

Importing the package declares what the core stands on: `arithmetic`, `comparison` and `copying`.
Every module lists its public names in `__all__`; those in `names.py` are imported by the first use
of a name in their list, so that the number of operators does not slow down the import.
"""

from __future__ import annotations

from ..core.loading import load
from .names import DEFERRED

MODULE_OF = {name: module for module, names in DEFERRED.items() for name in names}

_complete = False


def declare(name: str) -> None:
    """Import the module that declares `name`, or all if the name is none of the public ones."""
    if name in MODULE_OF:
        load("operators." + MODULE_OF[name])
    else:
        declare_all()


def declare_all() -> None:
    """Import every module of operators."""
    global _complete
    if not _complete:
        for module in DEFERRED:
            load("operators." + module)
        _complete = True
