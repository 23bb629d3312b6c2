"""A neural ordinary differential equation: the field behind a spiral, from points along it.

The solution is computed by Runge-Kutta steps, and its gradient by the adjoint equation: a second
solution, backwards in time, in place of a graph of all steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tqdm import trange

import wengert as torch
from wengert import Tensor, nn
from wengert.autograd import Function
from wengert.func import functional_call, vjp

Field = Callable[[Any], Any]


def runge_kutta(field: Field, y: tuple[Tensor, ...], h: float) -> tuple[Tensor, ...]:
    """One step of order four."""

    def moved(slopes: tuple[Tensor, ...], by: float) -> tuple[Tensor, ...]:
        return tuple(a + by * b for a, b in zip(y, slopes))

    k1 = field(y)
    k2 = field(moved(k1, h / 2))
    k3 = field(moved(k2, h / 2))
    k4 = field(moved(k3, h))
    return tuple(a + h / 6 * (b + 2 * c + 2 * d + e) for a, b, c, d, e in zip(y, k1, k2, k3, k4))


class Solution(Function):
    """States at equal times from a state; backward solves the adjoint equation."""

    @staticmethod
    def forward(ctx: Any, model: nn.Module, start: Tensor, count: int, h: float, *values: Tensor):
        names = [name for name, _ in model.named_parameters()]

        def f(y: Tensor, *values: Tensor) -> Tensor:
            return functional_call(model, dict(zip(names, values)), (y,))

        states = [start]
        for _ in range(count):
            states += runge_kutta(lambda y: (f(y[0], *values),), (states[-1],), h)
        ctx.f, ctx.h = f, h
        ctx.save_for_backward(*states, *values)
        ctx.count = count
        return torch.stack(states)

    @staticmethod
    def backward(ctx: Any, gradients: Tensor):
        saved = ctx.saved_tensors
        states, values = saved[: ctx.count + 1], saved[ctx.count + 1 :]

        def field(parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            out, pull = vjp(ctx.f, parts[0], *values)
            return (out, *(-g for g in pull(parts[1])))

        adjoint = gradients[-1]
        totals = tuple(torch.zeros_like(v) for v in values)
        for i in range(ctx.count, 0, -1):
            _, adjoint, *totals = runge_kutta(field, (states[i], adjoint, *totals), -ctx.h)
            adjoint = adjoint + gradients[i - 1]
        return None, adjoint, None, None, *totals


def solve(model: nn.Module, start: Tensor, count: int, h: float) -> Tensor:
    """States at `count` times after the start."""
    return Solution.apply(model, start, count, h, *model.parameters())


def spiral(count: int = 60, h: float = 0.1) -> Tensor:
    """The points to explain: the solution of a known equation."""
    matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    states = [torch.tensor([[1.5, 0.0]])]
    for _ in range(count):
        states += runge_kutta(lambda y: (y[0] ** 3 @ matrix.T,), (states[-1],), h)
    return torch.stack(states)


class Network(nn.Module):
    """The unknown field."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, y: Tensor) -> Tensor:
        return self.layers(y**3)


def train(steps: int = 300) -> tuple[nn.Module, list[float]]:
    """A field, and the losses on the way: short pieces of the spiral, from each of its points."""
    truth, model = spiral(), Network()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(steps, 1))
    length = 6
    pieces = truth.squeeze(1).unfold(0, length + 1, 1).permute(2, 0, 1)
    losses = []
    bar = trange(steps)
    for _ in bar:
        loss = (solve(model, pieces[0], length, 0.1) - pieces).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        bar.set_postfix(loss=f"{losses[-1]:.4f}")
    return model, losses


def main(steps: int = 300) -> None:
    model, losses = train(steps)
    truth = spiral()
    with torch.no_grad():
        whole = solve(model, truth[0], len(truth) - 1, 0.1)
    print(f"error of short pieces {losses[0]:.3f} -> {losses[-1]:.4f}")
    print(f"error of the whole spiral from its start: {(whole - truth).abs().mean():.3f}")


if __name__ == "__main__":
    main()
