"""Custom operators in graphs: traced, printed, run, differentiated, and without mutation."""

import itertools

import pytest

import wengert
from wengert import compiler
from wengert.compiler import TraceError, parse, trace

_numbers = itertools.count()


def make(schema, kernel, fake, mutates_args=()):
    name = f"wengert_graphs::op{next(_numbers)}"
    operator = wengert.library.custom_op(name, kernel, mutates_args=mutates_args, schema=schema)
    if fake is not None:
        operator.register_fake(fake)
    return operator


@pytest.fixture
def square():
    """``k * x ** 2`` by NumPy, so that nothing of the kernel can be traced."""
    operator = make(
        "(Tensor x, int k=1) -> Tensor",
        lambda x, k: wengert.from_numpy(x.numpy() ** 2 * k),
        lambda x, k: wengert.empty_like(x),
    )

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.k = inputs[1]

    operator.register_autograd(
        lambda ctx, grad: (grad * 2 * ctx.k * ctx.saved_tensors[0], None),
        setup_context=setup_context,
    )
    return operator


def test_a_call_is_a_node(square):
    traced = trace(lambda x: square(x, 3).sin(), wengert.ones(2))
    assert [node.kind for node in traced.graph.nodes()] == [square._qualname, "wengert::sin"]
    x = wengert.tensor([1.0, 2.0])
    assert traced(x).tolist() == square(x, 3).sin().tolist()


def test_text_is_read_again(square):
    graph = trace(lambda x: square(x, 3) + 1, wengert.ones(2)).graph
    again = parse(str(graph))
    assert str(again) == str(graph)
    (out,) = compiler.run(again, wengert.tensor([1.0, 2.0]))
    assert out.tolist() == [4.0, 13.0]
    with pytest.raises(LookupError, match="no such operator is declared"):
        graph.insert("wengert_graphs::missing", graph.inputs[0])


def test_a_graph_run_by_operators_records_the_formula(square):
    traced = trace(lambda x: square(x, 3).sum(), wengert.ones(2))
    x = wengert.tensor([1.0, 2.0], requires_grad=True)
    traced(x).backward()
    assert x.grad.tolist() == [6.0, 12.0]


def test_compiled_to_second_order(square):
    def function(x):
        return square(x.sin(), 3).sum()

    x = wengert.tensor([0.3, 0.7], dtype=wengert.float64, requires_grad=True)
    compiled = wengert.compile(function)
    for f in (function, compiled):
        (first,) = wengert.autograd.grad(f(x), x, create_graph=True)
        (second,) = wengert.autograd.grad(first.sum(), x)
        assert wengert.allclose(first, 3 * (2 * x).sin())
        assert wengert.allclose(second, 6 * (2 * x).cos())


def test_lists_and_several_results():
    operator = make(
        "(Tensor[] xs, float[] weights) -> (Tensor, Tensor)",
        lambda xs, weights: (sum(xs) * weights[0], xs[0] * weights[1]),
        lambda xs, weights: (wengert.empty_like(xs[0]), wengert.empty_like(xs[0])),
    )

    def setup_context(ctx, inputs, output):
        ctx.weights = inputs[1]
        assert type(ctx.weights) is list

    def backward(ctx, total, first):
        grad = total * ctx.weights[0]
        return [grad + first * ctx.weights[1], grad], None

    operator.register_autograd(backward, setup_context=setup_context)

    def function(x, y):
        total, first = operator([x, y.sin()], [2.0, 5.0])
        return (total * first).sum()

    def gradients(f):
        x = wengert.tensor([1.0, 2.0], requires_grad=True)
        y = wengert.tensor([3.0, 4.0], requires_grad=True)
        return [g.tolist() for g in wengert.autograd.grad(f(x, y), [x, y])]

    assert gradients(wengert.compile(function)) == gradients(function)


def test_a_list_of_results():
    operator = make(
        "(Tensor x, int n) -> Tensor[]",
        lambda x, n: [x * i for i in range(n)],
        lambda x, n: [wengert.empty_like(x) for _ in range(n)],
    )
    operator.register_autograd(
        lambda ctx, grads: (sum(g * i for i, g in enumerate(grads)), None)
    )
    x = wengert.tensor([1.0, 2.0], requires_grad=True)
    wengert.compile(lambda x: sum(operator(x, 4)).sum())(x).backward()
    assert x.grad.tolist() == [6.0, 6.0]


# Mutation


@pytest.fixture
def scale_():
    def kernel(x, factor):
        x.mul_(factor)

    return make(
        "(Tensor(a!) x, Tensor factor) -> ()", kernel, lambda x, factor: None, {"x"}
    )


