"""Samples of the functions of networks: activations, losses, normalisation, attention, padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .pointwise import unary
from .shapes import on
from .table import Fixed, Make, Operation, Sample

REDUCTIONS = ("mean", "sum", "none")


def layer(name: str, samples: Callable, **options: Any) -> Operation:
    """A function of nn.functional on real floating-point tensors."""
    options = {"complex": False, "integer": False, "method": False} | options
    return Operation(f"nn.functional.{name}", samples, **options)


def activation(name: str, *calls: dict[str, Any], **options: Any) -> Operation:
    """An elementwise function of nn.functional, with and without the given keyword arguments."""

    def extra(make: Make) -> list[Sample]:
        return [Sample(make(2, 3), **kwargs) for kwargs in calls]

    options = {"complex": False, "integer": False, "method": False, "out": False} | options
    return unary(f"nn.functional.{name}", extra=extra, **options)


def _pairs(**kwargs: Any) -> Callable[[Make], list[Sample]]:
    def samples(make: Make) -> list[Sample]:
        plain = [Sample(make(2, 3), make(2, 3), reduction=name) for name in REDUCTIONS]
        return [*plain, Sample(make(2, 3), make(2, 3), **kwargs), Sample(make(), make())]

    return samples


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
        Sample(_log_probabilities(make, 4, 3), make.index(4, high=3), make.weights(3)),
        Sample(_log_probabilities(make, 4, 3), Fixed(np.array([0, 1, 2, 1])), ignore_index=1),
        Sample(_log_probabilities(make, 2, 3, 2), make.index(2, 2, high=3)),
        Sample(_log_probabilities(make, 3), make.index(high=3)),
    ]


def _cross_entropies(make: Make) -> list[Sample]:
    return [
        *[Sample(make(4, 3), make.index(4, high=3), reduction=name) for name in REDUCTIONS],
        Sample(make(4, 3), make.index(4, high=3), make.weights(3)),
        Sample(make(4, 3), Fixed(np.array([0, 1, 2, 1])), ignore_index=1),
        Sample(make(4, 3), make.index(4, high=3), label_smoothing=0.2),
        Sample(make(4, 3), make.index(4, high=3), make.weights(3), label_smoothing=0.2),
        Sample(make(2, 3), make.positive(2, 3)),
        Sample(make(2, 3), make.weights(2, 3), make.weights(3), label_smoothing=0.1),
        Sample(make(2, 3, 2), make.index(2, 2, high=3)),
        Sample(make(3), make.index(high=3)),
    ]


def _probability(make: Make, *shape: int) -> np.ndarray:
    return make(*shape, low=0.1, high=0.9)


def _probabilities(make: Make) -> list[Sample]:
    plain = [
        Sample(_probability(make, 2, 3), _probability(make, 2, 3), reduction=name)
        for name in REDUCTIONS
    ]
    return [*plain, Sample(_probability(make, 2, 3), _probability(make, 2, 3), make.weights(3))]


def _logits(make: Make) -> list[Sample]:
    plain = [Sample(make(2, 3), _probability(make, 2, 3), reduction=name) for name in REDUCTIONS]
    return [
        *plain,
        Sample(make(2, 3), _probability(make, 2, 3), make.weights(3)),
        Sample(make(2, 3), _probability(make, 2, 3), pos_weight=make.weights(3)),
    ]


def _divergences(make: Make) -> list[Sample]:
    return [
        *[
            Sample(make(2, 3), _probability(make, 2, 3), reduction=name)
            for name in (*REDUCTIONS, "batchmean")
        ],
        Sample(make(2, 3), make(2, 3), reduction="sum", log_target=True),
    ]


def _layer_norms(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 4), (4,)),
        Sample(make(2, 4), (4,), make(4), make(4)),
        Sample(make(2, 2, 3), (2, 3), make(2, 3), make(2, 3), 1e-3),
        Sample(make(2, 4), [4], weight=make(4)),
        Sample(make(2, 4), [4], bias=make(4)),
        Sample(make(0, 4), (4,), make(4), make(4)),
    ]


def _native_layer_norms(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 4), (4,), make(4), make(4), 1e-3),
        Sample(make(2, 2, 3), (2, 3), None, None, 1e-5),
    ]


def _rms_norms(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 4), (4,)),
        Sample(make(2, 2, 3), (2, 3), make(2, 3), 1e-3),
    ]


def _similarities(make: Make) -> list[Sample]:
    return [Sample(make(2, 3), make(2, 3)), Sample(make(2, 3), make(3), dim=-1)]


def _distances(make: Make) -> list[Sample]:
    return [Sample(make(2, 3), make(2, 3)), Sample(make(2, 3), make(3), p=3, keepdim=True)]


def _attention(make: Make) -> list[Sample]:
    def shaped() -> tuple[np.ndarray, ...]:
        return make(2, 3, 4), make(2, 5, 4), make(2, 5, 2)

    return [
        Sample(*shaped()),
        Sample(*shaped(), attn_mask=make.mask(3, 5)),
        Sample(*shaped(), attn_mask=make(3, 5)),
        Sample(make(3, 2), make(3, 2), make(3, 2), is_causal=True),
        Sample(*shaped(), scale=0.3),
    ]


def _unmasked(make: Make) -> list[Sample]:
    return [Sample(make(2, 3), 0.5, False), Sample(make(2, 3), 0.0), Sample(make(2, 3), 1.0)]


def _rectified(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 3), make(1)),
        Sample(make(2, 3), make(3)),
        Sample(make(2, 3, 2), make(3)),
    ]


NETWORKS = [
    activation("relu6", low=-2, high=8, integer=True),
    activation("hardtanh", {"min_val": -0.5, "max_val": 1.5}, integer=True),
    activation("elu", {"alpha": 1.5}),
    activation("selu"),
    activation("celu", {"alpha": 0.7}),
    activation("mish"),
    activation("hardswish", low=-5, high=5),
    activation("hardsigmoid", low=-5, high=5),
    activation("logsigmoid"),
    activation("softsign", integer=True),
    activation("tanhshrink", integer=True),
    activation("hardshrink", {"lambd": 1.0}),
    activation("softshrink", {"lambd": 1.0}),
    layer("threshold", on(((2, 3), 0.3, -1.0)), covers=("threshold_",)),
    layer("prelu", _rectified),
    layer("glu", on(((2, 4),), ((4, 3), 0))),
    layer("mse_loss", _pairs()),
    layer("l1_loss", _pairs(), complex=True),
    layer("smooth_l1_loss", _pairs(beta=0.5)),
    layer("huber_loss", _pairs(delta=0.7)),
    layer("kl_div", _divergences),
    layer("binary_cross_entropy", _probabilities),
    layer("binary_cross_entropy_with_logits", _logits),
    layer("nll_loss", _negative_log_likelihoods),
    layer("cross_entropy", _cross_entropies),
    layer("layer_norm", _layer_norms, half_scale=2),
    Operation("native_layer_norm", _native_layer_norms, complex=False, integer=False,
              method=False, half_scale=2),
    layer("rms_norm", _rms_norms, half_scale=2),
    layer("normalize", on(((2, 3),), ((2, 3), {"dim": 0, "p": 3})), complex=True, half_scale=2),
    layer("cosine_similarity", _similarities, half_scale=2),
    layer("pairwise_distance", _distances, half_scale=2),
    layer("scaled_dot_product_attention", _attention, half_scale=2),
    layer("pad", on(((2, 3), (1, 2)), ((2, 3), (1, 0, -1, 2)), ((2, 3), (1, 1), {"value": 2.5}),
                    ((2, 3), (2, 1), "reflect"), ((2, 3), (2, 1), "replicate"),
                    ((2, 3), (2, 1), "circular")),
          complex=True, integer=True),
    Operation("constant_pad_nd", on(((2, 3), (1, 2)), ((2, 3), (1, 0, -1, 2), 2.5)), method=False),
    unary("hardshrink", complex=False, integer=False, out=False),
    layer("dropout", _unmasked, complex=True),
    *[layer(f"dropout{n}d", on(((2, 3, *[2] * n), 0.5, False))) for n in (1, 2, 3)],
]  # fmt: skip
