"""PyTorch's module for its old profiler; see `out_of_scope`."""

from __future__ import annotations

from .out_of_scope import profile as profile

__all__ = ["profile"]
