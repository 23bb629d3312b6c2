"""How the package is called in what it prints: `wengert.float32`, or `torch.float32` as torch."""

from __future__ import annotations

_package = "wengert"


def spelled(name: str) -> str:
    """A public name of the package in full, as a program would write it."""
    return f"{_package}.{name}"


def call_package(name: str) -> None:
    """Let reprs name the package so from now on."""
    global _package
    _package = name
