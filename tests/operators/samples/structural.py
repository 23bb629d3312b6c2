"""Samples of distances, covariances, replaced parts, counts and differences on grids."""

from __future__ import annotations

from typing import Any

import numpy as np

from .table import Fixed, Make, Operation, Sample


def _whole(*values: int) -> Fixed:
    return Fixed(np.array(values))


def _distances(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 4), make(2, 4, low=3, high=5)),
        Sample(make(2, 3, 4), make(5, 4, low=3, high=5)),
        Sample(make(3, 4), make(2, 4, low=3, high=5), p=1.0),
        Sample(make(3, 4), make(2, 4, low=3, high=5), p=3.0),
        Sample(make(3, 4), make(2, 4, low=3, high=5), p=float("inf")),
        Sample(make(0, 4), make(2, 4)),
    ]


def _pairs(make: Make) -> list[Sample]:
    return [Sample(make(4, 3)), Sample(make(4, 3), 1.0), Sample(make(3, 2), p=3.0)]


def _two(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 3), make(2, 3)),
        Sample(make(2, 3), make(3), 1),
        Sample(make(3), make(3), p=3),
    ]


def _observations(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 5)),
        Sample(make(4)),
        Sample(make(3, 4), correction=0),
        Sample(make(2, 4), fweights=_whole(1, 2, 1, 3)),
        Sample(make(2, 4), aweights=make.weights(4)) if make.kind == "real" else Sample(make(2, 3)),
        Sample(make(2, 4), fweights=_whole(1, 2, 1, 3), correction=2),
    ]


def _correlations(make: Make) -> list[Sample]:
    return [Sample(make(3, 5)), Sample(make(2, 6))]


def _limited(make: Make) -> list[Sample]:
    return [Sample(make.apart(3, 4), 2, 0, 1.0), Sample(make.apart(2, 3, 2), 1, -1, 2.5)]


def _rows(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 4), make(4), 0, 1),
        Sample(make(3, 4), make(3), -1, -2),
        Sample(make(2, 3, 2), make(2, 2), dim=1, index=0),
    ]


def _ranges(make: Make) -> list[Sample]:
    return [
        Sample(make(4, 3), make(2, 3), 0, 1, 3),
        Sample(make(4, 3), make(4, 2), 1, 0, None, 2),
        Sample(make(4, 3), make(1, 3), dim=0, start=-1),
        Sample(make(2, 3), make(2, 3)),
    ]


def _diagonals(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 4), make(3)),
        Sample(make(3, 4), make(2), -1),
        Sample(make(2, 3, 3), make(2, 2), 1, 1, 2),
    ]


def _reduced(make: Make) -> list[Sample]:
    found = []
    for reduce in ("prod", "mean", "amax", "amin"):
        found.append(Sample(make.apart(4, 3), 0, _whole(0, 2), make.apart(2, 3), reduce))
        found.append(
            Sample(make.apart(3, 4), 1, _whole(3, 1), make.apart(3, 2), reduce, include_self=False)
        )
    return found


def _histograms(make: Make) -> list[Sample]:
    return [
        Sample(make(10), 4),
        Sample(make(2, 5), bins=5, min=-1, max=1),
        Sample(make(2, 6), 12),
        Sample(make(0), 3),
    ]


def _counted(make: Make) -> list[Sample]:
    return [
        Sample(_whole(0, 2, 2, 5)),
        Sample(_whole(0, 2, 2, 5), minlength=8),
        Sample(_whole(1, 1, 0), Fixed(np.array([0.5, 2.0, 1.0]))),
        Sample(Fixed(np.zeros(0, np.int64)), None, 3),
    ]


def _members(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 3, low=0, high=4), make(4, low=0, high=4)),
        Sample(make(3, low=0, high=4), make(2, low=0, high=4), invert=True),
        Sample(make(3), 1),
    ]


def _coordinates(make: Make) -> list[Sample]:
    return [Sample(_whole(0, 5, 11), (3, 4)), Sample(Fixed(np.array([[3], [7]])), (2, 2, 2)),
            Sample(_whole(1, 2), 5)]  # fmt: skip


def _chosen(make: Make) -> list[Sample]:
    return [
        Sample(make(4)),
        Sample(make(4), 3),
        Sample(make(3), r=2, with_replacement=True),
        Sample(make(2), 3),
    ]


def _integrals(make: Make) -> list[Sample]:
    found = [Sample(make(2, 4)), Sample(make(3, 2), dx=0.5, dim=0)]
    return found if make.kind == "integer" else [*found, Sample(make(2, 4), make(4))]


def _grids(make: Make) -> list[Sample]:
    return [
        Sample(make(4)),
        Sample(make(3, 4)),
        Sample(make(3, 4), spacing=0.5, dim=1),
        Sample(make(3, 4), spacing=(2.0, 0.5)),
        Sample(make(3, 4), edge_order=2),
        Sample(make(5), spacing=(make.weights(5),), edge_order=1, dim=0),
        Sample(make(4, 5), spacing=[make.weights(4), make.weights(5)], edge_order=2),
    ]


def _function(name: str, samples: Any, **options: Any) -> Operation:
    return Operation(name, samples, method=False, **options)


STRUCTURAL = [
    _function("cdist", _distances, complex=False, integer=False, covers=("_euclidean_dist",),
              half_scale=4),
    _function("pdist", _pairs, complex=False, integer=False, half_scale=2),
    Operation("dist", _two, integer=False),
    Operation("cov", _observations, half_scale=8),
    Operation("corrcoef", _correlations, half_scale=8),
    Operation("renorm", _limited, integer=False, out=True, half_scale=4),
    Operation("select_scatter", _rows),
    Operation("slice_scatter", _ranges),
    Operation("diagonal_scatter", _diagonals),
    Operation("index_reduce", _reduced, complex=False, half_scale=4),
    Operation("histc", _histograms, differentiable=False, complex=False, integer=False, out=True),
    Operation("bincount", _counted, differentiable=False, complex=False, integer=False,
              needs_data="values decide the shape", own_dtype=True),
    _function("isin", _members, differentiable=False, complex=False, covers=("_isin",), out=True),
    _function("unravel_index", _coordinates, differentiable=False, complex=False, integer=False,
              own_dtype=True),
    _function("combinations", _chosen),
    _function("trapz", _integrals, half_scale=2),
    _function("gradient", _grids, half_scale=4),
]  # fmt: skip
