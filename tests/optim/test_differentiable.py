"""Steps that are recorded: derivatives of what an optimizer does."""

import numpy as np
import pytest

import wengert
from optim.rules import OPTIONS
from optim.training import arrays, assert_same

torch = pytest.importorskip("torch")

#: What state an optimizer has in the middle of training, beside the counters.
STATES = {
    "SGD": ({"momentum": 0.9}, {"momentum_buffer": 0.3}),
    "Adam": ({"amsgrad": True}, {"exp_avg": 0.2, "exp_avg_sq": 0.4, "max_exp_avg_sq": 0.3}),
    "AdamW": ({}, {"exp_avg": 0.2, "exp_avg_sq": 0.4}),
    "Adamax": ({"weight_decay": 0.1}, {"exp_avg": 0.2, "exp_inf": 0.4}),
    "NAdam": ({"weight_decay": 0.1}, {"exp_avg": 0.2, "exp_avg_sq": 0.4}),
    "RAdam": ({"betas": (0.5, 0.9)}, {"exp_avg": 0.2, "exp_avg_sq": 0.4}),
    "RMSprop": (
        {"centered": True, "momentum": 0.5},
        {"square_avg": 0.9, "momentum_buffer": 0.1, "grad_avg": 0.2},
    ),
    "Rprop": ({}, {"prev": 0.3, "step_size": 0.02}),
    "Adagrad": ({"lr_decay": 0.1}, {"sum": 0.5}),
    "Adadelta": ({"weight_decay": 0.1}, {"square_avg": 0.4, "acc_delta": 0.2}),
    "ASGD": ({"weight_decay": 0.1}, {"ax": 0.4}),
}
COUNTERS = {
    "NAdam": {"step": 6.0, "mu_product": 0.5},
    "ASGD": {"step": 6.0, "eta": 0.01, "mu": 0.5},
}
START = np.array([0.7, -1.3, 0.4])
GRADIENT = np.array([0.5, -0.2, 0.9])


def stepped(lib, name, p, g, state, given, steps=2):
    """The parameter and the state after recorded steps, each with another gradient."""
    p = p.clone()
    optimizer = getattr(lib.optim, name)([p], differentiable=True, **given)
    counters = COUNTERS.get(name, {"step": 6.0} if name != "SGD" else {})
    optimizer.state[p] = {
        **{key: lib.tensor(value, dtype=lib.float64) for key, value in counters.items()},
        **{key: value.clone() for key, value in state.items()},
    }
    for _ in range(steps):
        p.grad = g
        optimizer.step()
        g = g * g + 0.1
    return p, *(optimizer.state[p][key] for key in state)


def leaves(lib, name):
    _, state = STATES[name]
    return [
        lib.tensor(values, dtype=lib.float64, requires_grad=True)
        for values in (START, GRADIENT, *(value + 0.1 * np.arange(3) for value in state.values()))
    ]


@pytest.mark.parametrize("name", STATES)
def test_derivatives_agree_with_pytorch(name):
    """One step: a second one would change what PyTorch has saved for the first."""
    given, state = STATES[name]

    def run(lib):
        p, g, *values = inputs = leaves(lib, name)
        results = stepped(lib, name, p, g, dict(zip(state, values)), given, 1)
        if name == "ASGD":
            results = results[:1]  # PyTorch cannot differentiate the average
        weights = [lib.tensor([0.3, 1.0, -0.7], dtype=lib.float64) * (k + 1) for k in range(9)]
        total = sum((result * w).sum() for result, w in zip(results, weights))
        gradients = lib.autograd.grad(total, inputs, allow_unused=True, materialize_grads=True)
        return arrays(list(results)), arrays(list(gradients))

    assert_same(run(wengert), run(torch), 1e-9)


