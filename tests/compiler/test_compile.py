"""compile: the same values and gradients as the function, compiled again when it must be."""

import logging
import subprocess
import sys

import pytest

import wengert
from wengert import compiler
from wengert.compiler import explain


def grads(function, *args, create_graph=False):
    tensors = [a.detach().clone().requires_grad_() for a in args]
    out = function(*tensors)
    return wengert.autograd.grad(out.sum(), tensors, create_graph=create_graph)


X = wengert.linspace(-1, 1, 6, dtype=wengert.float64).reshape(2, 3)
W = wengert.linspace(0.2, 0.8, 9, dtype=wengert.float64).reshape(3, 3)


def net(x, w):
    return ((x @ w).tanh() * x).sum(1)


def count(compiled):
    return len(compiled.compilations)


def test_values_and_gradients():
    compiled = wengert.compile(net)
    assert wengert.equal(compiled(X, W), net(X, W))
    for mine, its in zip(grads(compiled, X, W), grads(net, X, W), strict=True):
        assert wengert.allclose(mine, its)


def test_results_are_citizens_of_autograd():
    compiled = wengert.compile(net)
    x = X.clone().requires_grad_()
    seen = []
    y = compiled(x * 1, W)
    y.register_hook(lambda g: seen.append(g.shape))
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    first = x.grad.clone()
    y.sum().backward()
    assert seen == [(2,), (2,)] and y.grad is not None
    assert wengert.allclose(x.grad, 2 * first)
    assert "Compiled" in y.grad_fn.name()
    with pytest.raises(RuntimeError, match="a second time"):
        y.sum().backward()


@pytest.mark.parametrize("order", [2, 3, 4])
def test_higher_orders(order):
    def function(x):
        return (x.sin() * x * x).sum()

    def derivative(f):
        x = X.clone().requires_grad_()
        y = f(x)
        for _ in range(order):
            (g,) = wengert.autograd.grad(y, x, create_graph=True)
            y = g.sum()
        return g

    assert wengert.allclose(derivative(wengert.compile(function)), derivative(function))


def test_gradgradcheck():
    compiled = wengert.compile(net)
    inputs = (X.clone().requires_grad_(), W.clone().requires_grad_())
    assert wengert.autograd.gradcheck(compiled, inputs)
    assert wengert.autograd.gradgradcheck(compiled, inputs)


def test_under_transforms():
    compiled = wengert.compile(net)
    batch = wengert.stack([X, X + 1])
    assert wengert.allclose(
        wengert.vmap(compiled, (0, None))(batch, W), wengert.stack([net(X, W), net(X + 1, W)])
    )
    mine = wengert.func.jacrev(compiled)(X, W)
    assert wengert.allclose(mine, wengert.func.jacrev(net)(X, W))
    (primal, tangent) = wengert.func.jvp(lambda x: compiled(x, W), (X,), (X,))
    assert wengert.allclose(tangent, wengert.func.jvp(lambda x: net(x, W), (X,), (X,))[1])


def test_under_checkpoint():
    from wengert.utils.checkpoint import checkpoint

    compiled = wengert.compile(net)

    def function(x, w):
        return checkpoint(compiled, x, w, use_reentrant=False)

    for mine, its in zip(grads(function, X, W), grads(net, X, W), strict=True):
        assert wengert.allclose(mine, its)


def test_unused_inputs_and_undifferentiable_outputs():
    compiled = wengert.compile(lambda x, unused: (x * 2, x.detach() * 3, x > 0, x))
    x, unused = X.clone().requires_grad_(), W.clone().requires_grad_()
    doubled, constant, mask, same = compiled(x, unused)
    assert doubled.requires_grad and not constant.requires_grad and not mask.requires_grad
    g, none = wengert.autograd.grad((doubled + same).sum(), (x, unused), allow_unused=True)
    assert wengert.equal(g, wengert.full_like(X, 3.0)) and none is None


def test_repeated_outputs():
    def function(x):
        y = x.exp()
        return y, y

    x = X.clone().requires_grad_()
    a, b = wengert.compile(function)(x)
    (g,) = wengert.autograd.grad((a * 2 + b).sum(), x)
    assert wengert.allclose(g, 3 * X.exp())


def test_only_some_outputs_get_gradients():
    def function(x):
        return x.sin(), x.exp()

    x = X.clone().requires_grad_()
    first, _ = wengert.compile(function)(x)
    (g,) = wengert.autograd.grad(first.sum(), x)
    assert wengert.allclose(g, X.cos())
    x, y = (X.clone().requires_grad_() for _ in range(2))
    first, _ = wengert.compile(lambda x, y: (x.sin(), y.exp()))(x, y)
    first.sum().backward()
    assert wengert.allclose(x.grad, X.cos()) and y.grad is None


