"""The form of a declared difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fuzz.comparison import Difference


@dataclass
class Declared:
    """A difference that is meant: its reason and what it looks like."""

    reason: str
    matches: Callable[[Difference], bool]
    #: Whether what comes after it can still be compared.
    harmless: bool = False
    #: Whether the memory, views and nodes of what is made of such a tensor differ too.
    spreads: bool = False
