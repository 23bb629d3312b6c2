"""Pictures and volumes read at places that a grid tells."""

from __future__ import annotations

import math
import warnings
from itertools import product
from typing import Any

from ...core.errors import shape_text
from ...core.tensor import Tensor
from ...creation.factories import ones_like
from ...creation.ranges import linspace
from ...operators.along import scalar_name
from ...operators.joining import meshgrid, stack
from ...operators.pointwise import where
from ...operators.resampling import cubic_weights
from ...operators.views import as_own, unsafe_view

_CHANGED = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
    "Please specify align_corners=True if the old behavior is desired. See the documentation of "
    "grid_sample for details."
)


def _check_grid(input: Tensor, grid: Tensor, mode: str, padding_mode: str) -> None:
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    x, places = input.array, grid.array
    if x.shape[:1] != places.shape[:1]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with "
            f"sizes {shape_text(x.shape)} and grid with sizes {shape_text(places.shape)}"
        )
    if x.ndim not in (4, 5) or places.ndim != x.ndim:
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but "
            f"got input with sizes {shape_text(x.shape)} and grid with sizes "
            f"{shape_text(places.shape)}"
        )
    if places.shape[-1] != x.ndim - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {x.ndim - 2} in last dimension, but got "
            f"grid with sizes {shape_text(places.shape)}"
        )
    for dim in range(2, x.ndim):
        if not x.shape[dim]:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input "
                f"has sizes {shape_text(x.shape)} with dimension {dim} being empty"
            )
    if mode == "bicubic" and x.ndim != 4:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if x.dtype != places.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(x.dtype)} but found {scalar_name(places.dtype)}"
        )
    if x.dtype.kind in "biuc":
        raise NotImplementedError(
            f"\"grid_sampler\" not implemented for '{scalar_name(x.dtype)}'"
        )


def _within(place: Tensor, length: int) -> Tensor:
    """Places limited to the input; at the ends they have no slope."""
    return where(place <= 0, 0, where(place >= length - 1, length - 1, place))


def _reflected(place: Tensor, length: int, align: bool) -> Tensor:
    """Places reflected at the ends of the input until they lie in it."""
    low, span = (0.0, float(length - 1)) if align else (-0.5, float(length))
    if span == 0:
        return place * 0
    distance = (place - low).abs()
    flips = (distance / span).floor()
    rest = distance - flips.detach() * span
    return where(flips % 2 == 0, rest + low, span - rest + low)


def _padded(place: Tensor, length: int, padding_mode: str, align: bool) -> Tensor:
    if padding_mode == "reflection":
        place = _reflected(place, length, align)
    return place if padding_mode == "zeros" else _within(place, length)


def _taps(
    place: Tensor, length: int, mode: str, padding_mode: str, align: bool
) -> list[tuple[Tensor, Tensor]]:
    """Positions along one dimension, as floats, and their weights."""
    if align:
        place = (place + 1) / 2 * (length - 1)
    else:
        place = ((place + 1) * length - 1) / 2
    if mode == "bicubic":
        first = place.floor().detach()
        weights = cubic_weights(place - first)
        return [
            (_padded(first + i - 1, length, padding_mode, align), weight)
            for i, weight in enumerate(weights)
        ]
    place = _padded(place, length, padding_mode, align)
    if mode == "nearest":
        nearest = place.round()
        return [(nearest.detach(), ones_like(nearest) + (nearest - nearest.detach()))]
    first = place.floor().detach()
    share = place - first
    return [(first, 1 - share), (first + 1, share)]


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The input at places that are given between -1 and 1, the last dimension first."""
    _check_grid(input, grid, mode, padding_mode)
    if align_corners is None:
        warnings.warn(_CHANGED, stacklevel=3)
    count, channels, *planes = input.array.shape
    inner = grid.array.shape[1:-1]
    places = grid.reshape((count, math.prod(inner), len(planes)))
    taps = [
        _taps(places[..., -1 - i], length, mode, padding_mode, bool(align_corners))
        for i, length in enumerate(planes)
    ]
    flat = input.reshape((count, channels, math.prod(planes)))
    total: Any = None
    for chosen in product(*taps):
        position: Any = 0
        weight: Any = 1
        inside: Any = True
        for (place, share), length in zip(chosen, planes, strict=True):
            valid = (place >= 0) & (place <= length - 1)
            position = position * length + where(valid, place, 0).long()
            weight, inside = share * weight, valid & inside
        index = position.unsqueeze(1).expand(count, channels, position.array.shape[-1])
        part = flat.gather(2, index) * weight.unsqueeze(1)
        part = where(inside.unsqueeze(1), part, 0)
        total = part if total is None else total + part
    return as_own(total, (count, channels, *inner))


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The places that affine maps give to the elements of a picture or volume of some size."""
    if align_corners is None:
        warnings.warn(_CHANGED, stacklevel=3)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    shape = tuple(size)
    if len(shape) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {size}."
        )
    count = len(shape) - 2
    if theta.array.ndim != 3 or theta.array.shape[1:] != (count, count + 1):
        raise ValueError(
            f"Expected a batch of {count}D affine matrices of shape Nx{count}x{count + 1} for size "
            f"{size}. Got {theta.shape}."
        )
    if min(shape) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    lines = []
    for length in shape[2:]:
        line = linspace(-1, 1, length, dtype=theta.dtype, device=theta.device)
        if length == 1:
            line = line * 0
        lines.append(line if align_corners else line * ((length - 1) / length))
    grids = meshgrid(*lines, indexing="ij") if len(lines) > 1 else lines
    base = stack([*reversed(grids), ones_like(grids[0])], -1).reshape(-1, count + 1)
    return unsafe_view.call((base @ theta.transpose(1, 2), (shape[0], *shape[2:], count)))
