"""Higher derivatives by repeated differentiation, checked against formulas from the textbook."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from tqdm import tqdm

import wengert
from wengert import Generator, Tensor

TARGET_ERROR = 1e-9


@dataclass(frozen=True)
class Comparison:
    """A matrix from automatic differentiation and the largest distance to its closed form."""

    computed: list[list[float]]
    error: float


@dataclass(frozen=True)
class Tower:
    """A function and its successive derivatives on a grid, with the largest errors by order."""

    x: list[float]
    orders: list[list[float]]
    errors: list[float]


@dataclass(frozen=True)
class Result:
    hessian: Comparison
    jacobian: Comparison
    tower: Tower
    seconds: float

    @property
    def largest_error(self) -> float:
        return max(self.hessian.error, self.jacobian.error, *self.tower.errors)

    @property
    def passed(self) -> bool:
        return self.largest_error <= TARGET_ERROR


def jacobian(function: Callable[[Tensor], Tensor], x: Tensor, create_graph: bool = False) -> Tensor:
    """One reverse pass for each output; row i holds the gradient of output i."""
    outputs = function(x)
    rows = [
        wengert.autograd.grad(output, x, retain_graph=True, create_graph=create_graph)[0]
        for output in outputs
    ]
    return wengert.stack(rows)


def hessian(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The Jacobian of the gradient."""

    def gradient(at: Tensor) -> Tensor:
        return wengert.autograd.grad(function(at), at, create_graph=True)[0]

    return jacobian(gradient, x)


def rosenbrock(x: Tensor) -> Tensor:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def rosenbrock_hessian(x: list[float]) -> Tensor:
    """The tridiagonal matrix of second derivatives, by hand."""
    count = len(x)
    rows = [[0.0] * count for _ in range(count)]
    for i in range(count - 1):
        rows[i][i] += 1200 * x[i] ** 2 - 400 * x[i + 1] + 2
        rows[i + 1][i + 1] += 200
        rows[i][i + 1] = rows[i + 1][i] = -400 * x[i]
    return wengert.tensor(rows, dtype=wengert.float64)


def softmax_jacobian(x: Tensor) -> Tensor:
    """diag(p) - p p^T with p = softmax(x)."""
    p = x.softmax(dim=0)
    return wengert.eye(len(p), dtype=p.dtype) * p - p.unsqueeze(1) * p.unsqueeze(0)


def tanh_derivatives(x: Tensor) -> list[Tensor]:
    """tanh and its first four derivatives as polynomials in t = tanh(x)."""
    t = x.tanh()
    s = 1 - t * t
    return [t, s, -2 * t * s, s * (6 * t * t - 2), t * s * (16 - 24 * t * t)]


def derivative_tower(x: Tensor, count: int) -> list[Tensor]:
    """tanh and its derivatives, each the gradient of the one before."""
    tower = [x.tanh()]
    for _ in range(count):
        (derivative,) = wengert.autograd.grad(tower[-1].sum(), x, create_graph=True)
        tower.append(derivative)
    return [order.detach() for order in tower]


def largest_distance(a: Tensor, b: Tensor) -> float:
    return (a - b).abs().max().item()


def run(size: int = 8, seed: int = 3) -> Result:
    """Computes each derivative twice and keeps the largest disagreement."""
    started = time.perf_counter()
    generator = Generator().manual_seed(seed)
    with tqdm(total=3, desc="derivatives", unit="check") as bar:
        x = wengert.randn(size, generator=generator, dtype=wengert.float64, requires_grad=True)
        computed = hessian(rosenbrock, x)
        hessian_check = Comparison(
            computed.tolist(), largest_distance(computed, rosenbrock_hessian(x.tolist()))
        )
        bar.update()

        computed = jacobian(lambda at: at.softmax(dim=0), x)
        jacobian_check = Comparison(
            computed.tolist(), largest_distance(computed, softmax_jacobian(x.detach()))
        )
        bar.update()

        grid = wengert.linspace(-3, 3, 241, dtype=wengert.float64).requires_grad_()
        tower = derivative_tower(grid, 4)
        exact = tanh_derivatives(grid.detach())
        errors = [largest_distance(a, b) for a, b in zip(tower, exact)]
        tower_check = Tower(grid.tolist(), [order.tolist() for order in tower], errors)
        bar.update()
        result = Result(hessian_check, jacobian_check, tower_check, time.perf_counter() - started)
        bar.set_postfix_str(f"largest error {result.largest_error:.1e}")
    return result
