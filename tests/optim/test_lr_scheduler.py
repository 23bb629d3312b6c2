"""Learning rates of all schedules, epoch by epoch, and the states they are resumed from."""

import copy
import warnings

import pytest

import wengert
from optim.training import assert_same, parameters

torch = pytest.importorskip("torch")


class Halving:
    """A function with a state of its own."""

    def __init__(self):
        self.calls = 0

    def __call__(self, epoch):
        self.calls += 1
        return 0.5**epoch


def sequential(lib, optimizer, *parts, milestones):
    made = [getattr(lib.optim.lr_scheduler, name)(optimizer, **given) for name, given in parts]
    return lib.optim.lr_scheduler.SequentialLR(optimizer, made, milestones)


def chained(lib, optimizer, *parts):
    made = [getattr(lib.optim.lr_scheduler, name)(optimizer, **given) for name, given in parts]
    return lib.optim.lr_scheduler.ChainedScheduler(made, optimizer)


WARM_UP = ("LinearLR", {"start_factor": 0.1, "total_iters": 4})
EXPONENTIAL = ("ExponentialLR", {"gamma": 0.8})
STEPS = ("StepLR", {"step_size": 3, "gamma": 0.5})
COSINE = ("CosineAnnealingLR", {"T_max": 5, "eta_min": 0.01})
RESTARTS = ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2})

SINGLE = [
    ("LambdaLR", {"lr_lambda": lambda epoch: 0.9**epoch}),
    ("LambdaLR", {"lr_lambda": [lambda epoch: 0.9**epoch, lambda epoch: 1 / (1 + epoch)]}),
    ("MultiplicativeLR", {"lr_lambda": lambda epoch: 1 - 0.1 / epoch}),
    STEPS,
    ("StepLR", {"step_size": 1}),
    ("MultiStepLR", {"milestones": [2, 5, 5, 9], "gamma": 0.3}),
    ("ConstantLR", {}),
    ("ConstantLR", {"factor": 0.2, "total_iters": 3}),
    ("LinearLR", {}),
    WARM_UP,
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.2, "total_iters": 7}),
    EXPONENTIAL,
    ("PolynomialLR", {}),
    ("PolynomialLR", {"total_iters": 8, "power": 2.5}),
    COSINE,
    ("CosineAnnealingLR", {"T_max": 20}),
    ("CosineAnnealingLR", {"T_max": 1, "eta_min": 0.1}),
    RESTARTS,
    ("CosineAnnealingWarmRestarts", {"T_0": 4, "eta_min": 0.02}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 4}),
    ("CyclicLR", {"base_lr": [0.01, 0.02], "max_lr": [0.1, 0.5], "step_size_up": 4,
                  "step_size_down": 2, "mode": "triangular2"}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "mode": "exp_range",
                  "gamma": 0.9, "base_momentum": 0.5, "max_momentum": [0.8, 0.9]}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "cycle_momentum": False,
                  "scale_fn": lambda x: 1 / x}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "scale_mode": "iterations",
                  "scale_fn": lambda x: 0.9**x}),
    ("OneCycleLR", {"max_lr": 0.3, "total_steps": 18}),
    ("OneCycleLR", {"max_lr": [0.3, 0.1], "epochs": 6, "steps_per_epoch": 3,
                    "anneal_strategy": "linear", "pct_start": 0.4, "three_phase": True}),
    ("OneCycleLR", {"max_lr": 0.3, "total_steps": 18, "cycle_momentum": False,
                    "div_factor": 5.0, "final_div_factor": 10.0}),
    ("OneCycleLR", {"max_lr": 0.3, "total_steps": 18, "base_momentum": 0.5,
                    "max_momentum": [0.8, 0.9]}),
]  # fmt: skip

