"""Derivatives of derivatives."""

import math

import pytest

ignore_cycle_warning = pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")


def derivatives(lib, function, at, order):
    """Values of the first `order` derivatives of a scalar function."""
    x = lib.tensor(at, dtype=lib.float64, requires_grad=True)
    value, result = function(x), []
    for _ in range(order):
        (value,) = lib.autograd.grad(value, x, create_graph=True)
        result.append(value.item())
    return result


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x * x * x, [12.0, 12.0, 6.0]),
        (lambda x: x**4, [32.0, 48.0, 48.0]),
        (lambda x: 1 / x, [-1 / 4, 2 / 8, -6 / 16]),
        (lambda x: x.exp(), [math.exp(2)] * 3),
        (lambda x: x.log(), [1 / 2, -1 / 4, 2 / 8]),
        (lambda x: x.sqrt(), [0.5 * 2**-0.5, -0.25 * 2**-1.5, 0.375 * 2**-2.5]),
        (lambda x: x.sin(), [math.cos(2), -math.sin(2), -math.cos(2)]),
        (lambda x: x.cos(), [-math.sin(2), -math.cos(2), math.sin(2)]),
        (lambda x: x * x.exp(), [3 * math.exp(2), 4 * math.exp(2), 5 * math.exp(2)]),
        (lambda x: (x * x).exp(), [4 * math.exp(4), 18 * math.exp(4), 88 * math.exp(4)]),
    ],
)
def test_first_three_derivatives(lib, function, expected):
    assert derivatives(lib, function, 2.0, 3) == pytest.approx(expected)


def test_tanh_derivatives(lib):
    t = math.tanh(0.5)
    expected = [1 - t**2, -2 * t * (1 - t**2), (1 - t**2) * (6 * t**2 - 2)]
    assert derivatives(lib, lambda x: x.tanh(), 0.5, 3) == pytest.approx(expected)


def test_sigmoid_derivatives(lib):
    s = 1 / (1 + math.exp(-0.5))
    expected = [s * (1 - s), s * (1 - s) * (1 - 2 * s)]
    assert derivatives(lib, lambda x: x.sigmoid(), 0.5, 2) == pytest.approx(expected)


def test_tenth_derivative_of_exp(lib):
    assert derivatives(lib, lambda x: (2 * x).exp(), 0.0, 10) == pytest.approx(
        [2.0**n for n in range(1, 11)]
    )


def test_mixed_partials_agree(lib):
    x = lib.tensor(2.0, dtype=lib.float64, requires_grad=True)
    y = lib.tensor(3.0, dtype=lib.float64, requires_grad=True)
    value = x * x * y * y * y + (x * y).sin()
    dx, dy = lib.autograd.grad(value, [x, y], create_graph=True)
    (dxy,) = lib.autograd.grad(dx, y, retain_graph=True)
    (dyx,) = lib.autograd.grad(dy, x)
    expected = 6 * 2 * 9 + math.cos(6) - 6 * math.sin(6)
    assert dxy.item() == pytest.approx(expected)
    assert dyx.item() == pytest.approx(expected)


def test_hessian_of_quadratic_form(lib):
    matrix = lib.tensor([[2.0, 1.0], [0.0, 3.0]])
    x = lib.tensor([1.0, -1.0], requires_grad=True)
    (gradient,) = lib.autograd.grad(x @ (matrix @ x), x, create_graph=True)
    rows = [lib.autograd.grad(g, x, retain_graph=True)[0].tolist() for g in gradient]
    assert rows == [[4.0, 1.0], [1.0, 6.0]]


