"""A small GPT that learns the letters of this project's own pages, and writes some."""

from __future__ import annotations

import math
from pathlib import Path

from tqdm import trange

import wengert as torch
from wengert import Tensor, nn
from wengert.nn import functional as F

TEXT = Path(__file__).parents[1] / "docs" / "how-autograd-works.md"


class Block(nn.Module):
    """Attention to what came before, and a network for each letter."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        wide = 4 * width
        self.mlp = nn.Sequential(nn.Linear(width, wide), nn.GELU(), nn.Linear(wide, width))

    def forward(self, x: Tensor) -> Tensor:
        b, t, width = x.shape
        parts = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Scores of the next letter at every place."""

    def __init__(self, letters: int, length: int, width: int = 48, heads: int = 4, depth: int = 2):
        super().__init__()
        self.length = length
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters)

    def forward(self, x: Tensor) -> Tensor:
        h = self.letters(x) + self.places(torch.arange(x.shape[1]))
        return self.head(self.norm(self.blocks(h)))

    @torch.no_grad()
    def write(self, x: Tensor, count: int, temperature: float = 0.7) -> Tensor:
        """Go on from a row of letters."""
        for _ in range(count):
            scores = self(x[None, -self.length :])[0, -1] / temperature
            x = torch.cat([x, torch.multinomial(scores.softmax(-1), 1)])
        return x


class Corpus:
    """A text as numbers."""

    def __init__(self, text: str) -> None:
        self.alphabet = sorted(set(text))
        self.data = torch.tensor([self.alphabet.index(c) for c in text])

    def batch(self, size: int, length: int) -> tuple[Tensor, Tensor]:
        """Pieces of the text, and the same one letter on."""
        starts = torch.randint(0, len(self.data) - length, (size, 1))
        pieces = self.data[starts + torch.arange(length + 1)]
        return pieces[:, :-1], pieces[:, 1:]

    def text(self, numbers: Tensor) -> str:
        """Letters of numbers."""
        return "".join(self.alphabet[i] for i in numbers.tolist())


def train(steps: int, length: int = 48) -> tuple[GPT, Corpus, list[float]]:
    """A trained model, what it read, and the losses."""
    torch.manual_seed(0)
    corpus = Corpus(TEXT.read_text(encoding="utf-8"))
    model = GPT(len(corpus.alphabet), length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
    losses = []
    bar = trange(steps)
    for step in bar:
        for group in optimizer.param_groups:
            rise, fall = min(1, (step + 1) / 20), 0.55 + 0.45 * math.cos(3 * step / steps)
            group["lr"] = 3e-3 * rise * fall
        x, y = corpus.batch(16, length)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        bar.set_postfix(loss=f"{losses[-1]:.3f}")
    return model, corpus, losses


def main(steps: int = 300) -> None:
    model, corpus, losses = train(steps)
    chance = math.log(len(corpus.alphabet))
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, where chance is {chance:.3f}")
    print(corpus.text(model.eval().write(corpus.data[:20], 200)))


if __name__ == "__main__":
    main()
