"""Sums, means and largest elements of bags of rows, and a product of two inputs."""

from __future__ import annotations

import math

from ...core.tensor import Tensor
from ...creation.ranges import arange
from ...operators.along import scalar_name
from ...operators.bags import bag_numbers
from ...operators.contraction import einsum
from ...operators.indexing import embedding as embedding_operator
from ...operators.pointwise import where
from .layers import _shorten_rows


def bilinear(
    input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    """For each matrix of `weight` its product with both inputs, and a bias."""
    for i, (given, size) in enumerate(
        ((input1, weight.array.shape[1]), (input2, weight.array.shape[2])), 1
    ):
        if given.size(-1) != size:
            raise RuntimeError(
                f"bilinear(): input{i} size does not match weight size: got {given.size(-1)} "
                f"but expected {size}"
            )
    if input1.array.shape[:-1] != input2.array.shape[:-1]:
        raise RuntimeError(
            "bilinear(): input batch dimensions do not match: got "
            f"{list(input1.array.shape[:-1])} and {list(input2.array.shape[:-1])}"
        )
    result = einsum("...i,oij,...j->...o", input1, weight, input2)
    return result if bias is None else result + bias


def _check_bags(
    input: Tensor, weight: Tensor, offsets: Tensor | None, mode: str, scale: bool, sparse: bool,
    weights: Tensor | None,
) -> None:  # fmt: skip
    if weights is not None and input.array.shape != weights.array.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({weights.shape}) is not None, then it must "
            f"have the same shape as the input ({input.shape})"
        )
    if weight.array.ndim != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.array.ndim}"
        )
    ndim = input.array.ndim
    if ndim == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of "
            f"fixed length sequences. However, found offsets of type {type(offsets)}"
        )
    if ndim == 1 and (offsets is None or offsets.array.ndim != 1):
        given = " but got None" if offsets is None else ""
        raise ValueError(f"offsets has to be a 1D Tensor{given}")
    if ndim not in (1, 2):
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {ndim}")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}')."
        )
    if input.array.dtype.kind not in "iu":
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got {input.type()} instead (while checking arguments for "
            "embedding_bag)"
        )
    if weight.array.dtype.kind in "biuc":
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: "
            f"Half, BFloat16, Float, Double; but got {scalar_name(weight.array.dtype)} instead "
            "(while checking arguments for embedding_bag)"
        )


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or largest elements of bags of rows of `weight`.

    Each row of a matrix `input` is a bag; in a vector they begin at `offsets`.
    """
    _check_bags(
        input, weight, offsets, mode, scale_grad_by_freq, sparse, per_sample_weights
    )
    rows = weight.array.shape[0]
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, "
                f"but got {padding_idx}"
            )
        padding_idx %= rows
    indices = input.reshape(-1)
    count = indices.array.shape[0]
    if offsets is None:
        bags, length = input.array.shape
        starts = arange(bags, device=input.device) * length
    else:
        bags = offsets.array.shape[0] - include_last_offset
        starts = offsets[:bags].long()
    bag = bag_numbers.call((indices, starts, rows))
    if max_norm is not None:
        _shorten_rows(weight, indices, max_norm, norm_type)
    skipped = -1 if padding_idx is None else padding_idx
    found = embedding_operator.call((weight, indices, skipped, scale_grad_by_freq, sparse))
    used = None if padding_idx is None else (indices != padding_idx).unsqueeze(-1)
    if mode == "max":
        return _largest(found, bag, bags, used)
    if per_sample_weights is not None:
        found = found * per_sample_weights.reshape(-1, 1)
    if used is not None:
        found = where(used, found, 0)
    total = found.new_zeros((bags, weight.array.shape[1])).index_add(0, bag, found)
    if mode == "sum":
        return total
    ones = found.new_ones((count, 1)) if used is None else used.to(found.dtype)
    sizes = ones.new_zeros((bags, 1)).index_add(0, bag, ones)
    return total / sizes.clamp(min=1)


def _first_largest(
    values: Tensor, bag: Tensor, bags: int, used: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The place of the first largest element of each bag, and which bags have none."""
    count, width = values.array.shape
    if used is not None:
        values = where(used, values, -math.inf)
    index = bag.unsqueeze(-1).expand(count, width)
    lowest = values.new_full((bags, width), -math.inf)
    most = lowest.scatter_reduce(0, index, values, "amax")
    numbers = arange(count, device=values.device).unsqueeze(-1).expand(count, width)
    numbers = where(values == most.gather(0, index), numbers, count)
    first = numbers.new_full((bags, width), count).scatter_reduce(0, index, numbers, "amin")
    empty = first == count
    return first, empty if used is None else empty | (most == -math.inf)


def _largest(found: Tensor, bag: Tensor, bags: int, used: Tensor | None) -> Tensor:
    """The largest elements of bags, of equal ones the first; zeros for bags without any."""
    count, width = found.array.shape
    if not count:
        return found.new_zeros((bags, width))
    first, empty = _first_largest(found.detach(), bag, bags, used)
    return where(empty, 0, found.gather(0, where(empty, 0, first)))


def bag_contents(
    indices: Tensor,
    weight: Tensor,
    offsets: Tensor,
    mode: str,
    include_last_offset: bool,
    padding_idx: int | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The bag of each index, the sizes of bags, and for `max` the row of each element.

    Without padding, a sum tells no bags, and sums and means no rows, as in PyTorch.
    """
    bags = offsets.array.shape[0] - include_last_offset
    bag = bag_numbers.call((indices, offsets[:bags].long(), weight.array.shape[0]))
    used = indices.new_ones(indices.array.shape)
    if padding_idx is not None:
        used = (indices != padding_idx % weight.array.shape[0]).to(indices.dtype)
    sizes = indices.new_zeros((bags,)).index_add(0, bag, used)
    if mode != "max":
        return bag, sizes, indices.new_zeros((bags,))
    count, width = indices.array.shape[0], weight.array.shape[1]
    numbers = _first_largest(weight.detach()[indices], bag, bags, used.bool().unsqueeze(-1))[0]
    rows = indices.unsqueeze(-1).expand(count, width).gather(0, numbers.clamp(max=count - 1))
    return bag, sizes, rows