COMBINED = {
    "warm up, then fall": lambda lib, o: sequential(lib, o, WARM_UP, EXPONENTIAL, milestones=[4]),
    "three": lambda lib, o: sequential(lib, o, WARM_UP, COSINE, STEPS, milestones=[4, 9]),
    "restarts last": lambda lib, o: sequential(lib, o, STEPS, RESTARTS, milestones=[5]),
    "from the first": lambda lib, o: sequential(lib, o, STEPS, COSINE, milestones=[0]),
    "all at once": lambda lib, o: chained(lib, o, WARM_UP, EXPONENTIAL, STEPS),
    "cosine and steps": lambda lib, o: chained(lib, o, COSINE, STEPS),
}


def optimizer_of(lib, name="SGD", lr=0.1):
    weight, bias = parameters(lib)
    given = {"momentum": 0.9} if name == "SGD" else {}
    return getattr(lib.optim, name)(
        [{"params": weight}, {"params": bias, "lr": 0.5}], lr=lr, **given
    )


def make(lib, case, optimizer):
    if isinstance(case, str):
        return COMBINED[case](lib, optimizer)
    name, given = case
    return getattr(lib.optim.lr_scheduler, name)(optimizer, **copy.deepcopy(given))


def observed(optimizer, scheduler):
    """All that a schedule sets."""
    groups = [
        {
            key: [float(each) for each in value] if isinstance(value, tuple) else float(value)
            for key, value in group.items()
            if key in ("lr", "momentum", "betas", "initial_lr", "max_lr", "min_lr")
        }
        for group in optimizer.param_groups
    ]
    return groups, [float(rate) for rate in scheduler.get_last_lr()]


def follow(optimizer, scheduler, epochs=18):
    seen = []
    for _ in range(epochs):
        seen.append(observed(optimizer, scheduler))
        optimizer.step()
        scheduler.step()
    return seen


ids = [f"{name}-{number}" for number, (name, _) in enumerate(SINGLE)] + list(COMBINED)
every = pytest.mark.parametrize("case", [*SINGLE, *COMBINED], ids=ids)


@every
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_learning_rates(case, name):
    def run(lib):
        optimizer = optimizer_of(lib, name)
        return follow(optimizer, make(lib, case, optimizer))

    assert_same(run(wengert), run(torch), 1e-12)


@every
def test_learning_rates_that_are_tensors(case):
    def run(lib):
        optimizer = optimizer_of(lib, lr=lib.tensor(0.1, dtype=lib.float64))
        rate = optimizer.param_groups[0]["lr"]
        seen = follow(optimizer, make(lib, case, optimizer))
        assert optimizer.param_groups[0]["lr"] is rate
        return seen

    assert_same(run(wengert), run(torch), 1e-12)


def plain(state):
    """A state as one that went through a file: no memory is shared."""
    return copy.deepcopy(state)


@every
@pytest.mark.parametrize(
    ("source", "target"), [(wengert, torch), (torch, wengert), (wengert, wengert)]
)
def test_states_are_resumed_by_the_other_library(case, source, target):
    first = optimizer_of(source)
    scheduler = make(source, case, first)
    follow(first, scheduler, 7)
    second = optimizer_of(target)
    resumed = make(target, case, second)
    assert scheduler.state_dict().keys() == resumed.state_dict().keys()
    resumed.load_state_dict(plain(scheduler.state_dict()))
    second.load_state_dict(plain(first.state_dict()))
    assert_same(follow(second, resumed, 8), follow(first, scheduler, 8), 1e-12)


@pytest.mark.parametrize("case", [c for c in SINGLE if c[0] not in ("OneCycleLR", "CyclicLR")])
def test_resuming_by_the_last_epoch(case):
    def run(lib):
        optimizer = optimizer_of(lib)
        name, given = case
        given = {**given, "last_epoch": 4}
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
        return follow(optimizer, make(lib, (name, given), optimizer), 6)

    assert_same(run(wengert), run(torch), 1e-12)


@pytest.mark.parametrize("case", SINGLE)
def test_going_to_an_epoch(case):
    def run(lib):
        optimizer = optimizer_of(lib)
        scheduler = make(lib, case, optimizer)
        optimizer.step()
        seen = []
        for epoch in (3, 1, 12):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                scheduler.step(epoch)
            seen.append((observed(optimizer, scheduler), len(caught)))
        return seen

    assert_same(run(wengert), run(torch), 1e-12)


