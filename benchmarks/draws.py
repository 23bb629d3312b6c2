"""Random numbers: the same draws of 10^2, 10^4 and 10^6 elements as PyTorch's.

    python benchmarks/draws.py [--check] [--json FILE] [--only NAME]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from harness import Program, Work, run_benchmark

DRAWS: dict[str, Callable[[Any, int], Any]] = {
    "rand": lambda lib, n: lib.rand(n),
    "randn": lambda lib, n: lib.randn(n),
    "rand_float64": lambda lib, n: lib.rand(n, dtype=lib.float64),
    "randn_float64": lambda lib, n: lib.randn(n, dtype=lib.float64),
    "randint": lambda lib, n: lib.randint(10, (n,)),
    "randperm": lambda lib, n: lib.randperm(n),
    "bernoulli": lambda lib, n: lib.empty(n).bernoulli_(0.5),
    "dropout": lambda lib, n: lib.nn.functional.dropout(lib.ones(n), 0.5),
}
TARGETS = {"rand": 1.0, "randn": 1.0}


def work(draw: Callable[[Any, int], Any], size: int, lib: Any) -> Work:
    def run() -> list[Any]:
        return [draw(lib, size)]

    lib.manual_seed(0)
    return Work(run)


PROGRAMS = [
    Program(f"{name}_{size}", partial(work, draw, size), TARGETS.get(name))
    for name, draw in DRAWS.items()
    for size in (10**2, 10**4, 10**6)
]


if __name__ == "__main__":
    sys.exit(run_benchmark(__doc__, PROGRAMS))
