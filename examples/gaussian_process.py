"""A Gaussian process whose kernel is learnt through a Cholesky factor.

The likelihood of the data needs a determinant and a solution of a linear system; the gradient goes
through both.
"""

from __future__ import annotations

import math

from tqdm import trange

import wengert as torch
from wengert import Tensor


def data(count: int = 40) -> tuple[Tensor, Tensor]:
    """Places with a gap between them, and noisy values of a curve there."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(count, generator=generator, dtype=torch.float64) * 6
    x = torch.where(x > 3, x + 2, x)
    noise = 0.1 * torch.randn(count, generator=generator, dtype=torch.float64)
    return x, torch.sin(1.5 * x) + 0.1 * x + noise


class Process:
    """A process with a smooth kernel; what it learns are logarithms."""

    def __init__(self, x: Tensor, y: Tensor) -> None:
        self.x, self.y = x, y
        self.logs = torch.zeros(3, dtype=torch.float64, requires_grad=True)

    def kernel(self, a: Tensor, b: Tensor) -> Tensor:
        """How alike the values at places are."""
        scale, height, _ = self.logs.exp()
        return height**2 * torch.exp(-0.5 * ((a[:, None] - b) / scale) ** 2)

    def factor(self) -> Tensor:
        """The Cholesky factor of the covariance of the data."""
        noise = self.logs[2].exp() ** 2 * torch.eye(len(self.x), dtype=torch.float64)
        return torch.linalg.cholesky(self.kernel(self.x, self.x) + noise)

    def cost(self) -> Tensor:
        """Minus the logarithm of the likelihood."""
        factor = self.factor()
        white = torch.linalg.solve_triangular(factor, self.y[:, None], upper=False)
        constant = len(self.x) * math.log(2 * math.pi) / 2
        return white.square().sum() / 2 + factor.diagonal().log().sum() + constant

    @torch.no_grad()
    def predict(self, at: Tensor) -> tuple[Tensor, Tensor]:
        """Means and deviations of the curve at places."""
        factor, across = self.factor(), self.kernel(self.x, at)
        white = torch.linalg.solve_triangular(factor, across, upper=False)
        mean = white.T @ torch.linalg.solve_triangular(factor, self.y[:, None], upper=False)
        return mean[:, 0], (self.kernel(at, at).diagonal() - white.square().sum(0)).sqrt()


def fit(steps: int = 10) -> tuple[Process, list[float]]:
    """A process fitted by L-BFGS, and the costs on the way."""
    process = Process(*data())
    optimizer = torch.optim.LBFGS([process.logs], max_iter=8, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        cost = process.cost()
        cost.backward()
        return cost

    bar = trange(steps)
    costs = []
    for _ in bar:
        costs.append(optimizer.step(closure).item())
        bar.set_postfix(cost=f"{costs[-1]:.3f}")
    return process, costs


def main(steps: int = 10) -> None:
    process, costs = fit(steps)
    print(f"cost {costs[0]:.2f} -> {costs[-1]:.2f}")
    print("length scale, height and noise:", process.logs.detach().exp())
    at = torch.tensor([1.0, 4.0, 6.0], dtype=torch.float64)
    print("means and deviations at 1, in the gap at 4, and at 6:", *process.predict(at))


if __name__ == "__main__":
    main()
