"""Loops of Python found again in traced graphs."""

import pytest

import wengert
from compiler.native.support import assert_alike, randn
from wengert.compiler import trace
from wengert.compiler.interpret.program import Program
from wengert.compiler.passes import reroll

ROUNDS = 200


def kinds(graph):
    return [node.kind for node in graph.nodes()]


def assert_rolled(function, *inputs, scans=1, tolerance=1e-12):
    """The graph of a function becomes a few nodes that compute what it did."""
    graph = trace(function, *inputs).graph
    before = Program(graph)(*inputs)
    reroll(graph).lint()
    assert kinds(graph).count("prim::scan") == scans
    assert_alike(Program(graph)(*inputs), before, tolerance)
    return graph


def decay(x, w):
    for _ in range(ROUNDS):
        x = x + 0.01 * (x @ w).tanh()
    return x


def test_carried_and_fixed_values():
    graph = assert_rolled(decay, randn(2, 3), randn(3, 3, seed=1) * 0.1)
    assert len(kinds(graph)) < 10


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("order", [1, -1, 2])
def test_slices(dim, order):
    def run(h, x):
        for t in range(ROUNDS)[::order]:
            h = (h + x.select(dim, t)).sin() * 0.5 + h
            h = h.cos() * h + 0.1
        return h

    shape = (ROUNDS, 3) if dim == 0 else (3, ROUNDS)
    assert_rolled(run, randn(3), randn(*shape, seed=1))


def test_slices_in_both_directions():
    def run(h, x):
        for t in range(ROUNDS):
            h = (h + x[t]).sin() * x[ROUNDS - 1 - t] + h * 0.5
        return h

    assert_rolled(run, randn(3), randn(ROUNDS, 3, seed=1))


def test_parts_that_were_taken_before():
    def run(h, x):
        for part in x.unbind(0):
            h = (h + part).sin() * 0.5 + h * 0.25
        return h

    assert_rolled(run, randn(3), randn(ROUNDS, 3, seed=1))


def test_lists_of_results():
    def run(h):
        found = []
        for _ in range(ROUNDS):
            h = h.sin() * 0.5 + h.cos()
            found.append(h)
        return wengert.stack(found), wengert.stack(found[::-1], 1), found[3], h

    graph = assert_rolled(run, randn(3))
    assert len(kinds(graph)) < 12


def test_values_of_single_rounds_are_results_of_their_own():
    def run(h):
        found = []
        for _ in range(ROUNDS):
            h = h.sin() * 0.5 + h.cos()
            found.append(h)
        return found[1], found[2]

    function = wengert.compile(run, fullgraph=True)
    a, b = function(randn(3))
    assert not a._is_view() and not b._is_view()
    a.add_(1)
    assert_alike(function(randn(3))[1:], [b], 1e-12)


def test_two_carried_values_and_a_first_round_that_differs():
    def run(x, w):
        a, b = x, x * 2
        for t in range(ROUNDS):
            a, b = (b @ w).tanh(), a + 0.1 * b
            if t == 0:
                a = a + w[0]
        return a - b

    assert_rolled(run, randn(2, 3), randn(3, 3, seed=1))


def test_what_is_the_same_in_each_round_is_computed_once():
    def run(x, w):
        for _ in range(ROUNDS):
            x = x + 0.01 * (x @ (w * 2).t())
        return x

    graph = assert_rolled(run, randn(2, 3), randn(3, 3, seed=1))
    (loop,) = [node for node in graph.nodes() if node.kind == "prim::scan"]
    assert "wengert::t" not in [node.kind for node in loop.blocks[0].nodes()]


def test_gradients_inside_are_a_loop_in_reverse():
    def run(w, x):
        return wengert.func.grad_and_value(lambda w: decay(x, w).square().sum())(w)

    graph = assert_rolled(run, randn(3, 3) * 0.1, randn(2, 3, seed=1), scans=2)
    assert len(kinds(graph)) < 120


def test_gradients_of_a_compiled_loop():
    def derivatives(function):
        x, w = randn(2, 3).requires_grad_(), (randn(3, 3, seed=1) * 0.1).requires_grad_()
        value = function(x, w).square().sum()
        first = wengert.autograd.grad(value, (x, w), create_graph=True)
        return [value, *first, *wengert.autograd.grad(sum(g.sum() for g in first), (x, w))]

    rolled = wengert.compile(decay, fullgraph=True)
    assert_alike(derivatives(rolled), derivatives(decay), 1e-9)
    assert "prim::scan" in kinds(rolled.compilations[0].traced.graph)


def test_an_option_keeps_the_graph_as_it_was_traced():
    plain = wengert.compile(decay, options={"reroll": False})
    plain(randn(2, 3), randn(3, 3))
    assert "prim::scan" not in kinds(plain.compilations[0].traced.graph)


def unlike(x):
    for t in range(ROUNDS):
        x = x * (t + 0.5) + x.sin()
    return x


def drawn(x):
    for _ in range(ROUNDS):
        x = x + wengert.rand(3) * x.sin()
    return x


def from_two_rounds_before(x):
    a, b, c = x, x * 2, x * 3
    for _ in range(ROUNDS):
        a, b, c = b, c, (a + c).sin() * 0.5
    return c


@pytest.mark.parametrize("function", [unlike, drawn])
def test_other_graphs_stay_as_they_are(function):
    graph = trace(function, randn(3)).graph
    text = str(graph)
    assert str(reroll(graph)) == text


def test_values_from_rounds_long_ago():
    graph = trace(from_two_rounds_before, randn(3)).graph
    before = Program(graph)(randn(3))
    assert_alike(Program(reroll(graph))(randn(3)), before, 1e-12)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("order", [1, -1])
def test_gradients_of_slices_are_a_result_of_the_loop(dim, order):
    def loss(x, w):
        h = w[0] * 0
        for t in range(ROUNDS)[::order]:
            h = (h @ w + x.select(dim, t)).tanh()
        return h.square().sum()

    shape = (ROUNDS, 3) if dim == 0 else (3, ROUNDS)
    gradients = wengert.func.grad(loss, (0, 1))
    graph = assert_rolled(gradients, randn(*shape), randn(3, 3, seed=1) * 0.3, scans=2)
    assert len(kinds(graph)) < 40 and kinds(graph).count("wengert::select_backward") == 1


def test_gradients_of_slices_that_are_used_twice_or_partly():
    def twice(x):
        h = x[0]
        for t in range(ROUNDS):
            h = (h * x[t]).sin() + x[t].cos()
        return h.sum()

    def partly(x):
        h = x[0]
        for t in range(5, ROUNDS - 5):
            h = (h + x[t]).sin() * 0.9 + h * 0.1
        return h.sum()

    for function in (twice, partly):
        inputs = randn(ROUNDS, 3)
        graph = trace(wengert.func.grad(function), inputs).graph
        before = Program(graph)(inputs)
        reroll(graph).lint()
        assert_alike(Program(graph)(inputs), before, 1e-12)


def test_a_reverse_whose_last_round_reads_where_the_loop_began():
    def loss(y, w):
        for _ in range(ROUNDS):
            y = y + 0.01 * (w @ y).tanh()
        return y.square().sum()

    gradients = wengert.func.grad(loss, (0, 1))
    graph = assert_rolled(gradients, randn(3), randn(3, 3, seed=1), scans=2)
    assert len(kinds(graph)) < 60
