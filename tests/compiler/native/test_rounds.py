"""Loops of unknown length as machine code: derivatives of every order, and inside of others."""

import pytest

import wengert
from compiler.native.support import assert_alike, assert_native, randn
from wengert.compiler import cond, explain, scan, trace, while_loop
from wengert.compiler import map as map_slices
from wengert.compiler.native import host, table
from wengert.func import grad


def powers(x):
    """Rounds as many as the values ask for."""
    return while_loop(lambda y: y.sum() < 50, lambda y: (y * y + 1,), (x,))[0].sum()


def shrunk(y, factor):
    return while_loop(lambda y: y.abs().sum() > 0.1, lambda y: (y * factor * 0.5,), (y,))[0]


def assert_compiled(function, *inputs):
    """A function is machine code as a whole, and right for other numbers of rounds too."""
    compiled = wengert.compile(function, backend="native", fullgraph=True)
    for size in (1.0, 0.01, 7.0, 0.5):
        given = [x * size for x in inputs]
        mine, its = compiled(*given), function(*given)
        both = (mine, its) if isinstance(its, tuple) else ((mine,), (its,))
        assert_alike(*both, 1e-12)
    assert "calls" not in explain(compiled, details=True).replace("4 calls", "")


def of_order(function, order):
    for _ in range(order):
        function = grad(lambda x, inner=function: inner(x).sum())
    return function


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives(order):
    x = wengert.tensor([0.5, 0.2, 1.5], dtype=wengert.float64)
    assert_compiled(of_order(powers, order), x)


@pytest.mark.parametrize("order", [1, 2])
def test_shared_values_and_several_carried(order):
    def loss(x):
        w = x[0].sin()

        def turn(i, y, z):
            return i + 1, (y * w).sin() + z * 0.1, z * 0.3 * w + y[1] * y

        start = (wengert.tensor(0), x, x * 2)
        _, y, z = while_loop(lambda i, y, z: i < 4 + 10 * x.sum(), turn, start)
        return (y.square().sum() + z.sin().sum()) * x.sum()

    assert_compiled(of_order(loss, order), randn(3).abs())


@pytest.mark.parametrize("order", [1, 2])
def test_inside_of_a_scan(order):
    def loss(x):
        def turn(c, s):
            y = shrunk(c, s) + c
            return y, (y * c).sum()

        c, ys = scan(turn, x, wengert.linspace(0.2, 0.8, 5, dtype=wengert.float64))
        return c.sum() + ys.square().sum()

    assert_compiled(of_order(loss, order), randn(3))


def test_inside_of_a_map():
    def loss(x):
        return map_slices(lambda row: shrunk(row.sin(), row[0].cos()) * row, x).square().sum()

    assert_compiled(of_order(loss, 1), randn(4, 3))


@pytest.mark.parametrize("sign", [1, -1])
def test_inside_of_a_branch(sign):
    def loss(x):
        return cond(x[0] > 0, lambda x: shrunk(x, x[1].sin()), lambda x: x * 2, (x,)).sum()

    x = wengert.tensor([0.4, 1.5], dtype=wengert.float64)
    assert_compiled(of_order(loss, 1), x * sign)


def test_inside_of_another():
    def loss(x):
        def turn(i, y):
            return i + 1, shrunk(y, x[0].sin()) + y * x

        return while_loop(lambda i, y: i < 3, turn, (wengert.tensor(0), x))[1].sum()

    assert_compiled(of_order(loss, 1), randn(3))


def test_a_gradient_in_each_round():
    def newton(x):
        def turn(i, y):
            return i + 1, y - 0.01 * grad(lambda y: shrunk(y * y, y[0].sin()).sum())(y)

        return while_loop(lambda i, y: i < 3, turn, (wengert.tensor(0), x))[1]

    assert_compiled(newton, randn(3))


def test_no_rounds_at_all():
    def loss(x):
        return while_loop(lambda y: y.sum() > 1e9, lambda y: (y * y,), (x,))[0].square().sum()

    for order in (1, 2):
        assert_compiled(of_order(loss, order), randn(3))


def test_memory_of_rounds_inside_stays_from_round_to_round():
    def loss(x):
        def turn(c, s):
            n = (s * 300).long()
            first = (wengert.tensor(0), c)
            return while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y.sin()), first)[1], s

        return scan(turn, x, wengert.linspace(0, 1, 7, dtype=wengert.float64))[0].sum()

    x = randn(3)
    assert_native(grad(loss), x)
    assert wengert.allclose(wengert.compile(grad(loss), backend="native")(x), grad(loss)(x))


def test_types_are_found_without_being_traced():
    traced = trace(of_order(powers, 2), wengert.full((5,), 0.25, dtype=wengert.float64))
    assert len(traced.graph.inputs) == 1 and not traced.captured


@pytest.mark.parametrize("order", [1, 2])
def test_without_memory_the_interpreter_runs(order, monkeypatch):
    refuses = host.compiled(
        "define ptr @refuse(ptr %old, i64 %size) {\n  ret ptr null\n}", host.native_bits()
    )
    address = refuses.get_function_address("refuse")
    monkeypatch.setattr(table, "realloc_address", lambda: address)
    function = of_order(powers, order)
    x = wengert.tensor([0.5, 0.2, 1.5], dtype=wengert.float64)
    compiled = wengert.compile(function, backend="native")
    for _ in range(2):
        assert wengert.allclose(compiled(x), function(x))
