"""Burgers' equation by a network whose derivatives enter the loss."""

import numpy as np
import torch
import torch.nn as nn
from collections import OrderedDict


class DNN(torch.nn.Module):
    def __init__(self, layers):
        super(DNN, self).__init__()
        self.depth = len(layers) - 1
        self.activation = torch.nn.Tanh
        layer_list = list()
        for i in range(self.depth - 1):
            layer_list.append(("layer_%d" % i, torch.nn.Linear(layers[i], layers[i + 1])))
            layer_list.append(("activation_%d" % i, self.activation()))
        layer_list.append(("layer_%d" % (self.depth - 1), torch.nn.Linear(layers[-2], layers[-1])))
        self.layers = torch.nn.Sequential(OrderedDict(layer_list))

    def forward(self, x):
        return self.layers(x)


class PhysicsInformedNN:
    def __init__(self, X_u, u, X_f, layers, lb, ub, nu):
        self.lb = torch.tensor(lb).float()
        self.ub = torch.tensor(ub).float()
        self.x_u = torch.tensor(X_u[:, 0:1], requires_grad=True).float()
        self.t_u = torch.tensor(X_u[:, 1:2], requires_grad=True).float()
        self.x_f = torch.tensor(X_f[:, 0:1], requires_grad=True).float()
        self.t_f = torch.tensor(X_f[:, 1:2], requires_grad=True).float()
        self.u = torch.from_numpy(u).float()
        self.nu = nu
        self.dnn = DNN(layers)
        for m in self.dnn.modules():
            if isinstance(m, nn.Linear):
                nn.init.xavier_normal_(m.weight, gain=nn.init.calculate_gain("tanh"))
                nn.init.zeros_(m.bias)
        self.optimizer = torch.optim.Adam(self.dnn.parameters(), lr=5e-3)
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, gamma=0.95)

    def net_u(self, x, t):
        X = torch.cat([x, t], dim=1)
        H = 2.0 * (X - self.lb) / (self.ub - self.lb) - 1.0
        return self.dnn(H)

    def net_f(self, x, t):
        """The residual of u_t + u u_x - nu u_xx."""
        u = self.net_u(x, t)
        u_t = torch.autograd.grad(
            u, t, grad_outputs=torch.ones_like(u), retain_graph=True, create_graph=True
        )[0]
        u_x = torch.autograd.grad(
            u, x, grad_outputs=torch.ones_like(u), retain_graph=True, create_graph=True
        )[0]
        u_xx = torch.autograd.grad(
            u_x, x, grad_outputs=torch.ones_like(u_x), retain_graph=True, create_graph=True
        )[0]
        return u_t + u * u_x - self.nu * u_xx

    def loss_func(self):
        self.optimizer.zero_grad()
        u_pred = self.net_u(self.x_u, self.t_u)
        f_pred = self.net_f(self.x_f, self.t_f)
        loss_u = torch.mean((self.u - u_pred) ** 2)
        loss_f = torch.mean(f_pred**2)
        loss = loss_u + loss_f
        loss.backward()
        return loss, loss_u, loss_f

    def train(self, epochs):
        self.dnn.train()
        for epoch in range(epochs):
            loss, loss_u, loss_f = self.loss_func()
            self.optimizer.step()
            self.scheduler.step()
            print(
                "Iter %d, Loss: %.5e, Loss_u: %.5e, Loss_f: %.5e"
                % (epoch, loss.item(), loss_u.item(), loss_f.item())
            )

    def predict(self, X):
        x = torch.tensor(X[:, 0:1], requires_grad=True).float()
        t = torch.tensor(X[:, 1:2], requires_grad=True).float()
        self.dnn.eval()
        u = self.net_u(x, t)
        f = self.net_f(x, t)
        return u.detach().cpu().numpy(), f.detach().cpu().numpy()


if __name__ == "__main__":
    np.random.seed(1234)
    torch.manual_seed(1234)
    x = np.random.uniform(-1, 1, (40, 1))
    start = np.hstack((x, np.zeros_like(x)))
    t = np.random.rand(20, 1)
    sides = np.hstack((np.where(np.arange(20)[:, None] % 2, 1.0, -1.0), t))
    X_u = np.vstack([start, sides])
    u = np.vstack([-np.sin(np.pi * x), np.zeros_like(t)])
    X_f = np.random.rand(100, 2) * [2, 1] + [-1, 0]
    model = PhysicsInformedNN(
        X_u, u, X_f, [2, 20, 20, 20, 1], np.array([-1.0, 0.0]), np.array([1.0, 1.0]), 0.01 / np.pi
    )
    model.train(10)
    u_pred, f_pred = model.predict(X_f)
    print(u_pred.shape, u_pred.dtype, f_pred.shape)
