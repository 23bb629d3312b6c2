"""Large inputs give what small ones do, however the work is divided between loops."""

import numpy as np
import pytest

import wengert
from operators.samples import OPERATIONS
from operators.support import assert_close

CHUNK = 64
#: Around the lengths from which NumPy or BLAS takes over from the loops for small operands.
LENGTHS = (95, 97, 8191, 8200)
ELEMENTWISE = [o for o in OPERATIONS if o.operands and o.real]


def _repeated(array, length, dtype):
    return np.resize(array.reshape(-1), length).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("operation", ELEMENTWISE, ids=str)
def test_elementwise(operation, dtype):
    function = operation.resolve(wengert)
    arrays = operation.draw("real")[0].arrays()
    tolerance = 2e-6 if dtype == "float32" else 1e-13
    for length in LENGTHS:
        whole = [_repeated(a, length, dtype) for a in arrays]
        got = function(*[wengert.tensor(a) for a in whole])
        starts = range(0, length, CHUNK)
        parts = [
            function(*[wengert.tensor(a[start : start + CHUNK]) for a in whole]).numpy()
            for start in starts
        ]
        assert_close(got, np.concatenate(parts), tolerance, tolerance)


@pytest.mark.parametrize(
    "shape", [(2, 3, 4), (17, 18, 19), (18, 18, 19), (40, 50, 60), (1, 90, 80)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("transposed", [False, True])
def test_matrix_product(shape, dtype, transposed):
    n, k, m = shape
    random = np.random.default_rng(0)
    a, b = random.random((n, k)).astype(dtype), random.random((k, m)).astype(dtype)
    if transposed:
        a, b = a.T.copy().T, b.T.copy().T
    got = wengert.from_numpy(a) @ wengert.from_numpy(b)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    assert_close(got, a.astype(float) @ b.astype(float), tolerance, tolerance)


@pytest.mark.parametrize("length", [1, 7, 1000, 8193, 100_000])
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "norm", "var", "logsumexp"])
def test_reductions_are_exact(name, length):
    """In float32, against float64."""
    values = np.random.default_rng(0).uniform(0.9999, 1.0001, length)
    arguments = (0,) if name == "logsumexp" else ()
    if name == "var" and length == 1:
        return
    small = getattr(wengert.tensor(values.astype(np.float32)), name)(*arguments)
    exact = getattr(wengert.tensor(values.astype(np.float32).astype(float)), name)(*arguments)
    assert_close(small, exact, 1e-4, 1e-12)


def test_sums_of_many_small_numbers_do_not_stop_growing():
    x = wengert.full((1 << 25,), 1.0, dtype=wengert.float32)
    assert x.sum().item() == 1 << 25
    half = wengert.ones(5000, dtype=wengert.float16)
    assert half.sum().item() == 5000
