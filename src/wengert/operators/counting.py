"""Counts and places: histograms, membership, combinations, coordinates, differences on grids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations as index_combinations
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from ..backends.geometry import wrap_dim
from ..core import dtypes
from ..core.tensor import Tensor
from ..creation.factories import tensor
from ..dispatch.out import copy_to_out
from ..transforms.batching.rules import one_by_one, varying
from . import shapes
from .along import scalar_name
from .declare import composite, nondifferentiable
from .getitem import refuse_meta
from .indexing import index_select
from .joining import cat, stack, unbind
from .pointwise import zeros_like
from .scan import trapezoid as trapezoid_function

__all__ = [
    "bincount", "combinations", "gradient", "histc", "isin", "trapz", "unravel_index",
]  # fmt: skip

# Histograms --------------------------------------------------------------------------------------


def _histc(xp: Any, x: Any, bins: int, low: Any, high: Any) -> Any:
    if x.dtype.kind not in "fV":
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{scalar_name(x.dtype)}'")
    if bins <= 0:
        raise RuntimeError("torch.histc: bins must be > 0")
    low, high = float(low), float(high)
    if low == high and x.size:
        low, high = float(x.min().item()), float(x.max().item())
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    flat = x.reshape(-1)
    inside = flat[(flat >= low) & (flat <= high)]
    places = ((inside - low) / (high - low) * bins).astype(np.int64)
    return xp.bincount(xp.minimum(places, bins - 1), minlength=bins).astype(x.dtype)


histc = nondifferentiable(
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    _histc,
    shape=lambda x, bins, low, high: (bins,),
    batch=one_by_one("The range of each example may be that of its values."),
    doc="How many elements fall into each of `bins` equal parts of a range, by default their own.",
)


def _bincount(xp: Any, x: Any, weights: Any, minlength: int) -> Any:
    if x.ndim != 1 or (x.size and x.dtype.kind not in "iu"):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if x.size and x.min().item() < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is None:
        return xp.bincount(x.astype(np.int64), minlength=minlength).astype(np.int64)
    if weights.shape != x.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    out = xp.bincount(x.astype(np.int64), weights=weights.astype(np.float64), minlength=minlength)
    return out.astype(weights.dtype if weights.dtype == np.float32 else np.float64)


bincount = nondifferentiable(
    "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor",
    _bincount,
    meta=refuse_meta("bincount"),
    batch=varying("bincount"),
    raises="values",
    doc="How often each non-negative whole number occurs, or the sums of its weights.",
)

# Membership and coordinates ----------------------------------------------------------------------


def _isin(xp: Any, elements: Any, tests: Any, assume_unique: bool, invert: bool) -> Any:
    for x in (elements, tests):
        if x.dtype.kind in "bc":
            raise RuntimeError(
                f"Unsupported input type encountered for isin(): {scalar_name(x.dtype)}"
            )
    found = xp.isin(elements, tests, assume_unique=assume_unique)
    return ~found if invert else found


_isin_operator = nondifferentiable(
    "_isin(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) "
    "-> Tensor",
    _isin,
    shape=shapes.as_first,
    batch=one_by_one("Every example has a set of its own."),
    aten="isin",
    overload="Tensor_Tensor",
    doc="Whether elements are among the test elements.",
)


@composite(public="function")
def isin(
    elements: Any,
    test_elements: Any,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Whether elements are among `test_elements`, or are not if `invert`."""
    elements, test_elements = (
        x if isinstance(x, Tensor) else tensor(x) for x in (elements, test_elements)
    )
    result = _isin_operator(
        elements, test_elements, assume_unique=assume_unique, invert=invert
    )
    return result if out is None else copy_to_out("isin", result, out, (), True)


