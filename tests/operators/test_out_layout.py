"""What is resized for ``out=`` gets the strides that PyTorch gives it; transforms have them too."""

import warnings

import pytest

OPERATIONS = {
    "add": lambda lib, p, out: lib.add(p, p, out=out()),
    "exp, wider": lambda lib, p, out: lib.exp(p, out=out(lib.float64)),
    "where": lambda lib, p, out: lib.where(p > 0, p, p, out=out()),
    "eq": lambda lib, p, out: lib.eq(p, p, out=out(lib.bool)),
    "cumsum": lambda lib, p, out: lib.cumsum(p, 1, out=out()),
    "sort": lambda lib, p, out: lib.sort(p, 1, out=(out(), out(lib.int64))),
    "inv": lambda lib, p, out: lib.linalg.inv(p[:3, 0] @ p[:3, 0].T + lib.eye(3), out=out()),
    "triangular": lambda lib, p, out: lib.linalg.solve_triangular(
        lib.eye(2), p, upper=True, left=True, out=out()
    ),
    "eigh": lambda lib, p, out: lib.linalg.eigh(lib.eye(3), out=(out(), out())),
    "triangular, in place": lambda lib, p, out: lib.linalg.solve_triangular(
        lib.eye(2), lib.ones(2, 3), upper=True, out=lib.empty(2, 3)
    ),
    "fft": lambda lib, p, out: lib.fft.fft(p, dim=0, out=out(lib.complex64)),
    "fft of the first": lambda lib, p, out: lib.fft.fft(p, dim=0),
    "ifft": lambda lib, p, out: lib.fft.ifft(p + 0j, dim=1),
    "fftn": lambda lib, p, out: lib.fft.fftn(p, dim=(2, 0)),
    "fft2": lambda lib, p, out: lib.fft.fft2(p),
    "rfft2": lambda lib, p, out: lib.fft.rfft2(p, dim=(0, 1)),
    "irfftn": lambda lib, p, out: lib.fft.irfftn(p + 0j),
    "hfft": lambda lib, p, out: lib.fft.hfft(p, dim=1),
}  # fmt: skip
STRIDES = {
    "add": (1, 12, 4), "exp, wider": (1, 12, 4), "where": (1, 12, 4), "eq": (1, 12, 4),
    "cumsum": (6, 3, 1), "sort": [(1, 12, 4), (1, 12, 4)], "inv": (1, 3),
    "triangular": (6, 1, 2), "eigh": [(1,), (1, 3)], "triangular, in place": (3, 1),
    "fft": (6, 3, 1), "fft of the first": (1, 12, 4), "ifft": (2, 1, 8), "fftn": (1, 12, 4),
    "fft2": (6, 3, 1), "rfft2": (2, 1, 8), "irfftn": (4, 16, 1), "hfft": (2, 1, 8),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_strides(lib, name):
    turned = lib.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = OPERATIONS[name](lib, turned, lambda dtype=None: lib.empty(0, dtype=dtype))
    strides = found.stride() if isinstance(found, lib.Tensor) else [t.stride() for t in found]
    assert strides == STRIDES[name]


def test_sums_of_fractions_are_not_written_into_whole_numbers(lib):
    x = lib.tensor([1.5, float("nan")])
    with pytest.raises(NotImplementedError, match='"nansum_cpu" not implemented for \'Long\''):
        lib.nansum(x, out=lib.empty((), dtype=lib.int64))
    assert lib.nansum(x, dtype=lib.int64).item() == 1
    assert lib.nansum(lib.tensor([1, 2]), out=lib.empty((), dtype=lib.int32)).item() == 3
    assert lib.nansum(x.double(), out=lib.empty(())).item() == 1.5
