"""Many small matrices: what is computed without LAPACK is what LAPACK computes."""

import numpy as np
import pytest

import wengert
from wengert.backends import systems

pytestmark = pytest.mark.compiled_only
TYPES = [(np.float64, 1e-9), (np.float32, 5e-3)]


def _matrices(n, dtype, count=4):
    return np.random.default_rng(n).normal(size=(count, n, n)).astype(dtype)


@pytest.mark.parametrize("dtype, tolerance", TYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 8, 16])
def test_results_are_lapacks(n, dtype, tolerance):
    close = {"rtol": tolerance, "atol": tolerance}
    a, b = _matrices(n, dtype), _matrices(n, dtype)[..., :2]
    for x in (a, a.swapaxes(-1, -2), a[::2], a[0]):
        right = b[: len(x)] if x.ndim == 3 else b[0]
        np.testing.assert_allclose(systems.solved(x, None), np.linalg.inv(x), **close)
        np.testing.assert_allclose(systems.solved(x, right), np.linalg.solve(x, right), **close)
        np.testing.assert_allclose(systems.determinants(x, False), np.linalg.det(x), **close)
        for mine, other in zip(systems.determinants(x, True), np.linalg.slogdet(x), strict=True):
            np.testing.assert_allclose(mine, other, **close)
        square = x @ x.swapaxes(-1, -2) + np.eye(n, dtype=dtype)
        np.testing.assert_allclose(systems.cholesky(square), np.linalg.cholesky(square), **close)


def test_factors_and_exchanged_rows_are_lapacks():
    from scipy.linalg import lapack

    x = _matrices(6, np.float64)
    packed, rows, failed = systems.factored(x)
    for i, matrix in enumerate(x):
        expected, exchanged, _ = lapack.dgetrf(matrix)
        np.testing.assert_allclose(packed[i], expected, atol=1e-12)
        assert rows[i].tolist() == (exchanged + 1).tolist()
    assert not failed.any()
    assert systems.factored(np.zeros((2, 3, 3)))[2].tolist() == [1, 1]


def test_what_is_not_for_c_is_declined():
    singular, large = np.ones((2, 3, 3)), np.eye(17)
    assert systems.solved(singular, None) is None and systems.solved(large, None) is None
    assert systems.cholesky(-np.eye(2)) is None
    for other in (np.eye(2, dtype=complex), np.eye(2, dtype=np.float16), np.ones((2, 3))):
        assert systems.solved(other, None) is None and systems.determinants(other, False) is None
    assert systems.solved(np.eye(2), np.ones((3, 2, 1))) is None
    assert systems.determinants(np.zeros((2, 2)), True)[1] == -np.inf
    for empty in (np.empty((3, 0, 0)), np.empty((0, 2, 2)), np.empty((0, 0))):
        assert systems.determinants(empty, False) is None and systems.solved(empty, None) is None


def test_not_a_number_stays_one():
    x = wengert.full((2, 3, 3), float("nan"))
    assert wengert.linalg.det(x).isnan().all() and wengert.linalg.inv(x).isnan().any()
    assert wengert.linalg.slogdet(x).logabsdet.isnan().all()


def test_results_lie_in_columns_as_pytorchs():
    x = wengert.tensor(_matrices(3, np.float64))
    assert wengert.linalg.inv(x).stride() == (9, 1, 3)
    assert wengert.linalg.solve(x, x[..., :2]).stride() == (6, 1, 3)
    assert wengert.linalg.cholesky(x @ x.mT).stride() == (9, 1, 3)


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 1e-4)])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 16])
@pytest.mark.parametrize("upper", [False, True])
def test_spectra_are_those_of_one_triangle(n, dtype, tolerance, upper):
    """Random matrices beside ones with equal eigenvalues, zeros and blocks."""
    a = np.random.default_rng(n).standard_normal((70, n, n)).astype(dtype)
    a[1], a[2], a[3] = 0, np.eye(n), 1
    a[4], a[5] = np.diag(np.arange(n)), np.diag(-np.arange(n))
    a[6, : n // 2, n // 2 :] = a[6, n // 2 :, : n // 2] = 0
    part = np.triu(a) if upper else np.tril(a)
    whole = part + np.swapaxes(np.where(np.eye(n, dtype=bool), 0, part), 1, 2)
    values, vectors = wengert.linalg.eigh(wengert.tensor(a), UPLO="U" if upper else "L")
    assert np.allclose(values, np.linalg.eigvalsh(whole), atol=tolerance)
    assert np.allclose(whole @ vectors.numpy(), (vectors * values[:, None]).numpy(), atol=tolerance)
    assert np.allclose(vectors.mT @ vectors, np.eye(n), atol=tolerance)
    assert vectors.stride() == (n * n, 1, n)
    alone = wengert.linalg.eigvalsh(wengert.tensor(a), UPLO="U" if upper else "L")
    assert np.allclose(alone, values, atol=tolerance)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_spectra_of_extreme_sizes_are_scaled(size):
    a = np.array([[2.0, 1.0], [1.0, 2.0]]) * size
    assert systems.spectra(a, False, True) is None
    assert np.allclose(wengert.linalg.eigvalsh(wengert.tensor(a)).numpy() / size, [1, 3])


@pytest.mark.parametrize(("dtype", "least"), [(np.float32, -20), (np.float64, -160)])
def test_vectors_of_matrices_with_tiny_rows_are_orthogonal(dtype, least):
    """The squares of their elements are below the least number."""
    sizes = 10.0 ** np.linspace(0, least, 5)
    a = _matrices(5, np.float64)
    a = ((a + a.swapaxes(-1, -2)) * (sizes * sizes[:, None])).astype(dtype)
    vectors = wengert.linalg.eigh(wengert.tensor(a)).eigenvectors.numpy()
    product = vectors.swapaxes(-1, -2) @ vectors
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(5), a.shape), atol=1e-5)


@pytest.mark.parametrize(("dtype", "size"), [(np.float32, 2.0**-130), (np.float64, 2.0**-1030)])
def test_pivots_without_a_finite_inverse_divide(dtype, size):
    a = np.array([[2.0, 1.0], [1.0, 3.0]], dtype) * dtype(size)
    packed, _, failed = systems.factored(a)
    np.testing.assert_array_equal(packed, [[2 * size, size], [0.5, 2.5 * size]])
    assert not failed and systems.determinants(a, False) == 0
    sign, logarithm = systems.determinants(a, True)
    np.testing.assert_allclose([sign, logarithm], [1, np.log(5) + 2 * np.log(size)], rtol=1e-6)
    np.testing.assert_array_equal(systems.solved(a, a[:, 1:]), [[0], [1]])


def test_spectra_of_what_is_no_number_are_refused():
    a = wengert.full((2, 3, 3), float("nan"))
    with pytest.raises(wengert.linalg.LinAlgError, match="Batch element 0"):
        wengert.linalg.eigh(a)
