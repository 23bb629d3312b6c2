"""Errors have PyTorch's type and the words that its own tests look for."""

import pytest

REFUSED = {
    "hsplit": (lambda lib: lib.hsplit(lib.ones(4, 5), 0), RuntimeError,
               "torch.hsplit attempted to split along dimension 1, but the size of the"),
    "vsplit": (lambda lib: lib.vsplit(lib.ones(4), 2), RuntimeError,
               "torch.vsplit requires a tensor with at least 2 dimension, but got"),
    "neg": (lambda lib: -lib.tensor([True]), RuntimeError,
            "If you are trying to invert a mask, use the `~` or `logical_not\\(\\)` operator"),
    "sub": (lambda lib: lib.tensor([True]) - 1, RuntimeError, "If you are trying to invert a mask"),
    "fweights": (lambda lib: lib.cov(lib.ones(2, 2), fweights=lib.tensor([-1, 1])), RuntimeError,
                 r"cov\(\): fweights cannot be negative"),
    "aweights": (lambda lib: lib.cov(lib.ones(2, 2), aweights=lib.tensor([1.0, -1])), RuntimeError,
                 r"cov\(\): aweights cannot be negative"),
    "softshrink": (lambda lib: lib.nn.functional.softshrink(lib.ones(2), -0.5), RuntimeError,
                   r"lambda must be in range \[0, 3.40282e\+38\] for input dtype Float, but found"),
    "prelu": (lambda lib: lib.nn.functional.prelu(lib.ones(2, 2), lib.ones(1, 2)), RuntimeError,
              "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = 2"),
    "pad": (lambda lib: _pooled(lib, 2, padding=-1), RuntimeError,
            "pad must be non-negative, but got pad: -1"),
    "half": (lambda lib: _pooled(lib, 3, padding=4, dilation=2), RuntimeError,
             "pad should be at most half of effective kernel size, but got pad=4"),
    "half of the kernel": (lambda lib: _pooled(lib, 3, padding=2, dilation=2), RuntimeError,
                           "pad should be smaller than or equal to half of kernel size, but got"),
    "pad, values": (lambda lib: _pooled(lib, 2, False, padding=-1), RuntimeError,
                        r"max_pool1d\(\) padding must be non-negative, but got -1"),
    "half, values": (lambda lib: _pooled(lib, 3, False, padding=2, dilation=2), RuntimeError,
                         r"max_pool1d\(\) padding should be at most half of kernel size"),
    "adaptive": (lambda lib: lib.nn.functional.adaptive_avg_pool2d(lib.ones(2, 2), (1, 1)),
                 ValueError, "Input dimension should be at least 3"),
    "gradient": (lambda lib: lib.gradient(lib.ones(3, 3), dim=[0, 0]), RuntimeError,
                 "dim 0 appears multiple times in the list of dims"),
    "complex": (lambda lib: lib.complex(lib.ones(1), lib.ones(1).int()), RuntimeError,
                "Expected both inputs to be Half, Float or Double tensors but got Float and Int"),
}  # fmt: skip


def _pooled(lib, kernel, indices=True, **options):
    x = lib.arange(8.0).reshape(1, 8)
    return lib.nn.functional.max_pool1d(x, kernel, 1, return_indices=indices, **options)


@pytest.mark.parametrize("name", REFUSED)
def test_words(lib, name):
    call, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        call(lib)