def test_mutation_becomes_a_new_value(scale_):
    def function(x, factor):
        y = x + 1
        scale_(y[:1], factor)
        return y * 3

    x, factor = wengert.ones(2), wengert.tensor(5.0)
    traced = trace(function, x, factor)
    kinds = [node.kind for node in traced.graph.nodes()]
    assert kinds.count(f"{scale_._qualname}.functional") == 1
    assert not any(node.is_inplace for node in traced.graph.nodes())
    assert traced(x, factor).tolist() == function(x, factor).tolist() == [30.0, 6.0]
    assert str(parse(str(traced.graph))) == str(traced.graph)


def test_a_changed_input_is_changed_by_the_graph(scale_):
    def function(x, factor):
        scale_(x, factor)
        return x + 1

    traced = trace(function, wengert.ones(2), wengert.tensor(5.0))
    x = wengert.ones(2)
    assert traced(x, wengert.tensor(4.0)).tolist() == [5.0, 5.0]
    assert x.tolist() == [4.0, 4.0]


def test_a_written_argument_among_the_results():
    with wengert.library._scoped_library("wengert_graphs_out", "FRAGMENT") as library:
        library.define("fill_(Tensor(a!) x, float value) -> (Tensor(a!), Tensor)")

        def kernel(x, value):
            old = x.clone()
            x.fill_(value)
            return x, old

        library.impl("fill_", kernel, "CompositeExplicitAutograd")
        operator = wengert.ops.wengert_graphs_out.fill_

        def function(x):
            y = x * 2
            same, old = operator(y, 7.0)
            assert same is y
            return same + old

        assert trace(function, wengert.ones(2))(wengert.full((2,), 3.0)).tolist() == [13.0, 13.0]


# What is refused


def test_no_fake_kernel():
    operator = make("(Tensor x) -> Tensor", lambda x: x * 2, None)
    with pytest.raises(RuntimeError, match="no fake impl registered"):
        trace(lambda x: operator(x), wengert.ones(2))


def test_results_that_are_no_tensors():
    operator = make(
        "(Tensor x) -> (Tensor, int)", lambda x: (x * 2, 3), lambda x: (wengert.empty_like(x), 3)
    )
    with pytest.raises(TraceError, match="something else than tensors"):
        trace(lambda x: operator(x)[0], wengert.ones(2))


def test_no_formula():
    operator = make("(Tensor x) -> Tensor", lambda x: x * 2, wengert.empty_like)
    x = wengert.ones(2, requires_grad=True)
    y = wengert.compile(lambda x: operator(x).sum())(x)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        y.backward()


def test_another_formula_is_another_gradient():
    operator = make("(Tensor x) -> Tensor", lambda x: x * 2, wengert.empty_like)
    x = wengert.ones(2, requires_grad=True)
    for factor in (2.0, 5.0):
        operator.register_autograd(lambda ctx, grad, factor=factor: grad * factor)
        (g,) = wengert.autograd.grad(wengert.compile(lambda x: operator(x).sum())(x), x)
        assert g.tolist() == [factor, factor]


def test_a_gradient_that_goes_nowhere_is_forgotten():
    """The result of the operator is kept for the gradient of the other factor, but has none."""
    operator = make("(Tensor x) -> Tensor", lambda x: x.exp(), wengert.empty_like)
    operator.register_autograd(lambda ctx, grad: None)
    x, y = (wengert.ones(2, requires_grad=True) for _ in range(2))
    gradient = compiler.differentiate(trace(lambda x, y: operator(x.neg()) * y, x, y).graph)
    gradient.df.lint()
    assert gradient.f_real_outputs == 1 and len(gradient.f.outputs) == 2
    assert gradient.df_input_vjps == [0] and gradient.df_output_vjps == [1]


class TripleSlope(wengert.autograd.Function):
    """A square whose derivative is another one than that of what it computes."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * 3 * ctx.saved_tensors[0]


def through_function(x):
    return TripleSlope.apply(x)


def through_gradient_of_function(x):
    with wengert.enable_grad():
        y = x.detach().requires_grad_()
        return wengert.autograd.grad(TripleSlope.apply(y).sum(), y)[0]


def through_control_flow(x):
    return compiler.cond(x.sum() > 0, wengert.cos, wengert.sin, (x,))


def through_gradient_of_control_flow(x):
    return wengert.func.grad(lambda x: through_control_flow(x).sum())(x)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    "slope",
    [
        through_function,
        through_gradient_of_function,
        through_control_flow,
        through_gradient_of_control_flow,
    ],
)
def test_what_formulas_call_has_its_own_derivative(slope, order):
    operator = make("(Tensor x) -> Tensor", lambda x: x.exp(), wengert.empty_like)
    operator.register_autograd(
        lambda ctx, g: g * slope(ctx.saved_tensors[0]),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )

    def function(x):
        return (operator(x * 2) * x).sum()

    found = []
    for call in (function, wengert.compile(function)):
        x = wengert.tensor([0.3, 0.5], requires_grad=True)
        (g,) = wengert.autograd.grad(call(x), x, create_graph=order == 2)
        found.append(wengert.autograd.grad(g.sum(), x)[0] if order == 2 else g)
    assert wengert.allclose(*found)
