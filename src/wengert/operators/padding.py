"""Borders that continue a tensor: by reflecting, repeating the edge, or going round."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.placement import of_array, transfer
from ..core.arrays import made_here
from ..core.errors import shape_text
from ..core.tensor import Tensor, wrap
from .indexing import index_select


def continued(x: Tensor, dim: int, before: int, after: int, mode: str) -> Tensor:
    """The tensor with more elements before and after along one dimension, by `mode`."""
    positions = _padding_positions(x.array.shape, dim, before, after, mode)
    return index_select(x, dim, made_here(wrap(transfer(positions, of_array(x.array)))))


def _padding_positions(
    shape: tuple[int, ...], dim: int, before: int, after: int, mode: str
) -> Any:
    """For each index of the padded dimension, the index its value is taken from."""
    length = shape[dim]
    positions = np.arange(-before, length + after)
    if mode == "replicate":
        return np.clip(positions, 0, length - 1)
    if mode == "circular":
        if max(before, after) > length:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        first, kept = max(-before, 0), length + min(before, 0) + min(after, 0)
        return first + (positions - first) % max(kept, 1)
    if max(before, after) >= length:
        raise RuntimeError(
            "Padding size should be less than the corresponding input dimension, but got: padding "
            f"({before}, {after}) at dimension {dim} of input {shape_text(shape)}"
        )
    period = max(2 * (length - 1), 1)
    positions = np.abs(positions) % period
    return np.where(positions >= length, period - positions, positions)
