"""States that one library saves and the other resumes."""

import copy

import pytest

import wengert
from optim.rules import OPTIONS, pairs
from optim.training import arrays, assert_same, parameters, tensors, train

torch = pytest.importorskip("torch")
WAYS = [(wengert, torch), (torch, wengert), (wengert, wengert)]


def moved(state, target):
    """A state with the tensors of another library, as a file would give it."""
    return tensors(target, copy.deepcopy(arrays(state)))


@pytest.mark.parametrize(("source", "target"), WAYS)
@pytest.mark.parametrize("name", [*OPTIONS, "LBFGS"])
def test_training_goes_on_in_the_other_library(name, source, target):
    for given in pairs(name) if name in OPTIONS else [{}, {"line_search_fn": "strong_wolfe"}]:
        params = parameters(source)
        optimizer = getattr(source.optim, name)(params, **given)
        advance(source, optimizer, params, 4)
        resumed = [target.nn.Parameter(target.tensor(arrays(p))) for p in params]
        other = getattr(target.optim, name)(resumed, lr=77.0)
        other.load_state_dict(moved(optimizer.state_dict(), target))
        assert_same(
            arrays(other.state_dict()["param_groups"]),
            arrays(optimizer.state_dict()["param_groups"]),
        )
        advance(source, optimizer, params, 4)
        advance(target, other, resumed, 4)
        assert_same(arrays(resumed), arrays(params), 1e-9)


def advance(lib, optimizer, params, steps):
    if type(optimizer).__name__ != "LBFGS":
        train(lib, optimizer, params, steps)
        return

    def closure():
        optimizer.zero_grad()
        loss = sum(((p - 1) ** 2 * (p + 2) ** 2).sum() for p in params)
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)


def test_the_layout_of_a_state(lib):
    weight, bias = params = parameters(lib)
    optimizer = lib.optim.Adam([{"params": [bias]}, {"params": [weight]}])
    train(lib, optimizer, params, 2)
    state = optimizer.state_dict()
    assert list(state) == ["state", "param_groups"]
    assert list(state["state"]) == [0, 1]
    assert list(state["state"][0]) == ["step", "exp_avg", "exp_avg_sq"]
    assert state["state"][0]["step"].item() == 2 and state["state"][0]["step"].shape == ()
    assert [group["params"] for group in state["param_groups"]] == [[0], [1]]
    assert state["state"][0]["exp_avg"] is optimizer.state[bias]["exp_avg"]


def test_state_without_steps(lib):
    assert lib.optim.SGD(parameters(lib), momentum=0.9).state_dict()["state"] == {}
    plain = lib.optim.SGD(parameters(lib))
    train(lib, plain, plain.param_groups[0]["params"], 1)
    assert plain.state_dict()["state"] == {}
    assert list(lib.optim.Adagrad(parameters(lib)).state_dict()["state"]) == [0, 1]


def test_state_takes_the_dtype_of_its_parameter(lib):
    params = parameters(lib)
    optimizer = lib.optim.Adam(params)
    train(lib, optimizer, params, 1)
    other = lib.optim.Adam(parameters(lib, dtype="float32"))
    other.load_state_dict(optimizer.state_dict())
    state = other.state[other.param_groups[0]["params"][0]]
    assert state["exp_avg"].dtype is lib.float32 and state["step"].dtype is lib.float32
    assert optimizer.state[params[0]]["exp_avg"].dtype is lib.float64


def test_states_that_do_not_fit(lib):
    weight, bias = parameters(lib)
    one = lib.optim.SGD([weight])
    two = lib.optim.SGD([{"params": [weight]}, {"params": [bias]}])
    both = lib.optim.SGD([weight, bias])
    with pytest.raises(ValueError, match="different number of parameter groups"):
        one.load_state_dict(two.state_dict())
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        one.load_state_dict(both.state_dict())


def test_numbers_of_old_checkpoints_become_tensors(lib):
    params = parameters(lib)
    optimizer = lib.optim.Adam(params)
    train(lib, optimizer, params, 2)
    state = copy.deepcopy(optimizer.state_dict())
    for each in state["state"].values():
        each["step"] = 2
    for group in state["param_groups"]:
        del group["maximize"], group["fused"], group["decoupled_weight_decay"]
    other = lib.optim.Adam(parameters(lib))
    other.load_state_dict(state)
    assert isinstance(other.state[other.param_groups[0]["params"][0]]["step"], lib.Tensor)
    train(lib, other, other.param_groups[0]["params"], 1)


def test_a_momentum_that_is_none(lib):
    params = parameters(lib)
    optimizer = lib.optim.SGD(params, momentum=0.9)
    state = optimizer.state_dict()
    state["state"] = {0: {"momentum_buffer": None}, 1: {"momentum_buffer": None}}
    optimizer.load_state_dict(state)
    train(lib, optimizer, params, 1)
    assert optimizer.state[params[0]]["momentum_buffer"].shape == (3, 2)


def test_names_survive(lib):
    weight, bias = parameters(lib)
    optimizer = lib.optim.SGD([("weight", weight), ("bias", bias)])
    optimizer.load_state_dict(lib.optim.SGD([weight, bias]).state_dict())
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    other = lib.optim.SGD([("a", weight), ("b", bias)])
    optimizer.load_state_dict(other.state_dict())
    assert optimizer.param_groups[0]["param_names"] == ["a", "b"]


def test_adamw_stays_decoupled(lib):
    params = parameters(lib)
    optimizer = lib.optim.AdamW(params)
    optimizer.load_state_dict(lib.optim.Adam(params).state_dict())
    assert optimizer.param_groups[0]["decoupled_weight_decay"] is True
