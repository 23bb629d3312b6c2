"""`jacrev`, `jacfwd` and `hessian`: shapes, trees, chunks, closed forms."""

import re

import numpy as np
import pytest

import wengert


@pytest.fixture(params=["jacrev", "jacfwd"])
def jacobian(request, lib):
    return getattr(lib.func, request.param)


def test_diagonal(lib, jacobian):
    x = lib.tensor([1.0, 2.0])
    assert jacobian(lambda x: x**2)(x).tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_shape_is_that_of_output_and_input(lib, jacobian):
    x = lib.arange(6.0).reshape(2, 3)
    found = jacobian(lambda x: (x * x).sum(1)[:, None].expand(2, 4))(x)
    assert tuple(found.shape) == (2, 4, 2, 3)
    assert found[1, 2].tolist() == [[0.0, 0.0, 0.0], [6.0, 8.0, 10.0]]
    assert tuple(jacobian(lambda x: x.sum())(x).shape) == (2, 3)
    assert tuple(jacobian(lambda x: x * lib.ones(3))(lib.tensor(1.0)).shape) == (3,)
    assert jacobian(lambda x: x * x)(lib.tensor(3.0)).item() == 6.0


def test_linear_map(lib, jacobian):
    matrix = lib.arange(12.0).reshape(4, 3)
    assert jacobian(lambda x: matrix @ x)(lib.ones(3)).tolist() == matrix.tolist()


def test_argnums(lib, jacobian):
    x, y = lib.tensor([1.0, 2.0]), lib.tensor(3.0)

    def f(x, y):
        return x * y

    assert jacobian(f, argnums=1)(x, y).tolist() == [1.0, 2.0]
    dx, dy = jacobian(f, argnums=(0, 1))(x, y)
    assert dx.tolist() == [[3.0, 0.0], [0.0, 3.0]]
    assert dy.tolist() == [1.0, 2.0]
    (dy,) = jacobian(f, argnums=(1,))(x, y)
    assert dy.tolist() == [1.0, 2.0]


def test_trees_of_outputs_and_inputs(lib, jacobian):
    x = {"a": lib.tensor([1.0, 2.0]), "b": lib.tensor(3.0)}

    def f(x):
        return {"p": x["a"] * x["b"], "s": (x["a"].sum() + x["b"],)}

    found = jacobian(f)(x)
    assert found["p"]["a"].tolist() == [[3.0, 0.0], [0.0, 3.0]]
    assert found["p"]["b"].tolist() == [1.0, 2.0]
    assert found["s"][0]["a"].tolist() == [1.0, 1.0]
    assert found["s"][0]["b"].item() == 1.0


def test_aux(lib, jacobian):
    x = lib.tensor([1.0, 2.0])
    found, aux = jacobian(lambda x: (x * x, x + 1), has_aux=True)(x)
    assert found.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert aux.tolist() == [2.0, 3.0]


def test_independent_outputs_give_zeros(lib, jacobian):
    constant = lib.ones(2)
    first, second = jacobian(lambda x: (x.detach(), constant))(lib.ones(3))
    assert first.tolist() == [[0.0] * 3] * 3
    assert second.tolist() == [[0.0] * 3] * 2


def test_complex_is_refused(lib, jacobian):
    z = lib.tensor([1.0 + 1.0j])
    with pytest.raises(RuntimeError, match="Expected all inputs to be real but received complex"):
        jacobian(lambda z: z)(z)
    with pytest.raises(RuntimeError, match="Expected all outputs to be real but received complex"):
        jacobian(lambda x: x * z)(lib.ones(1))


def test_argnums_are_checked(lib, jacobian):
    with pytest.raises(RuntimeError, match="Got argnum=1, but only 1 positional inputs"):
        jacobian(lambda x: x, argnums=1)(lib.ones(2))


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 7, 100])
def test_chunks_change_nothing(lib, chunk_size):
    x = lib.linspace(0.1, 0.9, 4)

    def f(x):
        return x.sin() * x.sum(), (x[:3] * x[1:])

    whole = lib.func.jacrev(f)(x)
    chunked = lib.func.jacrev(f, chunk_size=chunk_size)(x)
    for a, b in zip(whole, chunked, strict=True):
        np.testing.assert_allclose(a.tolist(), b.tolist(), rtol=1e-6)


def test_chunk_size_is_checked(lib):
    with pytest.raises(ValueError, match=re.escape("`chunk_size` should be greater than 0")):
        lib.func.jacrev(lib.sin, chunk_size=0)


def test_randomness_of_columns(lib):
    x = lib.ones(3)

    def noisy(x):
        return x * lib.rand(3)

    with pytest.raises(RuntimeError, match="randomness error mode"):
        lib.func.jacfwd(noisy)(x)
    same = lib.func.jacfwd(noisy, randomness="same")(x)
    different = lib.func.jacfwd(noisy, randomness="different")(x)
    for found in (same, different):
        assert found.tolist() == lib.diag(lib.diag(found)).tolist()


def test_reverse_and_forward_agree_on_a_network(lib):
    lib.manual_seed(0)
    w1, w2 = lib.randn(8, 5, dtype=lib.float64), lib.randn(4, 8, dtype=lib.float64)
    x = lib.randn(5, dtype=lib.float64)

    def network(x):
        return w2 @ (w1 @ x).tanh()

    expected = w2 @ lib.diag(1 - (w1 @ x).tanh() ** 2) @ w1
    for found in (lib.func.jacrev(network)(x), lib.func.jacfwd(network)(x)):
        np.testing.assert_allclose(found.tolist(), expected.tolist(), rtol=1e-12)