PLATEAUS = [
    {},
    {"patience": 1, "factor": 0.5},
    {"patience": 0, "factor": 0.5, "cooldown": 2, "min_lr": 0.02},
    {"patience": 1, "mode": "max", "threshold": 0.3, "threshold_mode": "abs", "min_lr": [0.0, 0.1]},
    {"patience": 1, "mode": "max", "threshold": 0.1},
    {"patience": 1, "threshold": 0.2, "threshold_mode": "abs", "eps": 0.03},
]


@pytest.mark.parametrize("given", PLATEAUS)
def test_plateaus(given):
    results = [3, 2.5, 2.6, 2.4, 2.45, 2.44, 2.2, 2.3, 2.19, 2.19, 2.5, 1.0, 1.1, 1.2, 1.3, 1.4]

    def run(lib):
        optimizer = optimizer_of(lib)
        scheduler = lib.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **given)
        seen = []
        for result in results:
            scheduler.step(lib.tensor(result, dtype=lib.float64))
            seen.append((observed(optimizer, scheduler), scheduler.num_bad_epochs))
        return seen, scheduler.state_dict()

    ours, theirs = run(wengert), run(torch)
    assert_same(ours[0], theirs[0], 1e-12)
    assert ours[1].keys() == theirs[1].keys()
    optimizer = optimizer_of(wengert)
    scheduler = wengert.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    scheduler.load_state_dict(theirs[1])
    assert scheduler.state_dict() == theirs[1]


def test_objects_that_are_called_save_their_attributes(lib):
    optimizer = optimizer_of(lib)
    scheduler = lib.optim.lr_scheduler.LambdaLR(optimizer, [Halving(), lambda epoch: 1.0])
    follow(optimizer, scheduler, 3)
    state = scheduler.state_dict()
    assert state["lr_lambdas"] == [{"calls": 4}, None]
    other = Halving()
    fresh = lib.optim.lr_scheduler.LambdaLR(optimizer_of(lib), [other, lambda epoch: 2.0])
    fresh.load_state_dict(state)
    assert other.calls == 4 and fresh.last_epoch == 3 and fresh.lr_lambdas[0] is other


