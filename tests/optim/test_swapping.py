"""Steps on other parameters: `swap_in_optimizer_params_and_state`."""

import copy

import pytest

from optim.training import arrays, assert_same, parameters, train


def test_steps_on_other_parameters(lib):
    params = parameters(lib)
    optimizer = lib.optim.Adam(params, lr=0.1)
    train(lib, optimizer, params, 2)
    state = copy.deepcopy(optimizer.state_dict())
    others = [lib.nn.Parameter(p.detach().clone()) for p in params]
    for p, other in zip(params, others):
        other.grad = p.grad.clone()
    before = arrays(params)
    swap = lib.optim.swap_in_optimizer_params_and_state
    with swap(optimizer, {"weight": others[0], "bias": others[1]}, state):
        optimizer.step()
    assert_same(arrays(params), before)
    assert optimizer.param_groups[0]["params"][0] is params[0]
    assert state["state"][0]["step"].item() == 3
    assert optimizer.state[params[0]]["step"].item() == 2
    optimizer.step()
    assert_same(arrays(others), arrays(params))
    with pytest.raises(ZeroDivisionError), swap(optimizer, dict(enumerate(others)), state):
        1 / 0
    assert optimizer.param_groups[0]["params"][0] is params[0]


def test_what_does_not_fit(lib):
    params = parameters(lib)
    optimizer = lib.optim.Adam(params)
    swap = lib.optim.swap_in_optimizer_params_and_state
    state = optimizer.state_dict()
    with pytest.raises(RuntimeError, match="requires initialized optimizer state"):
        swap(optimizer, {}, state).__enter__()
    train(lib, optimizer, params, 1)
    with pytest.raises(RuntimeError, match="to match optimizer.param_groups"):
        swap(optimizer, {"weight": params[0]}, state).__enter__()
    with pytest.raises(RuntimeError, match="different number of parameter groups"):
        given = {"weight": params[0], "bias": params[1]}
        swap(optimizer, given, {"state": {}, "param_groups": []}).__enter__()
