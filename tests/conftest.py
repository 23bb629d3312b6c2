"""Fixtures shared by the whole suite."""

import importlib

import pytest
from hypothesis import HealthCheck, settings

import width

# How fast examples are made says something about the machine, and nothing about the library.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="run all tests, wide ones wide")


def pytest_configure(config):
    width.full = config.getoption("--full")


def pytest_collection_modifyitems(config, items):
    """Leave out what is marked full, whatever else is chosen, unless --full is given."""
    left_out = [] if width.full else [item for item in items if item.get_closest_marker("full")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("full")]


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
