"""Transforms inside transforms: the classical confusions, and closed forms."""

import math

import numpy as np
import pytest

import wengert


@pytest.fixture(params=["reverse", "forward"])
def derivative(request, lib):
    """d f / d x at a number, by either mode."""
    if request.param == "reverse":
        return lambda f: lib.func.grad(f)
    one = lib.tensor(1.0, dtype=lib.float64)
    return lambda f: lambda x: lib.func.jvp(f, (x,), (one,))[1]


@pytest.fixture(params=["reverse", "forward"])
def inner_derivative(request, lib):
    if request.param == "reverse":
        return lambda f: lib.func.grad(f)
    one = lib.tensor(1.0, dtype=lib.float64)
    return lambda f: lambda x: lib.func.jvp(f, (x,), (one,))[1]


def number(lib, value):
    return lib.tensor(value, dtype=lib.float64)


class TestPerturbationConfusion:
    """An inner derivative must not take the outer variable's tangent for its own."""

    def test_sum(self, lib, derivative, inner_derivative):
        """d/dx x * (d/dy x + y) = d/dx x = 1."""
        f = derivative(lambda x: x * inner_derivative(lambda y: x + y)(number(lib, 1.0)))
        assert f(number(lib, 1.0)).item() == 1.0

    def test_product(self, lib, derivative, inner_derivative):
        """d/dx x * (d/dy x y) = d/dx x^2 = 2x."""
        f = derivative(lambda x: x * inner_derivative(lambda y: x * y)(number(lib, 3.0)))
        assert f(number(lib, 5.0)).item() == 10.0

    def test_inner_variable_at_the_outer_value(self, lib, derivative, inner_derivative):
        """d/dx x * (d/dy x y^2)(y = x) = d/dx 2 x^3 = 6 x^2."""
        f = derivative(lambda x: x * inner_derivative(lambda y: x * y * y)(x))
        assert f(number(lib, 2.0)).item() == 24.0

    def test_three_levels(self, lib, derivative, inner_derivative):
        """d/dx x (d/dy x y (d/dz x y z)) = d/dx x (d/dy x^2 y^2) = d/dx 2 x^3 y = 6 x^2 y."""
        y0, z0 = number(lib, 3.0), number(lib, 5.0)

        def middle(x):
            return inner_derivative(lambda y: x * y * derivative(lambda z: x * y * z)(z0))(y0)

        assert derivative(lambda x: x * middle(x))(number(lib, 2.0)).item() == 72.0

    def test_a_closure_that_outlives_the_inner_transform(self, lib, derivative, inner_derivative):
        """The amazing bug: a curried function differentiated twice at different levels."""

        def shifted(u):
            return lambda f: lambda x: f(x + u)

        def operator(f):
            return derivative(lambda u: shifted(u)(f)(number(lib, 0.7)))(number(lib, 0.0))

        found = inner_derivative(
            lambda u: derivative(lambda v: shifted(v)(shifted(u)(lib.sin))(number(lib, 0.7)))(
                number(lib, 0.0)
            )
        )(number(lib, 0.0))
        assert found.item() == pytest.approx(-math.sin(0.7))
        assert operator(lib.sin).item() == pytest.approx(math.cos(0.7))


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_higher_derivatives(lib, order):
    f, x = lib.sin, number(lib, 0.3)
    for _ in range(order):
        f = lib.func.grad(f)
    expected = math.sin(0.3 + order * math.pi / 2)
    assert f(x).item() == pytest.approx(expected)


def test_taylor_coefficients_by_forward_mode(lib):
    one = number(lib, 1.0)

    def derivative(f):
        return lambda x: lib.func.jvp(f, (x,), (one,))[1]

    f = lib.exp
    for _ in range(5):
        f = derivative(f)
        assert f(number(lib, 0.5)).item() == pytest.approx(math.exp(0.5))


