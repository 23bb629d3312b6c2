"""A normalising flow (RealNVP) as a distribution of transforms, fitted to two moons."""

import math

import torch
import torch.distributions as D
from torch import nn
from torch.distributions import constraints
from torch.distributions.transforms import Transform


class Coupling(nn.Module):
    """Half of the coordinates, chosen by a mask, shifts and scales the others."""

    def __init__(self, mask, h=24):
        super().__init__()
        self.register_buffer("mask", mask)
        self.s = nn.Sequential(nn.Linear(2, h), nn.LeakyReLU(), nn.Linear(h, 2), nn.Tanh())
        self.t = nn.Sequential(nn.Linear(2, h), nn.LeakyReLU(), nn.Linear(h, 2))

    def forward(self, z):
        z_ = z * self.mask
        s, t = self.s(z_) * (1 - self.mask), self.t(z_) * (1 - self.mask)
        return z_ + (1 - self.mask) * (z * torch.exp(s) + t), s.sum(dim=-1)

    def inverse(self, x):
        x_ = x * self.mask
        s, t = self.s(x_) * (1 - self.mask), self.t(x_) * (1 - self.mask)
        return (1 - self.mask) * (x - t) * torch.exp(-s) + x_, -s.sum(dim=-1)


class CouplingTransform(Transform):
    domain = constraints.real_vector
    codomain = constraints.real_vector
    bijective = True

    def __init__(self, coupling):
        super().__init__(cache_size=1)
        self.coupling = coupling

    def _call(self, x):
        y, self._log_det = self.coupling(x)
        return y

    def _inverse(self, y):
        x, log_det = self.coupling.inverse(y)
        self._log_det = -log_det
        return x

    def log_abs_det_jacobian(self, x, y):
        return self._log_det


class Flow(nn.Module):
    def __init__(self, layers=4):
        super().__init__()
        masks = torch.tensor([[0.0, 1.0], [1.0, 0.0]] * (layers // 2))
        self.couplings = nn.ModuleList([Coupling(m) for m in masks])
        self.loc = nn.Parameter(torch.zeros(2), requires_grad=False)
        self.log_scale = nn.Parameter(torch.zeros(2))

    @property
    def distribution(self):
        base = D.MultivariateNormal(self.loc, scale_tril=torch.diag(self.log_scale.exp()))
        return D.TransformedDistribution(base, [CouplingTransform(c) for c in self.couplings])


def moons(n):
    angle = D.Uniform(0, math.pi).sample((n,))
    upper = D.Bernoulli(0.5).sample((n,)).bool()
    x = torch.where(upper, angle.cos(), 1 - angle.cos())
    y = torch.where(upper, angle.sin(), 0.5 - angle.sin())
    return torch.stack([x, y], -1) + D.Normal(0.0, 0.05).sample([n, 2])


torch.manual_seed(11)
flow = Flow()
optimizer = torch.optim.Adam([p for p in flow.parameters() if p.requires_grad], lr=1e-2)
for step in range(10):
    loss = -flow.distribution.log_prob(moons(64)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("iter %s:" % step, "loss = %.7f" % loss)
with torch.no_grad():
    samples = flow.distribution.sample((100,))
print("mean of samples", [round(v, 3) for v in samples.mean(0).tolist()])
