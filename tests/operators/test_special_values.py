"""Zeros, infinities, NaN, ties and the points where a function has a kink: as PyTorch has them."""

import itertools
import math
import warnings

import numpy as np
import pytest

import wengert
from operators.samples import BY_NAME, OPERATIONS
from operators.support import as_numpy

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
            seed = lib.ones_like(out)
            found += map(as_numpy, lib.autograd.grad(out, leaves, seed))
    return found


def _compare(operation, arrays):
    torch = pytest.importorskip("torch")
    with_gradient = operation.differentiable and operation.torch_gradient
    for got, want in zip(
        _run(wengert, operation, arrays, with_gradient),
        _run(torch, operation, arrays, with_gradient),
        strict=True,
    ):
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("operation", UNARY, ids=str)
def test_unary(operation):
    _compare(operation, [np.array(POINTS)])


@pytest.mark.parametrize("operation", BINARY, ids=str)
def test_binary(operation):
    pairs = np.array(list(itertools.product(POINTS, POINTS)))
    _compare(operation, [pairs[:, 0].copy(), pairs[:, 1].copy()])


TIED = np.array([[1.0, 2.0, 2.0], [2.0, 0.0, 2.0]])
WITH_NAN = np.array([[1.0, math.nan, 2.0], [3.0, 0.0, -1.0]])
REDUCING = ["amax", "amin", "max", "min", "prod", "std", "norm", "logsumexp", "softmax", "cummax",
            "cummin", "sum", "mean", "var", "cumsum", "cumprod", "sort", "median", "nanmedian",
            "nansum", "log_softmax", "logcumsumexp", "argmax", "argmin", "topk", "kthvalue",
            "all", "any", "aminmax"]  # fmt: skip


@pytest.mark.parametrize("values", [TIED, WITH_NAN, np.zeros((2, 3)), np.full((2, 3), -math.inf)],
                         ids=["ties", "nan", "zeros", "infinite"])  # fmt: skip
@pytest.mark.parametrize("name", REDUCING)
def test_reductions_along_a_dimension(name, values):
    _compare_reduction(name, values, ARGUMENTS.get(name, (1,)))


ARGUMENTS = {"norm": (2, 1), "topk": (2, 1), "kthvalue": (2, 1), "aminmax": ()}
WHOLE = ["amax", "amin", "max", "min", "prod", "std", "norm", "sum", "mean", "median", "nanmedian"]


@pytest.mark.parametrize("values", [TIED, WITH_NAN, np.zeros((2, 3))], ids=["ties", "nan", "zeros"])
@pytest.mark.parametrize("name", WHOLE)
def test_reductions_of_everything(name, values):
    _compare_reduction(name, values, ())


def _compare_reduction(name, values, arguments):
    torch = pytest.importorskip("torch")
    operation = BY_NAME[name]
    found = []
    for lib in (wengert, torch):
        x = lib.tensor(values).requires_grad_(operation.differentiable)
        out = operation.resolve(lib)(x, *arguments)
        outputs = list(out) if isinstance(out, tuple) else [out]
        arrays = [as_numpy(part) for part in outputs]
        tracked = [part for part in outputs if part.requires_grad]
        if tracked:
            (grad,) = lib.autograd.grad(tracked, x, [lib.ones_like(part) for part in tracked])
            arrays.append(as_numpy(grad))
        found.append(arrays)
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
