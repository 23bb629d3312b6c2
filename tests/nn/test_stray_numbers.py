"""A gradient that is no number reaches the elements that take part in its sum, and no others."""

import math

import pytest

RESIZED = {
    "adaptive_avg_pool1d": lambda F, x: F.adaptive_avg_pool1d(x, 3),
    "adaptive_avg_pool1d with unequal parts": lambda F, x: F.adaptive_avg_pool1d(x, 4),
    "adaptive_avg_pool2d": lambda F, x: F.adaptive_avg_pool2d(x[..., None], (3, 1)),
    "area": lambda F, x: F.interpolate(x, 3, mode="area"),
    "nearest": lambda F, x: F.interpolate(x, 3),
    "nearest-exact": lambda F, x: F.interpolate(x, 4, mode="nearest-exact"),
    "linear": lambda F, x: F.interpolate(x, 12, mode="linear"),
    "bilinear": lambda F, x: F.interpolate(x[..., None], (9, 1), mode="bilinear"),
    "bicubic": lambda F, x: F.interpolate(x[..., None], (9, 2), mode="bicubic"),
    "antialias": lambda F, x: F.interpolate(
        x[..., None], (3, 1), mode="bilinear", antialias=True
    ),
}


@pytest.mark.parametrize("stray", [math.nan, math.inf])
@pytest.mark.parametrize("name", RESIZED)
def test_a_stray_gradient_stays_where_it_belongs(lib, name, stray):
    x = lib.ones(1, 1, 6, dtype=lib.float64, requires_grad=True)
    y = RESIZED[name](lib.nn.functional, x)
    usual = lib.ones_like(y)
    first = lib.zeros_like(y)
    first.view(-1)[0] = 1
    (touched,) = lib.autograd.grad(y, x, first, retain_graph=True)
    (expected,) = lib.autograd.grad(y, x, usual, retain_graph=True)
    usual.view(-1)[0] = stray
    (found,) = lib.autograd.grad(y, x, usual)
    reached, numbers, wanted = (t.view(-1).tolist() for t in (touched, found, expected))
    count = sum(map(bool, reached))
    assert all(reached[:count])
    assert not any(map(math.isfinite, numbers[:count]))
    # PyTorch's linear modes multiply the next element by a weight of zero.
    assert numbers[count + 1 :] == pytest.approx(wanted[count + 1 :])
    if lib.__name__ == "wengert":
        assert numbers[count] == pytest.approx(wanted[count])
