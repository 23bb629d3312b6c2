"""Saving to files and loading from them, in PyTorch's zip format.

Files move both ways between the two libraries: tensors that share memory share it again, views are
views, and parameters are parameters. By default, loading runs no code of the file.
"""

from typing import Any

from ..core.missing import missing
from .loading import get_unsafe_globals_in_checkpoint as get_unsafe_globals_in_checkpoint
from .loading import load as load
from .mapping import get_default_mmap_options as get_default_mmap_options
from .mapping import set_default_mmap_options as set_default_mmap_options
from .safe_globals import add_safe_globals as add_safe_globals
from .safe_globals import clear_safe_globals as clear_safe_globals
from .safe_globals import get_safe_globals as get_safe_globals
from .safe_globals import safe_globals as safe_globals
from .saving import save as save
from .storage import Storage as Storage

__all__ = [
    "Storage", "add_safe_globals", "clear_safe_globals", "get_default_mmap_options",
    "get_safe_globals", "get_unsafe_globals_in_checkpoint", "load", "safe_globals", "save",
    "set_default_mmap_options",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
