"""Batches of cotangents and tangents: `is_grads_batched`, `vectorize`, batched gradcheck."""

import numpy as np
import pytest


def leaf(lib, values):
    return lib.tensor(values, dtype=lib.float64, requires_grad=True)


def test_rows_of_a_jacobian(lib):
    x = leaf(lib, [1.0, 2.0])
    (rows,) = lib.autograd.grad(x**2, x, lib.eye(2, dtype=lib.float64), is_grads_batched=True)
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_several_outputs_and_inputs(lib):
    x, y = leaf(lib, [1.0, 2.0]), leaf(lib, 3.0)
    outputs = (x * y, x.sum())
    cotangents = (lib.ones(4, 2, dtype=lib.float64), lib.arange(4.0, dtype=lib.float64))
    dx, dy = lib.autograd.grad(outputs, (x, y), cotangents, is_grads_batched=True)
    assert dx.tolist() == [[3.0 + k] * 2 for k in range(4)]
    assert dy.tolist() == [3.0] * 4


def test_unused_inputs(lib):
    x, y = leaf(lib, [1.0, 2.0]), leaf(lib, 3.0)
    batch = lib.ones(2, 2, dtype=lib.float64)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        lib.autograd.grad(x * 2, (x, y), batch, is_grads_batched=True)
    dx, dy = lib.autograd.grad(x * 2, (x, y), batch, is_grads_batched=True, allow_unused=True)
    assert dx.tolist() == [[2.0, 2.0]] * 2 and dy is None


def test_shapes_are_checked(lib):
    x = leaf(lib, [1.0, 2.0])
    with pytest.raises(RuntimeError, match="If `is_grads_batched=True`, we interpret the first"):
        lib.autograd.grad(x * 2, x, lib.ones(2, 3, dtype=lib.float64), is_grads_batched=True)


def test_graph_is_kept_or_freed_as_told(lib):
    x = leaf(lib, [1.0, 2.0])
    y = x**2
    batch = lib.eye(2, dtype=lib.float64)
    lib.autograd.grad(y, x, batch, is_grads_batched=True, retain_graph=True)
    lib.autograd.grad(y, x, batch, is_grads_batched=True)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        lib.autograd.grad(y, x, batch, is_grads_batched=True)


def test_results_can_be_differentiated(lib):
    x = leaf(lib, [1.0, 2.0])
    batch = lib.eye(2, dtype=lib.float64).requires_grad_()
    (rows,) = lib.autograd.grad(x**3, x, batch, is_grads_batched=True, create_graph=True)
    dx, dbatch = lib.autograd.grad(rows.sum(), (x, batch))
    assert dx.tolist() == [6.0, 12.0]
    assert dbatch.tolist() == [[3.0, 12.0], [3.0, 12.0]]


def test_network(lib):
    lib.manual_seed(0)
    w1 = lib.randn(6, 4, dtype=lib.float64, requires_grad=True)
    x = lib.randn(3, 4, dtype=lib.float64, requires_grad=True)
    y = (x @ w1.t()).softmax(-1).cumsum(1)
    y = lib.cat([y, y.flip(1)], 0)[lib.tensor([0, 5, 2])]
    batch = lib.randn(5, *y.shape, dtype=lib.float64)
    found = lib.autograd.grad(y, (x, w1), batch, is_grads_batched=True, retain_graph=True)
    for i in range(5):
        expected = lib.autograd.grad(y, (x, w1), batch[i], retain_graph=True)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a[i].tolist(), b.tolist(), rtol=1e-10, atol=1e-12)


def test_in_place_operations_in_the_graph(lib):
    x = leaf(lib, [1.0, 2.0, 3.0])
    y = x * 1
    y[0].mul_(x.detach()[1])
    y[1:] = x[:2] * x[1:]
    z = y * y
    batch = lib.eye(3, dtype=lib.float64)
    (rows,) = lib.autograd.grad(z, x, batch, is_grads_batched=True, retain_graph=True)
    for i in range(3):
        (expected,) = lib.autograd.grad(z, x, batch[i], retain_graph=True)
        assert rows[i].tolist() == expected.tolist()


def test_hooks_see_the_batch(lib):
    x = leaf(lib, [1.0, 2.0])
    y = x * 2
    y.register_hook(lambda g: g * 10)
    (rows,) = lib.autograd.grad(y, x, lib.eye(2, dtype=lib.float64), is_grads_batched=True)
    assert rows.tolist() == [[20.0, 0.0], [0.0, 20.0]]


def test_vectorized_hessians_of_all_strategies(lib):
    x = lib.tensor([0.3, -0.5, 1.2], dtype=lib.float64)

    def f(x):
        return (x.sin() * x.roll(1)).sum().exp()

    expected = lib.autograd.functional.hessian(f, x)
    for strategy in ("forward-mode", "reverse-mode"):
        found = lib.autograd.functional.hessian(
            f, x, vectorize=True, outer_jacobian_strategy=strategy
        )
        np.testing.assert_allclose(found.tolist(), expected.tolist(), rtol=1e-10)


def test_vectorized_jacobians_with_a_graph(lib):
    x = leaf(lib, [1.0, 2.0])
    found = lib.autograd.functional.jacobian(
        lambda x: x**3, x, vectorize=True, create_graph=True
    )
    (slope,) = lib.autograd.grad(found.sum(), x)
    assert slope.tolist() == [6.0, 12.0]


@pytest.mark.parametrize("fast_mode", [False, True])
def test_gradcheck_of_batches(lib, fast_mode):
    x, w = leaf(lib, [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]), leaf(lib, [[1.0, -1.0, 0.5]])

    def f(x, w):
        return (x @ w.t()).tanh(), (x * w).sum(1).exp()

    assert lib.autograd.gradcheck(
        f,
        (x, w),
        check_forward_ad=True,
        check_batched_grad=True,
        check_batched_forward_grad=True,
        fast_mode=fast_mode,
    )
    assert lib.autograd.gradgradcheck(f, (x, w), check_batched_grad=True, fast_mode=fast_mode)


def test_gradcheck_finds_a_backward_that_cannot_be_batched(lib):
    class Reads(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2 if g.sum().item() < 1e9 else g

    x = leaf(lib, [1.0, 2.0])
    assert lib.autograd.gradcheck(Reads.apply, (x,))
    with pytest.raises(RuntimeError, match="(?i)batched grad"):
        lib.autograd.gradcheck(Reads.apply, (x,), check_batched_grad=True)
    assert not lib.autograd.gradcheck(
        Reads.apply, (x,), check_batched_grad=True, raise_exception=False
    )


def test_cotangents_need_one_batch(lib):
    x = lib.ones(3, requires_grad=True)
    with pytest.raises(ValueError):
        lib.autograd.grad((x * 2, x.sum()), x, (lib.eye(3), lib.ones(2)), is_grads_batched=True)
    with pytest.raises(ValueError):
        lib.autograd.grad(x.sum(), x, is_grads_batched=True)
