"""The native loops against NumPy, and the fused differentials against the rules they stand for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wengert
from wengert.native import native

pytestmark = pytest.mark.skipif(
    not wengert.__compiled__, reason="without compilation the loops decline"
)

BINARY = [np.add, np.subtract, np.multiply, np.divide, lambda a, b: np.subtract(b, a)]
UNARY = [
    np.negative,
    np.abs,
    np.exp,
    np.log,
    np.sqrt,
    np.sin,
    np.cos,
    np.tanh,
    lambda x: 1 / (1 + np.exp(-x)),
    lambda x: np.maximum(x, 0),
    np.square,
    np.reciprocal,
]
DTYPES = [np.float32, np.float64]
TOLERANCE = {np.float32: 4e-7, np.float64: 1e-15}


def positive(shape, dtype, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 2.0, shape).astype(dtype)


def agrees(found, expected, dtype):
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE[dtype], atol=1e-38)
    assert found.dtype == dtype
    assert found.shape == np.shape(expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("code", range(len(UNARY)))
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (0,)])
def test_unary(code, dtype, shape):
    x = positive(shape, dtype)
    agrees(native.unary(code, x), UNARY[code](x), dtype)


@pytest.mark.parametrize("code", [7, 8])
def test_rows_of_a_larger_matrix(code):
    x = positive((4, 12), np.float32)[:, 3:8]
    agrees(native.unary(code, x), UNARY[code](x), np.float32)


@pytest.mark.parametrize("code", [7, 8])
def test_vectorised_functions_over_their_whole_range(code):
    x = np.linspace(-86, 86, 20_001).astype(np.float32)
    exact = UNARY[code](x.astype(np.float64))
    np.testing.assert_allclose(native.unary(code, x), exact, rtol=3e-7)


def test_limits_of_tanh_and_sigmoid():
    x = np.array([np.nan, np.inf, -np.inf, 0], np.float32)
    np.testing.assert_array_equal(native.unary(7, x), [np.nan, 1, -1, 0])
    np.testing.assert_array_equal(native.unary(8, x), [np.nan, 1, 0, 0.5])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("code", range(len(BINARY)))
def test_binary(code, dtype):
    a, b = positive((3, 5), dtype), positive((3, 5), dtype, 1)
    row = positive((5,), dtype, 2)
    agrees(native.binary(code, a, b), BINARY[code](a, b), dtype)
    agrees(native.binary(code, a, row), BINARY[code](a, row), dtype)
    agrees(native.binary(code, a, 3), BINARY[code](a, dtype(3)), dtype)
    agrees(native.binary(code, 0.5, b), BINARY[code](dtype(0.5), b), dtype)


@pytest.mark.parametrize(
    "a, b",
    [
        (np.ones(3), np.ones(3, np.float32)),
        (np.ones(3, np.int64), np.ones(3, np.int64)),
        (np.ones((3, 2)).T, np.ones((2, 3))),
        (np.ones((2, 3)), np.ones((2, 1))),
        (np.ones(3), True),
    ],
)
def test_binary_declines_what_needs_conversion(a, b):
    assert native.binary(2, a, b) is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_binary_into(dtype):
    a, b = positive((3, 5), dtype), positive((3, 5), dtype, 1)
    expected = a + dtype(0.25) * b
    assert native.binary_into(0, a, b, 0.25)
    agrees(a, expected, dtype)
    row = positive((5,), dtype, 2)
    expected = a * row
    assert native.binary_into(2, a, row)
    agrees(a, expected, dtype)


def test_binary_into_declines_an_overlap():
    memory = np.arange(6.0)
    assert not native.binary_into(0, memory[:4], memory[2:])
    assert native.binary_into(0, memory[:3], memory[3:])
    assert memory.tolist() == [3.0, 5.0, 7.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("turn_a", [False, True])
@pytest.mark.parametrize("turn_b", [False, True])
@pytest.mark.parametrize("sizes", [(2, 3, 4), (1, 1, 1), (2, 0, 3), (0, 2, 3), (20, 30, 40)])
def test_product(dtype, turn_a, turn_b, sizes):
    m, k, n = sizes
    a = positive((k, m) if turn_a else (m, k), dtype)
    b = positive((n, k) if turn_b else (k, n), dtype, 1)
    expected = (a.T if turn_a else a) @ (b.T if turn_b else b)
    found = native.product(a, b, turn_a, turn_b)
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype is np.float32 else 1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_and_affine(dtype):
    x = positive((5, 4), dtype)
    np.testing.assert_allclose(native.sum_all(x), x.sum(), rtol=1e-6)
    np.testing.assert_allclose(native.sum_rows(x), x.sum(0), rtol=1e-6)
    a, b, bias = positive((5, 3), dtype), positive((3, 4), dtype, 1), positive((4,), dtype, 2)
    np.testing.assert_allclose(native.addmm(bias, a, b), bias + a @ b, rtol=1e-6)


@given(
    shape=st.lists(st.integers(0, 5), max_size=3).map(tuple),
    name=st.sampled_from(["tanh", "sigmoid", "relu"]),
    dtype=st.sampled_from([wengert.float32, wengert.float64]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60, deadline=None)
def test_fused_differential_equals_the_rule(shape, name, dtype, seed):
    values = np.random.default_rng(seed).normal(size=shape)
    x = wengert.tensor(values, dtype=dtype, requires_grad=True)
    weight = wengert.tensor(values[::-1].copy() if shape else values, dtype=dtype)
    y = getattr(x, name)()
    (fused,) = wengert.autograd.grad(y, x, weight, retain_graph=True)
    (ruled,) = wengert.autograd.grad(y, x, weight, create_graph=True)
    np.testing.assert_allclose(
        fused.numpy(), ruled.detach().numpy(), rtol=1e-6 if dtype is wengert.float32 else 1e-14
    )
