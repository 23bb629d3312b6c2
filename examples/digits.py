"""Digits recognised by a convolutional network.

The pictures are drawn here: a small font, moved, stretched, thickened and covered with noise.
"""

from __future__ import annotations

from tqdm import trange

import wengert as torch
from wengert import Tensor, nn
from wengert.nn import functional as F

#: Rows of the digits 0 to 9, five by three points each.
FONT = """
###  #  ### ### # # ### ### ### ### ###
# # ##    #   # # # #   #     # # # # #
# #  #  ### ### ### ### ###   # ### ###
# #  #  #     #   #   # # #   # # #   #
### ### ### ###   # ### ###   # ### ###
"""


def glyphs() -> Tensor:
    """The digits as pictures of five by three points."""
    rows = FONT.strip("\n").split("\n")
    points = [[float(c == "#") for c in row.ljust(40)] for row in rows]
    return torch.tensor(points).view(5, 10, 4)[:, :, :3].permute(1, 0, 2)


def pictures(count: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Pictures of 16 by 16 points, each another digit in another place, and their labels."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (count,), generator=generator)
    scale = 1.3 + 0.9 * torch.rand(count, 2, generator=generator)
    shift = 0.8 * torch.rand(count, 2, generator=generator) - 0.4
    slant = 0.5 * torch.rand(count, generator=generator) - 0.25
    maps = torch.zeros(count, 2, 3)
    maps[:, 0, 0], maps[:, 1, 1] = scale.unbind(1)
    maps[:, 0, 1], maps[:, :, 2] = slant, shift
    grid = F.affine_grid(maps, [count, 1, 16, 16], align_corners=False)
    images = F.grid_sample(glyphs()[labels].unsqueeze(1), grid, align_corners=False)
    return images + 0.2 * torch.randn(images.shape, generator=generator), labels


def network() -> nn.Module:
    """Two convolutions, each followed by a pool, and one layer for the scores."""
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(24 * 16, 10),
    )  # fmt: skip


def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The share of pictures that are recognised."""
    model.eval()
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).float().mean().item()
    model.train()
    return right


def train(steps: int = 150, batch: int = 64) -> tuple[nn.Module, float]:
    """A network, and how many pictures it recognises that it has never seen."""
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=max(steps, 2))
    bar = trange(steps)
    for step in bar:
        images, labels = pictures(batch, seed=step + 1)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        schedule.step()
        bar.set_postfix(loss=f"{loss.item():.3f}")
    return model, accuracy(model, *pictures(500))


def main(steps: int = 150) -> None:
    _, right = train(steps)
    print(f"{right:.1%} of 500 new pictures are recognised")


if __name__ == "__main__":
    main()
