"""What it costs that a tensor is of a subclass: nn.Parameter against Tensor.

    python benchmarks/subclasses.py

Prints nanoseconds of both and their ratio, each the best of several rounds in turns.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from functools import partial

import wengert
import wengert.nn.functional as F

INPUT, BIAS = wengert.ones(2, 4), wengert.ones(3)
ROWS: dict[str, Callable[[wengert.Tensor], object]] = {
    ".grad": lambda t: t.grad,
    ".shape": lambda t: t.shape,
    ".requires_grad": lambda t: t.requires_grad,
    ".data": lambda t: t.data,
    "t * 2.0": lambda t: t * 2.0,
    "t.exp()": lambda t: t.exp(),
    "exp(t)": lambda t: wengert.exp(t),
    "t.sum()": lambda t: t.sum(),
    "t[0]": lambda t: t[0],
    "F.linear": lambda t: F.linear(INPUT, t, BIAS),
}


def nanoseconds(call: Callable[[], object], number: int = 2000) -> float:
    return timeit.timeit(call, number=number) / number * 1e9


def main() -> None:
    plain = wengert.ones(3, 4, requires_grad=True)
    parameter = wengert.nn.Parameter(wengert.ones(3, 4))
    print(f"{'':16}{'Tensor':>8}{'Parameter':>11}{'ratio':>7}")
    for name, use in ROWS.items():
        ours = theirs = float("inf")
        for _ in range(25):
            ours = min(ours, nanoseconds(partial(use, plain)))
            theirs = min(theirs, nanoseconds(partial(use, parameter)))
        print(f"{name:16}{ours:8.0f}{theirs:11.0f}{theirs / ours:7.2f}")


if __name__ == "__main__":
    main()
