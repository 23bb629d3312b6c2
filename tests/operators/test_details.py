"""Details of operators that a comparison with PyTorch's database of operators has shown."""

import warnings

import pytest

import wengert


def test_stft_as_pairs(lib):
    x = lib.arange(20.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pairs = lib.stft(x, 8, window=lib.ones(8), return_complex=False)
    whole = lib.stft(x, 8, window=lib.ones(8), return_complex=True)
    assert pairs.shape == (*whole.shape, 2)
    assert (pairs - lib.view_as_real(whole)).abs().max().item() < 1e-5


def test_slopes_without_a_spacing(lib):
    x = lib.arange(4.0) ** 2
    (found,) = lib.gradient(x, spacing=None, dim=None)
    assert found.tolist() == [1, 2, 4, 5]


def test_powers_of_one_number(lib):
    assert lib.linalg.vander(lib.tensor(3.0), N=3).tolist() == [[1, 3, 9]]
    with pytest.raises(RuntimeError, match="N must be greater than 1"):
        lib.linalg.vander(lib.tensor(3.0))


def test_results_in_columns(lib):
    a = lib.eye(3) * 4 + lib.ones(3, 3)
    b, tau = lib.ones(3, 2), lib.full((3,), 0.5)
    lu, pivots = lib.linalg.lu_factor(a)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        copied = lib.triangular_solve(b, a)[1]
    for found in (
        lib.linalg.householder_product(a, tau), lib.ormqr(a, tau, b), lib.cholesky_inverse(a),
        copied, lib.linalg.lu_solve(lu, pivots, b, adjoint=True),
    ):  # fmt: skip
        assert found.stride() == (1, 3)
    assert lib.linalg.lu_solve(lu, pivots, b.mT, left=False).stride() == (3, 1)
    assert lib.cholesky_inverse(lib.stack([a, a])).stride() == (9, 1, 3)


@pytest.mark.parametrize("name", ["irfft", "hfft"])
def test_real_transforms_have_real_targets(lib, name):
    with pytest.raises(RuntimeError, match=f"{name} expects a floating point output tensor"):
        getattr(lib.fft, name)(lib.ones(3) + 0j, out=lib.zeros(4, dtype=lib.complex64))


@pytest.mark.parametrize("name", ["stack", "hstack", "vstack", "dstack", "column_stack", "cat"])
def test_targets_that_what_is_joined_does_not_fit(lib, name):
    with pytest.raises(TypeError, match="can't be cast to the desired output type Long"):
        getattr(lib, name)([lib.ones(2), lib.ones(2)], out=lib.zeros(2, 2, dtype=lib.int64))


def test_transforms_of_what_is_not_plain(lib):
    x = lib.arange(24.0).view(2, 3, 4)
    turned = x.transpose(0, 2)
    assert (lib.fft.fft(turned, dim=0) - lib.fft.fft(turned.clone(), dim=0)).abs().max() < 1e-5
    if lib is wengert:  # some builds of PyTorch refuse an empty batch
        assert lib.fft.fft(lib.zeros(0, 4)).shape == (0, 4)
        assert lib.fft.irfft(lib.zeros(0, 3) + 0j, 4).shape == (0, 4)
    back = lib.fft.irfft(lib.fft.rfft(x, norm="ortho"), 4, norm="ortho")
    assert (back - x).abs().max() < 1e-5
    large = lib.sin(lib.arange(2.0**17)).view(32, -1)
    assert (lib.fft.ifft(lib.fft.fft(large)).real - large).abs().max() < 1e-5


def test_transforms_of_nothing():
    """PyTorch's library for transforms refuses empty batches."""
    assert wengert.fft.fft(wengert.zeros(0, 4)).shape == (0, 4)
    assert wengert.fft.irfft(wengert.zeros(0, 3) + 0j, 4).shape == (0, 4)


@pytest.mark.parametrize("shape", [(300, 256), (300, 255), (70_000, 1), (40_000, 2), (23_000, 3)])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_transforms_of_many_real_rows(shape, norm):
    """Half of each is computed and mirrored."""
    x = wengert.sin(wengert.arange(float(shape[0] * shape[1]), dtype=wengert.float64)).view(shape)
    found, expected = wengert.fft.fft(x, norm=norm), wengert.fft.fft(x + 0j, norm=norm)
    assert (found - expected).abs().max().item() < 1e-12
    inverse = wengert.fft.ifft(x, norm=norm)
    assert (inverse - wengert.fft.ifft(x + 0j, norm=norm)).abs().max().item() < 1e-12


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64", "bool"])
def test_a_weight_that_is_one_number_may_have_another_dtype(lib, dtype):
    x, end = lib.ones(2), lib.tensor([3.0, 5.0])
    weight = lib.tensor(1, dtype=getattr(lib, dtype))
    assert lib.lerp(x, end, weight).tolist() == [3.0, 5.0]
    assert x.lerp_(end, weight).dtype == lib.float32
    with pytest.raises(RuntimeError, match="expected dtype .* for `weight`"):
        x.lerp(end, weight.expand(1))
    with pytest.raises(RuntimeError, match="expected dtype .* for `end`"):
        x.lerp(weight, 0.5)


@pytest.mark.parametrize("name", ["index_fill", "index_fill_"])
def test_a_complex_number_is_not_filled_into_real_ones(lib, name):
    for value in (1j, lib.tensor(1j), lib.tensor(2 + 0j)):
        with pytest.raises(RuntimeError, match="Converting complex Scalar to non-complex type"):
            getattr(lib.ones(2), name)(0, lib.tensor([0]), value)
