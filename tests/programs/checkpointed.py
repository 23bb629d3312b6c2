"""Training with checkpointed blocks, clipping and schedulers, stopped, saved and resumed."""

import os
import tempfile

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width: int, p: float):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(p)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.dropout(self.down(nn.functional.gelu(self.up(self.norm(x)))))


class Net(nn.Module):
    def __init__(self, width: int = 16, depth: int = 3):
        super().__init__()
        self.stem = nn.Linear(4, width)
        self.blocks = nn.ModuleList(Block(width, 0.1) for _ in range(depth))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(x).squeeze(-1)


def build():
    model = Net()
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-2, weight_decay=1e-3)
    scheduler = SequentialLR(
        optimizer,
        [LinearLR(optimizer, 0.1, total_iters=3), CosineAnnealingLR(optimizer, T_max=7)],
        milestones=[3],
    )
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    return model, optimizer, scheduler, averaged


def train(parts, first, last, data):
    model, optimizer, scheduler, averaged = parts
    x, y = data
    for step in range(first, last):
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.huber_loss(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5, error_if_nonfinite=True)
        optimizer.step()
        scheduler.step()
        averaged.update_parameters(model)
        lr = optimizer.param_groups[0]["lr"]
        print(f"step {step} loss {loss.item():.7f} norm {norm:.4f} lr {lr:.6f}")


def save(path, parts, step):
    model, optimizer, scheduler, averaged = parts
    torch.save(
        {
            "step": step,
            "model_state_dict": model.state_dict(),
            "optimizer_state_dict": optimizer.state_dict(),
            "scheduler_state_dict": scheduler.state_dict(),
            "averaged": averaged.state_dict(),
            "rng": torch.get_rng_state(),
        },
        path,
    )


def load(path, parts):
    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    model, optimizer, scheduler, averaged = parts
    print(model.load_state_dict(checkpoint["model_state_dict"]))
    optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
    scheduler.load_state_dict(checkpoint["scheduler_state_dict"])
    averaged.load_state_dict(checkpoint["averaged"])
    torch.set_rng_state(checkpoint["rng"])
    return checkpoint["step"]


torch.manual_seed(21)
x = torch.randn(32, 4)
data = x, (x[:, 0] * x[:, 1] + torch.sin(x[:, 2]))
parts = build()
train(parts, 0, 5, data)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "checkpoint.pt")
    save(path, parts, 5)
    del parts
    torch.manual_seed(0)
    parts = build()
    step = load(path, parts)
train(parts, step, 10, data)
averaged = parts[-1].eval()
with torch.no_grad():
    error = nn.functional.mse_loss(averaged(x), data[1])
    print(f"averaged {error:.6f} after {averaged.n_averaged}")
