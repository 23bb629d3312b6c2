"""How noisy are a system and what is measured of it? Found through a Kalman filter.

The filter gives the likelihood of a row of measurements. Its first and second derivatives in the
two amounts of noise, through all steps of the filter, let Newton's method find them.
"""

from __future__ import annotations

import math

from tqdm import trange

import wengert as torch
from wengert import Tensor
from wengert.func import grad, hessian

#: Position and speed after a unit of time.
STEP = torch.tensor([[1.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
#: How a push during that time acts on both.
PUSH = torch.tensor([[0.25, 0.5], [0.5, 1.0]], dtype=torch.float64)


def measurements(count: int = 100, push: float = 0.3, blur: float = 2.0) -> tuple[Tensor, Tensor]:
    """Positions of something that is pushed about, and blurred measurements of them."""
    generator = torch.Generator().manual_seed(1)
    pushes = push * torch.randn(count, generator=generator, dtype=torch.float64)
    speeds = pushes.cumsum(0)
    positions = (speeds - pushes / 2).cumsum(0)
    noise = torch.randn(count, generator=generator, dtype=torch.float64)
    return positions, positions + blur * noise


def kalman_filter(logs: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
    """Minus the log-likelihood of measurements, and the positions the filter believes in."""
    push, blur = (2 * logs).exp()
    mean = torch.zeros(2, dtype=torch.float64)
    covariance = 100 * torch.eye(2, dtype=torch.float64)
    cost, means = torch.zeros((), dtype=torch.float64), []
    for value in seen:
        mean = STEP @ mean
        covariance = STEP @ covariance @ STEP.T + push * PUSH
        variance = covariance[0, 0] + blur
        surprise = value - mean[0]
        cost = cost + (surprise**2 / variance + variance.log() + math.log(2 * math.pi)) / 2
        gain = covariance[:, 0] / variance
        mean = mean + gain * surprise
        covariance = covariance - torch.outer(gain, covariance[0])
        means.append(mean[0])
    return cost, torch.stack(means)


def estimate(seen: Tensor, steps: int = 8) -> tuple[Tensor, Tensor, list[float]]:
    """Logarithms of both amounts of noise, how sure they are, and the costs on the way."""

    def cost(logs: Tensor) -> Tensor:
        return kalman_filter(logs, seen)[0]

    logs = torch.zeros(2, dtype=torch.float64)
    costs = [cost(logs).item()]
    bar = trange(steps)
    for _ in bar:
        slope, curvature = grad(cost)(logs), hessian(cost)(logs)
        values, vectors = torch.linalg.eigh(curvature)
        direction = vectors @ ((vectors.T @ slope) / values.abs().clamp(min=1.0))
        length = 1.0
        while cost(logs - length * direction) > costs[-1] and length > 1e-6:
            length /= 2
        logs = logs - length * direction
        costs.append(cost(logs).item())
        bar.set_postfix(cost=f"{costs[-1]:.4f}")
    return logs, torch.linalg.inv(hessian(cost)(logs)).diagonal().sqrt(), costs


def main(steps: int = 6, count: int = 100) -> None:
    positions, seen = measurements(count)
    logs, deviations, costs = estimate(seen, steps)
    print(f"cost {costs[0]:.1f} -> {costs[-1]:.1f}")
    for name, log, deviation in zip(("push", "blur"), logs.tolist(), deviations.tolist()):
        print(f"{name}: {math.exp(log):.2f}, within {100 * deviation:.0f} %")
    _, means = kalman_filter(logs, seen)
    before, after = (seen - positions).std().item(), (means - positions).std().item()
    print(f"error of measurements {before:.2f}, of the filtered positions {after:.2f}")


if __name__ == "__main__":
    main()
