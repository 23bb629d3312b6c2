"""Small models that the pictures are drawn of."""

import wengert as torch
from wengert import nn
from wengert.nn import functional as F
from wengert.utils.checkpoint import checkpoint


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        split = self.qkv(x).view(batch, length, 3 * self.heads, width // self.heads)
        q, k, v = split.transpose(1, 2).chunk(3, 1)
        weights = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = weights.masked_fill(later, float("-inf")).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        inner = 4 * width
        self.mlp = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, blocks=12, width=32, checkpointed=False):
        super().__init__()
        self.checkpointed = checkpointed
        self.tok, self.pos = nn.Embedding(50, width), nn.Embedding(16, width)
        self.h = nn.ModuleList([Block(width, 4) for _ in range(blocks)])
        self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, 50)

    def forward(self, tokens, following):
        x = self.tok(tokens) + self.pos(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return F.cross_entropy(self.head(self.ln(x)).flatten(0, 1), following.flatten())


class MLP(nn.Module):
    def __init__(self, width=64, checkpointed=False):
        super().__init__()
        self.checkpointed = checkpointed
        self.parts = nn.ModuleList(
            [nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
             for _ in range(6)]
        )  # fmt: skip

    def forward(self, x):
        for part in self.parts:
            x = checkpoint(part, x, use_reentrant=False) if self.checkpointed else part(x)
        return x.square().mean()


class CNN(nn.Module):
    def __init__(self, channels=16, checkpointed=False):
        super().__init__()
        self.checkpointed = checkpointed
        self.stem, self.head = nn.Conv2d(3, channels, 3, padding=1), nn.Linear(channels, 10)
        self.parts = nn.ModuleList([self.part(channels) for _ in range(5)])

    @staticmethod
    def part(channels):
        layers = []
        for activation in (nn.ReLU(), nn.Tanh()):
            convolution = nn.Conv2d(channels, channels, 3, padding=1)
            layers += [convolution, nn.BatchNorm2d(channels), activation]
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.stem(x)
        for part in self.parts:
            x = checkpoint(part, x, use_reentrant=False) if self.checkpointed else part(x)
        return self.head(x.mean((2, 3))).square().mean()


def tokens(length=16):
    return torch.randint(0, 50, (4, length)), torch.randint(0, 50, (4, length))
