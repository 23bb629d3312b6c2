"""Signs of zeros, and operators that reach the ends of their range exactly."""

import pytest

DTYPES = ("float32", "float64", "float16", "bfloat16")
#: Whether the result has the sign of minus zero, of which all tensors consist.
KEPT = {
    "relu": (lambda lib, x: lib.relu(x), True),
    "relu in place": (lambda lib, x: x.clone().relu_(), True),
    "relu6": (lambda lib, x: lib.nn.functional.relu6(x), True),
    "at least zero": (lambda lib, x: x.clamp(min=0), True),
    "from zero to one": (lambda lib, x: x.clamp(0.0, 1.0), True),
    "at most minus zero": (lambda lib, x: (-x).clamp(max=-0.0), False),
    "clamp in place": (lambda lib, x: x.clone().clamp_(0.0, 1.0), True),
    "clamp_min": (lambda lib, x: x.clamp_min(0.0), True),
    "clamp_max": (lambda lib, x: (-x).clamp_max(-0.0), False),
    "hardtanh": (lambda lib, x: lib.nn.functional.hardtanh(x, 0.0, 1.0), True),
    "elu": (lambda lib, x: lib.nn.functional.elu(x), True),
    "selu": (lambda lib, x: lib.nn.functional.selu(x), True),
    "celu": (lambda lib, x: lib.nn.functional.celu(x), True),
    "leaky_relu": (lambda lib, x: lib.nn.functional.leaky_relu(x), True),
    "threshold": (lambda lib, x: lib.nn.functional.threshold(x, 0.0, 0.0), False),
    "hardshrink": (lambda lib, x: lib.nn.functional.hardshrink(x), False),
    "remainder of a negative number": (lambda lib, x: (x - 2) % 1, True),
    "remainder by a negative number": (lambda lib, x: (x + 2) % -1, False),
    "lerp": (lambda lib, x: lib.lerp(x, x, 0.5), True),
    "cumsum": (lambda lib, x: x.cumsum(0), False),
    "cumsum of rows": (lambda lib, x: x.unsqueeze(1).expand(-1, 2).cumsum(0), False),
    "cumsum in place": (lambda lib, x: x.clone().cumsum_(-1), False),
    "cumprod of one": (lambda lib, x: x.unsqueeze(0).cumprod(0), True),
    "largest of equals": (
        lambda lib, x: lib.nn.functional.max_pool1d(
            lib.stack([x, -x], -1).reshape(1, 1, -1), 2
        ),
        True,
    ),
}


@pytest.mark.parametrize("layout", ["contiguous", "every second"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KEPT)
def test_signs_of_zeros(lib, name, dtype, layout):
    function, minus = KEPT[name]
    for length in (1, 3, 40, 1000, 70_000):
        x = lib.full((length, 2), -0.0, dtype=getattr(lib, dtype))
        x = x.reshape(-1) if layout == "contiguous" else x[:, 0]
        signs = lib.signbit(function(lib, x))
        assert bool((signs == minus).all()), length


@pytest.mark.parametrize("name", KEPT)
def test_signs_of_zeros_in_a_compiled_function(name):
    import wengert

    function, minus = KEPT[name]
    compiled = wengert.compile(lambda x: function(wengert, x * 1.5))
    for length in (1, 3, 40, 1000):
        signs = wengert.signbit(compiled(wengert.full((length,), -0.0)))
        assert bool((signs == minus).all()), length


def test_what_softshrink_takes_to_zero_keeps_its_sign(lib):
    x = lib.tensor([-0.2, 0.2, -0.0])
    assert lib.signbit(lib.nn.functional.softshrink(x)).tolist() == [True, False, True]


def test_interpolation_reaches_both_ends(lib):
    x, end = lib.tensor([1e8, 0.1]), lib.tensor([1.0, 0.7])
    assert lib.lerp(x, end, 1.0).tolist() == end.tolist()
    assert lib.lerp(x, end, lib.ones(2)).tolist() == end.tolist()
    assert lib.lerp(x, end, 0.0).tolist() == x.tolist()
    assert lib.lerp(x, end, lib.tensor([0.0, 1.0])).tolist() == [x[0].item(), end[1].item()]
