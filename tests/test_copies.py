"""Copies in row-major order, by threads, of arrays that lie in memory in any way."""

import numpy as np
import pytest

import wengert
from wengert.backends.kernels import native_loop

#: Repeated elements cannot be written to, of which tensors that share them warn.
pytestmark = pytest.mark.filterwarnings("ignore:.*not writ")


def arrangements(dtype):
    random = np.random.default_rng(0)
    x = (random.standard_normal((6, 40, 9, 16)) * 100).astype(dtype)
    line, one = x[0, 0, 0], x[0, 0, 0, :1]
    return {
        "parts": x[:, 3:30, 1:, :],
        "turned around": x.transpose(2, 0, 1, 3),
        "two at the end": x.transpose(1, 0, 2, 3),
        "every third": x[::3, :, ::2],
        "short runs": x[..., :3],
        "turned to the end": x.transpose(3, 0, 1, 2),
        "a row repeated": np.broadcast_to(line, (50, 70, 16)),
        "a column repeated": np.broadcast_to(x[:, :, 0, :1], (6, 40, 300)),
        "repeated within": np.broadcast_to(x[:, :1], (6, 30, 9, 16)),
        "an element": np.broadcast_to(one, (70_001,)),
        "an element of no dimension": np.broadcast_to(one[0], (300, 211)),
        "ones between": x.transpose(1, 0, 2, 3)[:, None, :, :, None],
        "one element": x[:1, :1, :1, :1],
        "empty": x[:, :0],
        "every second": x[:, :, :, ::2],
    }


@pytest.mark.parametrize("name", arrangements(np.float32))
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int16", "bool", "complex64"])
def test_copies(name, dtype):
    x = arrangements(np.dtype(dtype))[name]
    loop = native_loop("_contiguous")
    for found in (wengert.from_numpy(x).contiguous().numpy(), loop and loop.run((x,))):
        if found is not None:
            assert found.flags.c_contiguous and found.dtype == x.dtype
            np.testing.assert_array_equal(found, x)


def test_gradients_of_expanded_tensors_are_arrays_of_their_own():
    for shape, dim in (((300, 400), None), ((300, 400), 1), ((300, 400), 0), ((7, 1, 30_000), 1)):
        x = wengert.zeros(shape, requires_grad=True)
        total = x.sum() if dim is None else x.sum(dim)
        total.backward(wengert.ones_like(total))
        assert x.grad.stride() == x.stride() and x.grad.min() == x.grad.max() == 1
        x.grad[0] = 2
        assert x.grad.sum() == x.numel() + x[0].numel()


@pytest.mark.parametrize("shape", [(37, 70), (64, 64), (3, 200), (200, 3), (33, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_matrices_that_are_turned_or_rolled(shape, dtype):
    x = np.random.default_rng(1).integers(-1000, 1000, (shape[0] + 2, shape[1] + 3)).astype(dtype)
    for part in (x[2:, 3:], x[:-2, :-3].copy()):
        turned = wengert.from_numpy(part).t().contiguous()
        np.testing.assert_array_equal(turned.numpy(), part.T)
        for shift in (1, -1, 2, 50):
            rolled = wengert.from_numpy(part).roll(shift, 1)
            np.testing.assert_array_equal(rolled.numpy(), np.roll(part, shift, 1))


@pytest.mark.parametrize("count", [2**62, 2**62 + 1, 2**61])
def test_lengths_beyond_all_memory_are_refused(count):
    """Products and sums of lengths are not counted around at 64 bits."""
    for repeated in (
        lambda: wengert.ones(4).repeat(count),
        lambda: wengert.ones(2, 4).repeat(2, count),
        lambda: wengert.ones(4, 0).repeat(count, 1),
    ):
        with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
            repeated()
    margin = 2 * count - 1
    for shape, pad in (((3,), (margin, margin)), ((3, 2), (0, 1, count, count))):
        with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
            wengert.nn.functional.pad(wengert.ones(shape), pad)
