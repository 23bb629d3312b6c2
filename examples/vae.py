"""A variational autoencoder of discs: the picture of a disc from two numbers.

Each picture is a disc somewhere; what the two hidden numbers learn is where.
"""

from __future__ import annotations

from tqdm import trange

import wengert as torch
from wengert import Tensor, nn
from wengert.distributions import Normal, kl_divergence
from wengert.nn import functional as F

SIZE = 12


def discs(count: int) -> tuple[Tensor, Tensor]:
    """Pictures of discs, and the places of their centres."""
    centres = 2 + (SIZE - 5) * torch.rand(count, 2)
    y, x = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    squares = (x - centres[:, :1, None]) ** 2 + (y - centres[:, 1:, None]) ** 2
    return torch.sigmoid(2 * (2.5 - squares.sqrt())), centres


class VAE(nn.Module):
    """A network to the distribution of hidden numbers, and one back."""

    def __init__(self, hidden: int = 2, width: int = 96) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Flatten(), nn.Linear(SIZE**2, width), nn.SiLU(), nn.Linear(width, 2 * hidden)
        )
        self.decoder = nn.Sequential(
            nn.Linear(hidden, width), nn.SiLU(), nn.Linear(width, SIZE**2),
            nn.Unflatten(1, (SIZE, SIZE)),
        )  # fmt: skip

    def posterior(self, x: Tensor) -> Normal:
        """What the hidden numbers of pictures may be."""
        mean, log_deviation = self.encoder(x).chunk(2, dim=1)
        return Normal(mean, log_deviation.exp())

    def bound(self, x: Tensor) -> Tensor:
        """Upper bounds of minus the logarithm of the pictures' probabilities."""
        q = self.posterior(x)
        scores = self.decoder(q.rsample())
        fit = F.binary_cross_entropy_with_logits(scores, x, reduction="none").sum((1, 2))
        return fit + kl_divergence(q, Normal(0.0, 1.0)).sum(1)


def train(steps: int = 400, batch: int = 64) -> tuple[VAE, list[float]]:
    """A model and the bounds it had in training."""
    torch.manual_seed(0)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    bar = trange(steps)
    for _ in bar:
        loss = model.bound(discs(batch)[0]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        bar.set_postfix(bound=f"{losses[-1]:.2f}")
    return model, losses


@torch.no_grad()
def explained(model: VAE, count: int = 300) -> float:
    """How much of where the discs are a linear map of the hidden numbers tells: 1 is all."""
    x, centres = discs(count)
    hidden = model.posterior(x).mean
    design = torch.cat([hidden, hidden**2, hidden.prod(1, keepdim=True), torch.ones(count, 1)], 1)
    fit = design @ torch.linalg.lstsq(design, centres).solution
    return 1 - ((fit - centres).var(0) / centres.var(0)).mean().item()


@torch.no_grad()
def sheet(model: VAE, count: int = 6) -> Tensor:
    """Pictures of hidden numbers on a grid, beside and below each other."""
    line = torch.linspace(-1.5, 1.5, count)
    images = model.decoder(torch.cartesian_prod(line, line)).sigmoid()
    return images.view(count, count, SIZE, SIZE).transpose(1, 2).reshape(count * SIZE, count * SIZE)


def main(steps: int = 400) -> None:
    model, losses = train(steps)
    print(f"bound {losses[0]:.1f} -> {losses[-1]:.1f}")
    print(f"two numbers explain {explained(model):.0%} of where the discs are; new ones:")
    for row in sheet(model, 3)[::2, ::1]:
        print("".join(" .:-=+*#%@"[min(9, int(10 * v))] for v in row.tolist()))


if __name__ == "__main__":
    main()
