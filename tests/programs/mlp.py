"""A multilayer perceptron on the two spirals."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def two_spirals(n):
    t = torch.sqrt(torch.rand(n)) * 3 * math.pi
    inner = torch.stack((t * torch.cos(t), t * torch.sin(t)), dim=1)
    points = torch.cat([inner, -inner]) / (3 * math.pi) + 0.02 * torch.randn(2 * n, 2)
    labels = torch.cat([torch.zeros(n), torch.ones(n)]).long()
    return points, labels


class MLP(nn.Module):
    def __init__(self, in_features, hidden, out_features, dropout=0.1):
        super().__init__()
        self.fc1 = nn.Linear(in_features, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, out_features)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = self.dropout(torch.tanh(self.fc2(x)))
        return self.fc3(x)


x, y = (each.to(device) for each in two_spirals(200))
model = MLP(2, 64, 2).to(device)
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=1e-3)

print(model)
print(sum(p.numel() for p in model.parameters() if p.requires_grad), "parameters")
for epoch in range(10):
    model.train()
    permutation = torch.randperm(x.size(0))
    running = 0.0
    for start in range(0, x.size(0), 50):
        index = permutation[start : start + 50]
        optimizer.zero_grad()
        loss = criterion(model(x[index]), y[index])
        loss.backward()
        optimizer.step()
        running += loss.item() * len(index)
    model.eval()
    with torch.no_grad():
        accuracy = (model(x).argmax(dim=1) == y).float().mean()
    print(f"epoch {epoch} loss {running / x.size(0):.7f} accuracy {accuracy:.4f}")
