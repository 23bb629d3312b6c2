"""Compares what a call does in Wengert and in PyTorch: its result, or its error."""

import importlib

import pytest


def libraries():
    """Wengert and PyTorch."""
    torch = pytest.importorskip("torch")
    return importlib.import_module("wengert"), torch


def plain(value):
    """A result as numbers: tensors as (requires_grad, nested lists), containers as they are."""
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return (value.requires_grad, value.tolist())
    return value


def outcome(call, phrases):
    """The plain result, or the type of the error and which of the phrases it contains."""
    try:
        return plain(call())
    except Exception as error:
        return type(error).__name__, [phrase for phrase in phrases if phrase in str(error)]


def same(ours, theirs):
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, (float, complex)) and isinstance(theirs, (float, complex)):
        return ours == pytest.approx(theirs, rel=1e-9, abs=1e-12, nan_ok=True)
    return ours == theirs
