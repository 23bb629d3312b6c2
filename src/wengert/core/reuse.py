"""Records and small arrays that were freed, of which an uncompiled installation keeps none.

`reuse.pyx` beside this file is the compiled form.
"""

from __future__ import annotations


def keep_tensors(example: object, array: object) -> None:
    """Keep records of the class of a tensor, whose array is given too, and their arrays."""


def keep_nodes(cls: type) -> None:
    """Keep records of a class of nodes."""


def kept_arrays() -> int:
    """How many arrays are kept."""
    return 0


def release_arrays() -> None:
    """Free all arrays that are kept."""
