"""Rules of convolutions: the batch is folded into images, channels or groups.

Images that alone are batched are more images. A weight that alone is batched makes more channels
in each group. Where both are batched, each example is a group of its own.
"""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from .moving import at_front, batch_size, moved, reshaped
from .rules import broadcast


def _merged(x: Tensor, dim: int, into: int) -> Tensor:
    """`x` with its batch dimension in front of dimension `into`, counted without it, as one."""
    x = moved(x, dim, into)
    shape = x.array.shape
    return reshaped(x, (*shape[:into], shape[into] * shape[into + 1], *shape[into + 2 :]))


def _merged_in_groups(x: Tensor, dim: int, into: int, groups: int) -> Tensor:
    """As `_merged`, where the dimension counts groups first and the batch follows them."""
    x = at_front(x, dim)
    size, *shape = x.array.shape
    x = reshaped(x, (size, *shape[:into], groups, shape[into] // groups, *shape[into + 1 :]))
    x = moved(x, 0, into + 1)
    return reshaped(x, (*shape[:into], size * shape[into], *shape[into + 1 :]))


def _parted(out: Tensor, place: int, size: int) -> Tensor:
    """A dimension at `place` as two, of which the first is the batch."""
    shape = out.array.shape
    return reshaped(out, (*shape[:place], size, shape[place] // size, *shape[place + 1 :]))


def _parted_in_groups(out: Tensor, place: int, size: int, groups: int) -> tuple[Tensor, int]:
    """As `_parted`, for a dimension that counts groups first; the batch comes to the front."""
    shape = out.array.shape
    each = shape[place] // (size * groups)
    out = reshaped(out, (*shape[:place], groups, size, each, *shape[place + 1 :]))
    out = moved(out, place + 1, 0)
    return reshaped(out, (size, *shape[:place], groups * each, *shape[place + 1 :])), 0


def convolution(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """_convolution(input, weight, bias, *options, transposed, output_padding, groups)."""
    x, weight, bias, *options, groups = args
    transposed = options[3]
    size = batch_size(args, dims)
    own_bias = bias if dims[2] is None and dims[1] is None else None
    if dims[0] is dims[1] is None:
        out, dim = operator.call((x, weight, None, *options, groups)), None
    elif dims[1] is None:
        count = at_front(x, dims[0]).array.shape[1]
        found = operator.call((_merged(x, dims[0], 0), weight, own_bias, *options, groups))
        out, dim = reshaped(found, (size, count, *found.array.shape[1:])), 0
    elif dims[0] is None:
        if transposed:
            weight = _merged(weight, dims[1], 1)
        else:
            weight = _merged_in_groups(weight, dims[1], 0, groups)
        out, dim = _parted_in_groups(
            operator.call((x, weight, None, *options, groups)), 1, size, groups
        )
    else:
        x, weight = _merged(x, dims[0], 1), _merged(weight, dims[1], 0)
        out, dim = _parted(operator.call((x, weight, None, *options, groups * size)), 1, size), 1
    if bias is None or own_bias is not None:
        return out, dim
    bias = at_front(bias, dims[2])
    ones = (1,) * len(options[0])
    return broadcast(
        "add", (out, reshaped(bias, (*bias.array.shape, *ones))), (dim, dims[2] and 0)
    )


def weight_gradient(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """_convolution_weight(input, grad, *options, groups)."""
    x, g, *options, groups = args
    size = batch_size(args, dims)
    if dims[1] is None:
        x = _merged_in_groups(x, dims[0], 1, groups)
        return _parted(operator.call((x, g, *options, groups)), 1, size), 1
    if dims[0] is None:
        g = _merged_in_groups(g, dims[1], 1, groups)
        return _parted_in_groups(operator.call((x, g, *options, groups)), 0, size, groups)
    x, g = _merged(x, dims[0], 1), _merged(g, dims[1], 1)
    return _parted(operator.call((x, g, *options, groups * size)), 0, size), 0
