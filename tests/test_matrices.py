"""Products of matrices, by loops, by panels and by BLAS, against NumPy and on several threads."""

import numpy as np
import pytest

import wengert
from native_samples import dtypes, needs_loops, same, sample
from wengert.backends.matrices import matrices


def layouts(matrix):
    """The same matrix in all memory orders."""
    rows, columns = matrix.shape
    wide = np.zeros((2 * rows, 3 * columns), matrix.dtype)
    wide[::2, ::3] = matrix
    yield matrix
    yield np.asfortranarray(matrix)
    yield wide[::2, ::3]
    yield matrix[::-1, ::-1].copy()[::-1, ::-1]


SIZES = [(2, 3, 4), (1, 1, 1), (3, 0, 2), (3, 2, 0), (0, 2, 3), (5, 1, 5), (1, 7, 1)]


@needs_loops
@dtypes
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_matmul(size, dtype):
    m, k, n = size
    a, b = sample(dtype, m, k), sample(dtype, k, n, low=-1.0)
    for x in layouts(a):
        for y in layouts(b):
            same(matrices.product(x, y, False, False), a @ b, units=16)


@needs_loops
@dtypes
@pytest.mark.parametrize("turn_a", [False, True])
@pytest.mark.parametrize("turn_b", [False, True])
@pytest.mark.parametrize("size", [*SIZES, (40, 30, 20)], ids=str)
def test_product(size, turn_a, turn_b, dtype):
    m, k, n = size
    a, b = sample(dtype, m, k) / (1 + k), sample(dtype, k, n, low=-1.0) / (1 + n)
    for x in layouts(a):
        for y in layouts(b):
            found = matrices.product(x.T if turn_a else x, y.T if turn_b else y, turn_a, turn_b)
            np.testing.assert_allclose(found, a @ b, rtol=1e-4 if dtype == np.float32 else 1e-12)
            assert found.dtype == dtype and found.shape == (m, n)


@needs_loops
def test_matmul_declines():
    a, b = sample(np.float64, 2, 3), sample(np.float64, 3, 2)
    foreign = type("Foreign", (np.ndarray,), {})
    for x, y in (
        (a, a),
        (a[0], b),
        (a, b[:, 0]),
        (a, b.astype(np.float32)),
        (a.astype(np.complex128), b.astype(np.complex128)),
        (a.astype(np.int64), b.astype(np.int64)),
        (a.view(foreign), b),
        (a.astype(a.dtype.newbyteorder()), b),
        (a[None], b[None]),
        (1.0, b),
    ):
        assert matrices.product(x, y, False, False) is None


@needs_loops
@dtypes
@pytest.mark.parametrize("size", [*SIZES, (60, 50, 40)], ids=str)
def test_addmm(size, dtype):
    m, k, n = size
    a, b = sample(dtype, m, k) / (1 + m * k), sample(dtype, k, n, low=-1.0) / (1 + k * n)
    row, matrix = sample(dtype, n), sample(dtype, m, n)
    for x in (row, matrix):
        before = x.copy()
        for left in layouts(a):
            for right in layouts(b):
                found = matrices.addmm(x, left, right)
                np.testing.assert_allclose(
                    found, x + a @ b, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-6
                )
                assert found.dtype == dtype and found.shape == (m, n)
        assert (x == before).all()


@needs_loops
def test_addmm_declines():
    a, b = sample(np.float64, 2, 3), sample(np.float64, 3, 4)
    row = sample(np.float64, 4)
    for x, left, right in (
        (row.astype(np.float32), a, b),
        (row, a.astype(np.float32), b),
        (row[:3].copy(), a, b),
        (sample(np.float64, 2, 1), a, b),
        (row, b, a),
        (row, a, a),
        (1.0, a, b),
    ):
        assert matrices.addmm(x, left, right) is None


@pytest.fixture(params=["blas", "numpy"])
def library(request):
    """Larger products by BLAS itself, or through NumPy as where BLAS is not found."""
    if request.param == "numpy":
        found, matrices.blas = matrices.blas, False
        yield
        matrices.blas = found
    else:
        yield


@needs_loops
@dtypes
@pytest.mark.parametrize("turn_a", [False, True])
@pytest.mark.parametrize("turn_b", [False, True])
@pytest.mark.parametrize("size", [*SIZES, (40, 30, 20), (300, 1, 40), (1, 200, 50)], ids=str)
def test_product_is_added(size, turn_a, turn_b, dtype):
    m, k, n = size
    a, b = sample(dtype, m, k) / (1 + k), sample(dtype, k, n, low=-1.0) / (1 + n)
    for x in layouts(a):
        for y in layouts(b):
            out = sample(dtype, m, n)
            wanted = out + a @ b
            served = matrices.product_into(
                out, x.T if turn_a else x, y.T if turn_b else y, turn_a, turn_b
            )
            if m * k * n <= 6000 or matrices.blas and x.flags.forc and y.flags.forc:
                assert served
            if served:
                rtol = 1e-4 if dtype == np.float32 else 1e-12
                np.testing.assert_allclose(out, wanted, rtol=rtol, atol=rtol)
            else:
                same(out, sample(dtype, m, n))


