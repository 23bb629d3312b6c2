"""Factors of matrices, low-rank approximations and short Fourier transforms: refusals and cases."""

import warnings

import numpy as np
import pytest

import wengert
from wengert.autograd import gradcheck, gradgradcheck


def _raised(function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((RuntimeError, ValueError, NotImplementedError)) as caught:
            function()
    return caught.value


REFUSED = {
    "no pivots": lambda lib: lib.linalg.lu_factor(lib.eye(2), pivot=False),
    "vector": lambda lib: lib.linalg.lu_factor(lib.ones(2)),
    "singular": lambda lib: lib.linalg.lu_factor(lib.zeros(2, 2)),
    "singular in a batch": lambda lib: lib.linalg.lu_factor_ex(
        lib.zeros(2, 2, 2), check_errors=True
    ),
    "whole numbers": lambda lib: lib.linalg.lu(lib.ones(2, 2, dtype=lib.int32)),
    "pivots of another type": lambda lib: lib.lu_unpack(lib.eye(2), lib.ones(2, dtype=lib.int64)),
    "other rows": lambda lib: lib.linalg.lu_solve(
        lib.eye(3), lib.ones(3, dtype=lib.int32), lib.ones(2, 2)
    ),
    "not square": lambda lib: lib.linalg.ldl_factor(lib.ones(2, 3)),
    "wide reflections": lambda lib: lib.linalg.householder_product(lib.ones(2, 3), lib.ones(2)),
    "many reflections": lambda lib: lib.linalg.householder_product(lib.ones(3, 2), lib.ones(3)),
    "types of reflections": lambda lib: lib.linalg.householder_product(
        lib.ones(3, 2), lib.ones(2).double()
    ),
    "rows of ormqr": lambda lib: lib.ormqr(lib.ones(3, 2), lib.ones(2), lib.ones(2, 2)),
    "derivative of geqrf": lambda lib: lib.geqrf(
        lib.eye(2, requires_grad=True)
    )[0].sum().backward(),
    "derivative of ldl": lambda lib: lib.linalg.ldl_factor(
        lib.eye(2, requires_grad=True)
    )[0].sum().backward(),
    "few rows": lambda lib: lib.lobpcg(lib.eye(2), 1),
    "q": lambda lib: lib.pca_lowrank(lib.ones(3, 2), q=3),
    "niter": lambda lib: lib.pca_lowrank(lib.ones(3, 2), niter=-1),
    "complex and one-sided": lambda lib: lib.stft(
        lib.ones(8, dtype=lib.complex64), 4, onesided=True, return_complex=True
    ),
    "alignment": lambda lib: lib.stft(lib.ones(8), 4, align_to_window=True, return_complex=True),
    "real spectra": lambda lib: lib.istft(lib.ones(3, 3), 4),
    "bins": lambda lib: lib.histogram(lib.ones(3), 0),
    "range": lambda lib: lib.histogram(lib.ones(3), 2, range=(3.0, 1.0)),
    "weights": lambda lib: lib.histogram(lib.ones(4), 2, weight=lib.ones(3)),
    "coordinates": lambda lib: lib.histogramdd(lib.ones(4, 2), [2]),
    "size": lambda lib: lib.nonzero_static(lib.ones(2), size=-1),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_those_of_pytorch(name):
    torch = pytest.importorskip("torch")
    error, expected = (_raised(lambda lib=lib: REFUSED[name](lib)) for lib in (wengert, torch))
    assert type(error).__mro__[-4:] == type(expected).__mro__[-4:]
    assert str(error)[:40] == str(expected)[:40]


def test_factors_of_singular_matrices_are_told_apart():
    given = wengert.stack([wengert.eye(2), wengert.ones(2, 2)])
    _, _, info = wengert.linalg.lu_factor_ex(given)
    assert info.tolist() == [0, 2]
    with pytest.raises(wengert.linalg.LinAlgError, match=r"\(Batch element 1\): U\[2,2\] is zero"):
        wengert.linalg.lu_factor(given)


def test_older_names_warn(lib):
    x = lib.tensor([[2.0, 1.0], [1.0, 3.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        packed, pivots, info = lib.lu(x, get_infos=True)
        assert x.lu()[0].equal(packed) and int(info) == 0
        found = lib.lu_solve(lib.ones(2, 1), packed, pivots)
    assert lib.allclose(x @ found, lib.ones(2, 1))


def _symmetric(seed=0, n=9):
    values = np.random.default_rng(seed).normal(size=(n, n))
    return wengert.tensor(values + values.T)


@pytest.mark.parametrize("largest", [True, False])
def test_lobpcg_finds_the_outermost_eigenpairs(largest):
    x = _symmetric()
    values, vectors = wengert.lobpcg(x, 2, largest=largest, tol=1e-12)
    all_values = wengert.linalg.eigvalsh(x)
    expected = all_values.flip(0)[:2] if largest else all_values[:2]
    assert wengert.allclose(values, expected)
    assert wengert.allclose(x @ vectors, vectors * values, atol=1e-8)


def test_lobpcg_has_derivatives_of_every_order():
    x, guess = _symmetric(), wengert.tensor(np.random.default_rng(1).normal(size=(9, 2)))

    def outermost(x):
        values, vectors = wengert.lobpcg((x + x.mT) / 2, 2, X=guess, tol=1e-14)
        return values, vectors.abs()

    x = x.requires_grad_()
    assert gradcheck(outermost, (x,), check_forward_ad=True, fast_mode=True)
    assert gradgradcheck(outermost, (x,), fast_mode=True)


def test_lobpcg_with_another_product_and_a_preconditioner():
    x, weight = _symmetric(), 2 * wengert.eye(9, dtype=wengert.float64)
    options = {"niter": 200, "tol": 1e-12, "iK": wengert.eye(9, dtype=wengert.float64)}
    values, _ = wengert.lobpcg(x, 1, B=weight, **options)
    assert wengert.allclose(values, wengert.linalg.eigvalsh(x)[-1:] / 2)
    with pytest.raises(ValueError, match="B != I"):
        wengert.lobpcg(x.requires_grad_(), 1, B=weight)[0].sum().backward()
    with pytest.raises(NotImplementedError, match="tracker"):
        wengert.lobpcg(x, 1, tracker=print)


@pytest.mark.parametrize("shape", [(12, 5), (5, 12), (2, 8, 6)])
def test_low_rank_approximations_find_what_has_low_rank(shape):
    random = np.random.default_rng(2)
    *batch, m, n = shape
    x = wengert.tensor(random.normal(size=(*batch, m, 2)) @ random.normal(size=(*batch, 2, n)))
    u, s, v = wengert.svd_lowrank(x, 3)
    assert wengert.allclose(u @ wengert.diag_embed(s) @ v.mH, x)
    u, s, v = wengert.pca_lowrank(x, 3)
    centred = x - x.mean(-2, keepdim=True)
    assert wengert.allclose(u @ wengert.diag_embed(s) @ v.mH, centred)
    shifted = wengert.svd_lowrank(x, 2, M=x.mean(-2, keepdim=True))[1]
    assert wengert.allclose(shifted, s[..., :2])


def test_signals_come_back_from_their_transforms(lib):
    signal = lib.sin(lib.arange(40.0).reshape(2, 20))
    window = lib.hann_window(8)
    for options in ({}, {"normalized": True, "hop_length": 2}, {"onesided": False}):
        there = lib.stft(signal, 8, window=window, return_complex=True, **options)
        assert lib.allclose(lib.istft(there, 8, window=window, length=20, **options), signal,
                            atol=1e-5)


def test_windows_that_leave_samples_out_are_refused(lib):
    there = lib.stft(lib.ones(16), 4, window=lib.ones(4), return_complex=True)
    with pytest.raises(RuntimeError, match="window overlap add min"):
        lib.istft(there, 4, window=lib.zeros(4))


def test_ranges_of_histograms_are_those_of_the_elements(lib):
    counts, edges = lib.histogram(lib.tensor([1.0, 2, 1, 4]), 3)
    assert counts.tolist() == [2, 1, 1]
    assert edges.tolist() == [1, 2, 3, 4]
    counts, edges = lib.histogram(lib.ones(3), 2)
    assert counts.tolist() == [0, 3] and edges.tolist() == [0.5, 1, 1.5]
    counts, (rows, columns) = lib.histogramdd(lib.tensor([[0.0, 1], [2, 0], [2, 2]]), 2)
    assert counts.tolist() == [[0, 1], [1, 1]]
    assert rows.tolist() == columns.tolist() == [0, 1, 2]


def test_parts_may_be_changed_each_on_its_own(lib):
    x = lib.arange(4.0, requires_grad=True)
    parts = [*lib.unsafe_chunk(x, 2), *lib.unsafe_split(x, 2), *x.unsafe_split_with_sizes([1, 3])]
    for part in parts:
        part.mul_(2).sum().backward()
    assert x.grad.tolist() == [6, 6, 6, 6]


def test_strided_parts_of_tensors_that_share_elements(lib):
    row = lib.arange(3.0).expand(2, 3)
    found = lib.as_strided_scatter(row, lib.zeros(2), (2,), (1,))
    assert found.tolist() == [[0, 0, 2], [0, 1, 2]]
    with pytest.raises(RuntimeError, match="src size"):
        lib.as_strided_scatter(lib.zeros(3), lib.zeros(2), (3,), (1,))
