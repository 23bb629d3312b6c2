"""Settings of NVIDIA's library for networks, which is not used: they can be set and do nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Whether the library is there."""
    return False


def version() -> int | None:
    """The version of the library."""
    return None


@contextmanager
def flags(**settings: Any) -> Iterator[None]:
    """Have other settings in a block."""
    known = globals()
    unknown = [name for name in settings if name not in known]
    if unknown:
        raise TypeError(f"flags() got an unexpected keyword argument {unknown[0]!r}")
    before = {name: known[name] for name in settings}
    known.update(settings)
    try:
        yield
    finally:
        known.update(before)