def test_hessian_vector_product(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    vector = lib.tensor([1.0, 10.0])
    (gradient,) = lib.autograd.grad((x**3).sum(), x, create_graph=True)
    (product,) = lib.autograd.grad(gradient, x, vector)
    assert product.tolist() == [6.0, 120.0]


def test_jacobian_vector_product_by_double_backward(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    dummy = lib.zeros(2, requires_grad=True)
    (g,) = lib.autograd.grad(x * x, x, dummy, create_graph=True)
    (product,) = lib.autograd.grad(g, dummy, lib.tensor([1.0, 10.0]))
    assert product.tolist() == [2.0, 40.0]


def test_gradient_penalty(lib):
    w = lib.tensor([1.0, 2.0], requires_grad=True)
    x = lib.tensor([3.0, 4.0], requires_grad=True)
    (gradient,) = lib.autograd.grad((w * x * x).sum(), x, create_graph=True)
    (gradient * gradient).sum().backward()
    # The gradient is 2 w x, so the penalty is 4 w^2 x^2.
    assert w.grad.tolist() == [72.0, 256.0]
    assert x.grad.tolist() == [24.0, 128.0]


@ignore_cycle_warning
def test_backward_with_create_graph_then_backward(lib):
    x = lib.tensor(2.0, requires_grad=True)
    (x * x * x).backward(create_graph=True)
    first = x.grad
    x.grad = None
    first.backward()
    assert x.grad.item() == 12.0


@ignore_cycle_warning
def test_second_backward_accumulates_onto_the_first_gradient(lib):
    x = lib.tensor(2.0, requires_grad=True)
    (x * x * x).backward(create_graph=True)
    x.grad.backward()
    assert x.grad.item() == 24.0
    x.grad = None


def test_create_graph_keeps_the_first_graph(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * x * x
    (first,) = lib.autograd.grad(y, x, create_graph=True)
    (again,) = lib.autograd.grad(y, x, retain_graph=True)
    assert first.item() == again.item() == 12.0


def test_second_derivative_after_first_graph_was_freed_is_refused(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x.exp()
    (first,) = lib.autograd.grad(y, x, create_graph=True, retain_graph=False)
    with pytest.raises(RuntimeError, match="second time"):
        lib.autograd.grad(first, x)


def test_without_create_graph_there_is_no_second_derivative(lib):
    x = lib.tensor(2.0, requires_grad=True)
    (first,) = lib.autograd.grad(x * x, x)
    with pytest.raises(RuntimeError, match="does not require grad"):
        lib.autograd.grad(first, x)


def test_second_derivative_of_linear_function_is_refused(lib):
    x = lib.tensor(2.0, requires_grad=True)
    (first,) = lib.autograd.grad(x * 3, x, create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        lib.autograd.grad(first, x)


def test_retained_second_graph_runs_again(lib):
    x = lib.tensor(2.0, requires_grad=True)
    (first,) = lib.autograd.grad(x * x * x, x, create_graph=True)
    results = [lib.autograd.grad(first, x, retain_graph=True)[0].item() for _ in range(3)]
    assert results == [12.0] * 3


def test_second_derivative_through_a_hook(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * x
    y.register_hook(lambda g: g * x)
    (first,) = lib.autograd.grad(y, x, create_graph=True)
    # The hook turns 2 x into 2 x^2.
    assert first.item() == 8.0
    (second,) = lib.autograd.grad(first, x)
    assert second.item() == pytest.approx(8.0)


def test_second_derivative_through_a_node_hook(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x.exp()
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * gi[0],))
    (first,) = lib.autograd.grad(y, x, create_graph=True)
    assert first.item() == pytest.approx(math.exp(4))
    (second,) = lib.autograd.grad(first, x)
    # Back through the saved result the same hook squares 2 exp(2x) once more.
    assert second.item() == pytest.approx(4 * math.exp(8))


def test_second_derivative_through_views(lib):
    x = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (first,) = lib.autograd.grad((x.t()[0] ** 3).sum(), x, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), x)
    assert second.tolist() == [[6.0, 0.0], [18.0, 0.0]]


def test_second_derivative_through_indexing(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    picked = x[lib.tensor([0, 0, 1])]
    (first,) = lib.autograd.grad((picked**3).sum(), x, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), x)
    assert second.tolist() == [12.0, 12.0]


def test_second_derivative_through_matmul(lib):
    a = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    b = lib.tensor([[5.0, 6.0], [7.0, 8.0]], requires_grad=True)
    (da,) = lib.autograd.grad((a @ b).sum(), a, create_graph=True)
    (db,) = lib.autograd.grad((da * da).sum(), b)
    assert db.tolist() == [[44.0, 44.0], [60.0, 60.0]]


def test_second_derivative_through_broadcast(lib):
    x = lib.tensor(2.0, requires_grad=True)
    (first,) = lib.autograd.grad((x * lib.ones(3) * x).sum(), x, create_graph=True)
    (second,) = lib.autograd.grad(first, x)
    assert second.item() == 6.0


def test_second_derivative_through_inplace(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * 1
    y.pow_(3)
    (first,) = lib.autograd.grad(y, x, create_graph=True)
    (second,) = lib.autograd.grad(first, x)
    assert (first.item(), second.item()) == (12.0, 12.0)


def test_inner_gradient_in_a_loss(lib):
    w = lib.tensor(3.0, requires_grad=True)
    x = lib.tensor(2.0, requires_grad=True)
    (inner,) = lib.autograd.grad((w * x).sin(), x, create_graph=True)
    (dw,) = lib.autograd.grad(inner, w)
    assert dw.item() == pytest.approx(math.cos(6) - 6 * math.sin(6), rel=1e-5)


def test_unrolled_gradient_descent(lib):
    rate = lib.tensor(0.1, dtype=lib.float64, requires_grad=True)
    x = lib.tensor(1.0, dtype=lib.float64, requires_grad=True)
    for _ in range(3):
        (g,) = lib.autograd.grad(x * x, x, create_graph=True)
        x = x - rate * g
    x.backward()
    # x = (1 - 2 rate)^3
    assert rate.grad.item() == pytest.approx(-6 * 0.8**2)


def test_materialized_zero_allows_the_next_derivative(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = lib.tensor(3.0, requires_grad=True)
    (dy,) = lib.autograd.grad(x * x, y, create_graph=True, materialize_grads=True)
    (dyx,) = lib.autograd.grad(dy, x, materialize_grads=True)
    assert dyx.item() == 0.0


def test_relu_second_derivative_is_zero(lib):
    x = lib.tensor([1.0, -1.0], requires_grad=True)
    (first,) = lib.autograd.grad((x.relu() ** 2).sum(), x, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), x)
    assert second.tolist() == [2.0, 0.0]


def test_gradient_values_do_not_depend_on_create_graph(lib):
    def gradient(create_graph):
        x = lib.tensor([0.3, 0.7], dtype=lib.float64, requires_grad=True)
        y = (x.exp() * x.sin() / (1 + x * x)).tanh().sum()
        return lib.autograd.grad(y, x, create_graph=create_graph)[0].tolist()

    assert gradient(True) == pytest.approx(gradient(False), rel=1e-12)


@pytest.mark.parametrize("square", [lambda x: x**2, lambda x: x.square(), lambda x: x**2.0])
def test_derivatives_of_a_power_end_in_zero(lib, square):
    assert derivatives(lib, square, 3.0, 3) == [6.0, 2.0, 0.0]


@pytest.mark.parametrize(
    "name",
    ["leaky_relu", "hardtanh", "relu6", "hardshrink", "softshrink", "relu", "threshold", "prelu"],
)
def test_second_derivative_of_a_function_in_pieces_is_zero(lib, name):
    x = lib.tensor([-0.7, 0.4, 0.9], dtype=lib.float64, requires_grad=True)
    others = {"threshold": (0.1, 1.0), "prelu": (lib.tensor([0.25], dtype=lib.float64),)}
    y = getattr(lib.nn.functional, name)(x, *others.get(name, ()))
    (first,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), x)
    assert second.tolist() == [0.0, 0.0, 0.0]