@needs_loops
@pytest.mark.parametrize("size", [(2, 3, 4), (40, 30, 20)], ids=str)
def test_added_product_declines(size):
    m, k, n = size
    a, b, out = (np.ones(shape) for shape in ((m, k), (k, n), (m, n)))
    frozen = out.copy()
    frozen.flags.writeable = False
    for target, x, y in (
        (frozen, a, b),
        (out.astype(np.float32), a, b),
        (out, a.astype(np.float32), b),
        (out, a.astype(np.float32), b.astype(np.float32)),
        (out.T, a, b),
        (out[:, ::2], a, b),
        (out[1:].copy(), a, b),
        (out, b, a),
        (out, a.astype(complex), b.astype(complex)),
        (out[0], a, b),
        (None, a, b),
        (out, a, 1.0),
    ):
        assert not matrices.product_into(target, x, y, False, False)
    assert (out == 1).all() and (frozen == 1).all()


@needs_loops
@dtypes
def test_larger_products(dtype, library):
    a, b = sample(dtype, 60, 50) / 1000, sample(dtype, 50, 40) / 1000
    row = sample(dtype, 40)
    rtol = 1e-5 if dtype == np.float32 else 1e-12
    for x in layouts(a):
        for y in layouts(b):
            found = [
                matrices.product(x, y, False, False), matrices.product(x.T, y, True, False),
                matrices.product(x, y.T, False, True), matrices.addmm(row, x, y),
            ]  # fmt: skip
            if not matrices.blas:
                assert found == [None] * 4  # NumPy's, for which operators ask without warnings
                continue
            for product, added in zip(found, (0, 0, 0, row)):
                np.testing.assert_allclose(product, added + a @ b, rtol=rtol)


#: Sizes around those of tiles, with remainders of rows, of columns and of terms.
PANELS = [
    (64, 400, 48), (129, 97, 163), (10, 200, 33), (61, 771, 100), (256, 64, 70), (15, 9, 8000),
]


@needs_loops
@dtypes
@pytest.mark.parametrize("turn_a", [False, True])
@pytest.mark.parametrize("turn_b", [False, True])
@pytest.mark.parametrize("size", PANELS, ids=str)
def test_products_of_middle_size(size, turn_a, turn_b, dtype):
    m, k, n = size
    rng = np.random.default_rng(m)
    a = rng.standard_normal((k, m) if turn_a else (m, k)).astype(dtype)
    b = rng.standard_normal((n, k) if turn_b else (k, n)).astype(dtype)
    wanted = (a.T if turn_a else a).astype(np.float64) @ (b.T if turn_b else b)
    close = {"rtol": 0, "atol": 4 * np.finfo(dtype).eps * k}
    np.testing.assert_allclose(matrices.product(a, b, turn_a, turn_b), wanted, **close)
    out = sample(dtype, m, n)
    begin = out.copy()
    assert matrices.product_into(out, a, b, turn_a, turn_b)
    close["atol"] *= 1 + abs(begin).max()
    np.testing.assert_allclose(out, wanted + begin, **close)
    if not turn_a:
        row = sample(dtype, n)
        np.testing.assert_allclose(matrices.addmm(row, a, b, turn_b), row + wanted, **close)


@needs_loops
@dtypes
def test_products_of_middle_size_read_parts_of_matrices(dtype):
    a, b = sample(dtype, 90, 120) / 100, sample(dtype, 100, 150) / 100
    x, y = a[5:75, 7:107], b[:, 11:91]
    wanted = x.astype(np.float64) @ y
    np.testing.assert_allclose(matrices.product(x, y, False, False), wanted, rtol=1e-5)
    np.testing.assert_allclose(matrices.product(x, y.T, False, True), wanted, rtol=1e-5)
    np.testing.assert_allclose(matrices.product(x.T, y, True, False), wanted, rtol=1e-5)


@needs_loops
@dtypes
@pytest.mark.parametrize("turned", [False, True])
def test_products_have_the_same_bits_on_any_number_of_threads(turned, dtype):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((200, 500)).astype(dtype)
    b = rng.standard_normal((300, 500) if turned else (500, 300)).astype(dtype)
    before = wengert.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3, 4, 7):
            wengert.set_num_threads(threads)
            found.append(matrices.product(a, b, False, turned))
    finally:
        wengert.set_num_threads(before)
    for each in found[1:]:
        assert np.array_equal(each, found[0])


@needs_loops
@dtypes
def test_products_of_middle_size_pass_on_what_is_no_number(dtype):
    a, b = np.ones((64, 400), dtype), np.ones((400, 50), dtype)
    a[3, 390], b[7, 49], a[9, 0] = np.nan, np.inf, -np.inf
    out = matrices.product(a, b, False, False)
    assert np.isnan(out[3]).all() and not np.isnan(out[4:9]).any()
    assert (out[4, :49] == 400).all() and out[4, 49] == np.inf
    assert (out[9, :49] == -np.inf).all() and np.isnan(out[9, 49])