@pytest.mark.parametrize("name", [name for name in STATES if name != "Rprop"])
def test_derivatives_are_those_of_the_step(name):
    given, state = STATES[name]

    def function(p, g, *values):
        return stepped(wengert, name, p, g, dict(zip(state, values)), given)

    inputs = leaves(wengert, name)
    assert wengert.autograd.gradcheck(function, inputs)
    assert wengert.autograd.gradgradcheck(function, inputs)


def test_every_rule_is_tried():
    assert STATES.keys() == OPTIONS.keys()


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("SGD", "lr"), ("SGD", "weight_decay"), ("SGD", "momentum"), ("Adam", "lr"),
        ("Adam", "weight_decay"), ("Adam", "betas"), ("AdamW", "weight_decay"), ("RAdam", "lr"),
        ("NAdam", "lr"), ("Adamax", "lr"), ("RMSprop", "lr"), ("Adagrad", "lr"), ("Adadelta", "lr"),
    ],
)  # fmt: skip
def test_derivatives_by_options(name, option):
    def function(value):
        p = wengert.tensor(START).clone()
        given = (value, value + 0.3) if option == "betas" else value
        optimizer = getattr(wengert.optim, name)([p], differentiable=True, **{option: given})
        for number in range(3):
            p.grad = wengert.tensor(GRADIENT) * (number + 1) + 0.1 * p.clone().sin()
            optimizer.step()
        return p

    value = wengert.tensor(0.3, dtype=wengert.float64, requires_grad=True)
    assert wengert.autograd.gradcheck(function, [value])


@pytest.mark.parametrize("name", OPTIONS)
def test_recorded_steps_go_where_others_go(name):
    def run(differentiable):
        p = wengert.tensor(START).clone()
        optimizer = getattr(wengert.optim, name)([p], lr=0.1, differentiable=differentiable)
        for number in range(5):
            p.grad = wengert.tensor(GRADIENT) * (number + 1)
            optimizer.step()
        return arrays(p), arrays(optimizer.state_dict()["state"])

    assert_same(run(True), run(False), 1e-12)


def test_learning_a_learning_rate():
    rate = wengert.tensor(0.01, dtype=wengert.float64, requires_grad=True)
    start = wengert.tensor(START)
    losses = []
    for _ in range(20):
        p = start.clone()
        optimizer = wengert.optim.SGD([p], lr=rate, momentum=0.5, differentiable=True)
        for _ in range(3):
            p.grad = 2 * p.clone()
            optimizer.step()
        loss = (p**2).sum()
        losses.append(loss.item())
        (slope,) = wengert.autograd.grad(loss, rate)
        rate = (rate - 0.01 * slope).detach().requires_grad_()
    assert losses[-1] < 0.2 * losses[0]


def test_betas_of_another_dtype(lib):
    betas = [lib.tensor(beta, requires_grad=True) for beta in (0.5, 0.9)]
    p = lib.tensor(START).clone()
    optimizer = lib.optim.Adam([p], betas=tuple(betas), differentiable=True)
    for number in (1, 2):
        p.grad = lib.tensor(GRADIENT) * number
        optimizer.step()
    for slope in lib.autograd.grad(p.sum(), betas):
        assert slope.dtype is lib.float32 and slope != 0


def test_leaves_that_require_gradients_cannot_be_changed(lib):
    p = lib.tensor(START, requires_grad=True)
    optimizer = lib.optim.SGD([p], differentiable=True)
    p.grad = lib.tensor(GRADIENT)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        optimizer.step()


def test_the_first_momentum_has_a_derivative():
    """PyTorch cuts it off: there the first step with momentum does not depend on the gradient."""
    g = wengert.tensor(GRADIENT, requires_grad=True)
    p = wengert.tensor(START).clone()
    optimizer = wengert.optim.SGD([p], lr=0.5, momentum=0.9, differentiable=True)
    p.grad = g
    optimizer.step()
    (slope,) = wengert.autograd.grad(p.sum(), g)
    assert (slope == -0.5).all()
