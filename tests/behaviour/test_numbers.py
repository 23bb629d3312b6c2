"""Numbers and dtypes at their limits: what does not fit or has no meaning is refused."""

import math

import pytest

OVERFLOW = "value cannot be converted to type .* without overflow"


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("uint8", 300),
        ("uint8", 1e20),
        ("int8", 2**40),
        ("int32", 2**40),
        ("int64", math.nan),
        ("int64", math.inf),
        ("float32", 1e39),
        ("float32", 1j),
        ("int64", 1j),
    ],
)
@pytest.mark.parametrize(
    "write",
    [
        lambda lib, x, value: x.fill_(value),
        lambda lib, x, value: x.__setitem__(0, value),
        lambda lib, x, value: x.__setitem__(slice(None), value),
        lambda lib, x, value: x.__setitem__(lib.tensor([0]), value),
        lambda lib, x, value: x.masked_fill_(lib.tensor([True, False]), value),
        lambda lib, x, value: lib.full((2,), value, dtype=x.dtype),
        lambda lib, x, value: lib.full_like(x, value),
    ],
)
def test_a_number_that_does_not_fit_is_refused(lib, write, dtype, value):
    x = lib.zeros(2, dtype=getattr(lib, dtype))
    with pytest.raises(RuntimeError, match=OVERFLOW):
        write(lib, x, value)
    assert x.tolist() == [0, 0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_assigning_a_large_number_to_half_precision_gives_infinity(lib, dtype):
    x = lib.zeros(2, dtype=getattr(lib, dtype))
    x[0] = 1e300
    assert x.tolist() == [math.inf, 0.0]


@pytest.mark.parametrize("zero", [0, False])
@pytest.mark.parametrize(
    "divide",
    [
        lambda lib, x, y: x // y,
        lambda lib, x, y: x % y,
        lambda lib, x, y: x.fmod(y),
        lambda lib, x, y: lib.div(x, y, rounding_mode="trunc"),
        lambda lib, x, y: lib.div(x, y, rounding_mode="floor"),
        lambda lib, x, y: x.clone().remainder_(y),
    ],
)
def test_integer_division_by_zero_is_refused(lib, divide, zero):
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        divide(lib, lib.tensor([5, 6]), zero)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        divide(lib, lib.tensor([5, 6]), lib.tensor([1, 0]))


def test_floating_division_by_zero_is_not(lib):
    x = lib.tensor([5.0, -5.0])
    assert (x // 0).tolist() == [math.inf, -math.inf]
    assert all(math.isnan(value) for value in (x % 0).tolist())


def test_division_of_meta_tensors_has_no_zeros(lib):
    assert (lib.zeros(2, dtype=lib.int64, device="meta") // 2).shape == (2,)


def test_integer_powers(lib):
    with pytest.raises(RuntimeError, match="Integers to negative integer powers"):
        lib.tensor([2]) ** -1
    assert (lib.tensor([2, 1, -1]) ** lib.tensor(-1)).tolist() == [0, 1, -1]
    assert (lib.tensor(2) ** lib.tensor(-1)).item() == 0


@pytest.mark.parametrize(
    "compute",
    [
        lambda lib, x: -x,
        lambda lib, x: +x,
        lambda lib, x: x // x,
        lambda lib, x: x % x,
        lambda lib, x: x**x,
        lambda lib, x: x << x,
        lambda lib, x: x.clamp(x, x),
        lambda lib, x: lib.addcmul(x, x, x),
    ],
)
def test_what_truth_values_cannot_do(lib, compute):
    with pytest.raises(RuntimeError):
        compute(lib, lib.tensor([True, True]))


@pytest.mark.parametrize(
    "compute",
    [
        lambda lib, x: x & 3,
        lambda lib, x: x | x,
        lambda lib, x: ~x,
        lambda lib, x: x << 1,
        lambda lib, x: x.clone().bitwise_xor_(x),
    ],
)
def test_floats_have_no_bits(lib, compute):
    for dtype in (lib.float32, lib.float64, lib.bfloat16, lib.complex64):
        with pytest.raises((RuntimeError, TypeError), match="implemented|supported"):
            compute(lib, lib.ones(2, dtype=dtype))


@pytest.mark.parametrize(
    "compute",
    [
        lambda lib, x: lib.atan2(x, x),
        lambda lib, x: lib.hypot(x, x),
        lambda lib, x: x % x,
        lambda lib, x: x // x,
        lambda lib, x: x < x,
        lambda lib, x: x.clamp(0, 1),
        lambda lib, x: lib.maximum(x, x),
    ],
)
def test_complex_numbers_have_no_order(lib, compute):
    with pytest.raises(RuntimeError):
        compute(lib, lib.ones(2, dtype=lib.complex64))


def test_operands_that_must_have_one_dtype(lib):
    x, y = lib.ones(2), lib.ones(2, dtype=lib.float64)
    with pytest.raises(RuntimeError, match="expected dtype"):
        lib.lerp(x, y, 0.5)
    with pytest.raises(RuntimeError, match="expected dtype"):
        lib.lerp(x, x, y)
    with pytest.raises(RuntimeError, match="Integer division with addcdiv"):
        lib.addcdiv(x, lib.ones(2, dtype=lib.int64), lib.ones(2, dtype=lib.int64))
    with pytest.warns(UserWarning, match="different to the input size"):
        assert lib.nn.functional.mse_loss(x, y.sum()).dtype == lib.float64


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "write",
    [
        lambda lib, x, y: x.scatter_add(0, lib.tensor([0, 1]), y),
        lambda lib, x, y: x.index_add(0, lib.tensor([0, 1]), y),
        lambda lib, x, y: x.index_put((lib.tensor([0, 1]),), y),
    ],
)
def test_half_precision_is_not_mixed_with_single(lib, write, half):
    x, y = lib.ones(2, dtype=getattr(lib, half)), lib.ones(2)
    for first, second in ((x, y), (y, x)):
        with pytest.raises(RuntimeError):
            write(lib, first, second)
    assert write(lib, x, x).dtype == x.dtype


def test_fill_takes_one_value(lib):
    with pytest.raises(RuntimeError, match="fill_ only supports 0-dimension value tensor"):
        lib.ones(2).fill_(lib.ones(2))
    with pytest.raises(RuntimeError, match="fill_ only supports 0-dimension value tensor"):
        lib.ones(()).fill_(lib.ones(2))


def test_conversion_to_python_numbers(lib):
    for convert in (int, float):
        with pytest.raises(ValueError, match="only one element tensors"):
            convert(lib.ones(2))
        with pytest.raises(RuntimeError, match="without overflow"):
            convert(lib.tensor(1j))
    assert int(lib.tensor([2.7])) == 2
    assert complex(lib.tensor(1j)) == 1j


@pytest.mark.parametrize("number", [2, 0.5])
@pytest.mark.parametrize("exponent", [2.0, 0.5, 3.0])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_number_to_the_power_of_a_scalar(lib, number, exponent, dtype):
    out = number ** lib.tensor(exponent, dtype=getattr(lib, dtype))
    assert out.dtype is getattr(lib, dtype)
    assert abs(out.item() - number**exponent) < 1e-2


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32"])
def test_logarithm_of_a_narrow_base_has_the_precision_of_the_power(lib, dtype):
    base = lib.tensor([3], dtype=getattr(lib, dtype))
    exponent = lib.tensor([1.1], dtype=lib.float64, requires_grad=True)
    (slope,) = lib.autograd.grad(base**exponent, exponent, create_graph=True)
    (curvature,) = lib.autograd.grad(slope, exponent)
    expected = [3**1.1 * math.log(3) ** order for order in (1, 2)]
    assert [slope.item(), curvature.item()] == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("name", ["trapezoid", "cumulative_trapezoid"])
def test_places_of_more_dimensions_than_samples(lib, name):
    """`dim` counts the dimensions of the samples, from the first on."""
    places = lib.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 6.0]])
    areas = getattr(lib, name)(lib.ones(3), places)
    assert areas.tolist() == ([3.0, 6.0] if name == "trapezoid" else [[1.0, 2.0], [3.0, 6.0]])


