"""Pools of a given number of parts of signals, pictures and volumes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backends.placement import of_array, transfer
from ...core.arrays import made_here
from ...core.errors import shape_text
from ...core.tensor import Tensor, wrap
from ...operators.along import scalar_name
from ...operators.pooling import flat_planes
from ...operators.resampling import resample
from ...operators.views import unsafe_view
from .pooling import _check_signal, _single


def _adaptive_sizes(name: str, count: int, input: Tensor, output_size: Any) -> tuple[int, ...]:
    """The wanted lengths, in which None stands for those of the input."""
    ndim = input.array.ndim
    if count > 1 and hasattr(output_size, "__iter__") and ndim <= len(output_size):
        raise ValueError(
            f"Input dimension should be at least {len(output_size) + 1}: {name}() got a tensor of "
            f"shape {shape_text(input.array.shape)}"
        )
    if ndim not in (count + 1, count + 2):
        raise RuntimeError(
            f"{name}(): Expected {count + 1}D or {count + 2}D tensor, but got "
            f"{shape_text(input.array.shape)}"
        )
    given = (output_size,) * count if not hasattr(output_size, "__iter__") else tuple(output_size)
    if len(given) != count:
        raise RuntimeError(
            f"{name}(): internal error: output_size.size() must be {count}, but got {list(given)}"
            if "max" in name
            else f"{name}: output_size must be {count}, but got {list(given)}"
        )
    planes = input.array.shape[ndim - count :]
    sizes = tuple([n if m is None else m for n, m in zip(planes, given, strict=True)])
    if any(n < 0 for n in sizes):
        if "max" in name:
            wanted = (*input.array.shape[: ndim - count], *sizes)
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {min(sizes)}: "
                f"{shape_text(wanted)}: {name}() got output_size {list(given)}"
            )
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received "
            f"{{{', '.join(map(str, sizes))}}}"
        )
    if 0 in planes:
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input "
            f"has sizes {shape_text(input.array.shape)}"
        )
    if input.array.dtype.kind in "biuc":
        raise NotImplementedError(
            f"\"{name}\" not implemented for '{scalar_name(input.array.dtype)}'"
        )
    return sizes


def _adaptive_avg_pool(name: str, count: int, input: Tensor, output_size: Any) -> Tensor:
    sizes = _adaptive_sizes(name, count, input, output_size)
    if sizes == (1,) * count and count > 1:
        return input.mean(tuple(range(-count, 0)), True)
    return resample.call((input, sizes, "mean", False, ()))


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The means of so many parts of signals as are wanted."""
    _check_signal("adaptive_avg_pool1d", input)
    size = _single("adaptive_avg_pool1d", "output_size", output_size)
    _adaptive_sizes("adaptive_avg_pool1d", 1, input, size)
    return resample.call((input.unsqueeze(-2), (1, size), "mean", False, ())).squeeze(-2)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The means of so many parts of pictures as are wanted."""
    return _adaptive_avg_pool("adaptive_avg_pool2d", 2, input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The means of so many parts of volumes as are wanted."""
    return _adaptive_avg_pool("adaptive_avg_pool3d", 3, input, output_size)


def _part_positions(length: int, count: int) -> np.ndarray:
    """For each part of a dimension the positions of its elements; shorter ones repeat their last.

    Part `i` of `count` goes from the floor of `i` parts to the ceiling of `i + 1`.
    """
    starts = np.arange(count) * length // max(count, 1)
    ends = -(-(np.arange(count) + 1) * length // max(count, 1))
    most = int((ends - starts).max()) if count else 1
    return np.minimum(starts[:, None] + np.arange(most), (ends - 1)[:, None])


def _adaptive_max_pool(
    name: str, count: int, input: Tensor, output_size: Any, return_indices: bool
) -> Any:
    sizes = _adaptive_sizes(name, count, input, output_size)
    shape = input.array.shape
    lead, planes = shape[: len(shape) - count], shape[len(shape) - count :]
    table = np.zeros((1, 1), np.int64)  # by parts and elements of all dimensions so far
    for length, size in zip(planes, sizes, strict=True):
        own = _part_positions(length, size)
        table = (
            table[:, None, :, None] * length + own[None, :, None, :]
        ).reshape(table.shape[0] * size, table.shape[1] * own.shape[1])  # fmt: skip
    parts, elements = table.shape
    positions = made_here(wrap(transfer(table.reshape(-1), of_array(input.array))))
    found = flat_planes(input, count).index_select(-1, positions)
    values, chosen = found.reshape((*lead, parts, elements)).max(-1)
    if count > 1:
        values = unsafe_view.call((values, (*lead, *sizes)))
    else:
        values = values.reshape((*lead, *sizes))
    if not return_indices:
        return values
    rows = positions.reshape(parts, elements).expand((*lead, parts, elements))
    indices = rows.gather(-1, chosen.unsqueeze(-1)).reshape((*lead, *sizes))
    return values, indices


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The largest elements of so many parts of signals as are wanted."""
    _check_signal("adaptive_max_pool1d", input)
    size = _single("adaptive_max_pool1d", "output_size", output_size)
    return _adaptive_max_pool("adaptive_max_pool1d", 1, input, size, return_indices)


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The largest elements of so many parts of pictures as are wanted."""
    return _adaptive_max_pool("adaptive_max_pool2d", 2, input, output_size, return_indices)


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The largest elements of so many parts of volumes as are wanted."""
    return _adaptive_max_pool("adaptive_max_pool3d", 3, input, output_size, return_indices)
