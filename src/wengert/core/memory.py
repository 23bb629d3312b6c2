"""The memory of large arrays, of which nothing is kept in an uncompiled installation.

`memory.pyx` beside this file is the compiled form.
"""

from __future__ import annotations


def keep_blocks() -> None:
    """Let arrays that this thread makes from now on take blocks that were kept."""


def kept_bytes() -> int:
    """How much memory is kept."""
    return 0


def limit_kept_bytes(size: int) -> None:
    """Keep no more than so many bytes from now on."""


def release_blocks() -> int:
    """Give all kept blocks back to the system, and tell how many bytes they were."""
    return 0
