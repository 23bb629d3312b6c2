"""Samples of the Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable

from .table import Make, Operation, Sample


def _one(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 5)),
        Sample(make(4)),
        Sample(make(3, 4), 6, 0),
        Sample(make(2, 6), n=4, norm="ortho"),
        Sample(make(2, 5), norm="forward"),
        Sample(make(4, 2), dim=-2, norm="backward"),
    ]


def _two(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 4)),
        Sample(make(2, 3, 4), (4, 3)),
        Sample(make(2, 3, 4), dim=(0, 2), norm="ortho"),
        Sample(make(3, 5), s=(2, 6), norm="forward"),
    ]


def _all(make: Make) -> list[Sample]:
    return [*_two(make), Sample(make(2, 3, 2)), Sample(make(4, 3), dim=(1,)), Sample(make(3), (5,))]


def _shifts(make: Make) -> list[Sample]:
    found = [Sample(make(5)), Sample(make(3, 4)), Sample(make(3, 4), 1)]
    return [*found, Sample(make(2, 3), dim=(0,))]


def _transform(name: str, samples: Callable, **options: bool) -> Operation:
    return Operation(f"fft.{name}", samples, method=False, half=False, own_dtype=True, **options)


_SAMPLES = {"": _one, "2": _two, "n": _all}
FOURIER = [
    *[_transform(name + suffix, samples, complex=not real, out=True)
      for name, real in (("fft", False), ("ifft", False), ("rfft", True), ("irfft", False),
                         ("hfft", False), ("ihfft", True))
      for suffix, samples in _SAMPLES.items()],
    _transform("fftshift", _shifts),
    _transform("ifftshift", _shifts),
]  # fmt: skip
