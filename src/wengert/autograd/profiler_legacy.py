"""PyTorch's module for its old profiler; see `out_of_scope`."""

from __future__ import annotations

from .out_of_scope import look_up

__all__ = ["profile"]

profile = look_up(__name__, "profile")