class TestWarnings:
    def test_step_before_the_optimizer(self, lib):
        optimizer = optimizer_of(lib)
        scheduler = lib.optim.lr_scheduler.StepLR(optimizer, 2)
        with pytest.warns(UserWarning, match="before `optimizer.step"):
            scheduler.step()

    def test_steps_before_the_scheduler_do_not_count(self, lib):
        optimizer = optimizer_of(lib)
        optimizer.step()
        scheduler = lib.optim.lr_scheduler.StepLR(optimizer, 2)
        with pytest.warns(UserWarning, match="before `optimizer.step"):
            scheduler.step()

    def test_step_that_is_overridden(self, lib):
        optimizer = optimizer_of(lib)
        scheduler = lib.optim.lr_scheduler.StepLR(optimizer, 2)
        optimizer.step = lambda: None
        with pytest.warns(UserWarning, match="overridden after learning rate scheduler"):
            scheduler.step()

    def test_the_right_order_is_quiet(self, lib):
        optimizer = optimizer_of(lib)
        scheduler = lib.optim.lr_scheduler.StepLR(optimizer, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            follow(optimizer, scheduler, 4)

    def test_rates_are_asked_for_by_another_name(self, lib):
        scheduler = lib.optim.lr_scheduler.StepLR(optimizer_of(lib), 2)
        with pytest.warns(UserWarning, match="get_last_lr"):
            scheduler.get_lr()


REFUSED = {
    "no optimizer": ("StepLR", {"optimizer": 3, "step_size": 1}, TypeError, "not an Optimizer"),
    "too few functions": ("LambdaLR", {"lr_lambda": [abs]}, ValueError, "Expected 2 lr_lambdas"),
    "no function": ("MultiplicativeLR", {"lr_lambda": 3}, TypeError, "should be a function"),
    "large factor": ("ConstantLR", {"factor": 2}, ValueError, "between 0 and 1"),
    "no start": ("LinearLR", {"start_factor": 0}, ValueError, "greater than 0"),
    "large end": ("LinearLR", {"end_factor": 2}, ValueError, "Ending multiplicative"),
    "no length": ("CosineAnnealingWarmRestarts", {"T_0": 0}, ValueError, "positive integer T_0"),
    "no growth": ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 0}, ValueError, "T_mult"),
    "no rate": ("CosineAnnealingWarmRestarts", {"T_0": 2, "eta_min": "1"}, ValueError, "eta_min"),
    "mode": ("CyclicLR", {"base_lr": 1, "max_lr": 2, "mode": "x"}, ValueError, "mode is invalid"),
    "rates": ("CyclicLR", {"base_lr": [1], "max_lr": 2}, ValueError, "must have the same length"),
    "no steps": ("OneCycleLR", {"max_lr": 1}, ValueError, "either total_steps OR"),
    "steps": ("OneCycleLR", {"max_lr": 1, "total_steps": -1}, ValueError, "integer total_steps"),
    "epochs": ("OneCycleLR", {"max_lr": 1, "epochs": 0, "steps_per_epoch": 1}, ValueError,
               "integer epochs"),
    "part": ("OneCycleLR", {"max_lr": 1, "total_steps": 9, "pct_start": 2}, ValueError,
             "pct_start"),
    "curve": ("OneCycleLR", {"max_lr": 1, "total_steps": 9, "anneal_strategy": "x"}, ValueError,
              "anneal_strategy must be"),
    "plateau factor": ("ReduceLROnPlateau", {"factor": 1.0}, ValueError, "Factor should be"),
    "plateau mode": ("ReduceLROnPlateau", {"mode": "x"}, ValueError, "mode x is unknown"),
    "threshold": ("ReduceLROnPlateau", {"threshold_mode": "x"}, ValueError, "threshold mode x"),
    "least rates": ("ReduceLROnPlateau", {"min_lr": [1, 2, 3]}, ValueError, "expected 2 min_lrs"),
    "not resumed": ("StepLR", {"step_size": 1, "last_epoch": 3}, KeyError, "initial_lr"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(lib, case):
    name, given, error, words = REFUSED[case]
    given = {"optimizer": optimizer_of(lib)} | given
    with pytest.raises(error, match=words):
        getattr(lib.optim.lr_scheduler, name)(**given)


def test_refused_combinations(lib):
    schedulers = lib.optim.lr_scheduler
    optimizer, other = optimizer_of(lib), optimizer_of(lib)
    one, foreign = schedulers.StepLR(optimizer, 1), schedulers.StepLR(other, 1)
    plateau = schedulers.ReduceLROnPlateau(optimizer)
    with pytest.raises(ValueError, match="at least one scheduler"):
        schedulers.SequentialLR(optimizer, [], [])
    with pytest.raises(ValueError, match="at least one scheduler to be chained"):
        schedulers.ChainedScheduler([])
    with pytest.raises(ValueError, match="one more than"):
        schedulers.SequentialLR(optimizer, [one], [3])
    for make_one in (
        lambda *parts: schedulers.SequentialLR(optimizer, list(parts), [3]),
        lambda *parts: schedulers.ChainedScheduler(parts, optimizer),
    ):
        with pytest.raises(ValueError, match="belong to the same optimizer"):
            make_one(one, foreign)
        with pytest.raises(ValueError, match="does not support `ReduceLROnPlateau`"):
            make_one(one, plateau)
        with pytest.raises(TypeError, match="should have `optimizer`"):
            make_one(one, 3)


def test_cycles_need_momentum(lib):
    optimizer = lib.optim.Adagrad(parameters(lib))
    with pytest.raises(ValueError, match="must support momentum or beta1"):
        lib.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.2)
    with pytest.raises(ValueError, match="must support momentum or beta1"):
        lib.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=3)


def test_one_cycle_ends(lib):
    optimizer = optimizer_of(lib)
    scheduler = lib.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=3)
    follow(optimizer, scheduler, 3)
    with pytest.raises(ValueError, match="Tried to step 4 times"):
        scheduler.step()
