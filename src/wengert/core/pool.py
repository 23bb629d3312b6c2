"""How many threads native code may use; `pool.pyx` beside this file has the threads themselves."""

from __future__ import annotations

from .processors import usable_processors


class _Allowed:
    threads: int = usable_processors()


def thread_count() -> int:
    """How many threads native code may use."""
    return _Allowed.threads


def set_thread_count(count: int) -> None:
    """Let native code use so many threads."""
    _Allowed.threads = count
