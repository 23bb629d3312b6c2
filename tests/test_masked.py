"""Reductions that leave out elements, and windows, beside PyTorch's."""

import inspect
import warnings

import numpy as np
import pytest

import wengert
from wengert.autograd import gradcheck

VALUES = np.random.default_rng(0).normal(size=(3, 4))
MASK = np.array([[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 0, 1]], bool)
REDUCTIONS = ["sum", "prod", "amax", "amin", "mean", "var", "std", "norm", "logsumexp"]
SCANS = ["cumsum", "cumprod", "softmax", "log_softmax", "softmin"]


def _same(call):
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = call(torch)
    found = call(wengert)
    assert found.shape == expected.shape
    assert str(found.dtype).partition(".")[2] == str(expected.dtype).partition(".")[2]
    np.testing.assert_allclose(found.numpy(), expected.numpy(), 1e-5, 1e-6)


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("options", [{}, {"dim": 1}, {"dim": 0, "keepdim": True}, {"dim": (0, 1)}])
def test_reductions(name, options):
    for mask in (MASK, MASK[0], None):
        _same(
            lambda lib, mask=mask: getattr(lib.masked, name)(
                lib.tensor(VALUES), mask=None if mask is None else lib.tensor(mask), **options
            )
        )


@pytest.mark.parametrize("name", SCANS)
def test_scans_and_normalisations(name):
    _same(lambda lib: getattr(lib.masked, name)(lib.tensor(VALUES), 1, mask=lib.tensor(MASK)))
    _same(lambda lib: getattr(lib.masked, name)(lib.tensor(VALUES), 0, dtype=lib.float32))


@pytest.mark.parametrize("name", ["argmax", "argmin", "median"])
def test_places(name):
    _same(lambda lib: getattr(lib.masked, name)(lib.tensor(VALUES), 1, mask=lib.tensor(MASK)))
    whole = (VALUES * 4).astype(np.int32)
    _same(lambda lib: getattr(lib.masked, name)(lib.tensor(whole), 0, mask=lib.tensor(MASK)))


def test_others():
    _same(lambda lib: lib.masked.normalize(lib.tensor(VALUES), 2.0, 1, mask=lib.tensor(MASK)))
    _same(lambda lib: lib.masked.norm(lib.tensor(VALUES), -float("inf"), 1, mask=lib.tensor(MASK)))
    _same(lambda lib: lib.masked.var(lib.tensor(VALUES), 1, correction=2, mask=lib.tensor(MASK)))
    _same(
        lambda lib: lib.masked.logaddexp(
            lib.tensor(VALUES), lib.tensor(VALUES + 1), input_mask=lib.tensor(MASK)
        )
    )
    _same(lambda lib: lib.masked.sum(lib.tensor(MASK).int(), 1, mask=lib.tensor(MASK)))


def test_refusals(lib):
    x, mask = lib.tensor(VALUES), lib.tensor(MASK)
    with pytest.raises(IndexError, match="dimensionality higher"):
        lib.masked.sum(x, mask=mask[None])
    with pytest.raises(ValueError, match="mean"):
        lib.masked.mean(x.int(), 1, mask=mask)
    with pytest.raises(NotImplementedError, match="identity of amax"):
        lib.masked.amax(x.bool(), 1, mask=mask)
    with pytest.raises(ValueError, match="fully masked out"):
        lib.masked.median(x.int(), 1, mask=mask)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "std", "norm", "softmax"])
def test_gradients(name):
    x, mask = wengert.tensor(VALUES, requires_grad=True), wengert.tensor(MASK[[0, 2, 2]])
    call = getattr(wengert.masked, name)
    assert gradcheck(lambda x: call(x, dim=1, mask=mask), (x,), check_forward_ad=True)


@pytest.mark.parametrize("name", wengert.masked.__all__)
def test_parameters_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    mine, other = (inspect.signature(getattr(lib.masked, name)) for lib in (wengert, torch))
    assert [(p.name, p.kind, p.default) for p in mine.parameters.values()] == [
        (p.name, p.kind, p.default) for p in other.parameters.values()
    ]


# Windows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
@pytest.mark.parametrize("length", [0, 1, 2, 7])
def test_old_windows(name, length):
    for args in ((), (False,)):
        _same(lambda lib, args=args: getattr(lib, f"{name}_window")(length, *args))
    assert inspect.signature(getattr(wengert, f"{name}_window")).parameters["window_length"]


def test_parameters_of_old_windows(lib):
    assert lib.hamming_window(4, True, 0.5, 0.4).tolist()[0] == pytest.approx(0.1)
    assert lib.kaiser_window(5, periodic=False, beta=2.0, dtype=lib.float64).dtype is lib.float64
    assert lib.hann_window(4, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="non-negative window_length"):
        lib.hann_window(-1)
    with pytest.raises(RuntimeError, match="floating point"):
        lib.hann_window(4, dtype=lib.int64)


@pytest.mark.parametrize("name", wengert.signal.windows.__all__)
def test_windows(name):
    options = {"a": [0.3, 0.4, 0.3]} if name == "general_cosine" else {}
    for length, sym in ((0, True), (1, True), (6, True), (6, False)):
        _same(
            lambda lib, length=length, sym=sym: getattr(lib.signal.windows, name)(
                length, sym=sym, **options
            )
        )


def test_refusals_of_windows(lib):
    windows = lib.signal.windows
    for call, text in (
        (lambda: windows.hann(-1), "non-negative window length"),
        (lambda: windows.hann(3, dtype=lib.float16), "float32 or float64"),
        (lambda: windows.gaussian(3, std=0), "Standard deviation"),
        (lambda: windows.exponential(3, tau=0), "Tau"),
        (lambda: windows.exponential(3, center=1), "Center must be None"),
        (lambda: windows.kaiser(3, beta=-1), "beta must be non-negative"),
        (lambda: windows.general_cosine(3, a=[]), "cannot be empty"),
    ):
        with pytest.raises(ValueError, match=text):
            call()


def test_variances_of_complex_numbers_are_complex(lib):
    z = lib.tensor([[1 + 2j, 3 - 1j], [0j, 1j]])
    found = lib.masked.var(z, 1)
    assert found.dtype is lib.complex64 and found.tolist() == [6.5, 0.5]
    assert lib.masked.std(z, 1).dtype is lib.complex64
