"""Samples of losses and layers."""

from __future__ import annotations

import numpy as np

from .table import Fixed, Make, Operation, Sample

REDUCTIONS = ("mean", "sum", "none")


def _pairs(make: Make) -> list[Sample]:
    return [Sample(make(2, 3), make(2, 3), reduction=name) for name in REDUCTIONS]


def _log_probabilities(make: Make, *shape: int) -> np.ndarray:
    values = make(*shape)
    dim = 1 if len(shape) > 1 else 0
    return values - np.log(np.exp(values).sum(dim, keepdims=True))


def _negative_log_likelihoods(make: Make) -> list[Sample]:
    return [
        *[
            Sample(_log_probabilities(make, 4, 3), make.index(4, high=3), reduction=name)
            for name in REDUCTIONS
        ],
        Sample(_log_probabilities(make, 4, 3), make.index(4, high=3), Fixed(np.array([1.0, 2, 3]))),
        Sample(_log_probabilities(make, 4, 3), Fixed(np.array([0, 1, 2, 1])), ignore_index=1),
        Sample(_log_probabilities(make, 2, 3, 2), make.index(2, 2, high=3)),
        Sample(_log_probabilities(make, 3), make.index(high=3)),
    ]


def _cross_entropies(make: Make) -> list[Sample]:
    return [
        *[Sample(make(4, 3), make.index(4, high=3), reduction=name) for name in REDUCTIONS],
        Sample(make(4, 3), make.index(4, high=3), Fixed(np.array([1.0, 2, 3]))),
        Sample(make(4, 3), Fixed(np.array([0, 1, 2, 1])), ignore_index=1),
        Sample(make(4, 3), make.index(4, high=3), label_smoothing=0.2),
        Sample(make(2, 3), make.positive(2, 3)),
        Sample(make(2, 3, 2), make.index(2, 2, high=3)),
        Sample(make(3), make.index(high=3)),
    ]


def _layer_norms(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 4), (4,)),
        Sample(make(2, 4), (4,), make(4), make(4)),
        Sample(make(2, 2, 3), (2, 3), make(2, 3), make(2, 3), 1e-3),
        Sample(make(2, 4), [4], weight=make(4)),
    ]


def _off(make: Make) -> list[Sample]:
    return [Sample(make(2, 3), 0.5, False), Sample(make(2, 3), 0.0), Sample(make(2, 3), 1.0)]


NETWORKS = [
    Operation("nn.functional.mse_loss", _pairs, complex=False, integer=False, method=False),
    Operation("nn.functional.nll_loss", _negative_log_likelihoods, complex=False, integer=False,
              method=False),
    Operation("nn.functional.cross_entropy", _cross_entropies, complex=False, integer=False,
              method=False),
    Operation("nn.functional.layer_norm", _layer_norms, complex=False, integer=False,
              method=False, half_scale=2),
    Operation("nn.functional.dropout", _off, integer=False, method=False),
]  # fmt: skip
