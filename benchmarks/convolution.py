"""Convolutions, a residual block and pools against PyTorch."""

from __future__ import annotations

import sys
from typing import Any

from harness import Program, Work, run_benchmark

TARGET = 2.0


def _tensor(lib: Any, *shape: int) -> Any:
    """Repeatable numbers that both libraries have."""
    count = 1
    for n in shape:
        count *= n
    return lib.arange(float(count)).mul(0.7).sin().reshape(shape)


def convolution(lib: Any) -> Work:
    """32 pictures of 3 x 32 x 32 to 64 channels by 3 x 3, forward and backward."""
    x = _tensor(lib, 32, 3, 32, 32).requires_grad_()
    weight = _tensor(lib, 64, 3, 3, 3).requires_grad_()

    def run() -> Any:
        x.grad = weight.grad = None
        out = lib.nn.functional.conv2d(x, weight, padding=1)
        out.sum().backward()
        return [x.grad[:1], weight.grad]

    return Work(run)


def _block(lib: Any, channels: int) -> Any:
    class Block(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = lib.nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.first_norm = lib.nn.BatchNorm2d(channels)
            self.second = lib.nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.second_norm = lib.nn.BatchNorm2d(channels)

        def forward(self, x: Any) -> Any:
            out = lib.nn.functional.relu(self.first_norm(self.first(x)))
            return lib.nn.functional.relu(self.second_norm(self.second(out)) + x)

    block = Block()
    with lib.no_grad():
        for layer in (block.first, block.second):
            layer.weight.copy_(_tensor(lib, *layer.weight.shape) * 0.05)
    return block


def residual_block(lib: Any) -> Work:
    """A ResNet block of 64 channels on 16 pictures of 16 x 16, forward and backward."""
    block = _block(lib, 64)
    x = _tensor(lib, 16, 64, 16, 16).requires_grad_()

    def run() -> Any:
        x.grad = None
        block.zero_grad()
        out = block(x)
        (out * out).mean().backward()
        return [x.grad[:1], block.second_norm.weight.grad]

    return Work(run)


def max_pool(lib: Any) -> Work:
    """The largest of 2 x 2 elements of 32 pictures of 64 x 32 x 32, forward and backward."""
    x = _tensor(lib, 32, 64, 32, 32).requires_grad_()

    def run() -> Any:
        x.grad = None
        lib.nn.functional.max_pool2d(x, 2).sum().backward()
        return [x.grad[:1]]

    return Work(run)


PROGRAMS = [
    Program("convolution", convolution, TARGET),
    Program("residual_block", residual_block, TARGET),
    Program("max_pool", max_pool),
]


if __name__ == "__main__":
    sys.exit(run_benchmark(__doc__, PROGRAMS))
