"""Derivatives of determinants to third order, of matrices of every rank, against their definition.

PyTorch's are not numbers where two rows or more are missing, so it is no oracle.
"""

from functools import partial

import numpy as np
import pytest

import wengert
from fuzz.by_hand import BY_HAND
from wengert.autograd import gradcheck, gradgradcheck

#: The sum over all permutations.
by_definition = partial(BY_HAND["det"], wengert)


def matrix(n, rank, dtype):
    rng = np.random.default_rng(10 * n + rank)
    numbers = rng.normal(size=(4, n, n))
    left, right = numbers[0] + 1j * numbers[1], numbers[2] + 1j * numbers[3]
    product = left[:, :rank] @ right[:rank]
    if dtype == "float64":
        product = left.real[:, :rank] @ right.real[:rank]
    return wengert.tensor(product)


def derivatives(f, x):
    """Gradients of first, second and third order, each of a sum of parts of the one before."""
    x = x.clone().requires_grad_()
    y, found = f(x), []
    y = y.real + y.imag if x.is_complex() else y
    y = (y * y + 2 * y).sum()
    weights = wengert.linspace(0.5, 2, x.numel(), dtype=wengert.float64).reshape(x.shape)
    for _ in range(3):
        (gradient,) = wengert.autograd.grad(
            y, x, create_graph=True, materialize_grads=True
        )
        found.append(gradient.detach())
        real = gradient.real + 2 * gradient.imag if x.is_complex() else gradient
        y = (real * weights).sum()
        if not y.requires_grad:
            break
    return found


RANKS = [(n, rank) for n in (1, 2, 3, 4) for rank in range(n + 1)]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(("n", "rank"), RANKS)
def test_three_derivatives(n, rank, dtype):
    x = matrix(n, rank, dtype)
    pairs = zip(derivatives(wengert.linalg.det, x), derivatives(by_definition, x), strict=False)
    for found, expected in pairs:
        assert wengert.allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("n", "rank"), RANKS)
def test_transforms_agree(n, rank):
    x = matrix(n, rank, "float64")
    expected = wengert.func.hessian(by_definition)(x)
    hessian = wengert.func.hessian(wengert.linalg.det)
    each = wengert.func.vmap(hessian)(wengert.stack([wengert.eye(n, dtype=x.dtype), x]))
    for found in (hessian(x), each[1], wengert.compile(hessian)(x)):
        assert wengert.allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_a_determinant_that_is_rounded_to_nearly_zero():
    x = wengert.tensor([[1.0, 2, 3], [4, 5, 7], [5, 7, 10]], dtype=wengert.float64)
    for found, expected in zip(derivatives(wengert.det, x), derivatives(by_definition, x)):
        assert wengert.allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_matrices_of_a_batch_are_told_apart():
    singular = matrix(3, 2, "float64")
    x = wengert.stack([singular, singular + wengert.eye(3)]).requires_grad_()
    assert gradcheck(wengert.linalg.det, x)
    assert gradgradcheck(wengert.linalg.det, x)
