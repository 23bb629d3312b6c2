"""Small helpers of modes and subclasses."""

from __future__ import annotations

from ..dispatch.torch_dispatch import DisableTorchDispatch


def no_dispatch() -> DisableTorchDispatch:
    """A context in which the classes of tensors do not handle operators."""
    return DisableTorchDispatch()
