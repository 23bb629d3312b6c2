"""What a program asks before it chooses a CUDA device. There are none: operators run on the CPU."""

from __future__ import annotations


def is_available() -> bool:
    """Whether tensors can be computed with on a CUDA device."""
    return device_count() > 0


def device_count() -> int:
    """How many CUDA devices can be computed with."""
    return 0
