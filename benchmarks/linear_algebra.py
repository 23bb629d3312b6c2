"""Many small matrices at once: factors, solutions and spectra, as a ratio to PyTorch."""

from __future__ import annotations

import sys
from typing import Any

from harness import Program, Work, run_benchmark

COUNT, ROWS = 1000, 8
TARGET = 1.0


def matrices(lib: Any) -> Any:
    """Matrices that both libraries compute alike, far from singular."""
    places = lib.arange(COUNT * ROWS * ROWS, dtype=lib.float64).reshape(COUNT, ROWS, ROWS)
    return lib.sin(places * places) + 3 * lib.eye(ROWS, dtype=lib.float64)


def positive(lib: Any) -> Any:
    """Symmetric matrices with positive eigenvalues."""
    x = matrices(lib)
    return x @ x.mT


def program(name: str, make: Any, function: Any) -> Program:
    """One function of a thousand matrices, which `make` makes."""

    def build(lib: Any) -> Work:
        given = make(lib)
        return Work(lambda: function(lib.linalg, given))

    return Program(name, build, TARGET, operations=COUNT)


PROGRAMS = [
    program("inv", matrices, lambda linalg, x: linalg.inv(x)),
    program("det", matrices, lambda linalg, x: linalg.det(x)),
    program("slogdet", matrices, lambda linalg, x: linalg.slogdet(x).logabsdet),
    program("solve", matrices, lambda linalg, x: linalg.solve(x, x[..., :1])),
    program("lu_factor", matrices, lambda linalg, x: linalg.lu_factor(x).LU),
    program("cholesky", positive, lambda linalg, x: linalg.cholesky(x)),
    program("eigh", positive, lambda linalg, x: linalg.eigh(x).eigenvalues),
    program("svd", matrices, lambda linalg, x: linalg.svd(x).S),
]


if __name__ == "__main__":
    sys.exit(run_benchmark(__doc__, PROGRAMS))
