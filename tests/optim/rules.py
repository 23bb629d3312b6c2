"""The options of each optimizer that has an update rule, to be tried in all combinations."""

import itertools

#: For each optimizer, the values of each option: the first is the default.
OPTIONS = {
    "SGD": {
        "lr": [1e-3, 0.05], "momentum": [0, 0.9], "dampening": [0, 0.3], "weight_decay": [0, 0.1],
        "nesterov": [False, True], "maximize": [False, True], "foreach": [None, True],
        "fused": [None, True],
    },
    "Adam": {
        "lr": [1e-3, 0.05], "betas": [(0.9, 0.999), (0.5, 0.7)], "eps": [1e-8, 1e-2],
        "weight_decay": [0, 0.1], "amsgrad": [False, True], "maximize": [False, True],
        "decoupled_weight_decay": [False, True], "foreach": [None, True],
    },
    "AdamW": {
        "lr": [1e-3, 0.05], "betas": [(0.9, 0.999), (0.5, 0.7)], "eps": [1e-8, 1e-2],
        "weight_decay": [1e-2, 0], "amsgrad": [False, True], "maximize": [False, True],
        "fused": [None, True],
    },
    "Adamax": {
        "lr": [2e-3, 0.05], "betas": [(0.9, 0.999), (0.5, 0.7)], "eps": [1e-8, 1e-2],
        "weight_decay": [0, 0.1], "maximize": [False, True], "foreach": [None, True],
    },
    "NAdam": {
        "lr": [2e-3, 0.05], "betas": [(0.9, 0.999), (0.5, 0.7)], "eps": [1e-8, 1e-2],
        "weight_decay": [0, 0.1], "momentum_decay": [4e-3, 0.1],
        "decoupled_weight_decay": [False, True], "maximize": [False, True],
    },
    "RAdam": {
        "lr": [1e-3, 0.05], "betas": [(0.9, 0.999), (0.5, 0.7)], "eps": [1e-8, 1e-2],
        "weight_decay": [0, 0.1], "decoupled_weight_decay": [False, True],
        "maximize": [False, True],
    },
    "RMSprop": {
        "lr": [1e-2, 0.05], "alpha": [0.99, 0.6], "eps": [1e-8, 1e-2], "weight_decay": [0, 0.1],
        "momentum": [0, 0.9], "centered": [False, True], "maximize": [False, True],
    },
    "Rprop": {
        "lr": [1e-2, 0.05], "etas": [(0.5, 1.2), (0.3, 2.0)], "step_sizes": [(1e-6, 50), (0.02, 1)],
        "maximize": [False, True],
    },
    "Adagrad": {
        "lr": [1e-2, 0.5], "lr_decay": [0, 0.1], "weight_decay": [0, 0.1],
        "initial_accumulator_value": [0, 0.3], "eps": [1e-10, 1e-2], "maximize": [False, True],
        "fused": [None, True],
    },
    "Adadelta": {
        "lr": [1.0, 0.5], "rho": [0.9, 0.4], "eps": [1e-6, 1e-2], "weight_decay": [0, 0.1],
        "maximize": [False, True],
    },
    "ASGD": {
        "lr": [1e-2, 0.05], "lambd": [1e-4, 0.01], "alpha": [0.75, 0.4], "t0": [1e6, 3],
        "weight_decay": [0, 0.1], "maximize": [False, True],
    },
}  # fmt: skip


def combinations(name):
    """All combinations of options of an optimizer that it accepts, without defaults."""
    options = OPTIONS[name]
    for values in itertools.product(*options.values()):
        given = {key: value for key, value in zip(options, values) if value is not options[key][0]}
        refused = given.get("nesterov") and ("momentum" not in given or "dampening" in given)
        if not refused and not ("foreach" in given and "fused" in given):
            yield given


def pairs(name):
    """No option, each option by itself, and each two of them."""
    return [given for given in combinations(name) if len(given) <= 2]
