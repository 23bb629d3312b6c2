"""A curve fitted by L-BFGS with a closure, and its uncertainty from the Hessian."""

import torch
from torch import optim
from torch.autograd.functional import hessian

torch.manual_seed(4)
t = torch.linspace(0, 4, 50, dtype=torch.double)
truth = torch.tensor([2.0, 0.8, 3.0, 0.5], dtype=torch.double)


def curve(p, t):
    amplitude, decay, frequency, offset = p
    return amplitude * torch.exp(-decay * t) * torch.cos(frequency * t) + offset


observed = curve(truth, t) + 0.05 * torch.randn(50, dtype=torch.double)
p = torch.tensor([1.0, 0.5, 2.5, 0.0], dtype=torch.double, requires_grad=True)
optimizer = optim.LBFGS([p], lr=1, max_iter=3, history_size=10, line_search_fn="strong_wolfe")


def residuals(p):
    return ((curve(p, t) - observed) ** 2).sum() / (2 * 0.05**2)


for i in range(10):

    def closure():
        optimizer.zero_grad()
        loss = residuals(p)
        loss.backward()
        return loss

    loss = optimizer.step(closure)
    print("step", i, "loss:", "%.6f" % loss.item(), "|g| %.3e" % p.grad.norm() if i < 3 else "")

covariance = torch.linalg.inv(hessian(residuals, p.detach()))
errors = covariance.diagonal().sqrt()
print([f"{v:.4f}+-{e:.4f}" for v, e in zip(p.tolist(), errors.tolist())])
print(bool(((p.detach() - truth).abs() < 5 * errors).all()))
