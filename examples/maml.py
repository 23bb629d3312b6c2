"""Learning to learn: weights from which one gradient step fits a new sine wave.

The loss after a step of training is differentiated through that step; `vmap` does so for many tasks
at once.
"""

from __future__ import annotations

import math

from tqdm import trange

import wengert as torch
from wengert import Tensor, nn
from wengert.func import functional_call, grad, vmap
from wengert.nn import functional as F

Weights = dict[str, Tensor]
RATE = 0.05


def network() -> nn.Module:
    torch.manual_seed(0)
    first, second, last = nn.Linear(1, 40), nn.Linear(40, 40), nn.Linear(40, 1)
    return nn.Sequential(first, nn.Tanh(), second, nn.Tanh(), last)


def tasks(count: int, points: int = 10) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Waves of varied height and phase: points to learn from, and points to be tested with."""
    height = 0.5 + 2 * torch.rand(count, 1, 1)
    phase = math.pi * torch.rand(count, 1, 1)
    x = 6 * torch.rand(count, 2 * points, 1) - 3
    y = height * torch.sin(x + phase)
    return x[:, :points], y[:, :points], x[:, points:], y[:, points:]


class Learner:
    """A network whose weights are learnt for what a few steps make of them."""

    def __init__(self) -> None:
        self.model = network()
        self.weights = {name: p.detach() for name, p in self.model.named_parameters()}

    def loss(self, weights: Weights, x: Tensor, y: Tensor) -> Tensor:
        return F.mse_loss(functional_call(self.model, weights, (x,)), y)

    def adapted(self, weights: Weights, x: Tensor, y: Tensor, steps: int = 1) -> Weights:
        """The weights after steps of descent on one task."""
        for _ in range(steps):
            slopes = grad(self.loss)(weights, x, y)
            weights = {name: w - RATE * slopes[name] for name, w in weights.items()}
        return weights

    def after(self, weights: Weights, batch: tuple[Tensor, ...], steps: int = 1) -> Tensor:
        """The mean loss on new points of each task, after steps on the other points."""

        def one(x: Tensor, y: Tensor, new_x: Tensor, new_y: Tensor) -> Tensor:
            return self.loss(self.adapted(weights, x, y, steps), new_x, new_y)

        return vmap(one)(*batch).mean()

    def train(self, steps: int, count: int = 32) -> list[float]:
        """Change the weights for the better, and tell the losses after adaptation."""
        leaves = {name: w.clone().requires_grad_() for name, w in self.weights.items()}
        optimizer = torch.optim.Adam(leaves.values(), lr=3e-3)
        losses = []
        bar = trange(steps)
        for _ in bar:
            optimizer.zero_grad()
            loss = self.after(leaves, tasks(count))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            bar.set_postfix(loss=f"{losses[-1]:.3f}")
        self.weights = {name: w.detach() for name, w in leaves.items()}
        return losses


def main(steps: int = 400) -> None:
    learner = Learner()
    torch.manual_seed(1)
    fresh = learner.weights
    learner.train(steps)
    batch = tasks(100)
    for number in (0, 1, 5):
        a, b = (learner.after(w, batch, number).item() for w in (fresh, learner.weights))
        print(f"loss after {number} steps: {a:.3f} from random weights, {b:.3f} from learnt ones")


if __name__ == "__main__":
    main()
