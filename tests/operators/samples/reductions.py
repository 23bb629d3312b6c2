"""Samples of reductions, scans, norms and softmax."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .table import DType, Make, Operation, Sample


def over(
    *calls: tuple[tuple, dict], values: Callable[..., np.ndarray] = Make.__call__,
    shape: tuple = (2, 3), scalar: tuple[tuple, dict] | None = ((), {}), empty: tuple | None = None,
) -> Callable[[Make], list[Sample]]:  # fmt: skip
    """One sample for each call on a matrix, one on a 0-d tensor and one on an empty tensor.

    A call is the arguments after the tensor; None leaves the sample out.
    """

    def samples(make: Make) -> list[Sample]:
        found = [Sample(values(make, *shape), *args, **kwargs) for args, kwargs in calls]
        if scalar is not None:
            found.append(Sample(values(make), *scalar[0], **scalar[1]))
        if empty is not None:
            found.append(Sample(values(make, 0, 3), *empty[0], **empty[1]))
        return found

    return samples


def with_(*args: Any, **kwargs: Any) -> tuple[tuple, dict]:
    """The arguments of a call after its tensor."""
    return args, kwargs


SUMS = over(
    with_(), with_(0), with_(1, True), with_((0, 1)), with_(dim=-1, keepdim=True), empty=with_(0)
)
MOMENTS = over(
    with_(), with_(0), with_(1, keepdim=True), with_((0, 1), correction=0), with_(unbiased=False),
    shape=(3, 3), scalar=None,
)  # fmt: skip
EXTREMA = over(with_(), with_(0), with_((0, 1), True), with_(dim=(1,)), empty=with_(1))
ALONG = over(with_(0), with_(1, True), with_(-1), scalar=with_(0), empty=with_(1))
INDICES = over(with_(), with_(0), with_(1, True), scalar=with_(0), empty=with_(1))
SCANS = over(with_(0), with_(-1), scalar=with_(0), empty=with_(0))
LOGIC = over(with_(), with_(0), with_(1, True), with_((0, 1)), empty=with_(0))


def _products(make: Make) -> list[Sample]:
    found = SUMS(make)[:2] + [Sample(make(2, 3), 1, True), Sample(make()), Sample(make(0, 3), 0)]
    with_zero = make(2, 3)
    with_zero[0, 1] = 0
    with_zeros = make(3)
    with_zeros[:2] = 0
    return [*found, Sample(with_zero), Sample(with_zero, 1), Sample(with_zeros)]


def _with_nan(make: Make, *shape: int) -> np.ndarray:
    values = make(*shape)
    if values.size > 2 and values.dtype.kind in "fc":
        values.reshape(-1)[1] = math.nan
    return values


def _norms(make: Make) -> list[Sample]:
    found = [Sample(make(2, 3)), Sample(make(3), 2), Sample(make()), Sample(make(0, 3))]
    for order in (1, 3, math.inf, -math.inf, 0, 0.5):
        found.append(Sample(make.apart(2, 3), order, 1))
    return [*found, Sample(make(2, 3), 2, (0, 1), True)]


def _differences(make: Make) -> list[Sample]:
    return [
        Sample(make(4)),
        Sample(make(2, 4), 2),
        Sample(make(3, 2), dim=0, prepend=make(1, 2), append=make(2, 2)),
        Sample(make(2, 0)),
    ]


def _integrals(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 4)),
        Sample(make(2, 4), np.sort(make(4, low=0, high=6))),
        Sample(make(3, 2), dx=0.5, dim=0),
        Sample(make(3, 2), np.sort(make(3, 2, low=0, high=6), axis=0), dim=0),
    ]


def _running_products(make: Make) -> list[Sample]:
    with_zero = make(2, 4)
    with_zero[0, 1] = with_zero[1, 0] = with_zero[1, 2] = 0
    return [*SCANS(make), Sample(with_zero, 1)]


def _comparisons(make: Make) -> list[Sample]:
    x = make(2, 3)
    return [Sample(x, x.copy()), Sample(x, make(2, 3)), Sample(make(0), make(0))]


REDUCTIONS = [
    Operation("sum", SUMS, out=True),
    Operation(
        "sum to a dtype",
        lambda make: [
            Sample(make(2, 3), dtype=DType("complex128")),
            Sample(make(2, 3), 1, dtype=DType("complex128")),
        ],
        path="sum",
        method=False,
    ),
    Operation("nansum", over(with_(), with_(0), with_((0, 1), True), values=_with_nan),
              complex=False, out=True),
    Operation("mean", over(with_(), with_(0), with_(1, True), with_((0, 1)), empty=with_(1)),
              integer=False, out=True),
    Operation("nanmean", over(with_(), with_(0), with_((0, 1), True), values=_with_nan),
              integer=False, complex=False, out=True),
    Operation("prod", _products, out=True, half_scale=2),
    Operation("var", MOMENTS, integer=False, out=True, half_scale=2),
    Operation("std", MOMENTS, integer=False, out=True, half_scale=2),
    Operation("var_mean", MOMENTS, integer=False, method=False, half_scale=2),
    Operation("std_mean", MOMENTS, integer=False, method=False, half_scale=2),
    Operation("amax", EXTREMA, complex=False, out=True),
    Operation("amin", EXTREMA, complex=False, out=True),
    Operation("aminmax", over(with_(), with_(dim=0), with_(dim=1, keepdim=True)), complex=False,
              out=True),
    *[
        Operation(
            name, over(with_(), with_(0), with_(1, True), with_(dim=-1), empty=with_(1)),
            complex=False,
        )
        for name in ("max", "min")
    ],
    *[
        Operation(
            f"{name} of two", lambda make: [Sample(make(2, 3), make(3))], path=name,
            complex=False, method=False, out=True,
        )
        for name in ("max", "min")
    ],
    Operation("argmax", INDICES, complex=False, differentiable=False, out=True),
    Operation("argmin", INDICES, complex=False, differentiable=False, out=True),
    Operation("all", LOGIC, differentiable=False, out=True),
    Operation("any", LOGIC, differentiable=False, out=True),
    Operation("count_nonzero", over(with_(), with_(0), with_((0, 1))), differentiable=False),
    Operation("logsumexp", ALONG, out=True),
    Operation("softmax", over(with_(0), with_(-1), scalar=with_(0), empty=with_(1)),
              integer=False, complex=False, out=True),
    Operation("log_softmax", over(with_(0), with_(-1), scalar=with_(0), empty=with_(1)),
              integer=False, complex=False, out=True),
    Operation("nn.functional.softmin", over(with_(0), with_(-1), scalar=with_(0)),
              integer=False, complex=False, method=False),
    Operation("norm", _norms, covers=("linalg_vector_norm",), integer=False, half_scale=2,
              out=True),
    Operation("cumsum", SCANS, out=True),
    Operation("cumprod", _running_products, out=True, half_scale=2),
    Operation("logcumsumexp", SCANS, integer=False, out=True),
    Operation("cummax", SCANS, complex=False, out=True),
    Operation("cummin", SCANS, complex=False, out=True),
    Operation("diff", _differences, out=True, half_scale=4),
    Operation("trapezoid", _integrals, method=False, half_scale=4),
    Operation("cumulative_trapezoid", _integrals, method=False, half_scale=4),
    Operation("equal", _comparisons, differentiable=False,
              needs_data="the result is a Python bool"),
    Operation("allclose", _comparisons, differentiable=False,
              needs_data="the result is a Python bool"),
    Operation("Tensor.sum_to_size", over(with_((1, 3)), with_(3), with_(()), scalar=None),
              covers=("sum",)),
]  # fmt: skip
