"""Fixtures shared by the whole suite."""

import gc
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


#: Files that cross every operator with everything else.
CROSSINGS = ("test_batching.py", "test_recording.py", "test_saving.py", "test_subclasses.py")


def mark_families(items):
    """Mark tests of operators that have no rules of their own kind: families of similar functions.

    Uncompiled they are left to the long run, and so is what crosses them with everything else.
    """
    from operators.samples.factors import FACTORS
    from operators.samples.fourier import FOURIER
    from operators.samples.linalg import LINALG
    from operators.samples.spatial import SPATIAL
    from operators.samples.special import SPECIAL
    from operators.samples.structural import STRUCTURAL

    families = (*FACTORS, *FOURIER, *LINALG, *SPATIAL, *SPECIAL, *STRUCTURAL)
    names = {operation.name for operation in families}
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
        if any(getattr(each, "name", each) in names for each in parameters if _is_named(each)):
            item.add_marker("full" if item.path.name in CROSSINGS else "slow")


def _is_named(parameter):
    return isinstance(getattr(parameter, "name", parameter), str)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave out what is marked full, whatever else is chosen, unless --full is given."""
    of_operators = [item for item in items if item.path.parent.name == "operators"]
    if of_operators:
        mark_families(of_operators)
    left_out = [] if width.full else [item for item in items if item.get_closest_marker("full")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("full")]


def pytest_collection_finish():
    """Keep the collector from looking at tens of thousands of tests in each collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _out_of_the_collectors_sight():
    """Keep the collector from looking at what earlier tests have imported and left."""
    gc.freeze()


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
