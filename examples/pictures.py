"""Pictures of a small GPT: the graph of its loss, the memory held for backward, a profile.

Each is one HTML page that fetches nothing. `python examples/pictures.py FOLDER` writes them there.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import wengert as torch
from wengert import Tensor, nn, viz
from wengert.nn import functional as F

WORDS, LENGTH, WIDTH, HEADS, BLOCKS = 50, 16, 32, 4, 6


class Attention(nn.Module):
    """Every position looks at itself and at those before it."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        heads = self.qkv(x).view(batch, length, 3 * HEADS, width // HEADS)
        q, k, v = heads.transpose(1, 2).chunk(3, 1)
        weights = q @ k.transpose(-1, -2) / (width // HEADS) ** 0.5
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = weights.masked_fill(later, float("-inf")).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Attention and a network of two layers, each added to what comes in."""

    def __init__(self) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = Attention()
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    """The loss of predicting each next word."""

    def __init__(self) -> None:
        super().__init__()
        self.tok, self.pos = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.h = nn.ModuleList([Block() for _ in range(BLOCKS)])
        self.ln, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, tokens: Tensor, following: Tensor) -> Tensor:
        x = self.tok(tokens) + self.pos(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return F.cross_entropy(self.head(self.ln(x)).flatten(0, 1), following.flatten())


def draw(folder: Path) -> list[str]:
    """Write the pages into a folder; returns a line about each."""
    torch.manual_seed(0)
    model = GPT()
    batch = torch.randint(0, WORDS, (4, LENGTH)), torch.randint(0, WORDS, (4, LENGTH))
    graph = viz.graph(model, batch)
    memory = viz.memory(model, batch)
    profile = viz.profile(lambda: model(*batch).backward(), title="one step of a small GPT")
    profile.save(folder / "profile.json")
    graph.save(folder / "graph.html")
    memory.save(folder / "memory.html")
    profile.save(folder / "profile.html")
    return [f"graph.html: {graph}", f"memory.html: {memory.advice[0]}", f"profile.html: {profile}"]


def main() -> None:
    if len(sys.argv) > 1 and Path(sys.argv[1]).is_dir():
        print(*draw(Path(sys.argv[1])), sep="\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        print(*draw(Path(folder)), sep="\n")


if __name__ == "__main__":
    main()
