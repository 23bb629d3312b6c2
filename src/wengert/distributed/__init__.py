"""What programs ask before they train in several processes: there is one, which needs no group."""

from __future__ import annotations

from typing import Any

from ..core.missing import missing

__all__ = [
    "is_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "is_ucc_available", "is_xccl_available",
]  # fmt: skip


def is_available() -> bool:
    """Whether processes can train together: not yet."""
    return False


is_initialized = is_gloo_available = is_mpi_available = is_nccl_available = is_available
is_torchelastic_launched = is_ucc_available = is_xccl_available = is_available


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
