"""Exchange of memory through DLPack capsules."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..creation.conversion import from_dlpack as from_dlpack


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule with the memory of `tensor`, for one receiver."""
    return tensor.__dlpack__()
