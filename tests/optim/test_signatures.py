"""Every optimizer and schedule is called as PyTorch's of its name is."""

import inspect

import pytest

import wengert
from optim.rules import OPTIONS

torch = pytest.importorskip("torch")
SCHEDULES = [
    name for name in torch.optim.lr_scheduler.__all__ if name[0] != "_" and name != "LRScheduler"
]
BASE_METHODS = [
    name
    for name, value in vars(torch.optim.Optimizer).items()
    if inspect.isfunction(value) and name[0] != "_" and name != "profile_hook_step"
]


def parameters_of(function):
    """Names, kinds and defaults."""
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("name", [*OPTIONS, "Adafactor", "LBFGS", "Muon", "Optimizer"])
def test_optimizers(name):
    ours, theirs = getattr(wengert.optim, name), getattr(torch.optim, name)
    assert parameters_of(ours) == parameters_of(theirs)
    assert parameters_of(ours.step) == parameters_of(theirs.step)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    ours = getattr(wengert.optim.lr_scheduler, name)
    theirs = getattr(torch.optim.lr_scheduler, name)
    assert parameters_of(ours) == parameters_of(theirs)


@pytest.mark.parametrize("name", BASE_METHODS)
def test_methods(name):
    ours, theirs = getattr(wengert.optim.Optimizer, name), getattr(torch.optim.Optimizer, name)
    assert parameters_of(ours) == parameters_of(theirs)


def test_what_is_not_there():
    assert {n for n in torch.optim.__all__ if not hasattr(wengert.optim, n)} == {"SparseAdam"}
