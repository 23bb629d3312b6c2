"""Histograms of one or several coordinates, and places of nonzero elements of a fixed number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import return_types
from ..backends import meta
from ..core.tensor import Tensor
from ..creation.ranges import linspace
from ..dispatch.out import copy_to_out
from ..transforms.batching.rules import one_by_one
from .along import scalar_name
from .declare import composite, nondifferentiable, primitive
from .linalg_kernels import into

__all__ = ["histogram", "histogramdd", "nonzero_static"]


def _check_points(x: Any, edges: list, weight: Any) -> None:
    if x.dtype.kind not in "fV":
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{scalar_name(x.dtype)}'")
    for dim, each in enumerate(edges):
        if each.dtype != x.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but "
                f"got input with dtype {scalar_name(x.dtype)} and bins for dimension {dim} with "
                f"dtype {scalar_name(each.dtype)}"
            )
        if each.ndim != 1:
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have one dimension, but got "
                f"{each.ndim} dimensions in the bins tensor for dimension {dim}"
            )
    if weight is not None and weight.shape != x.shape[:-1]:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
            "input tensor excluding its innermost dimension, but got input with shape "
            f"{list(x.shape)} and weight with shape {list(weight.shape)}"
        )


def _counts(xp: Any, x: Any, edges: list, weight: Any, density: bool) -> Any:
    _check_points(x, edges, weight)
    dtype = x.dtype
    if dtype.itemsize == 2:  # compared and added up in single precision
        x, edges = x.astype(np.float32), [each.astype(np.float32) for each in edges]
    sizes = tuple([len(each) - 1 for each in edges])
    points = x.reshape(-1, len(edges))
    place: Any = 0
    inside = xp.ones(points.shape[0], bool)
    for dim, each in enumerate(edges):
        values = points[:, dim]
        found = xp.searchsorted(each, values, side="right") - 1
        found = xp.where(values == each[-1], sizes[dim] - 1, found)  # the last edge is inside
        inside &= (found >= 0) & (found < sizes[dim])
        place = place * sizes[dim] + found
    weights = None if weight is None else weight.reshape(-1)[inside].astype(np.float64)
    counts = xp.bincount(place[inside], weights, minlength=math.prod(sizes))
    out = counts.reshape(sizes).astype(x.dtype, copy=False)
    if density:
        out = out / out.sum()
        for dim, each in enumerate(edges):
            shape = [1] * len(sizes)
            shape[dim] = -1
            out = out / xp.diff(each).reshape(shape)
    return out.astype(dtype, copy=False)


def _refused(t: Any) -> Any:
    raise RuntimeError("derivative for aten::_histogramdd_from_bin_cts is not implemented")


_histogram = primitive(
    "_histogramdd(Tensor self, Tensor[] bins, Tensor? weight, bool density) -> Tensor",
    _counts,
    {"self": _refused, "weight": _refused},
    lambda tangents: _refused(tangents),
    widens=False,
    meta=lambda x, edges, weight, density: meta.empty(
        tuple([each.shape[0] - 1 for each in edges]), x.dtype
    ),
    batch=one_by_one("Every example has edges of its own."),
    name="NotImplemented",
    doc="How many points, or how much weight, lies in each cell of a grid.",
)


def _bounds(x: Tensor, range: Any) -> list[tuple[float, float]]:
    """The first and last edge of every coordinate: given, or those of the points."""
    count = x.array.shape[-1]
    if range is not None:
        given = [float(each) for each in range]
        if len(given) != 2 * count:
            raise RuntimeError(
                f"torch.histogramdd: for a {count}-dimensional histogram range should have "
                f"{2 * count} elements, but got {len(given)}"
            )
        found = list(zip(given[::2], given[1::2], strict=True))
    elif not x.array.size:
        found = [(0.0, 1.0)] * count
    else:
        points = x.detach().reshape(-1, count)
        found = list(zip(points.amin(0).tolist(), points.amax(0).tolist(), strict=True))
    for dim, (low, high) in enumerate(found):
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(
                f"torch.histogramdd: dimension {dim}'s range [{low}, {high}] is not finite"
            )
        if low > high:
            raise RuntimeError(
                f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} "
                f"for dimension {dim}"
            )
    return [(low - 0.5, high + 0.5) if low == high else (low, high) for low, high in found]


def _edges(name: str, x: Tensor, bins: list[int], range: Any) -> list[Tensor]:
    for dim, count in enumerate(bins):
        if count <= 0:
            raise RuntimeError(
                f"torch.{name}(): bins must be > 0, but got {count} for dimension {dim}"
            )
    return [
        linspace(low, high, count + 1, dtype=x.dtype, device=x.device)
        for count, (low, high) in zip(bins, _bounds(x, range), strict=True)
    ]


def histogram(
    input: Tensor,
    bins: Any = 100,
    *,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: Any = None,
) -> Any:
    """How many elements, or how much of their `weight`, lies between neighbouring edges.

    `bins` is a tensor of edges, or a number of equal parts of `range`, which is that of the
    elements if it is not given. With `density` the sum over the parts, times their widths, is one.
    """
    points = input.reshape((-1, 1))
    if isinstance(bins, Tensor):
        if range is not None:
            raise TypeError("histogram(): range is not used where bins is a tensor of edges")
        edges = bins
    else:
        edges = _edges("histogram", points, [bins], range)[0]
    weights = None if weight is None else weight.reshape((-1,))
    found = _histogram.call((points, [edges], weights, density))
    return into("histogram", return_types.histogram(found, edges), out)


@composite(public="function")
def histogramdd(
    input: Tensor,
    bins: Any,
    *,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """How many points, whose coordinates are the last dimension, lie in each cell of a grid.

    `bins` is a number of equal parts, one for each coordinate, or a tensor of edges for each;
    `range` has the first and the last edge of each coordinate in turn.
    """
    if input.array.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    count = input.array.shape[-1]
    parts = [bins] * count if isinstance(bins, int) else list(bins)
    if len(parts) != count:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
        )
    by_edges = bool(parts) and isinstance(parts[0], Tensor)
    edges = parts if by_edges else _edges("histogramdd", input, parts, range)
    found = _histogram.call((input, edges, weight, density))
    return return_types.histogramdd(found, tuple(edges))


def _places(xp: Any, x: Any, size: int, fill_value: int) -> Any:
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    out = xp.full((size, x.ndim), fill_value, np.int64)
    if x.ndim:
        found = xp.argwhere(x)[:size]
        out[: len(found)] = found
    return out


_nonzero_static = nondifferentiable(
    "_nonzero_static(Tensor self, int size, int fill_value) -> Tensor",
    _places,
    meta=lambda x, size, fill_value: meta.empty((size, x.ndim), np.dtype(np.int64)),
    batch=one_by_one("Every example has nonzero elements of its own."),
    aten="nonzero_static",
    doc="The indices of nonzero elements, cut or filled up to a fixed number.",
)


def nonzero_static(
    input: Tensor, *, size: int, fill_value: int = -1, out: Tensor | None = None
) -> Tensor:
    """The indices of the first `size` nonzero elements, `fill_value` where there are fewer."""
    found = _nonzero_static.call((input, size, fill_value))
    return found if out is None else copy_to_out("nonzero_static", found, out, (), True)