def test_jacobian_is_differentiable(lib, jacobian):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    found = jacobian(lambda x: x**3)(x)
    (slope,) = lib.autograd.grad(found.sum(), x)
    assert slope.tolist() == [6.0, 12.0]


class TestHessian:
    def test_quadratic_form(self, lib):
        matrix = lib.tensor([[1.0, 2.0], [0.0, 3.0]])
        found = lib.func.hessian(lambda x: x @ matrix @ x)(lib.tensor([1.0, -1.0]))
        assert found.tolist() == [[2.0, 2.0], [2.0, 6.0]]

    def test_blocks(self, lib):
        x, y = lib.tensor([1.0, 2.0]), lib.tensor(3.0)
        blocks = lib.func.hessian(lambda x, y: (x**2).sum() * y**2, argnums=(0, 1))(x, y)
        assert blocks[0][0].tolist() == [[18.0, 0.0], [0.0, 18.0]]
        assert blocks[0][1].tolist() == [12.0, 24.0]
        assert blocks[1][0].tolist() == [12.0, 24.0]
        assert blocks[1][1].item() == 10.0

    def test_all_orders_of_modes_agree(self, lib):
        f = lib.func
        x = lib.tensor([0.3, -0.7, 1.1], dtype=lib.float64)

        def g(x):
            return (x.sin() * x.flip(0)).sum() * x.exp().sum()

        expected = f.hessian(g)(x)
        for outer, inner in (
            (f.jacrev, f.jacrev), (f.jacfwd, f.jacfwd), (f.jacrev, f.jacfwd), (f.jacfwd, f.grad),
            (f.jacrev, f.grad),
        ):  # fmt: skip
            found = outer(inner(g))(x)
            np.testing.assert_allclose(found.tolist(), expected.tolist(), rtol=1e-12)

    def test_third_derivatives(self, lib):
        x = lib.tensor([1.0, 2.0], dtype=lib.float64)
        third = lib.func.jacfwd(lib.func.hessian(lambda x: (x**3).sum() * x[0]))(x)
        # f = x0^4 + x0 x1^3
        expected = np.zeros((2, 2, 2))
        expected[0, 0, 0] = 24.0
        expected[0, 1, 1] = expected[1, 0, 1] = expected[1, 1, 0] = 12.0
        expected[1, 1, 1] = 6.0
        np.testing.assert_allclose(third.tolist(), expected, rtol=1e-12)


def test_jacobian_of_an_empty_input():
    found = wengert.func.jacrev(lambda x: x * 2)(wengert.ones(0))
    assert tuple(found.shape) == (0, 0)
    assert tuple(wengert.func.jacfwd(lambda x: x * 2)(wengert.ones(0)).shape) == (0, 0)


@pytest.mark.parametrize(
    "product",
    [
        lambda lib, a, v: lib.mv(a, v),
        lambda lib, a, v: a @ v,
        lambda lib, a, v: lib.mm(a, v[:, None])[:, 0],
        lambda lib, a, v: lib.addmv(lib.zeros(2), a, v),
        lambda lib, a, v: lib.addmm(lib.zeros(1), a, v[:, None])[:, 0],
        lambda lib, a, v: lib.nn.functional.linear(a, v[None], lib.zeros(1))[:, 0],
        lambda lib, a, v: lib.einsum("ij,j->i", a, v),
    ],
    ids=["mv", "matmul", "mm", "addmv", "addmm", "linear", "einsum"],
)
def test_jacobian_of_a_product_over_nothing(lib, product):
    def f(a):
        return product(lib, a, lib.zeros(0))

    assert tuple(lib.func.jacfwd(f)(lib.zeros(2, 0)).shape) == (2, 2, 0)
    assert tuple(lib.func.jacrev(f)(lib.zeros(2, 0)).shape) == (2, 2, 0)


def test_hessian_through_layer_norm(lib):
    """Its statistics come from the forward pass and still depend on the input at every level."""
    layer_norm = lib.nn.functional.layer_norm
    x = lib.tensor([0.3, -1.2, 0.8], dtype=lib.float64)

    def f(x):
        return (x * layer_norm(x, (3,))).sum()

    found = lib.func.hessian(f)(x)
    assert lib.allclose(found, lib.autograd.functional.hessian(f, x))
    assert lib.allclose(found, found.t())
    assert lib.allclose(found[0], lib.tensor([0.7241, -0.1810, -0.5431], dtype=lib.float64), 1e-3)


def test_between_the_elements_of_a_view_forward_mode_alone_sees_memory(lib):
    def f(x):
        return x.as_strided((2,), (2,)).as_strided((2,), (1,))

    x = lib.ones(3)
    assert lib.func.jacrev(f)(x).tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert lib.func.jacfwd(f)(x).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_what_overlaps_itself_is_changed_in_forward_mode_alone(lib):
    def f(x):
        y = (x * 1).as_strided((2,), (0,))
        y.index_put_((lib.tensor([0]),), y[1] * 2)
        return y

    assert lib.func.jacfwd(f)(lib.ones(1)).tolist() == [[2.0], [2.0]]
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        lib.func.jacrev(f)(lib.ones(1))
