"""Signals: `windows` to look at pieces of them through."""

from . import windows as windows

__all__ = ["windows"]
