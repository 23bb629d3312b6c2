"""Bags of indices: to which of several bags, that follow each other, each index belongs."""

from __future__ import annotations

from typing import Any

from ..dispatch.operator import Operator
from ..transforms.batching.rules import one_by_one
from .declare import nondifferentiable

__all__ = []


def _bag_numbers(xp: Any, indices: Any, offsets: Any, rows: int) -> Any:
    if offsets.size:
        first, last = offsets[0].item(), offsets[-1].item()
        if first:
            raise RuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start "
                f"from position 0. However, got {first}"
            )
        if last > indices.size:
            raise RuntimeError(
                f"offsets[-1] can not be greater than input's length {indices.size} but got "
                f"offsets[-1] of {last}"
            )
    if indices.size:
        low, high = indices.min().item(), indices.max().item()
        if low < 0 or high >= rows:
            raise RuntimeError(
                "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be "
                f"{low if low < 0 else high}"
            )
    return xp.searchsorted(offsets, xp.arange(indices.size), side="right") - 1


bag_numbers: Operator = nondifferentiable(
    "_bag_numbers(Tensor indices, Tensor offsets, int rows) -> Tensor",
    _bag_numbers,
    shape=lambda indices, offsets, rows: indices.shape,
    batch=one_by_one("The bags of each example begin at places of their own."),
    raises="values",
    doc="For each index the number of its bag; indices are checked to be those of rows.",
)
