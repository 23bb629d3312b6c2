"""Graph convolutions and graph attention by scatter, on a graph of two communities."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn import Parameter


def glorot(tensor):
    stdv = (6.0 / (tensor.size(-2) + tensor.size(-1))) ** 0.5
    tensor.data.uniform_(-stdv, stdv)


def softmax_by(index, values, n):
    """Softmax over all edges that end in the same node."""
    largest = torch.full((n, values.size(1)), float("-inf"))
    largest = largest.scatter_reduce(0, index[:, None].expand_as(values), values, "amax")
    e = (values - largest[index]).exp()
    total = torch.zeros(n, values.size(1)).index_add_(0, index, e)
    return e / total[index]


class GCNConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.weight = Parameter(torch.empty(in_channels, out_channels))
        self.bias = Parameter(torch.zeros(out_channels))
        glorot(self.weight)

    def forward(self, x, edge_index):
        row, col = edge_index
        degree = torch.bincount(col, minlength=x.size(0)).to(x.dtype)
        norm = degree.pow(-0.5)
        norm[norm == float("inf")] = 0
        x = x @ self.weight
        messages = norm[row].view(-1, 1) * x[row] * norm[col].view(-1, 1)
        out = torch.zeros_like(x).scatter_add_(0, col.unsqueeze(-1).expand(-1, x.size(1)), messages)
        return out + self.bias


class GATConv(nn.Module):
    def __init__(self, in_channels, out_channels, heads=2, dropout=0.2):
        super().__init__()
        self.heads, self.out_channels, self.dropout = heads, out_channels, dropout
        self.lin = nn.Linear(in_channels, heads * out_channels, bias=False)
        self.att_src = Parameter(torch.Tensor(1, heads, out_channels))
        self.att_dst = Parameter(torch.Tensor(1, heads, out_channels))
        self.reset_parameters()

    def reset_parameters(self):
        for p in (self.att_src, self.att_dst):
            glorot(p)

    def forward(self, x, edge_index):
        src, dst = edge_index[0], edge_index[1]
        h = self.lin(x).view(-1, self.heads, self.out_channels)
        alpha = (h * self.att_src).sum(-1)[src] + (h * self.att_dst).sum(-1)[dst]
        alpha = softmax_by(dst, F.leaky_relu(alpha, 0.2), x.size(0))
        alpha = F.dropout(alpha, p=self.dropout, training=self.training)
        messages = torch.einsum("ehc,eh->ehc", h[src], alpha)
        return h.new_zeros(h.shape).index_add(0, dst, messages).mean(dim=1)


class Net(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.conv1 = GCNConv(features, 16)
        self.conv2 = GATConv(16, classes)

    def forward(self, x, edge_index):
        x = F.elu(self.conv1(x, edge_index))
        x = F.dropout(x, p=0.5, training=self.training)
        return F.log_softmax(self.conv2(x, edge_index), dim=1)


torch.manual_seed(12345)
n = 40
y = torch.arange(n) // (n // 2)
same = y[:, None] == y[None]
adjacency = torch.rand(n, n) < torch.where(same, 0.3, 0.03)
adjacency = (adjacency | adjacency.T).fill_diagonal_(True)
edge_index = adjacency.nonzero().t().contiguous()
x = F.normalize(torch.randn(n, 8) + 0.5 * y.float().unsqueeze(1), p=2, dim=-1)
train_mask = torch.zeros(n, dtype=torch.bool)
train_mask[torch.randperm(n)[:20]] = True

model = Net(8, 2)
optimizer = torch.optim.Adam(
    [
        dict(params=model.conv1.parameters(), weight_decay=5e-4),
        dict(params=model.conv2.parameters(), weight_decay=0),
    ],
    lr=0.02,
)
for epoch in range(10):
    model.train()
    optimizer.zero_grad()
    out = model(x, edge_index)
    loss = F.nll_loss(out[train_mask], y[train_mask])
    loss.backward()
    optimizer.step()
    model.eval()
    pred = model(x, edge_index).max(dim=1)[1]
    correct = pred[~train_mask].eq(y[~train_mask]).sum().item()
    print(f"Epoch: {epoch:03d}, Loss: {loss:.7f}, Test: {correct / int((~train_mask).sum()):.4f}")
