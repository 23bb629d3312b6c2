"""Helpers that are not part of the differentiation system itself."""

from typing import Any

from ..core.missing import missing

_LAZY_MODULES = (
    "_mode_utils", "_python_dispatch", "_pytree", "checkpoint", "data", "dlpack", "hooks",
    "pytree",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LAZY_MODULES:
        from importlib import import_module

        return import_module("." + name, __name__)
    raise missing(__name__, name)
