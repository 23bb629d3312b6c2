"""Functions that few programs use: pictures of bytes in other sizes, signals by times."""

import math

import numpy as np
import pytest

import wengert


def _wave(lib, *shape):
    return (lib.arange(math.prod(shape), dtype=lib.float64).reshape(shape) * 0.37).sin()


class TestPicturesOfBytes:
    """Interpolation in whole numbers is PyTorch's to the last digit."""

    @pytest.mark.parametrize("antialias", [False, True])
    @pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
    def test_every_byte_is_that_of_pytorch(self, mode, antialias):
        torch = pytest.importorskip("torch")
        random = np.random.default_rng(3)
        for _ in range(25):
            *old, height, width = (int(n) for n in random.integers(2, 12, 4))
            bytes_ = random.integers(0, 256, (1, 2, *old)).tolist()
            options = {"align_corners": bool(random.integers(2)), "antialias": antialias}
            if random.random() < 0.3:
                options["scale_factor"] = (1.7, 1.0)
            else:
                options["size"] = (height, width)
            found = [
                lib.nn.functional.interpolate(
                    lib.tensor(bytes_, dtype=lib.uint8), mode=mode, **options
                )
                for lib in (wengert, torch)
            ]
            assert found[0].dtype == wengert.uint8
            assert found[0].tolist() == found[1].tolist(), options

    def test_channels_stay_innermost(self, lib):
        x = lib.ones(1, 3, 4, 4, dtype=lib.uint8).to(memory_format=lib.channels_last)
        out = lib.nn.functional.interpolate(x, size=(8, 8), mode="bilinear")
        assert out.stride() == (192, 1, 24, 3)
        assert out.unique().tolist() == [1]

    @pytest.mark.parametrize(("mode", "ndim"), [("linear", 3), ("trilinear", 5)])
    def test_other_numbers_of_dimensions_are_refused(self, lib, mode, ndim):
        x = lib.ones((2,) * ndim, dtype=lib.uint8)
        with pytest.raises(NotImplementedError, match="not implemented for 'Byte'"):
            lib.nn.functional.interpolate(x, scale_factor=2, mode=mode)


class TestSignalsByTimes:
    """`conv_tbc`: times, examples, channels."""

    def test_values_and_gradients(self):
        torch = pytest.importorskip("torch")
        found = []
        for lib in (wengert, torch):
            shapes = ((5, 2, 3), (2, 3, 4), (4,))
            x, weight, bias = (_wave(lib, *shape).requires_grad_() for shape in shapes)
            out = lib.conv_tbc(x, weight, bias, 1)
            grads = lib.autograd.grad((out * out).sum(), [x, weight, bias])
            found.append([out.detach().numpy(), *(g.numpy() for g in grads)])
            assert out.is_contiguous()
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)

    def test_derivatives_and_batches(self):
        x, weight, bias = (_wave(wengert, *s) for s in ((3, 1, 2), (2, 2, 2), (2,)))
        inputs = [t.requires_grad_() for t in (x, weight, bias)]
        convolve = wengert.nn.functional.conv_tbc
        assert wengert.autograd.gradcheck(convolve, inputs, check_forward_ad=True)
        assert wengert.autograd.gradgradcheck(convolve, inputs)
        both = wengert.stack([x, x * 2]).detach()
        batched = wengert.vmap(lambda x: convolve(x, weight, bias))(both)
        assert wengert.allclose(batched[1], convolve(both[1], weight, bias))

    @pytest.mark.parametrize(
        ("shapes", "phrase"),
        [
            (((2, 3), (2, 3, 4), (4,)), "Input must have 3 dims"),
            (((5, 2, 3), (3, 4), (4,)), "Weight tensor must have 3 dims"),
            (((5, 2, 3), (2, 3, 4), (1, 4)), "Bias must be 1-D"),
            (((5, 2, 2), (2, 3, 4), (4,)), "Input dim 2 .input channels. is not == dim 1"),
            (((5, 2, 3), (2, 3, 4), (3,)), "Bias size must equal dim 2"),
        ],
    )
    def test_sizes_that_do_not_fit(self, lib, shapes, phrase):
        with pytest.raises(RuntimeError, match=phrase):
            lib.conv_tbc(*[lib.ones(shape) for shape in shapes])
