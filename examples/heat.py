"""The heat equation solved by a network: the equation itself is the loss.

u_t = u_xx on [0, 1], u(x, 0) = sin(pi x) + sin(2 pi x) / 2, and 0 at both ends. The network is made
to fit the start and the ends exactly, so that what is left to learn is the equation.
"""

from __future__ import annotations

import math

from tqdm import trange

import wengert as torch
from wengert import Tensor, nn
from wengert.func import functional_call, grad, vmap


def start(x: Tensor) -> Tensor:
    """The temperature at the beginning."""
    return torch.sin(math.pi * x) + torch.sin(2 * math.pi * x) / 2


def exact(x: Tensor, t: Tensor) -> Tensor:
    """The solution in closed form."""
    slow = torch.exp(-(math.pi**2) * t) * torch.sin(math.pi * x)
    return slow + torch.exp(-4 * math.pi**2 * t) * torch.sin(2 * math.pi * x) / 2


class Heat(nn.Module):
    """The temperature at a place and a time, which is right at the start and at the ends."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        free = self.net(torch.stack([2 * x - 1, 20 * t - 1], -1)).squeeze(-1)
        return start(x) * torch.exp(-20 * t) + 20 * t * x * (1 - x) * free


def residual(model: Heat, x: Tensor, t: Tensor) -> Tensor:
    """u_t - u_xx at many points: forward and reverse derivatives of the network."""
    parameters = dict(model.named_parameters())

    def u(x: Tensor, t: Tensor) -> Tensor:
        return functional_call(model, parameters, (x, t))

    u_t = vmap(grad(u, argnums=1))(x, t)
    u_xx = vmap(grad(grad(u)))(x, t)
    return u_t - u_xx


def train(steps: int = 600, points: int = 128) -> tuple[Heat, list[float]]:
    """A solution, and the losses on the way to it."""
    torch.manual_seed(0)
    model = Heat().double()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(steps, 1))
    losses = []
    bar = trange(steps)
    for _ in bar:
        x, t = torch.rand(2, points, dtype=torch.float64)
        loss = residual(model, x, t / 10).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        bar.set_postfix(loss=f"{losses[-1]:.4f}")
    return model, losses


@torch.no_grad()
def error(model: Heat) -> float:
    """The largest error at a grid of places and times."""
    x, t = torch.meshgrid(
        torch.linspace(0, 1, 21, dtype=torch.float64),
        torch.linspace(0, 0.1, 21, dtype=torch.float64),
        indexing="ij",
    )
    return (model(x, t) - exact(x, t)).abs().max().item()


def main(steps: int = 600) -> None:
    model, losses = train(steps)
    print(f"residual {losses[0]:.2f} -> {losses[-1]:.4f}")
    print(f"largest error of the temperature: {error(model):.4f}, where it is at most 1.3")


if __name__ == "__main__":
    main()