def test_a_graph_that_returns_a_value_twice():
    graph = compiler.parse("""
        graph(%x : float64[2, 3], %y : float64[2, 3]):
          %0 : float64[2, 3] = wengert::mul(%x, %x)
          %1 : float64[2, 3; no_grad] = wengert::sin(%y)
          %2 : float64[2, 3] = wengert::_stop_gradient(%0)
          return (%0, %0, %x, %x, %1, %1, %2)
    """)
    leaf = X.clone().requires_grad_()
    a, b, c, d, e, f, stopped = compiler.Executable(graph)(leaf, X)
    assert wengert.equal(stopped, a) and not stopped.requires_grad
    (g,) = wengert.autograd.grad((a + b * 2 + c * 3 + d * 4).sum(), leaf)
    assert wengert.allclose(g, 6 * X + 7)
    assert wengert.equal(e, f) and not e.requires_grad


def test_no_grad():
    compiled = wengert.compile(net)
    with wengert.no_grad():
        assert not compiled(X.clone().requires_grad_(), W).requires_grad


def test_compiled_once_for_alike_arguments():
    compiled = wengert.compile(net)
    for _ in range(3):
        compiled(X, W)
        compiled(X + 1, W * 2)
    assert count(compiled) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda f: f(wengert.ones(4, 3, dtype=wengert.float64), W, 2), "shape"),
        (lambda f: f(X.float(), W.float(), 2), "dtype"),
        (lambda f: f(X.t().contiguous().t(), W, 2), "strides"),
        (lambda f: f(X.clone().requires_grad_(), W, 2), "requires_grad"),
        (lambda f: f(X, W, 3), "3 instead of 2"),
        (
            lambda f: f(X, w=W, n=2),
            "1 positional argument and by name n, w instead of 3 positional arguments",
        ),
    ],
)
def test_compiled_again(change, reason):
    compiled = wengert.compile(lambda x, w, n: (x @ w) * n)
    compiled(X, W, 2)
    change(compiled)
    assert count(compiled) == 2
    assert reason in explain(compiled)


def test_reasons_compare_with_the_closest_compilation():
    compiled = wengert.compile(lambda x, n=1: x[0] * n if isinstance(x, list) else x * n)
    leaf = X.clone().requires_grad_()
    for call in (
        lambda: compiled(X),
        lambda: compiled(leaf.float()),
        lambda: compiled(leaf * 1),
        lambda: compiled(leaf),
        lambda: compiled(leaf, 2),
        lambda: compiled(leaf, n=2),
        lambda: compiled([leaf]),
        lambda: wengert.no_grad()(compiled)(leaf),
    ):
        call()
    assert [made.reason for made in compiled.compilations] == [
        "the first call",
        "argument 0: dtype float32 instead of float64; "
        "argument 0: requires_grad True, as a result instead of False",
        "argument 0: dtype float64 instead of float32",
        "argument 0: requires_grad True, as a leaf instead of True, as a result",
        "2 positional arguments instead of 1 positional argument",
        "1 positional argument and by name n instead of 2 positional arguments",
        "arguments of the structure TreeSpec(tuple, None, [TreeSpec(tuple, None, [TreeSpec(list, "
        "None, [*])]), TreeSpec(dict, [], [])]) instead of 1 positional argument and by name n",
        "grad mode False instead of True",
    ]


def test_compiled_again_for_the_grad_mode():
    compiled = wengert.compile(net)
    compiled(X, W)
    with wengert.no_grad():
        compiled(X, W)
    assert count(compiled) == 2 and "grad mode" in explain(compiled)


def test_numbers_of_the_surroundings_are_watched():
    scale = 2.0

    @wengert.compile
    def function(x):
        return x * scale

    assert wengert.equal(function(X), X * 2)
    scale = 3.0
    assert wengert.equal(function(X), X * 3)
    assert "`scale`" in explain(function)


def test_captured_tensors_are_read_at_every_call():
    w = W.clone()
    compiled = wengert.compile(lambda x: x @ w)
    compiled(X)
    w.mul_(2)
    assert wengert.allclose(compiled(X), X @ W * 2)
    assert count(compiled) == 1


def test_another_tensor_under_the_same_name():
    w = W.clone()
    compiled = wengert.compile(lambda x: x @ w)
    compiled(X)
    w = W * 3
    assert wengert.allclose(compiled(X), X @ w)


def test_objects_that_hold_tensors():
    class Model:
        def __init__(self):
            self.w = W.clone().requires_grad_()
            self.scale = 2.0

        def __call__(self, x):
            return (x @ self.w) * self.scale

    model = Model()
    compiled = wengert.compile(model)
    assert wengert.allclose(compiled(X), model(X))
    compiled(X).sum().backward()
    assert model.w.grad is not None
    model.scale = 5.0
    assert wengert.allclose(compiled(X), model(X))
    model.w = W * 3
    assert wengert.allclose(compiled(X), model(X))


