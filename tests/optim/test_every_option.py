"""Every option of every optimizer and schedule: ten steps in float64 go where PyTorch's go."""

import inspect
import warnings

import numpy as np
import pytest

import wengert
from optim import test_lr_scheduler as schedules
from optim.rules import OPTIONS
from optim.training import arrays, assert_same, loss_of, parameters, train

# Both forms of the package have the same Python here: the compiled run suffices.
pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")

#: Another value than the default for each option of each optimizer.
OTHERS = {
    **{
        name: {key: values[1] for key, values in options.items()}
        for name, options in OPTIONS.items()
    },
    "Adafactor": {
        "lr": 0.5, "beta2_decay": -0.3, "eps": (1e-3, 0.5), "d": 2.0, "weight_decay": 0.1,
    },
    "LBFGS": {
        "lr": 0.1, "max_iter": 3, "max_eval": 5, "tolerance_grad": 0.5, "tolerance_change": 0.1,
        "history_size": 2, "line_search_fn": "strong_wolfe",
    },
    "Muon": {
        "lr": 0.1, "weight_decay": 0.0, "momentum": 0.5, "nesterov": False,
        "ns_coefficients": (2.0, -1.5, 0.5), "eps": 1e-2, "ns_steps": 2,
        "adjust_lr_fn": "match_rms_adamw",
    },
}  # fmt: skip
#: What an option needs besides.
TOGETHER = {
    "nesterov": {"momentum": 0.9}, "dampening": {"momentum": 0.9},
    "history_size": {"line_search_fn": "strong_wolfe", "max_iter": 3},
}  # fmt: skip
#: Ways to compute that PyTorch has, which give the same results.
WAYS = {"foreach": [True, False], "fused": [True, False], "maximize": [True]}


def cases():
    for name in OTHERS:
        for key in list(inspect.signature(getattr(torch.optim, name)).parameters)[1:]:
            if key not in ("differentiable", "capturable"):
                for value in WAYS.get(key, [OTHERS[name].get(key)]):
                    yield name, key, value


def trained(lib, name, given):
    """The parameters after each of ten steps, and the state."""
    params = parameters(lib)[: 1 if name == "Muon" else 2]
    optimizer = getattr(lib.optim, name)(params, **given)
    if name == "LBFGS":
        trajectory = []

        def closure():
            optimizer.zero_grad()
            loss = loss_of(lib, *params)
            loss.backward()
            return loss

        for _ in range(10):
            optimizer.step(closure)
            trajectory.append(arrays(params))
    else:
        others = parameters(lib)[len(params) :]
        trajectory = train(lib, optimizer, [*params, *others])
    state = arrays(optimizer.state_dict()["state"])
    return trajectory, {key: dict(sorted(value.items())) for key, value in state.items()}


@pytest.fixture
def double_counters():
    """Counters in float64: rounded to float32, PyTorch's ways to compute differ by the rounding."""
    for lib in (wengert, torch):
        lib.set_default_dtype(lib.float64)
    yield
    for lib in (wengert, torch):
        lib.set_default_dtype(lib.float32)


@pytest.mark.parametrize(("name", "key", "value"), list(cases()))
def test_option(name, key, value, double_counters):
    assert value is not None
    given = {key: value, **(TOGETHER.get(key, {}) if name != "Muon" else {})}
    if name == "Muon":  # it computes in bfloat16, of which a sum in another order may be rounded
        ours, theirs = (trained(lib, name, given)[0] for lib in (wengert, torch))
        lr = given.get("lr", 1e-3)
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one[0], other[0], rtol=0, atol=0.05 * lr)
        return
    assert_same(trained(wengert, name, given), trained(torch, name, given), 1e-9)


def test_no_optimizer_is_left_out():
    public = {
        name
        for name, value in vars(torch.optim).items()
        if inspect.isclass(value) and name != "Optimizer"
    }
    assert public == {*OTHERS, "SparseAdam"}
    with pytest.raises(AttributeError, match="no sparse tensors; nearest: Adam"):
        wengert.optim.SparseAdam


DIFFERENTIABLE = [
    name for name in OTHERS
    if "differentiable" in inspect.signature(getattr(torch.optim, name)).parameters
]  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_differentiable_steps_go_the_same_way(name, double_counters):
    def run(lib):
        params = [p.detach().clone() for p in parameters(lib)]
        optimizer = getattr(lib.optim, name)(params, lr=0.05, differentiable=True)
        seen = []
        for number in range(1, 11):
            leaves = [p.detach().clone().requires_grad_() for p in params]
            loss = loss_of(lib, *leaves, number)
            for p, g in zip(params, lib.autograd.grad(loss, leaves), strict=True):
                p.grad = g
            optimizer.step()
            seen.append(arrays(params))
        return seen

    assert_same(run(wengert), run(torch), 1e-9)


CAPTURABLE = [
    name for name in OTHERS
    if "capturable" in inspect.signature(getattr(torch.optim, name)).parameters
]  # fmt: skip


@pytest.mark.parametrize("name", CAPTURABLE)
def test_graphs_of_accelerators_are_refused(lib, name):
    params = parameters(lib)
    optimizer = getattr(lib.optim, name)(params, capturable=True)
    loss_of(lib, *params).backward()
    with pytest.raises(AssertionError, match="If capturable=True, params"):
        optimizer.step()


class TestSchedules:
    def test_every_option(self):
        """Each argument of each schedule has another value than its default in some case."""
        given = {}
        combined = ("WARM_UP", "EXPONENTIAL", "STEPS", "COSINE", "RESTARTS")
        for name, options in (*schedules.SINGLE, *(getattr(schedules, each) for each in combined)):
            given.setdefault(name, set()).update(options)
        for options in schedules.PLATEAUS:
            given.setdefault("ReduceLROnPlateau", set()).update(options)
        given["SequentialLR"] = {"schedulers", "milestones"}
        given["ChainedScheduler"] = {"schedulers"}
        missing = {
            (name, key)
            for name in torch.optim.lr_scheduler.__all__
            if name != "LRScheduler"
            for key in inspect.signature(getattr(torch.optim.lr_scheduler, name)).parameters
            if key not in given[name] and key not in ("optimizer", "last_epoch")
        }
        assert not missing

    @pytest.mark.parametrize("case", schedules.SINGLE)
    def test_from_a_later_epoch(self, case):
        """`last_epoch` with all that a schedule has left in the groups before."""

        def run(lib):
            optimizer = schedules.optimizer_of(lib)
            first = schedules.make(lib, case, optimizer)
            schedules.follow(optimizer, first, 5)
            name, options = case
            second = schedules.make(lib, (name, {**options, "last_epoch": 4}), optimizer)
            return schedules.follow(optimizer, second, 8)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert_same(run(wengert), run(torch), 1e-12)

    @pytest.mark.parametrize("case", [*schedules.SINGLE, *schedules.COMBINED])
    def test_ten_steps_of_training(self, case):
        def run(lib):
            params = parameters(lib)
            optimizer = lib.optim.SGD(
                [{"params": params[0]}, {"params": params[1], "lr": 0.01}], lr=0.02, momentum=0.5
            )
            scheduler = schedules.make(lib, case, optimizer)
            seen = []
            for _ in range(10):
                seen += train(lib, optimizer, params, 1)
                scheduler.step()
            return seen

        assert_same(run(wengert), run(torch), 1e-9)
