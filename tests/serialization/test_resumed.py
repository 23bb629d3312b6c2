"""A training that one library saves to a file and the other resumes has the same losses."""

import io
import itertools

import pytest

import wengert

torch = pytest.importorskip("torch")
PARTS = ("model", "optimizer", "schedule")


class Training:
    """A model with dropout and running averages, an optimizer, a schedule and the random state."""

    def __init__(self, lib, name, options):
        self.lib = lib
        lib.manual_seed(0)
        self.x, self.y = lib.randn(16, 3, dtype=lib.float64), lib.randint(0, 4, (16,))
        nn = lib.nn
        layers = nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 4)
        self.model = nn.Sequential(*layers).double()
        self.optimizer = getattr(lib.optim, name)(self.model.parameters(), lr=0.05, **options)
        self.schedule = lib.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 12)

    def steps(self, count):
        losses = []
        for _ in range(count):
            self.optimizer.zero_grad()
            loss = self.lib.nn.functional.cross_entropy(self.model(self.x), self.y)
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            losses.append(loss.item())
        return losses

    def saved(self):
        parts = {name: getattr(self, name).state_dict() for name in PARTS}
        file = io.BytesIO()
        self.lib.save({**parts, "data": (self.x, self.y), "random": self.lib.get_rng_state()}, file)
        return file.getvalue()

    def load(self, content):
        state = self.lib.load(io.BytesIO(content))
        for name in PARTS:
            getattr(self, name).load_state_dict(state[name])
        self.x, self.y = state["data"]
        self.lib.set_rng_state(state["random"])


OPTIMIZERS = [
    ("SGD", {"momentum": 0.9, "nesterov": True}), ("Adam", {"amsgrad": True}), ("AdamW", {}),
    ("Adamax", {}), ("NAdam", {}), ("RAdam", {}), ("RMSprop", {"momentum": 0.5, "centered": True}),
    ("Rprop", {}), ("Adagrad", {}), ("Adadelta", {}), ("ASGD", {}), ("Adafactor", {}),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target"), list(itertools.product((wengert, torch), repeat=2)))
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_losses_go_on(name, options, source, target):
    whole = Training(torch, name, options).steps(10)
    first = Training(source, name, options)
    losses, file = first.steps(5), first.saved()
    second = Training(target, name, options)
    second.load(file)
    losses += second.steps(5)
    assert losses == pytest.approx(whole, rel=1e-9)
