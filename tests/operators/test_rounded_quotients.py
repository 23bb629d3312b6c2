"""Quotients of 16-bit floats by numbers, and where transforms lie in memory, in both libraries."""

import pytest


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_numbers_that_16_bit_floats_are_divided_by_are_exact(lib, kind):
    x = lib.tensor([49.0, -62.25, 10.0], dtype=getattr(lib, kind))
    for divisor in (0.3, lib.tensor(0.3)):
        assert lib.div(x, divisor, rounding_mode="trunc").tolist() == [163, -207, 33]
        assert lib.div(x, divisor, rounding_mode="floor").tolist() == [163, -208, 33]
    assert lib.div(x, divisor, rounding_mode="floor").dtype == getattr(lib, kind)


@pytest.mark.parametrize("dims, strides", [
    (None, (4, 1, 12)), ((0, 1), (1, 3, 9)), ((2, 1), (15, 5, 1)), ((-1,), (12, 3, 1)),
])  # fmt: skip
def test_inverse_hermitian_transforms_lie_where_the_last_one_leaves_them(lib, dims, strides):
    assert lib.fft.ihfftn(lib.ones(3, 4, 5), dim=dims).stride() == strides