@composite(public="function")
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates, one tensor for each dimension, of flat indices into `shape`."""
    if indices.is_floating_point() or indices.is_complex() or indices.dtype is dtypes.bool:
        raise ValueError(
            f"expected 'indices' to be integer dtype, but got {indices.dtype}"
        )
    sizes = [shape] if isinstance(shape, int) else [int(n) for n in shape]
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    steps = [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]
    places = indices.unsqueeze(-1) // tensor(steps, dtype=dtypes.int64, device=indices.device)
    return unbind(places % tensor(sizes, dtype=dtypes.int64, device=indices.device), -1)


@composite(public="function")
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All combinations of `r` elements of a vector, in the order of their places."""
    if input.array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.array.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return zeros_like(input[:0])
    choose = combinations_with_replacement if with_replacement else index_combinations
    places = np.array(list(choose(range(input.array.shape[0]), r)), np.int64).reshape(-1, r)
    columns = [
        index_select(input, 0, tensor(np.ascontiguousarray(column), device=input.device))
        for column in places.T
    ]
    return stack(columns, 1)


# Powers and differences --------------------------------------------------------------------------


@composite(public="function")
def trapz(y: Tensor, x: Tensor | None = None, *, dx: Any = 1, dim: int = -1) -> Tensor:
    """The integral of samples `y` by the trapezoidal rule: another name of trapezoid()."""
    return trapezoid_function(y, x, dx=dx, dim=dim)


@composite(public="function")
def gradient(
    input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """The slopes of values on a grid along its dimensions, by central differences."""
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if input.dtype is dtypes.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    rank = input.array.ndim
    if dim is None:
        dims = list(range(rank))
    else:
        dims = [wrap_dim(d, rank) for d in ([dim] if isinstance(dim, int) else dim)]
        for d in dims:
            if dims.count(d) > 1:
                raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    spacing = 1 if spacing is None else spacing
    several = isinstance(spacing, Sequence)
    steps = list(spacing) if several else [spacing] * len(dims)
    if len(steps) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or a list of length "
            f"equal to {len(dims)}, but got a list of length {len(steps)}"
        )
    for place in (each.device for each in steps if isinstance(each, Tensor)):
        if place != input.device:
            raise RuntimeError(
                "torch.gradient expected each tensor to be on the same device, but got devices "
                f"{input.device} and {place}!"
            )
    for d in dims:
        if input.array.shape[d] < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1"
            )
    return tuple([_slope(input, d, h, edge_order) for d, h in zip(dims, steps, strict=True)])


def _slope(x: Tensor, dim: int, spacing: Any, edge_order: int) -> Tensor:
    n = x.array.shape[dim]

    def part(start: int, end: int) -> Tensor:
        return x.narrow(dim, start, end - start)

    if isinstance(spacing, Tensor) and spacing.array.ndim == 1:
        shape = [1] * x.array.ndim
        shape[dim] = -1
        widths = spacing.diff().reshape(shape)
        before, after = widths.narrow(dim, 0, n - 2), widths.narrow(dim, 1, n - 2)
        inside = (
            part(0, n - 2) * (-after / (before * (before + after)))
            + part(1, n - 1) * ((after - before) / (before * after))
            + part(2, n) * (before / (after * (before + after)))
        )
        first, last = widths.narrow(dim, 0, 1), widths.narrow(dim, n - 2, 1)
        second, next_to_last = (
            (widths.narrow(dim, 1, 1), widths.narrow(dim, n - 3, 1)) if n > 2 else (first, last)
        )
    else:
        first = last = second = next_to_last = spacing
        inside = (part(2, n) - part(0, n - 2)) / (2 * spacing)
    if edge_order == 1:
        left = (part(1, 2) - part(0, 1)) / first
        right = (part(n - 1, n) - part(n - 2, n - 1)) / last
    else:
        left = _one_sided([part(i, i + 1) for i in range(3)], first, second)
        right = -_one_sided([part(n - 1 - i, n - i) for i in range(3)], last, next_to_last)
    return cat([left, inside, right], dim)


def _one_sided(values: list[Tensor], near: Any, far: Any) -> Tensor:
    """The slope at the first of three values that are `near` and `far` apart, of second order."""
    both = near + far
    return (
        values[0] * (-(2 * near + far) / (near * both))
        + values[1] * (both / (near * far))
        - values[2] * (near / (far * both))
    )