@pytest.mark.parametrize("dtype", ["float16", "float32", "uint8", "int64"])
@pytest.mark.parametrize("value", [1e300, -1e300])
def test_numbers_that_elements_cannot_hold_are_refused(lib, dtype, value):
    x = lib.ones(3, dtype=getattr(lib, dtype))
    mask, index = lib.tensor([True, False, True]), lib.tensor([0])
    for call in (
        lambda: lib.nn.functional.pad(x, (1, 1), value=value),
        lambda: x.masked_fill(mask, value),
        lambda: x.index_add(0, index, x[:1], alpha=value),
    ):
        with pytest.raises(RuntimeError, match=f"{OVERFLOW}|must not be a floating"):
            call()


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, -0.0, 3e38])
def test_special_numbers_are_written(lib, value):
    for dtype in (lib.float32, lib.float64):
        x = lib.ones(3, dtype=dtype)
        written = [
            lib.nn.functional.pad(x, (1, 0), value=value)[0],
            lib.nn.functional.pad(x.reshape(1, 3), (0, 0, 1, 0), value=value)[0, 2],
            x.masked_fill(lib.tensor([True, False, True]), value)[0],
        ]
        for found in written:
            wanted = lib.tensor(value, dtype=dtype)
            assert found.isnan() == wanted.isnan() and found.signbit() == wanted.signbit()
            assert found.isnan() or found == wanted
