"""Averaged models and the schedule that goes with them, against PyTorch's."""

import importlib

import numpy as np
import pytest

import wengert

torch = pytest.importorskip("torch")


def utils(lib):
    return importlib.import_module(f"{lib.__name__}.optim.swa_utils")


def model(lib):
    lib.manual_seed(1)
    made = lib.nn.Sequential(lib.nn.Linear(3, 2), lib.nn.Linear(2, 1))
    made.register_buffer("seen", lib.zeros(2))
    made.register_buffer("count", lib.tensor(0))
    return made


AVERAGES = [
    "", "avg_fn=u.get_swa_avg_fn()", "avg_fn=u.get_ema_avg_fn(0.7)",
    "multi_avg_fn=u.get_swa_multi_avg_fn()", "multi_avg_fn=u.get_ema_multi_avg_fn(0.7)",
    "use_buffers=True", "avg_fn=lambda old, new, n: 0.5 * (old + new)", "device='cpu'",
]  # fmt: skip


@pytest.mark.parametrize("options", AVERAGES)
def test_averages(options):
    states = []
    for lib in (wengert, torch):
        trained = model(lib)
        names = {"u": utils(lib), "trained": trained}
        averaged = eval(f"u.AveragedModel(trained, {options})", names)
        for _ in range(4):
            with lib.no_grad():
                for p in trained.parameters():
                    p.add_(lib.randn(p.shape))
                trained.seen += 1
                trained.count += 3
            averaged.update_parameters(trained)
        out = averaged(lib.ones(2, 3))
        states.append({k: v.numpy() for k, v in averaged.state_dict().items()})
        states[-1]["out"] = out.detach().numpy()
        assert averaged.n_averaged == 4
    ours, theirs = states
    assert list(ours) == list(theirs)
    for name, value in ours.items():
        np.testing.assert_allclose(value, theirs[name], rtol=1e-5, atol=1e-6, err_msg=name)


def test_refusals(lib):
    u = utils(lib)
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn"):
        u.AveragedModel(model(lib), avg_fn=u.get_swa_avg_fn(), multi_avg_fn=len)
    for make in (u.get_ema_avg_fn, u.get_ema_multi_avg_fn):
        with pytest.raises(ValueError, match="Invalid decay value 2"):
            make(2)


def optimizer_of(lib):
    weights = [lib.nn.Parameter(lib.ones(1)) for _ in range(2)]
    return lib.optim.SGD([{"params": weights[:1]}, {"params": weights[1:], "lr": 0.3}], lr=1.0)


@pytest.mark.parametrize(
    "options",
    [
        "0.05", "[0.05, 0.1]", "0.05, anneal_epochs=3", "0.05, 4, 'linear'", "0.05, 0",
    ],
)  # fmt: skip
def test_schedule(options):
    rates, states = [], []
    for lib in (wengert, torch):
        optimizer = optimizer_of(lib)
        schedule = eval(f"SWALR(optimizer, {options})", {"optimizer": optimizer,
                                                         "SWALR": utils(lib).SWALR})  # fmt: skip
        found = []
        for number in range(14):
            optimizer.step()
            schedule.step()
            found.append(schedule.get_last_lr())
            if number == 5:  # goes on from a checkpoint
                saved, groups = schedule.state_dict(), optimizer.state_dict()
                optimizer = optimizer_of(lib)
                schedule = utils(lib).SWALR(optimizer, 7.0)
                schedule.load_state_dict(saved)
                optimizer.load_state_dict(groups)
        rates.append(found)
        states.append(set(schedule.state_dict()))
    np.testing.assert_allclose(*rates, rtol=1e-12)
    assert states[0] <= states[1] | {"_get_lr_called_within_step"}


def test_wrong_schedules(lib):
    for arguments, phrase in (
        ((0.1, 10, "sine"), "anneal_strategy must be one of"),
        ((0.1, -1), "anneal_epochs must be equal or greater than 0"),
        (([0.1],), "must have the same length"),
    ):
        with pytest.raises(ValueError, match=phrase):
            utils(lib).SWALR(optimizer_of(lib), *arguments)


class Norm(wengert.nn.Module):
    """What `update_bn` knows of a batch norm: running statistics and a momentum."""

    def __init__(self):
        super().__init__()
        self.momentum = 0.1
        self.batches = 0
        self.register_buffer("running_mean", wengert.full((2,), 9.0))

    def reset_running_stats(self):
        self.batches = 0
        self.running_mean.zero_()

    def forward(self, x):
        assert self.training and self.momentum is None and not wengert.is_grad_enabled()
        self.batches += 1
        self.running_mean += (x.mean(0) - self.running_mean) / self.batches
        return x


def test_statistics_are_computed_anew():
    norm = Norm()
    net = wengert.nn.Sequential(norm).eval()
    batches = [(wengert.full((3, 2), float(value)), None) for value in (1, 3)]
    wengert.optim.swa_utils.update_bn(batches, net, "cpu")
    assert norm.running_mean.tolist() == [2.0, 2.0] and norm.momentum == 0.1
    assert not net.training
    plain = wengert.nn.Linear(1, 1)
    wengert.optim.swa_utils.update_bn(iter(()), plain)
    assert plain.training
