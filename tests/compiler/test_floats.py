"""Floats become inputs of a compiled function's graph after their second value."""

import math
import types
import warnings

import numpy as np
import pytest

import wengert
from wengert.compiler import explain


@pytest.fixture(params=["interpreter", "native"])
def compiled(request):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield lambda f: wengert.compile(f, fullgraph=True, backend=request.param)


def agree(run, plain, calls):
    """Both give the same values for all calls."""
    for args in calls:
        mine, its = run(*args), plain(*args)
        assert mine.dtype is its.dtype and wengert.allclose(mine, its, equal_nan=True), args
    return len(run.compilations)


X = wengert.tensor([1.0, -2.0, 3.0])
RATES = [0.1, 0.2, 0.35, -0.0, 1e30, math.inf, math.nan, 5e-324]


@pytest.mark.parametrize("x", [
    X, X.double(), wengert.tensor(2.0), wengert.tensor([1, 2]), wengert.ones(0),
    wengert.ones(2, 3).t(),
], ids=["float32", "float64", "0-d", "int", "empty", "transposed"])  # fmt: skip
@pytest.mark.parametrize("function", [
    lambda x, r: x * r,
    lambda x, r: r * x - r,
    lambda x, r: (r - x) / r + x,
    lambda x, r: x - (1 - 2 * r * 0.5) * x + (-r) * x,
    lambda x, r: r / (x + 1.5) + +r,
], ids=["times", "minus", "over", "arithmetic", "quotient"])  # fmt: skip
def test_arguments(compiled, function, x):
    run = compiled(function)
    assert agree(run, function, [(x, r) for r in RATES]) == 2
    assert "takes 1 floats of any value" in explain(run)


def test_keywords_and_containers(compiled):
    def f(x, options, *, scale):
        return x * options["rate"] + scale

    run = compiled(f)
    for i in range(6):
        given = {"rate": 0.1 * i, "name": "a"}
        assert wengert.allclose(run(X, given, scale=i / 3), f(X, given, scale=i / 3))
    assert len(run.compilations) == 2


def test_gradients_of_all_orders(compiled):
    def f(x, r):
        return ((x * r).tanh() * x).sum() * r

    run = compiled(f)
    for r in (0.3, 0.4, 0.5):
        found = []
        for each in (run, f):
            x = X.double().requires_grad_()
            (slope,) = wengert.autograd.grad(each(x, r), x, create_graph=True)
            found += [slope, *wengert.autograd.grad(slope.square().sum(), x)]
        assert wengert.allclose(found[0], found[2]) and wengert.allclose(found[1], found[3])
    assert len(run.compilations) == 2


def test_factors_in_place(compiled):
    def f(x, r):
        y = x.clone()
        y.add_(x, alpha=r).mul_(r).sub_(x, alpha=2 * r)
        y.addcmul_(x, x, value=r)
        return y.addcdiv(x, x + 5, value=-r)

    assert agree(compiled(f), f, [(X, r) for r in (0.1, 0.2, 0.3, 7.0)]) == 2


class Rate:
    def __init__(self):
        self.rate = 0.5


def places():
    held, box, variable, entries = Rate(), types.SimpleNamespace(rate=0.5), 0.5, {"rate": 0.5}
    listed = [0.5, 2]

    def set_variable(value):
        nonlocal variable
        variable = value

    yield lambda x: x * held.rate, lambda v: setattr(held, "rate", v)
    yield lambda x: x * box.rate, lambda v: setattr(box, "rate", v)
    yield lambda x: x * variable, set_variable
    yield lambda x: x * entries["rate"], lambda v: entries.update(rate=v)
    yield lambda x: x * listed[0] + listed[1], lambda v: listed.__setitem__(0, v)


@pytest.mark.parametrize("number", range(5))
def test_floats_from_elsewhere(compiled, number):
    function, put = list(places())[number]
    run = compiled(function)
    for value in (0.5, 1.5, 2.5, 0.5, 3.5):
        put(value)
        assert wengert.equal(run(X), function(X))
    assert len(run.compilations) == 2


