"""What the samples cannot show of special functions, transforms, counts and in-place functions."""

import pytest

import wengert
from wengert.tensor.inplace_functions import FUNCTIONS


def test_in_place_functions_write_into_their_argument():
    x = wengert.tensor([0.25, 0.5])
    assert wengert.sqrt_(x) is x
    assert x.tolist() == pytest.approx([0.5, 0.5**0.5])
    assert "sqrt_" in dir(wengert)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_in_place_functions_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    assert callable(getattr(wengert, name)) and hasattr(torch, name)


def test_namespaces_have_all_names():
    torch = pytest.importorskip("torch")
    for module in ("fft", "special"):
        wanted = set(getattr(torch, module).__all__) - {"Tensor", "factory_common_args"}
        missing = wanted - set(dir(getattr(wengert, module)))
        assert not missing


def test_frequencies(lib):
    assert lib.fft.fftfreq(5, 2.0).tolist() == pytest.approx([0, 0.1, 0.2, -0.2, -0.1])
    assert lib.fft.rfftfreq(4, dtype=lib.float64).tolist() == [0, 0.25, 0.5]
    assert lib.fft.fftfreq(3, requires_grad=True).requires_grad


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda t, x: t.fft.fft(x, 0), RuntimeError, "Invalid number of data points"),
        (lambda t, x: t.fft.fft(x, norm="x"), RuntimeError, "Invalid normalization mode"),
        (lambda t, x: t.fft.fft(x, dim=3), IndexError, "Dimension out of range"),
        (lambda t, x: t.fft.fftn(x, dim=(0, 0)), RuntimeError, "FFT dims must be unique"),
        (lambda t, x: t.fft.fftn(x, s=(2,), dim=(0, 1)), RuntimeError, "must have the same length"),
        (lambda t, x: t.fft.rfft(x + 0j), RuntimeError, "expects a real input tensor"),
        (lambda t, x: t.fft.fft(x.half()), RuntimeError, "Unsupported dtype Half"),
        (lambda t, x: t.frexp(x.long()), RuntimeError, "only supports floating-point dtypes"),
        (lambda t, x: t.polygamma(-1, x), RuntimeError, "does not support negative n"),
        (lambda t, x: t.isposinf(x + 0j), RuntimeError, "does not support complex inputs"),
        (lambda t, x: t.bincount(x.long()), RuntimeError, "1-d non-negative integral inputs"),
        (lambda t, x: t.cdist(x[0], x), RuntimeError, "at least 2D tensors"),
        (lambda t, x: t.isin(x + 0j, x), RuntimeError, "Unsupported input type"),
        (lambda t, x: t.combinations(x), RuntimeError, "Expect a 1D vector"),
        (lambda t, x: t.heaviside(x, x.double()), RuntimeError, "different dtypes"),
        (lambda t, x: t.select_scatter(x, x, 0, 0), RuntimeError, "to have a size equal to"),
    ],
)
def test_refusals(lib, call, error, words):
    with pytest.raises(error, match=words):
        call(lib, lib.ones(2, 3))


def test_no_derivative_by_the_order_of_incomplete_gamma_functions(lib):
    a = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="is not implemented"):
        lib.igamma(a, lib.ones(2)).sum().backward()
    step = lib.heaviside(a, lib.ones(2))
    assert step.requires_grad
    with pytest.raises(RuntimeError, match="is not implemented"):
        step.sum().backward()


def test_results_without_gradient(lib):
    x = lib.ones(3, requires_grad=True)
    assert lib.combinations(x, 0).shape == (0,)
    assert lib.vander(x, 1).tolist() == [[1], [1], [1]]
    assert not lib.special.bessel_j0(x).requires_grad


def test_an_empty_batch_is_transformed():
    assert wengert.fft.fft(wengert.zeros(0, 4)).shape == (0, 4)
    assert wengert.fft.rfft(wengert.zeros(0, 4)).shape == (0, 3)


@pytest.mark.parametrize("name", ["celu", "cosine_similarity", "pairwise_distance", "selu"])
def test_functions_of_networks_that_the_package_has_too(name):
    torch = pytest.importorskip("torch")
    found = []
    for lib in (wengert, torch):
        rows = [lib.tensor([[0.5, -1.0, 2.0]]), lib.tensor([[1.0, 1.5, -0.5]])]
        found.append(getattr(lib, name)(*rows[: 2 if "_" in name else 1]).flatten().tolist())
    assert found[0] == pytest.approx(found[1], rel=1e-5)


@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_divisors_of_floats_are_refused(lib, name):
    x = lib.tensor([4.0, 6.0])
    with pytest.raises((RuntimeError, NotImplementedError), match="not implemented for 'Float'"):
        getattr(lib, name)(x, x)
