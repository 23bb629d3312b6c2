"""DataLoaders with worker processes, samplers, splits and transforms, around a linear model."""

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    get_worker_info,
    random_split,
)


class Points(Dataset):
    def __init__(self, n, transform=None):
        rng = np.random.default_rng(0)
        self.x = rng.normal(size=(n, 5)).astype(np.float32)
        self.y = (self.x.sum(1) > 0).astype(np.int64)
        self.transform = transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, idx):
        if torch.is_tensor(idx):
            idx = idx.tolist()
        sample = {"x": self.x[idx], "y": self.y[idx], "name": f"point {idx}", "half": idx / 2}
        if self.transform:
            sample = self.transform(sample)
        return sample


class ToTensor(object):
    def __call__(self, sample):
        return {**sample, "x": torch.from_numpy(sample["x"])}


class Numbers(IterableDataset):
    def __init__(self, end):
        self.end = end

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.end, step))


def pad_collate(batch):
    lengths = torch.tensor([len(each) for each in batch])
    return nn.utils.rnn.pad_sequence(batch, batch_first=True), lengths


def main():
    generator = torch.Generator().manual_seed(2147483647)
    torch.manual_seed(0)
    points = Points(90, transform=ToTensor())
    train, val = random_split(points, [0.8, 0.2], generator=torch.Generator().manual_seed(42))
    both = ConcatDataset([train, Subset(points, range(6))])
    loader = DataLoader(
        both, batch_size=16, shuffle=True, num_workers=2, drop_last=True, generator=generator,
        persistent_workers=True, prefetch_factor=2,
    )
    val_loader = DataLoader(val, batch_size=6)
    model = nn.Sequential(nn.Linear(5, 8), nn.Softplus(), nn.Linear(8, 2))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    for epoch in range(10):
        total = 0.0
        for i, batch in enumerate(loader):
            assert batch["half"].dtype == torch.float64 and isinstance(batch["name"], list)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch["x"]), batch["y"])
            loss.backward()
            optimizer.step()
            total += loss.item()
        with torch.no_grad():
            right = sum(int((model(b["x"]).argmax(-1) == b["y"]).sum()) for b in val_loader)
        print(f"epoch {epoch} loss {total / (i + 1):.7f} right {right}/{len(val)}")

    weights = [0.1, 0.9, 0.4, 0.7, 3.0, 0.6]
    print(list(WeightedRandomSampler(weights, 5, replacement=True)))
    print(sorted(int(n) for n in DataLoader(Numbers(7), num_workers=2)))
    ragged = [torch.arange(n) for n in (1, 4, 2)]
    for padded, lengths in DataLoader(ragged, batch_size=3, collate_fn=pad_collate):
        print(padded, lengths)
    pairs = TensorDataset(torch.arange(4), torch.arange(4) ** 2)
    print(default_collate([pairs[0], pairs[3]]), len(loader), batch["name"][:2])


if __name__ == "__main__":
    main()
