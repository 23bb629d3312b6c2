"""Hyperparameters of a Gaussian process by the marginal likelihood, in double precision."""

import math

import torch

torch.set_default_dtype(torch.float64)
torch.manual_seed(2)


class RBF(torch.nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.raw_lengthscale = torch.nn.Parameter(torch.zeros(dims))
        self.raw_variance = torch.nn.Parameter(torch.zeros(()))

    @property
    def lengthscale(self):
        return torch.nn.functional.softplus(self.raw_lengthscale)

    def forward(self, a, b):
        distance = torch.cdist(a / self.lengthscale, b / self.lengthscale)
        return torch.nn.functional.softplus(self.raw_variance) * torch.exp(-0.5 * distance.square())


class GP(torch.nn.Module):
    def __init__(self, x, y):
        super().__init__()
        self.kernel = RBF(x.shape[-1])
        self.raw_noise = torch.nn.Parameter(torch.tensor(-2.0))
        self.mean = torch.nn.Parameter(torch.tensor(0.0))
        self.register_buffer("x", x)
        self.register_buffer("y", y)

    def covariance(self):
        noise = torch.nn.functional.softplus(self.raw_noise)
        return self.kernel(self.x, self.x) + (noise + 1e-6) * torch.eye(len(self.x))

    def negative_log_likelihood(self):
        L = torch.linalg.cholesky(self.covariance())
        residual = (self.y - self.mean).unsqueeze(-1)
        alpha = torch.cholesky_solve(residual, L)
        fit = 0.5 * (residual.mT @ alpha).squeeze()
        return fit + L.diagonal().log().sum() + 0.5 * len(self.x) * math.log(2 * math.pi)

    @torch.no_grad()
    def predict(self, x):
        L = torch.linalg.cholesky(self.covariance())
        k = self.kernel(self.x, x)
        v = torch.linalg.solve_triangular(L, k, upper=False)
        w = torch.linalg.solve_triangular(L, (self.y - self.mean)[:, None], upper=False)
        return self.mean + (v.T @ w)[:, 0], self.kernel(x, x).diagonal() - (v**2).sum(0)


x = torch.rand(24, 2) * 4 - 2
y = torch.sin(2 * x[:, 0]) + 0.3 * x[:, 1] + 0.1 * torch.randn(24)
gp = GP(x, y)
assert gp.mean.dtype is torch.float64
optimizer = torch.optim.Adam(gp.parameters(), lr=0.1)
for i in range(10):
    optimizer.zero_grad()
    loss = gp.negative_log_likelihood()
    loss.backward()
    optimizer.step()
    print("Iter %d - Loss: %.8f   lengthscale: %s" % (i, loss.item(), gp.kernel.lengthscale.data))

other = torch.distributions.MultivariateNormal(gp.mean.expand(24), gp.covariance())
print(torch.allclose(-other.log_prob(y), gp.negative_log_likelihood()))
mean, variance = gp.predict(torch.zeros(3, 2) + torch.arange(3.0)[:, None] / 2)
print(mean, variance.sqrt())
