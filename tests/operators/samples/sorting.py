"""Samples of sorting, selecting by rank, and searching."""

from __future__ import annotations

import numpy as np

from .reductions import over, with_
from .table import Fixed, Make, Operation, Sample

RANKS = (with_(2), with_(1, 0), with_(2, -1))


def _quantiles(make: Make) -> list[Sample]:
    return [
        Sample(make(5), 0.3),
        Sample(make(2, 5), 0.6, dim=1),
        Sample(make(2, 5), Fixed(np.array([0.1, 0.5, 0.9]), True), dim=0, keepdim=True),
        *[
            Sample(make(5), 0.3, interpolation=name)
            for name in ("lower", "higher", "nearest", "midpoint")
        ],
    ]


def _duplicates(make: Make) -> list[Sample]:
    x = np.round(make(8))
    rows = np.round(make(4, 2, low=-1, high=1))
    return [
        Sample(x),
        Sample(x, return_inverse=True, return_counts=True),
        Sample(rows, dim=0),
        Sample(make(0)),
    ]


def _searches(make: Make) -> list[Sample]:
    ordered = np.sort(make(5))
    return [
        Sample(ordered, make(2, 3)),
        Sample(ordered, make(4), right=True),
        Sample(np.sort(make(2, 5), axis=-1), make(2, 3), side="left"),
        Sample(ordered, make()),
    ]


def _buckets(make: Make) -> list[Sample]:
    ordered = np.sort(make(5))
    return [Sample(make(2, 3), ordered), Sample(make(4), ordered, right=True)]


SORTING = [
    Operation("sort", over(with_(), with_(0), with_(1, True), with_(stable=True), empty=with_()),
              complex=False, out=True),
    Operation("argsort", over(with_(), with_(0), with_(1, True), with_(stable=True)), complex=False,
              differentiable=False),
    Operation("msort", over(with_(), scalar=None), complex=False, out=True),
    Operation("topk", over(*RANKS, with_(2, largest=False), scalar=with_(1)), complex=False,
              out=True),
    Operation("kthvalue", over(*RANKS, with_(1, 0, True), scalar=with_(1)), complex=False,
              out=True),
    Operation("median", over(with_(), with_(0), with_(1, True), shape=(3, 4)), complex=False),
    Operation("nanmedian", over(with_(), with_(0), with_(1, True), shape=(3, 4)), complex=False),
    Operation("mode", over(with_(), with_(0), with_(1, True)), complex=False, out=True),
    Operation("quantile", _quantiles, complex=False, integer=False, half=False, out=True),
    Operation("nanquantile", _quantiles, complex=False, integer=False, half=False, out=True),
    Operation("unique", _duplicates, complex=False, differentiable=False,
              covers=("_unique2",), needs_data="the values decide the shape of the result"),
    Operation("unique_consecutive", _duplicates, complex=False, differentiable=False,
              needs_data="the values decide the shape of the result"),
    Operation("searchsorted", _searches, complex=False, differentiable=False, method=False,
              out=True),
    Operation("bucketize", _buckets, complex=False, differentiable=False, method=False, out=True),
]  # fmt: skip
