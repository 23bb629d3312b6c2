"""Zeros, infinities, NaN, ties and the points where a function has a kink: as PyTorch has them."""

import itertools
import math
import warnings
from functools import partial

import numpy as np
import pytest

import wengert
from operators.samples import BY_NAME, OPERATIONS
from operators.support import as_numpy, results

POINTS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 30.0, -30.0, math.inf, -math.inf, math.nan]
UNARY = [o for o in OPERATIONS if o.operands == 1 and o.real]
BINARY = [o for o in OPERATIONS if o.operands == 2 and o.real]


def _run(lib, operation, arrays, with_gradient):
    leaves = [lib.tensor(a).requires_grad_(with_gradient) for a in arrays]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = operation.resolve(lib)(*leaves)
        found = [as_numpy(out)]
        if with_gradient:
            found += map(as_numpy, lib.autograd.grad(out, leaves, lib.ones_like(out)))
    return found


def _compare(operation, arrays):
    torch = pytest.importorskip("torch")
    with_gradient = operation.differentiable
    try:
        expected = _run(torch, operation, arrays, with_gradient)
    except RuntimeError:
        with_gradient = False  # PyTorch has no derivative: only values can be compared
        expected = _run(torch, operation, arrays, with_gradient)
    _assert_agree(_run(wengert, operation, arrays, with_gradient), expected, 1)


def _assert_agree(got, want, values):
    """The first `values` arrays agree; the gradients do where PyTorch has values and gradients."""
    for mine, other in zip(got[:values], want[:values], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-7, atol=1e-12)
    for mine, other in zip(got[values:], want[values:], strict=True):
        defined = ~np.isnan(other)
        if want[0].shape == other.shape:
            defined &= ~np.isnan(want[0])
        np.testing.assert_allclose(mine[defined], other[defined], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("operation", UNARY, ids=str)
def test_unary(operation):
    _compare(operation, [np.array(POINTS)])


@pytest.mark.parametrize("operation", BINARY, ids=str)
def test_binary(operation):
    pairs = np.array(list(itertools.product(POINTS, POINTS)))
    _compare(operation, [pairs[:, 0].copy(), pairs[:, 1].copy()])


TIED = np.array([[1.0, 2.0, 2.0], [2.0, 0.0, 2.0]])
WITH_NAN = np.array([[1.0, math.nan, 2.0], [3.0, 0.0, -1.0]])
CASES = {
    "ties": TIED,
    "nan": WITH_NAN,
    "zeros": np.zeros((2, 3)),
    "infinite": np.full((2, 3), -math.inf),
}
ALONG = ["amax", "amin", "max", "min", "prod", "std", "norm", "logsumexp", "softmax", "cummax",
         "cummin", "sum", "mean", "var", "cumsum", "cumprod", "sort", "median", "nanmedian",
         "nansum", "log_softmax", "logcumsumexp", "argmax", "argmin", "topk", "kthvalue", "all",
         "any", "aminmax"]  # fmt: skip
WHOLE = ["amax", "amin", "max", "min", "prod", "std", "norm", "sum", "mean", "median", "nanmedian"]
ARGUMENTS = {"norm": (2, 1), "topk": (2, 1), "kthvalue": (2, 1), "aminmax": ()}
#: Which of equal elements these choose is not defined.
UNSPECIFIED_AT_TIES = {"sort", "topk", "kthvalue", "median", "nanmedian"}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ALONG)
def test_reductions_along_a_dimension(name, case):
    _compare_reduction(name, case, ARGUMENTS.get(name, (1,)))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", WHOLE)
def test_reductions_of_everything(name, case):
    _compare_reduction(name, case, ())


def _compare_reduction(name, case, arguments):
    torch = pytest.importorskip("torch")
    operation = BY_NAME[name]
    found = []
    for lib in (wengert, torch):
        x = lib.tensor(CASES[case]).requires_grad_(operation.differentiable)
        outputs = results(operation.resolve(lib)(x, *arguments))
        tracked = [part for part in outputs if part.requires_grad]
        grads = []
        if tracked and (case == "nan" or name not in UNSPECIFIED_AT_TIES):
            grads = lib.autograd.grad(tracked, x, [lib.ones_like(part) for part in tracked])
        elif name in UNSPECIFIED_AT_TIES:
            outputs = tracked
        found.append([as_numpy(part) for part in (*outputs, *grads)])
        count = len(outputs)
    _assert_agree(*found, count)


def test_gradient_of_logcumsumexp_over_leading_minus_infinity():
    x = wengert.tensor([-math.inf, -1000.0, -999.0], requires_grad=True)
    (gradient,) = wengert.autograd.grad(wengert.logcumsumexp(x, 0).sum(), x)
    share = 1 / (1 + math.e)
    assert gradient.tolist() == pytest.approx([0, 1 + share, 1 - share], abs=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "bfloat16"])
