"""LBFGS with and without a line search, against PyTorch."""

import numpy as np
import pytest

import wengert
from optim.training import arrays, assert_same, parameters
from wengert.optim.line_search import Point, strong_wolfe

torch = pytest.importorskip("torch")


def rosenbrock(lib, p):
    return (100 * (p[1:] - p[:-1] ** 2) ** 2 + (1 - p[:-1]) ** 2).sum()


def quartic(lib, *params):
    pairs = [lib.view_as_real(p) if p.is_complex() else p for p in params]
    return sum(((p - 1) ** 2 * (p + 2) ** 2 + 0.1 * p).sum() for p in pairs)


def minimize(lib, loss_of, params, steps=4, **given):
    """What is seen at each step: losses, parameters, how often the loss was computed."""
    optimizer = lib.optim.LBFGS(params, **given)
    seen = []

    def closure():
        optimizer.zero_grad()
        loss = loss_of(lib, *params)
        loss.backward()
        return loss

    for _ in range(steps):
        loss = optimizer.step(closure)
        state = optimizer.state[params[0]]
        seen.append((loss.item(), arrays(params), state["func_evals"], state["n_iter"]))
    return seen, optimizer


OPTIONS = [
    {},
    {"line_search_fn": "strong_wolfe"},
    {"lr": 0.1, "max_iter": 7},
    {"lr": 0.3, "max_iter": 9, "history_size": 3},
    {"max_iter": 5, "max_eval": 8, "line_search_fn": "strong_wolfe"},
    {"lr": 0.5, "line_search_fn": "strong_wolfe", "history_size": 2},
    {"lr": 30.0, "line_search_fn": "strong_wolfe", "max_iter": 6},
    {"lr": 0.05, "line_search_fn": "strong_wolfe", "max_iter": 6},
    {"lr": 0.2, "tolerance_grad": 0.5, "tolerance_change": 1e-2},
]


@pytest.mark.parametrize("given", OPTIONS)
def test_rosenbrock(given):
    def run(lib):
        start = lib.nn.Parameter(lib.tensor([-1.2, 1.0, 0.5, -0.3], dtype=lib.float64))
        return minimize(lib, rosenbrock, [start], **given)

    (ours, optimizer), (theirs, other) = run(wengert), run(torch)
    assert_same(ours, theirs, 1e-8 if given == {} else 1e-9)
    assert repr(optimizer) == repr(other)
    assert optimizer.state_dict()["state"][0].keys() == other.state_dict()["state"][0].keys()


@pytest.mark.parametrize("given", OPTIONS[1:])
@pytest.mark.parametrize("is_complex", [False, True])
def test_several_parameters(given, is_complex):
    def run(lib):
        return minimize(lib, quartic, parameters(lib, is_complex), **given)[0]

    assert_same(run(wengert), run(torch), 1e-9)


def test_parameters_without_gradients_stay(lib):
    weight, bias = parameters(lib)
    before = arrays(bias)
    optimizer = lib.optim.LBFGS([weight, bias], line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = ((weight - 3) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    np.testing.assert_allclose(arrays(weight), 3)
    assert (arrays(bias) == before).all()


def test_a_minimum_is_left_alone(lib):
    weight = lib.nn.Parameter(lib.ones(3))
    optimizer = lib.optim.LBFGS([weight])

    def closure():
        optimizer.zero_grad()
        loss = ((weight - 1) ** 2).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 0
    assert optimizer.state[weight] == {"func_evals": 1, "n_iter": 0}


def test_refused(lib):
    weight, bias = parameters(lib)
    with pytest.raises(ValueError, match="doesn't support per-parameter options"):
        lib.optim.LBFGS([{"params": weight}, {"params": bias}])
    with pytest.raises(ValueError, match="Invalid learning rate"):
        lib.optim.LBFGS([weight], lr=-1)
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        minimize(lib, quartic, [weight, bias], line_search_fn="armijo")
    with pytest.raises(TypeError, match="closure"):
        lib.optim.LBFGS([weight]).step()


@pytest.mark.parametrize("step", [1e-3, 0.1, 1.0, 20.0, 500.0])
def test_the_line_search_keeps_the_wolfe_conditions(step):
    def evaluate(t):
        return Point(t, np.cos(t / 3) - 0.1 * t, None, -np.sin(t / 3) / 3 - 0.1)

    start = evaluate(0.0)
    found, evaluations = strong_wolfe(evaluate, start, step, 1.0, 25)
    assert found.loss <= start.loss + 1e-4 * found.step * start.slope
    assert abs(found.slope) <= 0.9 * abs(start.slope)
    assert evaluations <= 26
