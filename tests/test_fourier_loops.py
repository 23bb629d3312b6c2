"""Fourier transforms that are computed without SciPy are SciPy's."""

import numpy as np
import pytest

from wengert.backends import fourier_loops, transforms

pytestmark = pytest.mark.compiled_only
TYPES = [(np.float64, np.complex128, 1e-12), (np.float32, np.complex64, 1e-4)]


def _numbers(*shape, dtype):
    draws = np.random.default_rng(len(shape)).standard_normal((2, *shape))
    return (draws[0] + 1j * draws[1]).astype(dtype)


@pytest.mark.parametrize("real, dtype, tolerance", TYPES)
@pytest.mark.parametrize("length", [2, 4, 8, 16, 32, 64, 128, 1024, 2048])
def test_rows(length, real, dtype, tolerance):
    close = {"atol": tolerance * length, "rtol": 0}
    x = _numbers(3, length, dtype=dtype)
    np.testing.assert_allclose(
        fourier_loops.transformed(x, (1,), False, 0.5), np.fft.fft(x) / 2, **close
    )
    np.testing.assert_allclose(
        fourier_loops.transformed(x, (1,), True, 1.0), np.fft.ifft(x, norm="forward"), **close
    )
    if length > 2:
        rows, half = x.real.copy(), x[:, : length // 2 + 1].copy()
        found = fourier_loops.halved(rows, (1,), 2.0, False)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, np.fft.rfft(rows) * 2, **close)
        whole = fourier_loops.halved(rows, (1,), 1.0, True)
        np.testing.assert_allclose(whole, np.fft.fft(rows), **close)
        back = fourier_loops.restored(half, (1,), length, 1.0)
        assert back.dtype == real
        np.testing.assert_allclose(back, np.fft.irfft(half, length, norm="forward"), **close)


@pytest.mark.parametrize("real, dtype, tolerance", TYPES)
@pytest.mark.parametrize("shape", [(8, 3), (2, 16, 65), (4, 32, 300), (2, 4, 8, 16), (1, 512, 40)])
def test_several_dimensions(shape, real, dtype, tolerance):
    """Columns are taken in blocks, some of them narrower than others."""
    close = {"atol": tolerance * 600, "rtol": 0}
    x = _numbers(*shape, dtype=dtype)
    suitable = [d for d, n in enumerate(shape) if n > 1 and not n & (n - 1)]
    for axis in suitable:
        found = fourier_loops.transformed(x, (axis,), False, 1.0)
        np.testing.assert_allclose(found, np.fft.fft(x, axis=axis), **close)
    found = fourier_loops.transformed(x, tuple(suitable), False, 1.0)
    np.testing.assert_allclose(found, np.fft.fftn(x, axes=suitable), **close)


def test_halves_of_pictures():
    x = _numbers(3, 16, 32, dtype=np.complex128).real.copy()
    half = fourier_loops.halved(x, (1, 2), 1.0, False)
    np.testing.assert_allclose(half, np.fft.rfft2(x), atol=1e-10)
    back = fourier_loops.restored(half, (1, 2), 32, 1 / 512)
    np.testing.assert_allclose(back, x, atol=1e-10)


def test_what_is_not_for_c_is_declined():
    x = np.ones((4, 8), np.complex128)
    for other in (x[:, :6], x.T, x[:0], x.astype(np.clongdouble), x.real):
        assert fourier_loops.transformed(other, (1,), False, 1.0) is None
    assert fourier_loops.transformed(x[:, :6].copy(), (1,), False, 1.0) is None
    assert fourier_loops.halved(x, (1,), 1.0, False) is None
    assert fourier_loops.halved(x.real.copy(), (0,), 1.0, False) is None
    assert fourier_loops.restored(x, (1,), 8, 1.0) is None


@pytest.mark.parametrize("real, dtype, tolerance", TYPES)
@pytest.mark.parametrize("length", [3, 7, 10, 101, 218, 1009])
def test_convolutions_are_transforms_of_any_length(length, real, dtype, tolerance):
    close = {"atol": tolerance * length, "rtol": 0}
    x, table = _numbers(3, length, dtype=dtype), transforms._chirps(length, real)
    rows, half = x.real.copy(), x[:, : length // 2 + 1].copy()
    found = [
        fourier_loops.convolved(x, 0, length, False, 0.5, table),
        fourier_loops.convolved(x, 0, length, True, 1.0, table),
        fourier_loops.convolved(rows, 1, length, False, 2.0, table),
        fourier_loops.convolved(rows, 2, length, False, 1.0, table),
        fourier_loops.convolved(half, 3, length, True, 1.0, table),
    ]
    assert [each.dtype for each in found] == [dtype] * 4 + [real]
    expected = [
        np.fft.fft(x) / 2, np.fft.ifft(x, norm="forward"), np.fft.rfft(rows) * 2, np.fft.fft(rows),
        np.fft.irfft(half, length, norm="forward"),
    ]  # fmt: skip
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, **close)
    assert not found[2][:, 0].imag.any() and not found[3][:, 0].imag.any()


def test_only_lengths_with_a_large_prime_factor_are_convolved():
    assert [n for n in range(900, 1200) if transforms._is_convolved(n)][:4] == [904, 905, 906, 907]
    assert not any(transforms._is_convolved(n) for n in (1, 2, 97, 1000, 1024, 1031, 32 * 31))
    assert transforms._is_convolved(1009)
    x = np.ones((2, 1009))
    x[1, 3] = np.nan
    found = transforms.rfftn(x, (1,), "backward")  # one row says nothing about the other
    assert np.isfinite(found[0]).all() and np.isnan(found[1]).all()
    np.testing.assert_allclose(transforms.fftn(x[:1].T, (0,), "ortho")[0].real, 1009**0.5)
