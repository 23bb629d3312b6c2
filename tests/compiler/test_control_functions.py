"""cond, while_loop, scan and map: compiled, eager and written out in Python, all the same."""

import pytest

import wengert
from wengert.compiler import Graph, cond, differentiate, map, scan, trace, while_loop

X = wengert.linspace(-1, 1, 6, dtype=wengert.float64).reshape(2, 3)
W = wengert.linspace(0.2, 0.9, 3, dtype=wengert.float64)


def kinds(graph: Graph):
    return [node.kind for node in graph.nodes()]


def derivatives(function, inputs, order=2):
    """The value, the gradients, and gradients of their weighted sum."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    found = [function(*leaves)]
    value = found[0].sum()
    for _ in range(order):
        grads = wengert.autograd.grad(value, leaves, create_graph=True, allow_unused=True)
        grads = [wengert.zeros_like(x) if g is None else g for g, x in zip(grads, leaves)]
        found += grads
        value = sum((g * g).sum() for g in grads)
        if not value.requires_grad:
            break
    return [t.detach() for t in found]


def check(function, *inputs, written_out=None, node=None, order=2):
    """Eager and compiled agree to the second order, also with the loop written out."""
    expected = derivatives(written_out or function, inputs, order)
    compiled = wengert.compile(function)
    for way in (function, compiled):
        found = derivatives(way, inputs, order)
        for mine, its in zip(found[: len(expected)], expected, strict=True):
            assert wengert.allclose(mine, its, atol=1e-12)
        # A graph knows derivatives also for a loop that happens to run not at all.
        assert not any(more.any() for more in found[len(expected) :])
    (made, *_) = compiled.compilations
    made.traced.graph.lint()
    if node is not None:
        assert f"prim::{node}" in kinds(made.traced.graph)
    return made.traced.graph


# cond ---------------------------------------------------------------------------------------------


def branches(x, w):
    return cond(x.sum() > 0.3, lambda x: (x * w).sin(), lambda x: x.cos() * 2, (x,))


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_cond(shift):
    check(
        branches,
        X + shift,
        W,
        written_out=lambda x, w: (x * w).sin() if x.sum() > 0.3 else x.cos() * 2,
        node="cond",
    )


def test_one_compilation_serves_both_branches():
    compiled = wengert.compile(branches)
    assert wengert.allclose(compiled(X, W), X.cos() * 2)
    assert wengert.allclose(compiled(X + 1, W), ((X + 1) * W).sin())
    assert len(compiled.compilations) == 1


def test_cond_without_operands_on_captured_tensors():
    flag = wengert.tensor(True)
    compiled = wengert.compile(lambda: cond(flag, lambda: X * 2, lambda: X * 3))
    assert wengert.equal(compiled(), X * 2)
    flag.fill_(False)
    assert wengert.equal(compiled(), X * 3)


def test_cond_on_trees():
    def function(x):
        def chosen(pair, n):
            return {"a": pair[0] * n, "b": [pair[1], "text", None]}

        def other(pair, n):
            return {"a": pair[1] + n, "b": [pair[0] * 2, "text", None]}

        return cond(x.sum() > 0, chosen, other, ((x, x.exp()), 3))

    compiled = wengert.compile(function)
    for x in (X + 1, X - 1):
        mine, its = compiled(x), function(x)
        assert wengert.allclose(mine["a"], its["a"]) and wengert.allclose(mine["b"][0], its["b"][0])
        assert mine["b"][1:] == its["b"][1:] == ["text", None]


def test_cond_with_a_number_takes_its_branch():
    assert kinds(trace(lambda x: cond(True, wengert.sin, wengert.cos, (x,)), X).graph) == [
        "wengert::sin"
    ]


def test_nested_cond():
    def function(x):
        def inner(x):
            return cond(x.sum() > 1, lambda x: x.sin(), lambda x: x.cos(), (x,))

        return cond(x.sum() > 0, inner, lambda x: x.exp(), (x,))

    for shift in (-1.0, 0.05, 1.0):
        check(function, X + shift, node="cond")


def test_random_numbers_and_constants_inside_branches():
    def function(x):
        def noisy(x):
            made = wengert.zeros(2, 3, dtype=wengert.float64)
            made[0] = x[0]
            return made + wengert.rand(2, 3, dtype=wengert.float64)

        return cond(x.sum() > 0, noisy, lambda x: x * 1, (x,))

    compiled = wengert.compile(function)
    for x in (X + 1, X - 1):
        wengert.manual_seed(0)
        expected = [function(x), function(x)]
        wengert.manual_seed(0)
        assert all(wengert.equal(compiled(x), e) for e in expected)


@pytest.mark.parametrize(
    ("chosen", "other", "message"),
    [
        (lambda x: (x, x), lambda x: x, "Unmatched output spec"),
        (lambda x: x[0], lambda x: x, "the same metadata"),
        (lambda x: x.float(), lambda x: x, "the same metadata"),
        (lambda x: (x, 1), lambda x: (x, 2), "the same metadata"),
        (lambda x: x.add_(1), lambda x: x, "changed in place"),
        (lambda x: x + W.mul_(2), lambda x: x, "changed in place"),
    ],
)
def test_branches_that_cannot_be_one_node(chosen, other, message):
    with pytest.raises(RuntimeError, match=message):
        trace(lambda x: cond(x.sum() > 0, chosen, other, (x,)), X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, wengert.sin, wengert.cos, (X,)), "single-element tensor"),
        (("yes", wengert.sin, wengert.cos, (X,)), "bool or tensor"),
        ((True, None, wengert.cos, (X,)), "callable"),
        ((True, wengert.sin, wengert.cos, X), "Expect operands to be a tuple"),
    ],
)
def test_arguments_of_cond(arguments, message):
    with pytest.raises(RuntimeError, match=message):
        cond(*arguments)


def test_changes_of_operands_are_noticed_in_eager_mode():
    with pytest.raises(RuntimeError, match="changed in place"):
        cond(True, lambda x: x.add_(1), lambda x: x, (X.clone(),))


# while_loop ---------------------------------------------------------------------------------------


def rounds(x, w):
    def body(h, n):
        return h * 1.5 + x * w, n + 1

    h, n = while_loop(lambda h, n: (h * h).sum() < 20.0, body, (x, wengert.tensor(0)))
    return h * n


def rounds_in_python(x, w):
    h, n = x, 0
    while (h * h).sum() < 20.0:
        h, n = h * 1.5 + x * w, n + 1
    return h * n


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_while_loop(scale):
    check(rounds, X * scale, W, written_out=rounds_in_python, node="while")


def test_a_block_captures_a_view_of_what_was_changed():
    def function(x):
        row = x[1]
        x.sub_(2)
        return while_loop(
            lambda n, h: n < 2, lambda n, h: (n + 1, (h * row).tanh() + h), (wengert.tensor(0), x)
        )[1]

    found = []
    for way in (function, wengert.compile(function)):
        leaf = X.clone().requires_grad_()
        out = way(leaf * 1)
        found.append([out, *wengert.autograd.grad(out.sum(), leaf)])
    assert all(wengert.allclose(mine, its) for mine, its in zip(*found, strict=True))


def test_without_recording_no_view_is_asked_for_its_history():
    def function(x):
        first, _ = x.split(1)
        x.mul_(2)  # which part of the history of `first` that is, autograd does not say
        with wengert.no_grad():
            return while_loop(lambda h: h.sum() < 9, lambda h: (h * first + 1,), (x * 1,))[0]

    for way in (function, wengert.compile(function)):
        out = way((X + 1).requires_grad_() * 1)
        assert out.sum() >= 9 and not out.requires_grad


def test_while_loop_in_graphs_to_the_third_order():
    def function(x):
        return while_loop(lambda x: x.sum() < 9, lambda x: (x * x + x.sin(),), (x,))[0]

    def third(function):
        x = (X + 1.2).requires_grad_()
        found = [function(x)]
        for _ in range(3):
            found += wengert.autograd.grad(found[-1].sum(), x, create_graph=True)
        return found

    compiled = wengert.compile(function)
    for mine, its in zip(third(compiled), third(function), strict=True):
        assert wengert.allclose(mine, its)
    (made,) = compiled.compilations
    executable = made.executable
    for order in range(3):
        (differentiated,) = executable._differentiated.values()
        assert differentiated.gradient.df_output_vjps, order
        if order < 2:
            (executable,) = differentiated._joint.values()


def test_what_a_body_captures_is_not_what_it_carries():
    def function(x):
        return while_loop(lambda h: h.sum() < 9, lambda h: (h + x,), (x,))[0]

    check(function, X + 0.5, node="while")


@pytest.mark.parametrize(
    ("holds", "body", "message"),
    [
        (lambda x: x, lambda x: (x,), "cond_fn must return a boolean"),
        (lambda x: x.sum() > 0, lambda x: x, "same pytree structure"),
        (lambda x: x.sum() > 0, lambda x: (x[0],), "the same metadata"),
        (lambda x: x.sum() > 0, lambda x: (x.float(),), "the same metadata"),
        (lambda x: x.sum() > 0, lambda x: (x.add_(1),), "changed in place"),
        (lambda x: x.sum() > 0, lambda x: (1,), "the same metadata"),
    ],
)
@pytest.mark.parametrize("traced", [False, True])
def test_loops_that_are_refused(holds, body, message, traced):
    def function(x):
        return while_loop(holds, body, (x,))

    with pytest.raises(RuntimeError, match=message):
        trace(function, X + 1) if traced else function(X + 1)


def test_loops_carry_tensors():
    with pytest.raises(RuntimeError, match="must be a Tensor"):
        while_loop(lambda n: n < 3, lambda n: (n + 1,), (0,))


# scan ---------------------------------------------------------------------------------------------


def recurrence(h, xs, w, reverse=False, dim=0):
    def combine(carry, x):
        h = (carry["h"] * w + x).tanh()
        return {"h": h}, (h * x, None)

    last, (ys, nothing) = scan(combine, {"h": h}, xs, reverse=reverse, dim=dim)
    assert nothing is None
    return last["h"] * 2 + ys.sum(dim)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_scan(reverse, dim):
    def function(h, xs, w):
        return recurrence(h, xs, w, reverse, dim)

    def written_out(h, xs, w):
        total = 0
        for x in reversed(xs.unbind(dim)) if reverse else xs.unbind(dim):
            h = (h * w + x).tanh()
            total = total + h * x
        return h * 2 + total

    xs = wengert.linspace(-1, 2, 12, dtype=wengert.float64).reshape(4, 3)
    check(function, W, xs if dim == 0 else xs.t(), W + 0.3, written_out=written_out, node="scan")


def test_scan_as_pytorch():
    torch = pytest.importorskip("torch")
    from torch._higher_order_ops import scan as its_scan

    def combine(c, x):
        return c * 0.5 + x, c + 2 * x

    for options in ({}, {"reverse": True}, {"dim": 1}):
        size = 3 if options.get("dim") else 4
        mine = scan(combine, wengert.zeros(size), wengert.arange(12.0).reshape(3, 4), **options)
        its = its_scan(combine, torch.zeros(size), torch.arange(12.0).reshape(3, 4), **options)
        assert [t.tolist() for t in mine] == [t.tolist() for t in its]


def test_scan_over_several_tensors_with_integers():
    def function(x, w):
        def combine(carry, parts):
            h, n = carry
            row, k = parts
            return (h + row * k, n + 1), h * n

        start = (w * 0, wengert.tensor(0))
        (h, n), ys = scan(combine, start, (x, wengert.arange(2)))
        return h * n + ys.sum(0)

    check(function, X, W, node="scan")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: scan(lambda c, r: c, x[0], x), "a pair"),
        (lambda x: scan(lambda c, r: (c.sum(), r), x[0], x), "the same metadata"),
        (lambda x: scan(lambda c, r: ((c, c), r), x[0], x), "same pytree structure"),
        (lambda x: scan(lambda c, r: (c, r), x[0], x[:0]), "not 0"),
        (lambda x: scan(lambda c, r: (c, r), x[0], x[0, 0]), "not 0"),
        (lambda x: scan(lambda c, r: (c, r[0]), x[0], (x, x[:1])), "consistent"),
        (lambda x: scan(lambda c, r: (c, r), (), x), "requires init"),
        (lambda x: scan(lambda c, r: (c, r), 1, x), "must be a Tensor"),
        (lambda x: scan(lambda c, r: (c.add_(1), r), x[0], x), "changed in place"),
        (lambda x: scan(None, x[0], x), "callable"),
    ],
)
@pytest.mark.parametrize("traced", [False, True])
def test_scans_that_are_refused(call, message, traced):
    with pytest.raises(RuntimeError, match=message):
        trace(call, X) if traced else call(X)


# map ----------------------------------------------------------------------------------------------


def test_map():
    def function(x, w):
        parts = map(lambda row, v: {"s": (row * v).sin(), "t": row.sum()}, x, w)
        return parts["s"] * parts["t"].unsqueeze(1)

    def written_out(x, w):
        rows = x.unbind(0)
        s = wengert.stack([(row * w).sin() for row in rows])
        return s * wengert.stack([row.sum() for row in rows]).unsqueeze(1)

    check(function, X, W, written_out=written_out, node="map")


def test_map_over_trees():
    def function(x, y):
        return map(lambda pair: pair["a"] * pair["b"].exp(), {"a": x, "b": y})

    check(function, X, X + 1, written_out=lambda x, y: x * y.exp(), node="map")


def test_map_over_nothing():
    with pytest.raises(RuntimeError, match="not 0"):
        map(lambda x: x, X[:0])
    with pytest.raises(RuntimeError, match="must be a Tensor"):
        map(lambda x: x, [1, 2])


# Inside other things ------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_gradients_taken_inside_a_traced_function(shift):
    def by_autograd(x, w):
        loss = branches(x, w).sum() + recurrence(x[0], x, w).sum()
        (g,) = wengert.autograd.grad(loss, x, create_graph=True)
        return g * x

    def by_transform(x, w):
        return wengert.func.grad(lambda x: branches(x, w).sum())(x) * x

    check(by_autograd, X + shift, W, order=1)
    check(by_transform, X + shift, W, order=1)


def test_the_gradient_of_a_loop_taken_inside_a_traced_function():
    def function(x, w):
        (g,) = wengert.autograd.grad(rounds(x, w).sum(), x)
        return g * w

    check(function, X, W, order=0)
    traced = trace(function, X.clone().requires_grad_(), W)
    assert "prim::while" in kinds(traced.graph)


def test_gradients_inside_a_branch():
    def function(x):
        def slope(x):
            inside = x.detach().requires_grad_()
            (g,) = wengert.autograd.grad((inside.sin() * inside).sum(), inside)
            return g

        return cond(x.sum() > 0, slope, lambda x: x.clone(), (x,))

    compiled = wengert.compile(function)
    for x in (X + 1, X - 1):
        assert wengert.allclose(compiled(x), function(x))


@pytest.mark.parametrize("way", [lambda f: f, wengert.compile])
def test_vmap(way):
    batch = wengert.stack([X, X + 1, X * 3])
    for function in (branches, rounds, lambda x, w: recurrence(x[0], x, w)):
        each = wengert.stack([function(x, W) for x in batch])
        assert wengert.allclose(wengert.vmap(way(function), (0, None))(batch, W), each)
        traced = wengert.compile(lambda b, f=function: wengert.vmap(f, (0, None))(b, W))
        if function is not rounds:
            assert wengert.allclose(traced(batch), each)


def test_a_loop_of_unknown_length_inside_a_traced_vmap_is_refused():
    compiled = wengert.compile(lambda b: wengert.vmap(rounds, (0, None))(b, W), fullgraph=True)
    with pytest.raises(RuntimeError, match="needs the value of a tensor"):
        compiled(wengert.stack([X, X + 1]))


def test_forward_mode():
    for function in (branches, rounds):
        for way in (function, wengert.compile(function)):
            _, tangent = wengert.func.jvp(lambda x, f=way: f(x, W), (X,), (X + 2,))
            x = X.clone().requires_grad_()
            weights = wengert.zeros_like(X, requires_grad=True)
            (g,) = wengert.autograd.grad(function(x, W), x, weights, create_graph=True)
            (expected,) = wengert.autograd.grad(g, weights, X + 2)
            assert wengert.allclose(tangent, expected)


def test_compiled_functions_inside_compiled_functions_keep_their_nodes():
    inner = wengert.compile(branches)
    graph = check(lambda x, w: inner(x * 2, w) * 3, X, W, node="cond")
    assert "prim::cond" in str(differentiate(graph.copy()).df)


def test_no_grad_around_control_flow():
    def function(x, w):
        with wengert.no_grad():
            y = branches(x, w)
        return y * x

    check(function, X + 1, W)


def test_no_grad_inside_a_branch():
    def function(x):
        def partly(x):
            with wengert.no_grad():
                y = x * 3
            return y * x

        return cond(x.sum() > 0, partly, lambda x: x * 1, (x,))

    check(function, X + 1)


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("change", ["result", "operand"])
@pytest.mark.parametrize("part", [lambda a: a, lambda a: a[1:], lambda a: a.view(-1)])
def test_results_of_branches_have_memory_of_their_own(part, change, recorded):
    def function(x):
        y = cond(x.sum() > 0, part, part, (x,))
        with wengert.no_grad():
            (y if change == "result" else x).mul_(2)
        return y * 1

    found = []
    for run in (function, wengert.compile(function)):
        x = wengert.ones(3, requires_grad=recorded) * 1
        found.append((run(x).tolist(), x.tolist()))
    assert found[0] == found[1]
    assert set(found[0][0]) == ({2.0} if change == "result" else {1.0})


CAPTURING = {
    "cond": lambda x, w: cond(x.sum() > 0, lambda x: (x * w).tanh(), lambda x: x * 1, (x,)),
    "while_loop": lambda x, w: while_loop(
        lambda n, x: n < 2, lambda n, x: (n + 1, (x * w).tanh()), (wengert.tensor(0), x)
    )[1],
    "scan": lambda x, w: scan(lambda c, r: (c * w, (c * w).tanh()), x, wengert.ones(2))[1],
    "map": lambda x, w: map(lambda row: (row * w).tanh(), x),
}


@pytest.mark.parametrize("name", CAPTURING)
@pytest.mark.parametrize("recorded", [True, False])
def test_a_captured_view_of_what_has_changed_has_its_gradient_when_compiled(name, recorded):
    """Its history is renewed outside of all traces, not in the one around the block."""
    gradients = []
    for way in (lambda function: function, wengert.compile):
        leaf = wengert.ones(4, requires_grad=True)
        base = leaf * 1
        view = base[:2]
        with wengert.set_grad_enabled(recorded):
            base.mul_(2)
        y = way(lambda x, view=view: CAPTURING[name](x, view))(wengert.tensor([1.0, 2.0]))
        gradients += wengert.autograd.grad(y.sum(), leaf)
    assert bool((gradients[0][:2] > 0).all())
    assert wengert.allclose(*gradients)
