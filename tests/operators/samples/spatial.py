"""Samples of functions of signals, pictures and volumes: convolutions, norms and pools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .networks import layer
from .shapes import on
from .table import Fixed, Make, Operation, Sample


def _convolutions(count: int) -> Callable[[Make], list[Sample]]:
    def samples(make: Make) -> list[Sample]:
        sizes, kernel = (5, 4, 3)[:count], (2, 3, 2)[:count]
        return [
            Sample(make(2, 2, *sizes), make(3, 2, *kernel), make(3)),
            Sample(make(2, 4, *sizes), make(2, 2, *kernel), None, 2, 1, 1, 2),
            Sample(make(1, *sizes), make(2, 1, *kernel), make(2), padding="valid"),
        ]

    return samples


def _transposed(count: int) -> Callable[[Make], list[Sample]]:
    def samples(make: Make) -> list[Sample]:
        sizes, kernel = (3, 2, 2)[:count], (2, 3, 1)[:count]
        return [
            Sample(make(2, 2, *sizes), make(2, 3, *kernel), make(3)),
            Sample(make(1, 4, *sizes), make(4, 1, *kernel), None, 2, 1, 1, 2),
        ]

    return samples


def _general(make: Make) -> list[Sample]:
    return [
        Sample(make(1, 2, 4, 3), make(2, 2, 2, 2), make(2), [2], [1], [1], False, [0], 1),
        Sample(make(1, 2, 2, 2), make(2, 1, 2, 2), None, [2, 1], [0, 0], [1, 2], True, [1, 1], 1),
    ]


def _batch_norms(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 2), None, None, training=True),
        Sample(make(2, 2, 3), None, None, make(2), make(2), True, 0.1, 1e-3),
        Sample(make(2, 2, 3), make.weights(2), make.weights(2), make(2), make(2)),
    ]


def _instance_norms(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 2, 3)),
        Sample(make(1, 2, 2, 2), None, None, make(2), make(2), True, 0.1, 1e-3),
    ]


def _group_norms(make: Make) -> list[Sample]:
    return [Sample(make(2, 4, 2), 2), Sample(make(2, 4), 1, make(4), make(4), 1e-3)]


def _local_norms(make: Make) -> list[Sample]:
    return [Sample(make(2, 3, 2), 2), Sample(make(1, 3, 2, 2), 3, 1.0, 0.5, 2.0)]


def _pools(count: int, **options: Any) -> Callable[[Make], list[Sample]]:
    def samples(make: Make) -> list[Sample]:
        sizes = (5, 4, 3)[:count]
        return [
            Sample(make(2, 2, *sizes), 2),
            Sample(make(1, *sizes), 3, 2, 1, ceil_mode=True, **options),
        ]

    return samples


def _norm_pools(count: int) -> Callable[[Make], list[Sample]]:
    def samples(make: Make) -> list[Sample]:
        return [Sample(make.positive(1, 2, *(4, 3, 2)[:count]), 3, 2, 1)]

    return samples


def _parts(count: int) -> Callable[[Make], list[Sample]]:
    def samples(make: Make) -> list[Sample]:
        sizes = (5, 4, 3)[:count]
        return [Sample(make(1, 2, *sizes), 2), Sample(make(1, *sizes), (3,) * count)]

    return samples


def _put_back(count: int) -> Callable[[Make], list[Sample]]:
    def samples(make: Make) -> list[Sample]:
        places = make.distinct(2**count, 4**count).array.reshape((1, *(2,) * count))
        return [Sample(make(1, *(2,) * count), Fixed(places), 2)]

    return samples


def _sized(make: Make) -> list[Sample]:
    nearest = Sample(make(1, 2, 3), 5)
    if make.kind == "integer":
        return [nearest]
    return [
        nearest,
        Sample(make(1, 2, 3, 2), scale_factor=2, mode="bilinear"),
        Sample(make(1, 1, 3, 4), (4, 3), mode="bicubic", align_corners=True),
        Sample(make(1, 1, 2, 3, 2), (3, 2, 3), mode="trilinear"),
    ]


def _bags(make: Make) -> list[Sample]:
    return [
        Sample(make.index(2, 3, high=4), make(4, 2)),
        Sample(make.index(5, high=4), make(4, 2), Fixed(np.array([0])), mode="sum"),
    ]


def _grids(make: Make) -> list[Sample]:
    return [Sample(make(1, 2, 3, 2), make(1, 2, 3, 2), align_corners=False)]


def _two_inputs(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 3), make(2, 2), make(2, 3, 2)),
        Sample(make(2, 3), make(2, 2), make(2, 3, 2), make(2)),
    ]


SPATIAL = [
    *[layer(f"conv{n}d", _convolutions(n), half_scale=8,
            covers=("_convolution", "_convolution_weight") if n == 1 else ()) for n in (1, 2, 3)],
    *[layer(f"conv_transpose{n}d", _transposed(n), half_scale=8) for n in (1, 2, 3)],
    Operation("convolution", _general, complex=False, integer=False, method=False, half_scale=8),
    layer("batch_norm", _batch_norms, half_scale=8),
    layer("instance_norm", _instance_norms, half_scale=8),
    layer("group_norm", _group_norms, half_scale=8),
    layer("local_response_norm", _local_norms, half_scale=4, integer=True),
    *[layer(f"max_pool{n}d", _pools(n, dilation=1), covers=("_max_pool",)) for n in (1, 2, 3)],
    *[layer(f"avg_pool{n}d", _pools(n, count_include_pad=False), covers=("_avg_pool",),
            integer=True, half_scale=4) for n in (1, 2, 3)],
    *[layer(f"lp_pool{n}d", _norm_pools(n), half_scale=8) for n in (1, 2, 3)],
    *[layer(f"adaptive_avg_pool{n}d", _parts(n), covers=("_resample",), half_scale=4)
      for n in (1, 2, 3)],
    *[layer(f"adaptive_max_pool{n}d", _parts(n)) for n in (1, 2, 3)],
    *[layer(f"max_unpool{n}d", _put_back(n), covers=("_max_unpool",),
            needs_data="the places decide whether they are valid") for n in (1, 2, 3)],
    layer("unfold", on(((1, 2, 3, 4), 2), ((2, 3, 4), (2, 3), 1, 1, 2)), covers=("_im2col",)),
    layer("fold", on(((1, 8, 6), (3, 4), 2), ((12, 4), (3, 4), (2, 3), 1, 1, 2)),
          covers=("_col2im",)),
    layer("pixel_shuffle", on(((1, 4, 2, 3), 2)), complex=True, integer=True),
    layer("pixel_unshuffle", on(((1, 4, 2), 2)), complex=True, integer=True),
    layer("channel_shuffle", on(((1, 4, 2), 2)), complex=True, integer=True),
    layer("interpolate", _sized, half_scale=4),
    layer("grid_sample", _grids, half_scale=8),
    layer("affine_grid", on(((1, 2, 3), (1, 1, 2, 3), {"align_corners": True})), half_scale=4),
    layer("embedding_bag", _bags, covers=("_bag_numbers",), half_scale=4),
    layer("bilinear", _two_inputs, half_scale=8),
]  # fmt: skip
