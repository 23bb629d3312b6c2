"""Operators of long graphs are functions that loops call: they give what they give otherwise."""

import pytest

import wengert
from compiler.native.support import assert_alike, assert_native, programs_of, randn
from wengert.compiler.native import building
from wengert.nn import functional


def mixed(x, y):
    z = (x.tanh() + y.sin()) * x.exp().log1p()
    z = wengert.where(z > y, wengert.erf(z), wengert.sigmoid(y)) + functional.gelu(x)
    return z, wengert.pow(x.abs(), y), (x * 1e6).sin(), wengert.atan2(x, y) > 0.5


def halves(x, y):
    return x.tanh() * y.sin(), functional.softplus(x + y)


def wholes(x, y):
    return wengert.div(x, y, rounding_mode="floor"), wengert.remainder(x, y), x.float().tanh()


@pytest.fixture
def calling(monkeypatch):
    monkeypatch.setattr(building, "MOST_REPLAYED", -1)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (16,), (37,), (3, 7), (0, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats(shape, dtype, calling, monkeypatch):
    x, y = (randn(*shape, seed=i, dtype=dtype) * 3 for i in range(2))
    native, interpreted = programs_of(mixed, x, y)
    mine = native(x, y)
    assert_alike(mine, interpreted(x, y), 1e-12 if dtype == "float64" else 4e-6)
    monkeypatch.undo()
    its = programs_of(mixed, x, y)[0](x, y)
    assert all(wengert.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(mine, its))


@pytest.mark.parametrize("dtype", [wengert.float16, wengert.bfloat16])
def test_short_floats(dtype, calling):
    x, y = (randn(37, seed=i).to(dtype) for i in range(2))
    assert_native(halves, x, y, tolerance=1e-2)


@pytest.mark.parametrize("dtype", [wengert.int8, wengert.uint8, wengert.int32, wengert.int64])
def test_integers(dtype, calling):
    x, y = (wengert.arange(37) * 7 % 23 + 1).to(dtype), (wengert.arange(37) % 5 + 1).to(dtype)
    assert_native(wholes, x, y, tolerance=1e-6)


def test_derivatives_and_loops_of_large_arrays(calling):
    def slopes(x, y):
        return wengert.func.grad(lambda x: mixed(x, y)[0].square().sum())(x)

    for size in (50, building.FEW + 3):
        assert_native(slopes, randn(size), randn(size, seed=1))