def test_methods():
    class Model:
        def __init__(self, factor):
            self.factor = factor

        @wengert.compile
        def forward(self, x):
            return x * self.factor

    assert wengert.equal(Model(2.0).forward(X), X * 2)
    assert wengert.equal(Model(3.0).forward(X), X * 3)


def test_changes_of_inputs():
    def function(x, state):
        state.add_(x.sum())
        return x * state

    mine, its = W.clone(), W.clone()
    compiled = wengert.compile(function)
    assert wengert.allclose(compiled(X[:, :1], mine[:2]), function(X[:, :1], its[:2]))
    assert wengert.allclose(mine, its)


def test_a_training_step_in_one_graph():
    def make():
        return W.clone().requires_grad_()

    def step(x, w):
        loss = net(x, w).sum()
        (g,) = wengert.autograd.grad(loss, w)
        with wengert.no_grad():
            w.sub_(0.1 * g)
        return loss.detach()

    compiled = wengert.compile(step)
    mine, its = make(), make()
    for _ in range(5):
        assert wengert.allclose(compiled(X, mine), step(X, its))
    assert wengert.allclose(mine, its) and count(compiled) == 1


def test_randomness():
    compiled = wengert.compile(lambda x: wengert.nn.functional.dropout(x, 0.5))
    wengert.manual_seed(1)
    expected = [wengert.nn.functional.dropout(X, 0.5) for _ in range(3)]
    wengert.manual_seed(1)
    assert all(wengert.equal(compiled(X), e) for e in expected)


def test_gives_up_where_every_call_is_different():
    compiled = wengert.compile(lambda x, n: x * n)
    with pytest.warns(UserWarning, match="run uncompiled from now on"):
        for n in range(100):
            assert wengert.equal(compiled(X, n), X * n)
    assert count(compiled) == 64


def test_decorator_with_arguments():
    @wengert.compile(options={"passes": ()})
    def function(x):
        return x * 1

    assert wengert.equal(function(X), X)
    assert function.__name__ == "function"


def test_disabled():
    assert wengert.compile(net, disable=True) is net


@pytest.mark.parametrize(
    "options",
    [
        {"backend": "inductor"},
        {"backend": "aot_eager"},
        {"dynamic": True},
        {"mode": "max-autotune"},
        {"mode": "reduce-overhead", "dynamic": False},
    ],
)
def test_settings_of_pytorch_that_say_how_fast_are_accepted(options):
    compiled = wengert.compile(net, **options)
    assert wengert.allclose(compiled(X, W), net(X, W))
    assert wengert.compile(**options)(net)(X, W).shape == net(X, W).shape


@pytest.mark.parametrize(
    ("options", "message"),
    [({"backend": "tvm"}, "not supported"), ({"mode": "fast"}, "Unrecognized mode")],
)
def test_unknown_settings_say_so(options, message):
    with pytest.raises(ValueError, match=message):
        wengert.compile(net, **options)


def test_unknown_option():
    with pytest.raises(ValueError, match="unknown options"):
        wengert.compile(net, options={"speed": 11})


def test_log_of_compilations(caplog):
    compiled = wengert.compile(net)
    with caplog.at_level(logging.INFO, "wengert.compiler.recompiles"):
        compiled(X, W)
        compiled(X.float(), W.float())
    assert "the first call" in caplog.text and "dtype" in caplog.text


def test_log_by_environment():
    program = "import wengert; wengert.compile(lambda x: x.sin())(wengert.ones(2))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**__import__("os").environ, "WENGERT_LOG": "recompiles,graphs"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "the first call" in done.stderr and "wengert::sin" in done.stderr


def test_explain_wants_a_compiled_function():
    with pytest.raises(TypeError, match="not compiled"):
        explain(net)


def test_data_dependent_control_flow_is_refused():
    function = lambda x: x if x.sum() > 0 else -x
    with pytest.raises(RuntimeError, match="needs the value of a tensor"):
        wengert.compile(function, fullgraph=True)(X)
    compiled = wengert.compile(function)
    with pytest.warns(UserWarning, match="runs uncompiled: .* needs the value of a tensor"):
        assert wengert.equal(compiled(X), function(X))
    assert wengert.equal(compiled(-X), function(-X))


@pytest.mark.parametrize("order", [1, 2])
def test_parts_without_gradient(order):
    def function(x):
        y = x.sin()
        with wengert.no_grad():
            z = y * x * 2
        return (y * z + x.detach().exp() * x).sum()

    def derivative(f):
        x = X.clone().requires_grad_()
        y = f(x)
        for _ in range(order):
            (g,) = wengert.autograd.grad(y, x, create_graph=True)
            y = g.sum()
        return g

    assert wengert.allclose(derivative(wengert.compile(function)), derivative(function))