def test_per_sample_gradients(lib):
    lib.manual_seed(0)
    w, b = lib.randn(3, 2, dtype=lib.float64), lib.randn(2, dtype=lib.float64)
    x, y = lib.randn(7, 3, dtype=lib.float64), lib.randn(7, 2, dtype=lib.float64)

    def loss(parameters, x, y):
        return ((x @ parameters["w"] + parameters["b"]).tanh() - y).pow(2).sum()

    parameters = {"w": w, "b": b}
    per_sample = lib.func.vmap(lib.func.grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    for i in range(7):
        expected = lib.func.grad(loss)(parameters, x[i], y[i])
        for name in parameters:
            np.testing.assert_allclose(
                per_sample[name][i].tolist(), expected[name].tolist(), rtol=1e-12
            )


def test_gradient_of_the_norm_of_a_per_sample_gradient(lib):
    lib.manual_seed(1)
    x, w = lib.randn(4, 3, dtype=lib.float64), lib.randn(3, dtype=lib.float64)

    def penalty(w):
        slopes = lib.func.vmap(lib.func.grad(lambda x: (x * w).sin().sum()))(x)
        return (slopes**2).sum()

    # slope_ij = w_j cos(x_ij w_j)
    angle = x * w
    slope = w * angle.cos()
    expected = (2 * slope * (angle.cos() - angle * angle.sin())).sum(0)
    np.testing.assert_allclose(lib.func.grad(penalty)(w).tolist(), expected.tolist(), rtol=1e-12)


def test_hessian_vector_products_by_all_modes(lib):
    f = lib.func
    x = lib.linspace(0.1, 1.0, 4, dtype=lib.float64)
    v = lib.linspace(1.0, 2.0, 4, dtype=lib.float64)

    def g(x):
        return (x.sin() * x.roll(1)).sum()

    expected = f.hessian(g)(x) @ v
    products = [
        f.jvp(f.grad(g), (x,), (v,))[1],
        f.grad(lambda x: f.grad(g)(x) @ v)(x),
        f.grad(lambda x: f.jvp(g, (x,), (v,))[1])(x),
        f.vjp(f.grad(g), x)[1](v)[0],
        f.jvp(lambda x: f.vjp(g, x)[1](lib.ones((), dtype=lib.float64))[0], (x,), (v,))[1],
    ]
    for product in products:
        np.testing.assert_allclose(product.tolist(), expected.tolist(), rtol=1e-12)


def test_laplacian_of_a_batch(lib):
    """vmap of the trace of a Hessian: for exp(a.x) it is |a|^2 exp(a.x)."""
    a = lib.tensor([0.5, -1.0, 2.0], dtype=lib.float64)
    points = lib.linspace(-1.0, 1.0, 15, dtype=lib.float64).reshape(5, 3)
    laplacian = lib.func.vmap(lambda x: lib.func.hessian(lambda x: (a * x).sum().exp())(x).trace())
    expected = (a @ a) * (points @ a).exp()
    np.testing.assert_allclose(laplacian(points).tolist(), expected.tolist(), rtol=1e-12)


def test_jacobian_of_a_gradient_descent(lib):
    """d x_n / d x_0 of descent on a quadratic form is (1 - s A)^n."""
    matrix = lib.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=lib.float64)

    def descend(x):
        for _ in range(4):
            x = x - 0.1 * lib.func.grad(lambda x: 0.5 * (x @ matrix @ x))(x)
        return x

    expected = np.linalg.matrix_power(np.eye(2) - 0.1 * np.array(matrix.tolist()), 4)
    start = lib.tensor([1.0, -1.0], dtype=lib.float64)
    for jacobian in (lib.func.jacrev, lib.func.jacfwd):
        np.testing.assert_allclose(jacobian(descend)(start).tolist(), expected, rtol=1e-12)


def test_ensemble_of_models(lib):
    lib.manual_seed(2)
    weights, x = lib.randn(5, 3, 2, dtype=lib.float64), lib.randn(7, 3, dtype=lib.float64)

    def predict(w, x):
        return (x @ w).tanh()

    shared = lib.func.vmap(predict, in_dims=(0, None))(weights, x)
    assert tuple(shared.shape) == (5, 7, 2)
    both = lib.func.vmap(lib.func.vmap(predict, in_dims=(None, 0)), in_dims=(0, None))(weights, x)
    np.testing.assert_allclose(both.tolist(), shared.tolist(), rtol=1e-12)


def test_functions_with_derived_rules_in_nested_maps(lib):
    class Square(lib.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = 2
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, t):
            return t * ctx.factor * ctx.saved_tensors[0]

    x = lib.arange(24.0).reshape(2, 3, 4)
    mapped = lib.vmap(lib.vmap(lib.vmap(Square.apply), in_dims=1, out_dims=1))
    assert mapped(x).tolist() == (x * x).tolist()
    assert lib.func.grad(lambda x: mapped(x).sum())(x).tolist() == (2 * x).tolist()
    assert lib.func.jvp(mapped, (x,), (x,))[1].tolist() == (2 * x * x).tolist()
    slope = lib.func.grad(lambda x: mapped(x).sum())
    assert lib.func.grad(lambda x: slope(x).sum())(x).tolist() == lib.full((2, 3, 4), 2.0).tolist()


def test_deep_nesting():
    """Many levels, all alive at once, around one operation."""

    def nested(depth):
        if depth == 0:
            return wengert.sin
        inner = nested(depth - 1)
        return lambda x: wengert.func.vjp(inner, x)[0]

    x = wengert.tensor([0.5])
    assert nested(60)(x).item() == pytest.approx(math.sin(0.5))


@pytest.mark.parametrize("outer", ["vjp", "linearize", "jvp", "grad"])
@pytest.mark.parametrize("mapped", [False, True])
def test_a_view_made_without_grad_has_no_gradient_to_pull_back(lib, outer, mapped):
    """It counts as requiring grad, as its base does, but has no edge: also of a batch of them."""

    def view(x):
        with lib.no_grad():
            return x.reshape(-1)

    def pulled(x):
        function = (lambda x: lib.vmap(view)(lib.stack([x, x]))) if mapped else view
        y, pull = lib.func.vjp(function, x)
        return pull(y)[0]

    x = lib.ones(2, 2)
    transformed = {
        "vjp": lambda: pulled(x),
        "linearize": lambda: lib.func.linearize(pulled, x),
        "jvp": lambda: lib.func.jvp(pulled, (x,), (x,)),
        "grad": lambda: lib.func.grad(lambda x: pulled(x).sum())(x),
    }
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        transformed[outer]()