def test_a_float_that_becomes_something_else(compiled):
    box = types.SimpleNamespace(rate=0.5)

    def f(x):
        return x * box.rate

    run = compiled(f)
    for value in (0.5, 1.5, 2, wengert.tensor(3.0), 4.5, True):
        box.rate = value
        assert wengert.equal(run(X), f(X)) and run(X).dtype is f(X).dtype


@pytest.mark.parametrize("function", [
    lambda x, r: x * r if r > 0.15 else x,
    lambda x, r: x * math.sqrt(r),
    lambda x, r: x * round(r, 1),
    lambda x, r: x * int(r * 10),
    lambda x, r: x * float(f"{r:.3f}"),
    lambda x, r: x * (r if isinstance(r, float) and type(r) is float else 0.0),
    lambda x, r: x * {0.1: 1.0, 0.2: 2.0, 0.3: 3.0}[r],
    lambda x, r: x * np.float64(r),
    lambda x, r: x * np.add(r, 1.0),
    lambda x, r: x * (1 / r),
    lambda x, r: x * (2 ** r),
    lambda x, r: x.clamp(max=r),
    lambda x, r: wengert.full((2,), r),
    lambda x, r: wengert.nn.functional.leaky_relu(x, r),
    lambda x, r: x.half() * r,
    lambda x, r: wengert.where(x > r, x, r),
    lambda x, r: wengert.tensor([r, 1.0]),
    lambda x, r: x * max(r, 0.25),
    lambda x, r: x * sum([r, r]),
    lambda x, r: x ** r,
    lambda x, r: x * r.hex().count("a"),
])  # fmt: skip
def test_values_that_are_needed(compiled, function):
    agree(compiled(function), function, [(X.abs(), r) for r in (0.1, 0.2, 0.3, 0.1)])


def test_a_float_that_is_returned(compiled):
    run = compiled(lambda x, r: (x * r, r, [r + 1]))
    for r in (0.1, 0.2, 0.3):
        y, same, (more,) = run(X, r)
        assert wengert.equal(y, X * r) and same == r and more == r + 1
        assert type(same) is type(more) is float


def test_one_of_two_is_needed(compiled):
    def f(x, a, b):
        return x * a + (x if b > 0.25 else -x)

    run = compiled(f)
    assert agree(run, f, [(X, i / 7, 0.1) for i in range(5)]) == 2
    assert agree(run, f, [(X, i / 7, 0.1 * i) for i in range(5)]) < 8


def test_nothing_of_the_trace_stays():
    box = types.SimpleNamespace(rate=0.5, seen=[])

    def f(x):
        box.seen.append(box.rate)
        return x * box.rate

    run = wengert.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for value in (0.5, 1.5, 2.5):
            box.rate = value
            assert wengert.equal(run(X), X * value) and type(box.rate) is float
    assert box.seen == [0.5, 1.5, 2.5] and all(type(r) is float for r in box.seen)


def test_an_error_of_the_function_is_its_own(compiled):
    def f(x, r):
        if x.shape[0] == 3:
            raise KeyError("three")
        return x * r

    run = compiled(f)
    run(wengert.ones(2), 0.1)
    run(wengert.ones(2), 0.2)
    for r in (0.1, 0.2, 0.3):
        with pytest.raises(KeyError, match="three"):
            run(X, r)
    assert wengert.equal(run(wengert.ones(2), 0.7), wengert.full((2,), 0.7))


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_a_schedule_compiles_no_further(name, backend):
    def trained(compiles):
        wengert.manual_seed(0)
        net = wengert.nn.Sequential(
            wengert.nn.Linear(3, 4), wengert.nn.Tanh(), wengert.nn.Linear(4, 1)
        ).double()
        optimizer = getattr(wengert.optim, name)(net.parameters(), lr=0.1)
        schedule = wengert.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        x = wengert.randn(5, 3).double()

        def step():
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        run = wengert.compile(step, fullgraph=True, backend=backend) if compiles else step
        losses = []
        for _ in range(8):
            losses.append(run().item())
            schedule.step()
        return losses, len(run.compilations) if compiles else 0

    (mine, made), (its, _) = trained(True), trained(False)
    np.testing.assert_allclose(mine, its, rtol=1e-9)
    assert made <= 4
