"""Fourier transforms of signals and pictures, forward and with gradients, as a ratio to PyTorch."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from harness import Program, Work, run_benchmark

TARGET = 1.5


def numbers(lib: Any, *shape: int) -> Any:
    """Numbers that both libraries compute alike."""
    count = 1
    for size in shape:
        count *= size
    places = lib.arange(count, dtype=lib.float32)
    return lib.sin(places * 0.37).reshape(shape)


def program(name: str, shape: tuple[int, ...], function: Callable[[Any, Any], Any]) -> Program:
    """A transform of real numbers, without a record."""

    def build(lib: Any) -> Work:
        given = numbers(lib, *shape)
        return Work(lambda: function(lib.fft, given))

    return Program(name, build, TARGET)


def gradient(name: str, shape: tuple[int, ...], function: Callable[[Any, Any], Any]) -> Program:
    """A transform and the gradient of the sum of its absolute squares."""

    def build(lib: Any) -> Work:
        given = numbers(lib, *shape).requires_grad_()

        def run() -> Any:
            found = function(lib.fft, given)
            (slope,) = lib.autograd.grad(found, given, lib.ones_like(found))
            return slope

        return Work(run)

    return Program(f"{name}, gradient", build, TARGET)


SIGNALS, PICTURES = (64, 4096), (16, 128, 128)
PROGRAMS = [
    program("fft of 64 signals of 4,096", SIGNALS, lambda fft, x: fft.fft(x)),
    program("rfft of 64 signals of 4,096", SIGNALS, lambda fft, x: fft.rfft(x)),
    program("irfft of 64 signals of 4,096", SIGNALS, lambda fft, x: fft.irfft(fft.rfft(x))),
    program("fft of one signal of 256", (256,), lambda fft, x: fft.fft(x)),
    program("fft of 100 signals of 1,009", (100, 1009), lambda fft, x: fft.fft(x)),
    program("fft2 of 16 pictures of 128 x 128", PICTURES, lambda fft, x: fft.fft2(x)),
    program("rfft2 of 16 pictures of 128 x 128", PICTURES, lambda fft, x: fft.rfft2(x)),
    gradient("rfft of 64 signals of 4,096", SIGNALS, lambda fft, x: fft.rfft(x)),
    gradient("fft2 of 16 pictures of 128 x 128", PICTURES, lambda fft, x: fft.fft2(x)),
]


if __name__ == "__main__":
    sys.exit(run_benchmark(__doc__, PROGRAMS))
