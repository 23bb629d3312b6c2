"""Ten steps of each optimizer with all its options go where PyTorch's go."""

import numpy as np
import pytest

import wengert
from optim.rules import OPTIONS, combinations
from optim.training import arrays, assert_same, parameters, train

torch = pytest.importorskip("torch")

# Both forms of the package have the same Python here: the compiled run suffices.
pytestmark = pytest.mark.slow

#: Mixed precision of the counters: NAdam and ASGD keep float32 numbers beside float64 parameters.
TOLERANCE = 1e-9


def trained(lib, name, given, is_complex=False, dtype="float64"):
    params = parameters(lib, is_complex, dtype)
    optimizer = getattr(lib.optim, name)(params, **given)
    return train(lib, optimizer, params), optimizer


@pytest.mark.parametrize("name", OPTIONS)
def test_all_options_of_real_parameters(name):
    for given in combinations(name):
        ours, optimizer = trained(wengert, name, given)
        theirs, other = trained(torch, name, given)
        assert_same(ours, theirs, TOLERANCE)
        assert_same(arrays(optimizer.state_dict()["state"]), arrays(other.state_dict()["state"]))
        assert optimizer.state_dict()["param_groups"] == other.state_dict()["param_groups"]
        assert repr(optimizer) == repr(other)


@pytest.mark.parametrize("name", OPTIONS)
def test_complex_parameters(name):
    for given in combinations(name):
        if len(given) <= 2 and "fused" not in given:
            ours, optimizer = trained(wengert, name, given, is_complex=True)
            theirs, other = trained(torch, name, given, is_complex=True)
            assert_same(ours, theirs, TOLERANCE)
            ours, theirs = optimizer.state_dict()["state"], other.state_dict()["state"]
            assert_same(arrays(ours), arrays(theirs))


@pytest.mark.parametrize("name", OPTIONS)
def test_single_precision(name):
    ours, _ = trained(wengert, name, {}, dtype="float32")
    theirs, _ = trained(torch, name, {}, dtype="float32")
    assert_same(ours, theirs, 2e-5)


@pytest.mark.parametrize("name", OPTIONS)
def test_counters_have_the_default_dtype(name):
    for lib in (wengert, torch):
        lib.set_default_dtype(lib.float64)
    try:
        ours, optimizer = trained(wengert, name, {})
        theirs, other = trained(torch, name, {})
    finally:
        for lib in (wengert, torch):
            lib.set_default_dtype(lib.float32)
    assert_same(ours, theirs, TOLERANCE)
    assert_same(arrays(optimizer.state_dict()["state"]), arrays(other.state_dict()["state"]))


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("name", OPTIONS)
def test_a_learning_rate_that_is_a_tensor(name, shape):
    def rate(lib):
        return {"lr": lib.full(shape, 0.02, dtype=lib.float64)}

    ours, _ = trained(wengert, name, rate(wengert))
    theirs, _ = trained(torch, name, rate(torch))
    assert_same(ours, theirs, TOLERANCE)


def test_betas_that_are_tensors():
    def betas(lib):
        return {"betas": (lib.tensor(0.8, dtype=lib.float64), lib.tensor([0.9]).double())}

    ours, _ = trained(wengert, "Adam", betas(wengert))
    theirs, _ = trained(torch, "Adam", betas(torch))
    assert_same(ours, theirs, 1e-8)


@pytest.mark.parametrize("name", OPTIONS)
def test_groups_have_options_of_their_own(name):
    def run(lib):
        weight, bias = params = parameters(lib)
        groups = [{"params": [weight], "lr": 0.01}, {"params": bias, "maximize": True}]
        optimizer = getattr(lib.optim, name)(groups, lr=0.02)
        return train(lib, optimizer, params)

    assert_same(run(wengert), run(torch), TOLERANCE)


@pytest.mark.parametrize("name", OPTIONS)
def test_parameters_without_gradients_wait(name):
    def run(lib):
        weight, bias = params = parameters(lib)
        optimizer = getattr(lib.optim, name)(params)
        for number in range(6):
            optimizer.zero_grad()
            (weight**2).sum().backward()
            if number % 2:
                (bias**3).sum().backward()
            optimizer.step()
        return arrays([weight, bias]), arrays(optimizer.state_dict()["state"])

    assert_same(run(wengert), run(torch), TOLERANCE)


@pytest.mark.parametrize("name", OPTIONS)
def test_counters_of_meta_tensors_are_numbers(name):
    p = wengert.nn.Parameter(wengert.ones(3, device="meta"))
    optimizer = getattr(wengert.optim, name)([p])
    p.grad = wengert.ones(3, device="meta")
    optimizer.step()
    state = optimizer.state[p]
    assert p.device.type == "meta"
    assert "step" not in state or state["step"].item() == 1


@pytest.mark.parametrize("name", OPTIONS)
def test_steps_change_memory_in_place(name):
    params = parameters(wengert)
    memory = [p.detach().numpy() for p in params]
    optimizer = getattr(wengert.optim, name)(params, lr=0.1)
    train(wengert, optimizer, params, 1)
    states = [dict(state) for state in optimizer.state.values()]
    versions = [p._version for p in params]
    train(wengert, optimizer, params, 1)
    assert all(p._version > version for p, version in zip(params, versions))
    for p, array in zip(params, memory):
        assert np.shares_memory(p.detach().numpy(), array) and p.is_leaf and p.grad_fn is None
    for before, after in zip(states, optimizer.state.values()):
        assert all(after[key] is value for key, value in before.items())
