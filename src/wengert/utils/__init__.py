"""Helpers that are not part of the differentiation system itself."""

from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("pytree", "_pytree"):
        from importlib import import_module

        return import_module("." + name, __name__)
    raise AttributeError(f"module 'wengert.utils' has no attribute {name!r}")
