"""Tracing: the graph computes what the function does, in-place changes and captures included."""

import pytest

import wengert
from wengert.compiler import trace
from wengert.compiler.trace.refusals import TraceError


def kinds(traced):
    return [node.kind.removeprefix("wengert::") for node in traced.graph.nodes()]


def check(function, *args, **kwargs):
    """Trace on these arguments, run on others of the same shapes; compare with the function."""
    traced = trace(function, *[_fresh(a) for a in args], **kwargs)
    traced.graph.lint()
    mine, its = [_fresh(a) for a in args], [_fresh(a) for a in args]
    for a, b in zip(mine, its, strict=True):
        if isinstance(a, wengert.Tensor):
            a.add_(1), b.add_(1)
    result, expected = traced(*mine, **kwargs), function(*its, **kwargs)
    _equal(result, expected)
    _equal(mine, its)
    return traced


def _fresh(value):
    return value.clone() if isinstance(value, wengert.Tensor) else value


def _equal(a, b):
    if isinstance(a, wengert.Tensor):
        assert a.shape == b.shape and a.dtype == b.dtype
        assert wengert.allclose(a, b, atol=1e-6, equal_nan=True)
    elif isinstance(a, (list, tuple)):
        assert type(a) is type(b) and len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            _equal(x, y)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            _equal(a[key], b[key])
    else:
        assert a == b


X = wengert.linspace(-1, 1, 6).reshape(2, 3)


def test_operators_in_order():
    traced = check(lambda x: (x * 2).sin().sum(), X)
    assert kinds(traced) == ["mul", "sin", "sum"]


def test_numbers_are_fixed():
    traced = check(lambda x, n, flag: x**n if flag else x, X, 3, True)
    assert kinds(traced) == ["pow"]
    assert "3" in str(traced)


def test_trees_in_and_out():
    def function(pair, *, scale):
        a, options = pair
        return {"first": a * scale, "rest": [options["b"] + a, None, "text"]}

    traced = trace(function, (X, {"b": X}), scale=2.0)
    result = traced((X, {"b": X}), scale=2.0)
    _equal(result, function((X, {"b": X}), scale=2.0))


def test_other_structure_is_refused():
    traced = trace(lambda x: x[0] * 2, (X,))
    with pytest.raises(TypeError, match="traced with arguments of the structure"):
        traced([X])


def test_captured_tensors_become_inputs():
    w = wengert.ones(3)
    traced = trace(lambda x: x * w, X)
    assert len(traced.graph.inputs) == 2 and traced.captured[0] is w
    w.mul_(5)
    _equal(traced(X), X * 5)


def test_a_tensor_given_twice_is_two_inputs():
    traced = trace(lambda a, b: a * b, X, X)
    assert len(traced.graph.inputs) == 2
    _equal(traced(X, X + 1), X * (X + 1))


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.add_(1),
        lambda y: y[0].mul_(3),
        lambda y: y.t()[1].sub_(2),
        lambda y: y.view(-1)[2:4].exp_(),
        lambda y: y[:, 1:].zero_(),
        lambda y: y.__setitem__((slice(None), 0), 5.0),
        lambda y: y.diagonal().fill_(7.0),
        lambda y: y.unsqueeze(0)[0, 1].neg_(),
        lambda y: y.select(0, 1).copy_(wengert.arange(3.0)),
        lambda y: y.masked_fill_(y > 0, 9.0),
    ],
)
def test_changes_in_place(change):
    def function(x):
        y = x.sin()
        view = y[0]
        flat = y.view(-1)
        change(y)
        return y * 2, view + 1, flat.sum()

    check(function, X)


def test_changes_through_chained_views():
    def function(x):
        y = x.clone()
        a = y[0]
        b = y.view(-1)[1:]
        a.add_(1)
        b.mul_(2)
        a[0] = 4.0
        return y, a, b

    check(function, X)


def test_changes_of_inputs_are_reported():
    def function(x, y):
        x.mul_(2)
        y[0].add_(x[0])
        return x.sum()

    traced = check(function, X, X + 1)
    assert traced.mutated == [0, 1]
    assert traced.returned == 1


def test_changes_of_captured_tensors():
    state = wengert.zeros(3)

    def function(x):
        state.add_(x.sum(0))
        return state * 2

    traced = trace(function, X)
    assert wengert.equal(state, wengert.zeros(3))
    _equal(traced(X), X.sum(0) * 2)
    _equal(state, X.sum(0))


def test_changes_of_inputs_that_share_memory_are_refused():
    base = X.clone()
    with pytest.raises(TraceError, match="shares its memory"):
        trace(lambda a, b: a.add_(1) + b, base, base.view(-1)[:3])


