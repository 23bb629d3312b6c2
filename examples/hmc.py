"""Hamiltonian Monte Carlo: samples of a posterior, many chains at once.

The density of a logistic regression's weights is known up to a factor. Its gradient moves particles
that are thrown again and again; `vmap` runs all chains together.
"""

from __future__ import annotations

from collections.abc import Callable

from tqdm import trange

import wengert as torch
from wengert import Tensor
from wengert.func import grad, vmap
from wengert.nn import functional as F

Density = Callable[[Tensor], Tensor]


def leapfrog(density: Density, q: Tensor, p: Tensor, h: float, count: int) -> tuple[Tensor, Tensor]:
    """Motion of one particle in the landscape of minus the log-density."""
    slope = grad(density)
    p = p + h / 2 * slope(q)
    for step in range(count):
        q = q + h * p
        p = p + (h if step < count - 1 else h / 2) * slope(q)
    return q, p


def sample(
    density: Density, start: Tensor, steps: int, h: float = 0.1, count: int = 10
) -> tuple[Tensor, float]:
    """States of all chains after each throw, and the share of throws that were kept."""
    move = vmap(lambda q, p: leapfrog(density, q, p, h, count))
    log_density = vmap(density)
    q, states, kept = start, [], 0.0
    bar = trange(steps)
    for step in bar:
        p = torch.randn_like(q)
        new_q, new_p = move(q, p)
        change = log_density(new_q) - log_density(q) + (p**2 - new_p**2).sum(-1) / 2
        keep = torch.rand(len(q), dtype=q.dtype).log() < change
        q = torch.where(keep[:, None], new_q, q)
        kept += keep.double().mean().item()
        states.append(q)
        bar.set_postfix(kept=f"{kept / (step + 1):.2f}")
    return torch.stack(states), kept / steps


def data(count: int = 100) -> tuple[Tensor, Tensor, Tensor]:
    """Points, their classes, and the weights that made them."""
    generator = torch.Generator().manual_seed(0)
    weights = torch.tensor([1.5, -1.0, 0.5], dtype=torch.float64)
    x = torch.randn(count, 3, generator=generator, dtype=torch.float64)
    y = torch.bernoulli((x @ weights).sigmoid(), generator=generator)
    return x, y, weights


def posterior(x: Tensor, y: Tensor) -> Density:
    """The logarithm of the density of weights, with a normal prior."""

    def density(w: Tensor) -> Tensor:
        return -F.binary_cross_entropy_with_logits(x @ w, y, reduction="sum") - (w**2).sum() / 8

    return density


def spread_of_chains(states: Tensor) -> Tensor:
    """Gelman and Rubin's measure: near 1 if all chains have seen the same."""
    within = states.var(0).mean(0)
    return (1 + states.mean(0).var(0) / within).sqrt()


def main(steps: int = 150, chains: int = 16) -> None:
    torch.manual_seed(0)
    x, y, weights = data()
    start = torch.randn(chains, 3, dtype=torch.float64)
    states, kept = sample(posterior(x, y), start, steps)
    states = states[len(states) // 3 :]
    print(f"{kept:.0%} of the throws are kept; chains agree: {spread_of_chains(states).tolist()}")
    flat = states.flatten(0, 1)
    means, deviations = flat.mean(0).tolist(), flat.std(0).tolist()
    for truth, mean, deviation in zip(weights.tolist(), means, deviations):
        print(f"weight {truth:5.2f}: {mean:5.2f} +- {deviation:.2f}")


if __name__ == "__main__":
    main()
