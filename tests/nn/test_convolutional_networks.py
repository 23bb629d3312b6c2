"""Small networks of convolutions, norms and pools, trained like PyTorch's."""

import pytest

import wengert

torch = pytest.importorskip("torch")


def residual(lib):
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self, inner, outer):
            super().__init__()
            self.first = nn.Conv2d(inner, outer, 3, stride=2, padding=1, bias=False)
            self.first_norm = nn.BatchNorm2d(outer)
            self.second = nn.Conv2d(outer, outer, 3, padding=1, bias=False)
            self.second_norm = nn.BatchNorm2d(outer)
            self.short = nn.Sequential(
                nn.Conv2d(inner, outer, 1, stride=2, bias=False), nn.BatchNorm2d(outer)
            )

        def forward(self, x):
            out = nn.functional.relu(self.first_norm(self.first(x)))
            return nn.functional.relu(self.second_norm(self.second(out)) + self.short(x))

    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        Block(4, 6), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3),
    )  # fmt: skip


def hourglass(lib):
    nn = lib.nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.Sequential(nn.Conv2d(1, 4, 3, padding="same"), nn.GroupNorm(2, 4))
            self.middle = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.InstanceNorm2d(4))
            self.up = nn.ConvTranspose2d(4, 4, 2, stride=2)
            self.last = nn.Conv2d(8, 3, 1)

        def forward(self, x):
            wide = nn.functional.silu(self.down(x))
            narrow = self.middle(nn.functional.avg_pool2d(wide, 2))
            joined = lib.cat([wide, self.up(nn.functional.leaky_relu(narrow))], 1)
            return nn.functional.interpolate(self.last(joined), (2, 2), mode="bilinear").mean(
                (2, 3)
            )

    return Network()


def losses(lib, make, state, compiled=False):
    network = make(lib).double()
    network.load_state_dict(state)
    optimizer = lib.optim.SGD(network.parameters(), 0.1, momentum=0.9)
    x = lib.linspace(-3, 3, 8 * 64, dtype=lib.float64).mul(9).sin().reshape(8, 1, 8, 8)
    target = lib.tensor([0, 1, 2, 0, 1, 2, 0, 1])
    forward = lib.compile(network) if compiled else network
    found = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(forward(x), target)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    found.append(network.eval()(x).sum().item())
    return found


@pytest.mark.parametrize("make", [residual, hourglass])
def test_ten_steps_of_training(make):
    torch.manual_seed(0)
    state = make(torch).double().state_dict()
    expected = losses(torch, make, state)
    assert expected[9] < expected[0]
    ours = {name: wengert.tensor(t.tolist(), dtype=getattr(wengert, str(t.dtype)[6:]))
            for name, t in state.items()}  # fmt: skip
    assert losses(wengert, make, ours) == pytest.approx(expected, rel=1e-8)
    assert losses(wengert, make, ours, compiled=True) == pytest.approx(expected, rel=1e-8)