def test_gradients_that_meet_zeros_of_a_product_are_nothing(lib, dtype):
    """NaN times the derivative of a product with two factors of zero is zero, not NaN."""
    nan = math.nan
    x = lib.tensor([2.0, 0.0, 3.0, 0.0, 5.0], dtype=getattr(lib, dtype)).requires_grad_()
    for other in (3.0, nan, math.inf):
        factors = lib.where(x == 3, other, x.detach()).requires_grad_()
        factors.prod().backward(lib.tensor(nan, dtype=x.dtype))
        assert factors.grad.tolist() == [0, 0, 0, 0, 0]
    weights = {
        (1, 1, 1, nan, nan): [1, 8, 0, 0, 0],
        (1, nan, 1, 1, 1): [1, nan, 0, 0, 0],
        (nan, 1, 1, 1, 1): [nan, 8, 0, 0, 0],
    }
    for weight, expected in weights.items():
        weight = lib.tensor(weight, dtype=x.dtype)
        (found,) = lib.autograd.grad(x.cumprod(0), x, weight)
        assert lib.isnan(found).tolist() == [math.isnan(number) for number in expected]
        assert found[2:].tolist() == [0, 0, 0]


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("base", ["tensor", "number"])
def test_second_derivatives_of_powers_of_zero_are_numbers(lib, base, exponent):
    """The slope in the exponent is chosen to be zero, so it does not change with a factor."""
    factor = lib.tensor(3.0, requires_grad=True)
    exponent = lib.tensor(exponent, requires_grad=True)
    base = lib.tensor(0.0, requires_grad=True) if base == "tensor" else 0.0
    (slope,) = lib.autograd.grad(factor * base**exponent, exponent, create_graph=True)
    (change,) = lib.autograd.grad(slope, factor)
    assert (slope.item(), change.item()) == (0, 0)


def test_gradients_of_cumulative_products_with_zeros_in_other_rows(lib):
    x = lib.tensor([[2.0, 0.0, 3.0], [2.0, 4.0, 3.0]], requires_grad=True)
    (along,) = lib.autograd.grad(x.cumprod(1), x, lib.ones(2, 3))
    (across,) = lib.autograd.grad(x.cumprod(0), x, lib.ones(2, 3))
    assert along.tolist() == [[1, 8, 0], [17, 8, 8]]
    assert across.tolist() == [[3, 5, 4], [2, 0, 3]]


@pytest.mark.parametrize("weights", [[math.inf, 0.0, 1.0], [1.0, math.nan, math.inf]])
def test_gradients_of_infinite_products_come_without_warnings(lib, weights):
    """NumPy warns of infinity times zero: for tensors it is a number like others."""
    x = lib.tensor([math.inf, 0.0, 2.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (found,) = lib.autograd.grad(x.cumprod(0), x, lib.tensor(weights))
    assert found[2] == 0


@pytest.mark.parametrize(
    "write",
    [
        lambda lib, x: lib.zeros(2, dtype=lib.uint8).copy_(x),
        lambda lib, x: lib.zeros(2, dtype=lib.uint8).__setitem__(..., x),
        lambda lib, x: lib.zeros(2, dtype=lib.float16).__setitem__(slice(1), x[1]),
        lambda lib, x: lib.add(x, 1, out=lib.zeros(2, dtype=lib.float16)),
    ],
)
def test_what_does_not_fit_is_written_without_warnings(lib, write):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(lib, lib.tensor([math.inf, 1e30]))


def test_trapezoids_of_whole_numbers_wrap_as_their_type_does(lib):
    y = lib.tensor([2, 1, 2], dtype=lib.uint8)
    x = lib.tensor([2, 0, 3], dtype=lib.uint8)
    assert lib.cumulative_trapezoid(y, x).tolist() == [125.0, 129.5]
    assert lib.trapezoid(y, x).tolist() == 129.5
    assert lib.trapezoid(y, dx=3).tolist() == 9.0
    y = lib.tensor([100, 100, 50], dtype=lib.int8)
    assert lib.trapezoid(y, dx=3).tolist() == 909.0  # the ends together are 150, here -106
    assert lib.cumulative_trapezoid(y, dx=3).tolist() == [-84.0, -243.0]


@pytest.mark.parametrize("function", ["trapezoid", "cumulative_trapezoid"])
def test_trapezoids_are_a_real_number_apart(lib, function):
    for distance in (1j, True):
        with pytest.raises(RuntimeError, match="only support dx as a real number"):
            getattr(lib, function)(lib.ones(3), dx=distance)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("size", [1, 40])
def test_a_threshold_keeps_nan(lib, dtype, size):
    x = lib.full((size,), math.nan, dtype=getattr(lib, dtype), requires_grad=True)
    y = lib.nn.functional.threshold(x, 0.3, 1.0)
    assert bool(lib.isnan(y).all())
    (gradient,) = lib.autograd.grad(y, x, lib.ones_like(y))
    assert bool((gradient == 1).all())


@pytest.mark.parametrize("weight", [math.inf, math.nan])
@pytest.mark.parametrize("order", [1.5, 3])
def test_norms_of_zeros_feel_neither_gradients_nor_tangents(lib, order, weight):
    x = lib.zeros(2, dtype=lib.float64).requires_grad_()
    weight = lib.tensor(weight, dtype=lib.float64)
    (gradient,) = lib.autograd.grad(lib.dist(x, lib.zeros_like(x), order), x, weight)
    assert gradient.tolist() == [0, 0]
    for kind in (0, 2, order):
        moved = (lib.zeros(2),), (weight.float().expand(2),)
        _, tangent = lib.func.jvp(partial(lib.linalg.vector_norm, ord=kind), *moved)
        assert tangent.tolist() == 0


@pytest.mark.parametrize("order", [0.5, 1.5, 3, -1])
def test_gradients_of_undefined_norms_are_undefined(lib, order):
    x = lib.tensor([0.0, math.nan], requires_grad=True)
    (gradient,) = lib.autograd.grad(lib.linalg.vector_norm(x, order), x)
    assert bool(lib.isnan(gradient).all())


@pytest.mark.parametrize("name", ["std_mean", "var_mean"])
def test_second_derivatives_of_a_mean_beside_a_spread_that_is_none(lib, name):
    x = lib.tensor([2.0], dtype=lib.float64, requires_grad=True)
    with pytest.warns(UserWarning, match="degrees of freedom"):
        y = getattr(lib, name)(x)[1].sin()
    (first,) = lib.autograd.grad(y, x, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), x)
    assert second.item() == pytest.approx(-math.sin(2))
