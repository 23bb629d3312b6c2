"""What a program asks of accelerators, whatever their kind. There are none."""

from __future__ import annotations

from .core.devices import device


def is_available() -> bool:
    """Whether tensors can be computed with on an accelerator."""
    return device_count() > 0


def device_count() -> int:
    """How many accelerators can be computed with."""
    return 0


def current_accelerator(check_available: bool = False) -> device | None:
    """The kind of accelerator there is."""
    return None
