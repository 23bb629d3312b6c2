"""Adafactor and Muon: ten steps go where PyTorch's go."""

import itertools

import numpy as np
import pytest

import wengert
from optim.training import WEIGHT, arrays, assert_same, parameters, train

torch = pytest.importorskip("torch")

ADAFACTOR = {
    "lr": [1e-2, 0.5], "beta2_decay": [-0.8, -0.3], "eps": [(None, 1e-3), (1e-3, 0.5)],
    "d": [1.0, 2.0], "weight_decay": [0.0, 0.1], "maximize": [False, True],
    "foreach": [None, False],
}  # fmt: skip
MUON = {
    "lr": [1e-3, 0.1], "weight_decay": [0.1, 0.0], "momentum": [0.95, 0.5],
    "nesterov": [True, False], "adjust_lr_fn": [None, "match_rms_adamw"], "ns_steps": [5, 2],
}  # fmt: skip


def combinations(options):
    """No option, each by itself, all but one, and all."""
    for count in (0, 1, len(options) - 1, len(options)):
        for names in itertools.combinations(options, count):
            yield {name: options[name][name in names] for name in options}


def test_adafactor():
    for given in combinations(ADAFACTOR):
        results = []
        for library in (wengert, torch):
            params = parameters(library)
            optimizer = library.optim.Adafactor(params, **given)
            trajectory = train(library, optimizer, params)
            results.append((trajectory, optimizer.state_dict(), repr(optimizer)))
        (ours, state, text), (theirs, other, expected) = results
        assert_same(ours, theirs, 1e-9)
        assert_same(arrays(state["state"]), arrays(other["state"]), 1e-9)
        assert state["param_groups"] == other["param_groups"] and text == expected


def matrix(library, transposed):
    values = WEIGHT.T if transposed else WEIGHT
    return library.nn.Parameter(library.tensor(np.ascontiguousarray(values)))


@pytest.mark.parametrize("transposed", [False, True])
def test_muon(transposed):
    """Matrices this small have the same sums, whatever their order, once they are rounded."""
    for given in combinations(MUON):
        results = []
        for library in (wengert, torch):
            p = matrix(library, transposed)
            optimizer = library.optim.Muon([p], **given)
            for number in range(1, 11):
                optimizer.zero_grad()
                (number * (p * p).sin().sum()).backward()
                optimizer.step()
            results.append((p.detach().numpy(), optimizer.state_dict(), repr(optimizer)))
        (ours, state, text), (theirs, other, expected) = results
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
        assert_same(arrays(state["state"]), arrays(other["state"]), 1e-9)
        assert state["param_groups"] == other["param_groups"] and text == expected
        assert list(state["state"][0]) == list(other["state"][0]) == ["momentum_buffer"]


def test_muon_makes_changes_orthogonal():
    p = wengert.nn.Parameter(wengert.zeros(3, 5))
    p.grad = wengert.randn(3, 5, generator=wengert.Generator().manual_seed(1))
    wengert.optim.Muon([p], lr=1.0, weight_decay=0.0).step()
    sizes = wengert.linalg.svdvals(p.detach())
    assert sizes.min().item() > 0.5 and sizes.max().item() < 1.4


def test_checkpoints_move_both_ways():
    def run(first, second):
        params = parameters(first)
        optimizer = first.optim.Adafactor(params)
        train(first, optimizer, params, 3)
        others = [second.nn.Parameter(second.tensor(arrays(p))) for p in params]
        resumed = second.optim.Adafactor(others)
        saved = optimizer.state_dict()
        state = {
            number: {name: second.tensor(arrays(value)) for name, value in each.items()}
            for number, each in saved["state"].items()
        }
        resumed.load_state_dict({**saved, "state": state})
        return train(second, resumed, others, 3)

    assert_same(run(wengert, torch), run(torch, wengert), 1e-9)


@pytest.mark.parametrize(
    "call, error, phrase",
    [
        ("Adafactor([p], lr=-1.0)", ValueError, "Learning rate should be >= 0 but is: -1.0"),
        ("Adafactor([p], beta2_decay=1.0)", ValueError, "beta2_decay should be <= 0"),
        ("Adafactor([p], eps=(-1.0, 1.0))", ValueError, "epsilon1 should be >= 0"),
        ("Adafactor([p], eps=(None, -1.0))", ValueError, "epsilon2 should be >= 0"),
        ("Adafactor([p], d=0.5)", ValueError, "Clipping threshold d should be >= 1"),
        ("Adafactor([p], weight_decay=-1)", ValueError, "weight_decay should be >= 0"),
        ("Adafactor([p], lr=lib.ones(2))", ValueError, "Tensor lr must be 1-element"),
        ("Muon([p], momentum=-1)", ValueError, "momentum should be >= 0"),
        ("Muon([p], weight_decay=-1)", ValueError, "weight decay should be >= 0"),
        ("Muon([p], adjust_lr_fn='x')", ValueError, "function x is not supported"),
        ("Muon([lib.nn.Parameter(lib.ones(2))])", ValueError, "only supports 2D parameters"),
        ("Muon([p], ns_steps=100).step()", ValueError, "Number of steps must be less than 100"),
        ("Muon([p], ns_coefficients=(1, 2)).step()", ValueError, "exactly 3 values"),
        ("Adafactor([c]).step()", RuntimeError, "does not support complex parameters"),
        ("Muon([c]).step()", RuntimeError, "does not support complex parameters"),
    ],
)
def test_refusals(lib, call, error, phrase):
    p, c = lib.nn.Parameter(lib.ones(2, 2)), lib.nn.Parameter(lib.ones(2, 2) + 0j)
    p.grad, c.grad = lib.ones(2, 2), lib.ones(2, 2) + 0j
    with pytest.raises(error, match=phrase):
        eval(f"lib.optim.{call}", {"lib": lib, "p": p, "c": c})
