"""A variational autoencoder of small pictures, its prior and posterior from distributions."""

from __future__ import print_function

import argparse

import torch
import torch.utils.data
from torch import nn, optim
from torch.distributions import Normal, kl_divergence
from torch.nn import functional as F

parser = argparse.ArgumentParser(description="VAE example")
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--analytic", action="store_true", default=False)
args = parser.parse_args([])

torch.manual_seed(args.seed)
device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
kwargs = {"num_workers": 0, "pin_memory": False}


def pictures(n, size=8):
    """Squares of varied place and size, 0 outside and 1 inside."""
    result = torch.zeros(n, 1, size, size)
    for picture in result:
        top, left = torch.randint(0, size - 3, (2,)).tolist()
        side = torch.randint(2, 5, ()).item()
        picture[0, top : top + side, left : left + side] = 1
    return result


train_data = torch.utils.data.TensorDataset(pictures(64), torch.zeros(64))
train_loader = torch.utils.data.DataLoader(
    train_data, batch_size=args.batch_size, shuffle=True, **kwargs
)


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(64, 40)
        self.fc21 = nn.Linear(40, 4)
        self.fc22 = nn.Linear(40, 4)
        self.fc3 = nn.Linear(4, 40)
        self.fc4 = nn.Linear(40, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


model = VAE().to(device)
optimizer = optim.Adam(model.parameters(), lr=1e-2)


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    posterior = Normal(mu, (0.5 * logvar).exp())
    prior = Normal(torch.zeros_like(mu), torch.ones_like(mu))
    torch.testing.assert_close(kl_divergence(posterior, prior).sum(), KLD, rtol=1e-4, atol=1e-4)
    return BCE + KLD


def train(epoch):
    model.train()
    train_loss = 0
    for batch_idx, (data, _) in enumerate(train_loader):
        data = data.to(device, non_blocking=True)
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    average = train_loss / len(train_loader.dataset)
    print("====> Epoch: {} Average loss: {:.6f}".format(epoch, average))


if __name__ == "__main__":
    for epoch in range(1, args.epochs + 1):
        train(epoch)
        with torch.no_grad():
            sample = torch.randn(16, 4).to(device)
            sample = model.decode(sample).cpu().view(16, 1, 8, 8).numpy()
    print("mean of samples %.5f" % sample.mean())
