"""Where the batch dimension is, and how it comes to where a rule wants it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backends.placement import of_array, transfer
from ...core.dtypes import from_numpy, result_dtype
from ...core.errors import dimension_error
from ...core.registry import apply
from ...core.tensor import Tensor, wrap

# The batch dimension -----------------------------------------------------------------------------


def batch_size(args: tuple, dims: tuple) -> int:
    """The length of the batch dimension."""
    for value, dim in zip(args, dims, strict=True):
        if type(dim) is list:
            for item, d in zip(value, dim, strict=True):
                if d is not None:
                    return item.array.shape[d]
        elif dim is not None:
            return value.array.shape[dim]
    raise ValueError("none of the arguments has a batch dimension")


def rank_of(x: Tensor, dim: int | None) -> int:
    """The number of dimensions that the operator sees."""
    return x.array.ndim - (dim is not None)


def shape_of(x: Tensor, dim: int | None) -> tuple[int, ...]:
    """The shape that the operator sees."""
    shape = x.array.shape
    return shape if dim is None else shape[:dim] + shape[dim + 1 :]


def at_front(x: Tensor, dim: int | None) -> Tensor:
    """`x` with its batch dimension first; `x` itself if it has none."""
    if not dim:
        return x
    order = (dim, *[i for i in range(x.array.ndim) if i != dim])
    return apply("permute", x, order)


def with_batch(x: Tensor, dim: int | None, size: int) -> Tensor:
    """`x` with a batch dimension in front, expanded from nothing if it has none."""
    if dim is not None:
        return at_front(x, dim)
    return apply("expand", x, (size, *x.array.shape), False)


def all_batched(args: tuple, dims: tuple) -> tuple:
    """Every tensor argument with the batch dimension in front, expanded where it had none."""
    size = batch_size(args, dims)
    return tuple([_batched_value(v, d, size) for v, d in zip(args, dims, strict=True)])


def _batched_value(value: Any, dim: Any, size: int) -> Any:
    if isinstance(value, Tensor):
        return with_batch(value, dim, size)
    if type(value) is list:
        each = dim if type(dim) is list else [dim] * len(value)
        return [_batched_value(v, d, size) for v, d in zip(value, each, strict=True)]
    return value


def moved(x: Tensor, source: int, target: int) -> Tensor:
    """`x` with one dimension in another place."""
    if source == target:
        return x
    order = [i for i in range(x.array.ndim) if i != source]
    order.insert(target, source)
    return apply("permute", x, tuple(order))


# Dimensions as the operator counts them ----------------------------------------------------------


def normal_dim(dim: int, rank: int) -> int:
    """`dim` counted from the front, among `rank` dimensions that the operator sees."""
    if not -max(rank, 1) <= dim < max(rank, 1):
        raise dimension_error(dim, rank)
    return dim % rank if rank else 0


def padded(x: Tensor, dim: int | None, rank: int) -> Tensor:
    """`x` with its batch dimension, if any, in front and ones after it up to `rank` dimensions."""
    if dim is None:
        missing = rank - x.array.ndim
        return reshaped(x, (1,) * missing + x.array.shape) if missing > 0 else x
    x = at_front(x, dim)
    missing = rank + 1 - x.array.ndim
    if missing <= 0:
        return x
    shape = x.array.shape
    return apply("view", x, (shape[0], *(1,) * missing, *shape[1:]))


def reshaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """`x` in another shape, as a view where the memory allows it."""
    return x if x.array.shape == shape else x.reshape(shape)


def flattened(x: Tensor, dim: int | None) -> Tensor:
    """A matrix with one row per example; a vector if there is no batch dimension."""
    if dim is None:
        return reshaped(x, (x.array.size,))
    x = at_front(x, dim)
    count = 1
    for n in x.array.shape[1:]:
        count *= n
    return reshaped(x, (x.array.shape[0], count))


def iota(size: int, like: Tensor, ones: int = 0) -> Tensor:
    """The number of each example, followed by `ones` dimensions of size one."""
    numbers = np.arange(size).reshape((size,) + (1,) * ones)
    return wrap(transfer(numbers, of_array(like.array)))


# Types -------------------------------------------------------------------------------------------


def cast(x: Tensor, numpy_dtype: Any) -> Tensor:
    """`x` in another type."""
    if x.array.dtype == numpy_dtype:
        return x
    return apply("_to_copy", x, from_numpy(numpy_dtype))


def sample_of(x: Any, dim: int | None) -> Any:
    """An array of the rank and type that the operator sees, with one element; numbers stay."""
    if not isinstance(x, Tensor):
        return x
    return np.zeros((1,) * rank_of(x, dim), x.array.dtype)


def common_dtype(values: Any, dims: Any) -> Any:
    """The type to which tensors are promoted, in which those without dimensions count less."""
    return result_dtype([sample_of(x, d) for x, d in zip(values, dims, strict=True)])


def unbatched_target(name: str) -> RuntimeError:
    """The refusal of writing batched values into a tensor that has no batch dimension."""
    return RuntimeError(
        f"vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a "
        f"Tensor `other` in extra_args that has more elements than `self`: {name}() would have to "
        "write one value per example into a tensor that all examples share. Make the tensor inside "
        "the function from a batched one (new_zeros, zeros_like, clone), or use the out-of-place "
        "form."
    )
