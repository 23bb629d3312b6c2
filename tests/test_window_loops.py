"""Convolutions in C are those by NumPy, whatever pieces the pictures are taken in."""

import numpy as np
import pytest

import wengert
from wengert.backends import window_loops
from wengert.operators import convolution
from wengert.operators.convolution import convolved_sizes

pytestmark = pytest.mark.compiled_only
CASES = [
    # kernel, stride, padding, dilation
    ((3, 3), (1, 1), (1, 1), (1, 1)),
    ((1, 1), (1, 1), (0, 0), (1, 1)),
    ((3, 3), (1, 1), (0, 0), (1, 1)),
    ((3, 3), (1, 1), (2, 2), (2, 2)),
    ((3, 5), (2, 3), (1, 2), (1, 1)),
    ((7, 1), (1, 1), (3, 0), (1, 1)),
    ((1, 15), (1, 1), (0, 7), (1, 1)),
    ((2, 2), (3, 1), (4, 5), (2, 1)),
    ((3, 3), (4, 4), (0, 0), (1, 1)),
]
#: Several pictures in a piece, and one in several.
PICTURES = [(5, 4, 7, 6), (2, 4, 70, 600)]


def by_numpy(monkeypatch, name, *given):
    """What the operator's kernel computes where C declines."""
    with monkeypatch.context() as patch:
        for function in ("gather", "weigh", "spread"):
            patch.setattr(window_loops, function, lambda *given: False)
        return getattr(convolution, name)(np, *given)


def served(monkeypatch, function):
    """The answers of a function of C, which is called as before."""
    answers = []
    inner = getattr(window_loops, function)

    def called(*given):
        answers.append(inner(*given))
        return answers[-1]

    monkeypatch.setattr(window_loops, function, called)
    return answers


def near(found, expected):
    tolerance = 1e-9 if expected.dtype == np.float64 else 2e-4
    scale = np.abs(expected).max(initial=1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("kernel, stride, padding, dilation", CASES)
@pytest.mark.parametrize("shape", PICTURES)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_convolutions(monkeypatch, kernel, stride, padding, dilation, shape, groups, dtype):
    random = np.random.default_rng(0)
    whole = random.standard_normal(shape).astype(dtype)
    answers = [served(monkeypatch, name) for name in ("gather", "weigh", "spread")]
    for x in (whole, whole[::2], whole[:, :, ::2], whole[:, ::-1]):
        sizes = convolved_sizes(x.shape[2:], kernel, stride, padding, dilation)
        weight = random.standard_normal((6, 4 // groups, *kernel)).astype(dtype)
        rest = (stride, padding, dilation, groups)
        given = (x, weight, (x.shape[0], 6, *sizes), *rest)
        out = convolution._gathered(np, *given)
        near(out, by_numpy(monkeypatch, "_gathered", *given))
        given = (x, out, kernel, *rest)
        near(
            convolution._weight_gradient(np, *given),
            by_numpy(monkeypatch, "_weight_gradient", *given),
        )
        extra = convolution._missing(x.shape[2:], sizes, kernel, stride, padding, dilation)
        assert min(extra) >= 0
        given = (out, weight, x.shape, *rest)
        near(convolution._spread(np, *given), by_numpy(monkeypatch, "_spread", *given))
    assert all(all(each) for each in answers) and len(answers[0]) >= 4 == len(answers[1])


def test_what_is_not_for_c_is_declined():
    x, weight, out = np.ones((2, 3, 4, 4)), np.ones((1, 5, 3)), np.empty((2, 5, 4, 4))
    options = ((1, 1), (4, 4), (1, 1), (0, 0), (1, 1), 1)
    assert window_loops.gather(x, weight, out, *options)
    np.testing.assert_array_equal(out, np.full((2, 5, 4, 4), 3.0))
    turned = x.swapaxes(2, 3)
    for other in (x.astype(complex), x.astype(int), x.astype(np.float32), turned, x[0]):
        assert not window_loops.gather(other, weight, out, *options)
    assert not window_loops.gather(x, weight, out.swapaxes(2, 3), *options)
    assert not window_loops.gather(x, weight[:, ::-1], out, *options)


def test_bits_do_not_depend_on_the_number_of_threads():
    random = np.random.default_rng(1)
    x = wengert.tensor(random.standard_normal((9, 8, 20, 30)).astype(np.float32))
    weight = wengert.tensor(random.standard_normal((12, 8, 3, 3)).astype(np.float32))
    pairs = [
        [wengert.tensor(random.standard_normal(shape).astype(dtype)) for shape in ((m, k), (k, n))]
        for m, k, n in [
            (128, 512, 300),
            (200, 784, 65),
            (17, 512, 300),
            (130, 64, 511),
            (96, 80, 96),
        ]
        for dtype in (np.float32, np.float64)
    ]
    batch = [wengert.tensor(random.standard_normal((6, 90, 90))) for _ in range(2)]
    found = []
    before = wengert.get_num_threads()
    try:
        for threads in (1, 2, 3, 7):
            wengert.set_num_threads(threads)
            a, w = x.detach().requires_grad_(), weight.detach().requires_grad_()
            for stride in (1, 2):
                out = wengert.nn.functional.conv2d(a, w, stride=stride, padding=1)
                out.square().sum().backward()
            products = [b @ c for b, c in pairs] + [
                batch[0] @ batch[1],
                batch[0][:2] @ batch[1][:2],
            ]
            found.append([t.numpy().tobytes() for t in (out.detach(), a.grad, w.grad, *products)])
    finally:
        wengert.set_num_threads(before)
    assert all(each == found[0] for each in found[1:])
