"""Cumulative results and places of extrema as machine code."""

import numpy as np
import pytest

import wengert
from compiler.native.support import assert_alike, assert_native, programs_of, randn, reasons

DTYPES = ("float32", "float64", "float16", "int64", "int32", "uint8", "bool")


def values(*shape, dtype="float64"):
    return (randn(*shape) * 3).to(getattr(wengert, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_cumulative_sums_and_products(dtype, dim):
    def run(x):
        return x.cumsum(dim), x.cumprod(dim)

    assert_native(run, values(3, 4, 5, dtype=dtype), tolerance=1e-5)


@pytest.mark.parametrize("dim", [0, 1])
def test_cumulative_extrema(dim):
    x = values(4, 5)
    x[1, 2] = float("nan")
    native, interpreted = programs_of(lambda x: (*x.cummax(dim), *x.cummin(dim)), x)
    assert_alike(native(x), interpreted(x), 0)


def test_views_numbers_and_large_arrays():
    assert_native(lambda x: x.t().cumsum(0) + 1, values(4, 5))
    assert_native(lambda x: wengert.ones(4, 3, dtype=wengert.float64).cumsum(0) * x, values(3))
    assert_native(lambda x: x.cumsum(1), values(300, 500), tolerance=1e-9)


@pytest.mark.parametrize("dtype", DTYPES[:-1])
@pytest.mark.parametrize("dim", [None, 0, 1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_places_of_extrema(dtype, dim, keepdim):
    def run(x):
        return x.argmax(dim, keepdim), x.argmin(dim, keepdim)

    x = values(4, 5, dtype=dtype)
    x[1] = x[2]
    assert_native(run, x)


def test_what_is_no_number_is_an_extremum():
    nan = float("nan")
    x = wengert.tensor([[1.0, nan, 3.0, nan], [2.0, 2.0, 1.0, 1.0], [-np.inf] * 4])
    native = assert_native(lambda x: (x.argmax(1), x.argmin(1), *x.max(1), *x.min(1)), x)
    assert native(x)[0].tolist() == [1, 0, 0]


def test_derivatives():
    def loss(x):
        return (x.cumsum(1) * x.max(1)[0][:, None]).square().sum()

    compiled = wengert.compile(loss, backend="native")
    assert wengert.autograd.gradcheck(compiled, [values(3, 4).requires_grad_()])
    assert wengert.autograd.gradgradcheck(compiled, [values(3, 4).requires_grad_()])


def test_nothing_to_go_through():
    native, interpreted = programs_of(lambda x: x.cumsum(0), values(0, 3))
    assert_alike(native(values(0, 3)), interpreted(values(0, 3)), 0)
    assert reasons(native) or native.variants
