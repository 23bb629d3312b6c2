"""Fixtures shared by the whole suite."""

import importlib

import pytest


@pytest.fixture(params=["wengert", "torch"])
def lib(request):
    """The library under test; PyTorch, where installed, keeps the expectations honest."""
    if request.param == "torch":
        return pytest.importorskip("torch")
    return importlib.import_module(request.param)
