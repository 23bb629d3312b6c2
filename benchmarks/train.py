"""Whole steps of training, eager, as programs write them: layers, backward, an optimizer.

python benchmarks/train.py [--only gpt] [--seconds 8]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from harness import Program, Work, run_benchmark

WIDTH, HEADS, LAYERS, LENGTH, LETTERS = 128, 4, 4, 64, 65


def training(optimizer: Any, loss: Callable[[], Any]) -> Work:
    """A step that returns its loss, by which the libraries are compared."""

    def step() -> Any:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value.detach()

    return Work(step)


def digits(lib: Any) -> Work:
    """Rows of 784 numbers through layers of 256, by gradient descent."""
    nn = lib.nn
    lib.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    )
    x, y = lib.randn(128, 784), lib.arange(128) % 10
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01)
    return training(optimizer, lambda: nn.functional.cross_entropy(model(x), y))


def gpt(lib: Any) -> Work:
    """A transformer over letters, with AdamW."""
    nn = lib.nn
    functional = nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.joint, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            joint = self.joint(self.before(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
            q, k, v = joint.permute(2, 0, 3, 1, 4)
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
            return x + self.narrow(functional.gelu(self.wide(self.between(x))))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.letters, self.places = nn.Embedding(LETTERS, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, LETTERS, bias=False)

        def forward(self, x: Any) -> Any:
            h = self.letters(x) + self.places(lib.arange(x.shape[1]))
            return self.head(self.norm(self.blocks(h)))

    lib.manual_seed(0)
    model = GPT()
    x = lib.randint(0, LETTERS, (8, LENGTH))
    y = x.roll(-1, 1).flatten()
    optimizer = lib.optim.AdamW(model.parameters(), lr=1e-3)
    return training(
        optimizer, lambda: functional.cross_entropy(model(x).view(-1, LETTERS), y)
    )


def checkpointed(lib: Any) -> Work:
    """Eight layers with gelu, each computed again in the backward pass."""
    nn, checkpoint = lib.nn, lib.utils.checkpoint.checkpoint
    lib.manual_seed(0)
    layers = nn.ModuleList(
        [nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256)) for _ in range(8)]
    )
    x = lib.randn(256, 256)
    optimizer = lib.optim.SGD(layers.parameters(), lr=0.01)

    def loss() -> Any:
        h = x
        for layer in layers:
            h = h + checkpoint(layer, h, use_reentrant=False)
        return h.square().mean()

    return training(optimizer, loss)


def lstm(lib: Any) -> Work:
    """A cell written by hand over fifty steps, with Adam."""
    nn = lib.nn
    lib.manual_seed(0)
    cell = nn.Linear(16 + 32, 4 * 32)
    x = lib.randn(50, 8, 16)
    optimizer = lib.optim.Adam(cell.parameters(), lr=1e-3)

    def loss() -> Any:
        h = c = lib.zeros(8, 32)
        for row in x:
            i, f, g, o = cell(lib.cat([row, h], 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return h.square().mean()

    return training(optimizer, loss)


def small(lib: Any) -> Work:
    """A network of two inputs, two layers of sixteen and one output, with Adam."""
    nn = lib.nn
    lib.manual_seed(0)
    layers = (nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
    model = nn.Sequential(*layers)
    x, y = lib.randn(16, 2), lib.randn(16, 1)
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-3)
    return training(optimizer, lambda: nn.functional.mse_loss(model(x), y))


PROGRAMS = [
    Program("mlp 784-256-256-10, SGD", digits, 1.0),
    Program("gpt, 4 layers, AdamW", gpt, 1.0),
    Program("checkpointed gelu network, SGD", checkpointed, 1.0),
    Program("lstm by hand, Adam", lstm, 0.35),
    Program("mlp 2-16-16-1, Adam", small, 0.30),
]


if __name__ == "__main__":
    sys.exit(run_benchmark(__doc__, PROGRAMS))
