"""Random numbers in graphs: a value that is computed again is computed from the same numbers."""

import pytest

import wengert
from wengert import compiler
from wengert.compiler import NotDifferentiable, cond, differentiate, scan, trace, while_loop

X = wengert.linspace(-1, 1, 6, dtype=wengert.float64).reshape(2, 3)
OWN = wengert.Generator()


def derivatives(function, orders):
    """Value and derivatives, and what the generators draw afterwards."""
    wengert.manual_seed(1)
    OWN.manual_seed(2)
    x = X.clone().requires_grad_()
    found = [function(x)]
    for order in range(orders, 0, -1):
        found += wengert.autograd.grad(found[-1].sum(), x, create_graph=order > 1)
    return [*found, wengert.rand(2), wengert.rand(2, generator=OWN)]


def check(function, orders):
    compiled = wengert.compile(function)
    expected = derivatives(function, orders)
    for _ in range(2):
        assert all(map(wengert.allclose, derivatives(compiled, orders), expected))
    assert expected[orders].any()
    assert not wengert.equal(compiled(X), compiled(X))


def noisy(x):
    return x * x * x * (wengert.rand_like(x) + wengert.rand(2, 3, generator=OWN, dtype=x.dtype))


@pytest.mark.parametrize("orders", [1, 2, 3])
def test_recorded_backwards_do_not_draw_again(orders):
    check(noisy, orders)
    check(lambda x: wengert.nn.functional.dropout(x.exp() * x), orders)


BODIES = {
    "cond": lambda x: cond(x.sum() < 9, noisy, lambda x: x * 1, (x,)),
    "map": lambda x: compiler.map(lambda x: x**3 * wengert.rand_like(x), x),
    "scan": lambda x: scan(
        lambda c, x: (c * x * wengert.rand_like(x), c * c * 1), x[0] + 2, x + 3
    )[1],
    "while": lambda x: while_loop(
        lambda n, x: n < 3,
        lambda n, x: (n + 1, x * x * wengert.rand_like(x)),
        (wengert.tensor(0), x),
    )[1],
}


@pytest.mark.parametrize("name", BODIES)
def test_draws_inside_control_flow(name):
    check(BODIES[name], 2)
    graph = trace(BODIES[name], X.clone().requires_grad_()).graph
    with pytest.raises(NotDifferentiable, match="random draws"):
        differentiate(graph)
    with pytest.raises(NotDifferentiable, match="draw before it and pass the numbers in"):
        trace(lambda x: wengert.autograd.grad(BODIES[name](x).sum(), x), X.clone().requires_grad_())


def test_tracing_does_not_draw():
    wengert.manual_seed(1)
    OWN.manual_seed(2)
    expected = wengert.rand(2), wengert.rand(2, generator=OWN)
    wengert.manual_seed(1)
    OWN.manual_seed(2)
    trace(noisy, X)
    assert wengert.equal(wengert.rand(2), expected[0])
    assert wengert.equal(wengert.rand(2, generator=OWN), expected[1])
