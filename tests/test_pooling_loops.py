"""The largest elements of windows in C are those that NumPy finds."""

import numpy as np
import pytest

from wengert.backends import pooling_loops
from wengert.operators import pooling

pytestmark = pytest.mark.compiled_only


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel, stride, padding, dilation", [
    ((2, 2), (2, 2), (0, 0), (1, 1)), ((3, 3), (2, 2), (1, 1), (1, 1)),
    ((3, 2), (1, 3), (1, 0), (2, 3)), ((1, 5), (1, 1), (0, 2), (1, 1)),
    ((2, 2), (3, 1), (1, 1), (4, 4)),
])  # fmt: skip
def test_largest_elements_are_those_of_all_comparisons(dtype, kernel, stride, padding, dilation):
    """With equal elements, no numbers and infinities, and windows that leave the picture."""
    x = np.random.default_rng(1).integers(-3, 4, (2, 3, 9, 20)).astype(dtype)
    x[0, 0, 2:5, 3:8], x[0, 1, :, :10], x[1, 2, 4, 4:9] = np.nan, -np.inf, np.inf
    for ceil_mode in (False, True):
        options = (kernel, stride, padding, dilation)
        sizes = pooling.pooled_sizes(x.shape[2:], *options, ceil_mode)
        found = pooling_loops.largest(x, kernel, sizes, *options[1:])
        expected = pooling._largest(np, x, x.shape[2:], sizes, *options)
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def test_pictures_without_the_right_type_or_order_are_not_pooled_in_c():
    x, options = np.ones((1, 4, 4)), ((2, 2), (2, 2), (2, 2), (0, 0), (1, 1))
    for other in (x.astype(int), x.swapaxes(1, 2)[:, ::2], x[:0], x.astype(np.float16)):
        assert pooling_loops.largest(other, *options) is None
    assert pooling_loops.largest(x, (2,), (2,), (2,), (0,), (1,)) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_elements_are_added_at_their_places(dtype):
    g = np.arange(2 * 3 * 4, dtype=dtype).reshape(2, 3, 2, 2)
    places = np.random.default_rng(0).integers(0, 15, g.shape)
    expected = np.zeros((2, 3, 15), dtype)
    for i, j in np.ndindex(2, 3):
        np.add.at(expected[i, j], places[i, j].ravel(), g[i, j].ravel())
    for values in (g, np.asfortranarray(g)):
        found = pooling_loops.spread(values, places, (3, 5))
        assert found.base is None
        np.testing.assert_array_equal(found, expected.reshape(2, 3, 3, 5))
    for wrong in (-1, 15):
        places[1, 2, 1, 1] = wrong
        assert pooling_loops.spread(g, places, (3, 5)) is None
    assert pooling_loops.spread(g.astype(int), places, (3, 5)) is None
