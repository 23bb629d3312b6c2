"""Products with something added are one step: what is, what is not, and that both mean the same."""

import pytest

import wengert
import wengert.nn.functional as F
from compiler.native.support import assert_native, randn

A, B, P = randn(40, 50), randn(50, 60, seed=1), randn(40, 60, seed=2)
X, W, V = randn(40, 50, seed=3), randn(60, 50, seed=4), randn(60, seed=5)

pytestmark = pytest.mark.compiled_only


def steps_of(function, *inputs, tolerance=1e-12):
    """The names of the steps of machine code that computes what the interpreter does."""
    (variant,) = assert_native(function, *inputs, tolerance=tolerance).variants.values()
    return [getattr(step, "name", "nest") for step in variant.layout.steps]


ONE_STEP = {
    "difference": (lambda p, a, b: p - 0.1 * (a @ b), P, A, B),
    "scaled behind": (lambda p, a, b: p + (a @ b) * 3, P, A, B),
    "product first": (lambda p, a, b: a @ b + p, P, A, B),
    "with alpha": (lambda p, a, b: p.sub(a @ b, alpha=0.5), P, A, B),
    "first turned": (lambda p, a, b: p - 0.1 * (a.t() @ b), P, randn(50, 40), B),
    "second turned": (lambda p, a, b: p + a @ b.t(), P, A, randn(60, 50)),
    "bias": (F.linear, X, W, V),
    "rectified": (lambda x, w, v: F.linear(x, w, v).relu(), X, W, V),
    "rectified sum": (lambda p, a, b: (p + a @ b).relu(), P, A, B),
    "a row apart": (lambda p, a, b: p[:, 3:63] - a @ b, randn(40, 70), A, B),
    "many terms": (lambda p, a, b: (p - 0.1 * (a @ b)).relu(), P, randn(40, 800), randn(800, 60)),
    "large": (lambda x, w, v: F.linear(x, w, v).relu(), randn(130, 200), randn(150, 200),
              randn(150)),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_STEP)
@pytest.mark.parametrize(("kind", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
def test_one_step(name, kind, tolerance):
    function, *inputs = ONE_STEP[name]
    inputs = [x.to(getattr(wengert, kind)) for x in inputs]
    assert steps_of(function, *inputs, tolerance=tolerance) == ["gemm"]


SEVERAL_STEPS = {
    "the product is read twice": lambda p, a, b: (p - a @ b, (a @ b).sum()),
    "the scaled product is a result": lambda p, a, b: (lambda y: (p - y, y))(0.1 * (a @ b)),
    "the sum is read beside its rectified form": (
        lambda p, a, b: (lambda y: (y.relu(), y.exp()))(p + a @ b)
    ),
    "the product is diminished": lambda p, a, b: a @ b - p,
    "a column is added": lambda p, a, b: p[:, :1] + a @ b,
    "columns lie apart": lambda p, a, b: p.reshape(60, 40).t() + a @ b,
    "what is added is computed": lambda p, a, b: p.exp() + a @ b,
    "a number is added": lambda p, a, b: a @ b + 1,
}


@pytest.mark.parametrize("name", SEVERAL_STEPS)
def test_several_steps(name):
    assert len(steps_of(SEVERAL_STEPS[name], P, A, B)) > 1


def test_small_products_are_loops():
    assert steps_of(lambda p, a, b: p - a @ b, randn(3, 4), randn(3, 5), randn(5, 4)) == ["nest"]


def test_what_is_no_number_and_signs_of_zeros_pass_a_rectified_sum():
    p = wengert.zeros(40, 60, dtype=wengert.float64)
    p[0, 0], p[1], p[2, 3] = float("nan"), -0.0, float("inf")
    a, b = A * 0, B * 0

    def run(p, a, b):
        return (p - a @ b).relu()

    eager, compiled = run(p, a, b), wengert.compile(run)(p, a, b)
    assert eager.isnan().sum() == compiled.isnan().sum() == 1
    assert compiled[2, 3] == float("inf")
    assert wengert.equal(eager.nan_to_num(), compiled.nan_to_num())


def test_sums_in_the_body_of_a_loop():
    w, h = randn(48, 48) * 0.1, randn(32, 48, seed=1)

    def run(h, w):
        for _ in range(6):
            h = (h - 0.1 * (h @ w)).relu()
        return h

    assert_native(run, h, w)
    w.requires_grad_()
    (wanted,) = wengert.autograd.grad(run(h, w).sum(), w)
    (found,) = wengert.autograd.grad(wengert.compile(run)(h, w).sum(), w)
    assert wengert.allclose(found, wanted)


@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_of_rectified_layers(order):
    def run(x, w, v):
        return (F.linear(x, w, v).relu() ** 3).sum()

    def derivative(function):
        x, w, v = [each.clone().requires_grad_() for each in (X, W, V)]
        grads = wengert.autograd.grad(function(x, w, v), (x, w, v), create_graph=order == 2)
        if order == 2:
            grads = wengert.autograd.grad(sum((g * g).sum() for g in grads), (x, w, v))
        return grads

    for found, wanted in zip(derivative(wengert.compile(run)), derivative(run), strict=True):
        assert wengert.allclose(found, wanted, rtol=1e-9)
