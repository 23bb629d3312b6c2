"""Gradients that nobody else holds are changed in place while they travel: no one may notice."""

import random
import warnings

import pytest

import wengert as torch

STEPS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / (b * b + 1),
    "scale": lambda a, b: a * 0.5,
    "negative": lambda a, b: -a,
    "tanh": lambda a, b: torch.tanh(a),
    "sigmoid": lambda a, b: torch.sigmoid(b),
    "row": lambda a, b: a * b[0],
    "row_sum": lambda a, b: a + b[1],
    "product": lambda a, b: a @ b.T @ b,
    "whole": lambda a, b: a * b.sum(),
}


def program(seed):
    """A random graph of small tensors in which most values are used more than once."""
    choose = random.Random(seed)
    steps = [
        (choose.choice(list(STEPS)), choose.random(), choose.random()) for _ in range(12)
    ]

    def run(*leaves):
        values = list(leaves)
        for name, first, second in steps:
            a, b = (values[-1 - int(each * min(4, len(values)))] for each in (first, second))
            values.append(STEPS[name](a, b))
        return values

    return run


def leaves_for(seed):
    generator = torch.Generator().manual_seed(seed)
    options = {"generator": generator, "dtype": torch.float64}
    return [torch.randn(3, 4, **options).requires_grad_() for _ in range(2)]


@pytest.mark.parametrize("seed", range(60))
def test_gradients_are_those_of_a_recorded_backward(seed):
    """A recorded backward goes by rules, which change nothing in place."""
    run, leaves = program(seed), leaves_for(seed)
    values = run(*leaves)
    weights = [torch.linspace(-1, 1, 12, dtype=torch.float64).view(3, 4) for _ in values[-3:]]
    kept = [each.clone() for each in weights]
    expected = torch.autograd.grad(
        values[-3:], leaves, weights, create_graph=True, allow_unused=True, materialize_grads=True
    )
    for _ in range(2):
        for leaf in leaves:
            leaf.grad = None
        torch.autograd.backward(values[-3:], weights, retain_graph=True)
        for leaf, wanted in zip(leaves, expected, strict=True):
            found = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
            torch.testing.assert_close(found, wanted.detach(), rtol=1e-11, atol=1e-11)
    assert all(torch.equal(a, b) for a, b in zip(weights, kept, strict=True))


def test_gradients_of_two_leaves_are_two_tensors():
    x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    ((x + y) * 2).sum().backward()
    x.grad.mul_(10)
    assert y.grad.tolist() == [2, 2, 2]


def test_a_kept_gradient_stays_as_it_was():
    x = torch.ones(3, requires_grad=True)
    middle = x * 3
    middle.retain_grad()
    seen = []
    last = middle * 5
    last.register_hook(seen.append)
    (last * 7).sum().backward()
    assert seen[0].tolist() == [7, 7, 7]
    assert middle.grad.tolist() == [35, 35, 35]
    assert x.grad.tolist() == [105, 105, 105]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_infinite_gradients_add_up_without_a_warning(lib, dtype):
    """Both where they meet and where they are added to the first; NumPy would warn."""
    x = lib.zeros(2, dtype=getattr(lib, dtype), requires_grad=True)
    infinite = lib.full((2,), float("inf"), dtype=x.dtype)
    gradients = [infinite, infinite, -infinite]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lib.autograd.backward([x * 1 for _ in gradients], gradients)
        assert x.grad.isnan().all()
        x.grad = infinite.clone()
        x.backward(-infinite)
    assert x.grad.isnan().all()