@pytest.mark.parametrize("rows", [lambda x: x, lambda x: x.expand(2, 3).detach()])
def test_parts_of_expanded_tensors_are_not_changed_alone(rows):
    def function(x):
        rows(x)[:1].mul_(2)
        return x * 1

    given = wengert.ones(1, 3)
    given = given.expand(2, 3) if rows(given) is given else given
    with pytest.raises(TraceError, match="part of an expanded tensor"):
        trace(function, given)


def test_parts_of_expanded_views_are_changed_together():
    def function(x):
        x.expand(2, 3)[:1].mul_(2)
        return x * 1

    assert trace(function, wengert.ones(1, 3))(wengert.ones(1, 3)).tolist() == [[2.0, 2.0, 2.0]]


def test_detached_aliases_follow():
    def function(x):
        y = x * 2
        d = y.detach()
        d.add_(1)
        return y

    check(function, X)


def test_outputs_that_repeat_or_are_inputs():
    def function(x):
        y = x.exp()
        return y, y, x

    traced = check(function, X)
    assert len(traced.graph.outputs) == 3


def test_gradients_inside():
    def function(x, w):
        w = w.detach().requires_grad_()
        loss = (x @ w).tanh().square().sum()
        (g,) = wengert.autograd.grad(loss, w)
        return loss.detach(), g

    traced = check(function, X, wengert.ones(3, 2))
    assert "_mm_left" in kinds(traced) or "mm" in kinds(traced)


def test_a_training_step():
    w = wengert.ones(3, 3).requires_grad_()

    def step(x):
        loss = (x @ w).tanh().sum()
        (g,) = wengert.autograd.grad(loss, w)
        with wengert.no_grad():
            w.sub_(0.1 * g)
        return loss

    traced = trace(step, X)
    assert wengert.equal(w, wengert.ones(3, 3)) and w.requires_grad
    loss = traced(X)
    after = w.detach().clone()
    with wengert.no_grad():
        w.fill_(1.0)
    _equal(loss.detach(), step(X).detach())
    _equal(after, w.detach())


def test_double_backward_inside():
    def function(x):
        x = x.detach().requires_grad_()
        (g,) = wengert.autograd.grad(x.sin().sum(), x, create_graph=True)
        (h,) = wengert.autograd.grad(g.sum(), x)
        return h

    check(function, X)


def test_running_is_recorded():
    traced = trace(lambda x: (x * x).sum(), X)
    x = X.clone().requires_grad_()
    traced(x).backward()
    _equal(x.grad, 2 * X)


def test_tracing_leaves_nothing_behind():
    with pytest.raises(ZeroDivisionError):
        trace(lambda x: 1 / 0, X)
    assert wengert.is_grad_enabled()
    _equal((X * 2).sum(), X.sum() * 2)


def test_nodes_know_their_line():
    traced = trace(lambda x: x.sin(), X)
    (node,) = traced.graph.nodes()
    assert "test_trace.py" in node.source and "x.sin()" in node.source


def test_text_round_trip():
    from wengert.compiler import parse

    traced = trace(lambda x: (x * 2)[0].sin(), X)
    assert str(parse(str(traced.graph))) == str(traced.graph)


# Randomness and values that are not known ---------------------------------------------------------


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: x * wengert.rand(2, 3),
        lambda x: wengert.nn.functional.dropout(x, 0.5),
        lambda x: x + wengert.randn_like(x),
        lambda x: wengert.bernoulli(x.sigmoid()),
        lambda x: (x * 0).normal_(1.0, 2.0),
        lambda x: x[:, wengert.randperm(3)],
        lambda x: wengert.normal(x, 2.0),
    ],
)
def test_random_numbers_are_drawn_at_every_run(draw):
    state = wengert.get_rng_state()
    traced = trace(draw, X)
    assert wengert.equal(wengert.get_rng_state(), state)
    assert any(node.kind == "prim::random" for node in traced.graph.nodes())
    wengert.manual_seed(3)
    expected = [draw(X), draw(X)]
    wengert.manual_seed(3)
    _equal([traced(X), traced(X)], expected)


def test_unused_draws_are_kept():
    from wengert.compiler.passes.dce import eliminate_dead_code

    def function(x):
        wengert.rand(2)
        return x * 2

    traced = trace(function, X)
    eliminate_dead_code(traced.graph)
    assert "prim::random" in [node.kind for node in traced.graph.nodes()]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 if x.sum() > 0 else x,
        lambda x: x * x.sum().item(),
        lambda x: x * float(x[0, 0]),
        lambda x: x.tolist(),
        lambda x: x[x > 0],
        lambda x: x.nonzero(),
    ],
)
def test_values_that_are_not_known_are_refused(function):
    with pytest.raises((TraceError, NotImplementedError, RuntimeError)) as failure:
        trace(function, X)
    assert "test_trace.py" in str(failure.value)
