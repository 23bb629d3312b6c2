"""Fixtures shared by the whole suite."""

import importlib

import pytest
from hypothesis import HealthCheck, settings

# How fast examples are made says something about the machine, and nothing about the library.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


@pytest.fixture(params=["wengert", "torch"])
def lib(request):
    """The library under test; PyTorch, where installed, keeps the expectations honest."""
    if request.param == "torch":
        return pytest.importorskip("torch")
    return importlib.import_module(request.param)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Without PyTorch thousands of tests are skipped: the summary tells them in one line."""
    report = yield
    reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
    if reason.startswith("Skipped: could not import 'torch"):
        report.longrepr = (__file__, 1, "Skipped: PyTorch, to compare with, is not installed")
    return report
