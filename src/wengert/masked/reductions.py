"""Sums, extremes, means and norms of the elements that a mask lets take part."""

from __future__ import annotations

from typing import Any

from ..core import dtypes
from ..core.tensor import Tensor
from ..operators import pointwise
from ..operators.norms import vector_norm

Dims = int | tuple[int, ...] | list[int] | None


def selected(input: Tensor, mask: Tensor | None, neutral: Any) -> Tensor:
    """The input with `neutral` where the mask says that an element takes no part."""
    if mask is None:
        return input
    fitting = fitting_mask(input, mask)
    return pointwise.where(fitting, input, input.new_full((), neutral))


def fitting_mask(input: Tensor, mask: Tensor) -> Tensor:
    """The mask as truth values in the shape of the input."""
    if mask.dim() > input.dim():
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the "
            f"input): mask of shape {tuple(mask.shape)}, input of shape {tuple(input.shape)}"
        )
    return mask.to(dtypes.bool).expand(input.shape)


def converted(input: Tensor, dtype: dtypes.dtype | None) -> Tensor:
    """The input in the type that was asked for."""
    return input if dtype is None or input.dtype is dtype else input.to(dtype)


def dims_of(input: Tensor, dim: Dims) -> tuple[int, ...]:
    """The dimensions to reduce: none and an empty sequence mean all."""
    if dim is None or dim == () or dim == []:
        return tuple(range(input.dim()))
    return (dim,) if isinstance(dim, int) else tuple(dim)


def smallest(name: str, dtype: dtypes.dtype) -> Any:
    """What no element is less than."""
    return _extreme(name, dtype, -1)


def largest(name: str, dtype: dtypes.dtype) -> Any:
    """What no element is greater than."""
    return _extreme(name, dtype, 1)


def _extreme(name: str, dtype: dtypes.dtype, sign: int) -> Any:
    if dtype.is_floating_point:
        return sign * float("inf")
    if dtype is dtypes.bool or dtype.is_complex:
        raise NotImplementedError(f"identity of {name} on {dtype} input")
    facts = dtypes.iinfo(dtype)
    return facts.max if sign > 0 else facts.min


def sum(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The sum of the elements that take part."""
    return selected(converted(input, dtype), mask, 0).sum(
        dims_of(input, dim), keepdim=bool(keepdim), dtype=dtype
    )


def prod(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product of the elements that take part."""
    found = selected(converted(input, dtype), mask, 1)
    dims = sorted([d % max(input.dim(), 1) for d in dims_of(input, dim)], reverse=True)
    if not dims:
        return found.prod(dtype=dtype)
    for each in dims:
        found = found.prod(each, keepdim=bool(keepdim), dtype=dtype)
    return found


def amax(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The largest of the elements that take part."""
    input = converted(input, dtype)
    found = selected(input, mask, smallest("amax", input.dtype))
    return found.amax(dims_of(input, dim), keepdim=bool(keepdim))


def amin(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The smallest of the elements that take part."""
    input = converted(input, dtype)
    found = selected(input, mask, largest("amin", input.dtype))
    return found.amin(dims_of(input, dim), keepdim=bool(keepdim))


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The index of the largest of the elements that take part, in `dtype` or that of the input."""
    kind = input.dtype if dtype is None else dtype
    found = selected(input, mask, smallest("argmax", input.dtype))
    return found.argmax(dim, bool(keepdim)).to(kind)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The index of the smallest of the elements that take part, in `dtype` or the input's."""
    kind = input.dtype if dtype is None else dtype
    found = selected(input, mask, largest("argmin", input.dtype))
    return found.argmin(dim, bool(keepdim)).to(kind)


def _counted(input: Tensor, mask: Tensor | None, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """How many elements take part."""
    ones = input.new_ones(input.shape, dtype=dtypes.int64)
    return selected(ones, mask, 0).sum(dims, keepdim=keepdim)


def _floating(name: str, dtype: dtypes.dtype) -> None:
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"{name}(): Could not infer output dtype. Input dtype must be either a floating point "
            f"or complex dtype. Got: {dtype}"
        )


def mean(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean of the elements that take part; NaN where none does."""
    input = converted(input, dtype)
    _floating("mean", input.dtype)
    dims = dims_of(input, dim)
    total = selected(input, mask, 0).sum(dims, keepdim=bool(keepdim))
    return total / _counted(input, mask, dims, bool(keepdim))


def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance of the elements that take part; NaN where too few do."""
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given")
    lost = (1 if correction is None else correction) if unbiased is None else int(unbiased)
    input = converted(input, dtype)
    if not (input.is_floating_point() or input.is_complex()):
        input = input.to(dtypes.get_default_dtype())
    dims = dims_of(input, dim)
    count = _counted(input, mask, dims, True)
    centre = selected(input, mask, 0).sum(dims, keepdim=True) / count
    apart = selected(input - centre, mask, 0)
    squares = apart * apart.conj() if input.is_complex() else apart * apart
    total = squares.sum(dims, keepdim=bool(keepdim))
    if not keepdim:
        count = count.reshape(total.shape)
    return total / (count - lost).clamp(min=0)


def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation of the elements that take part; NaN where too few do."""
    return var(
        input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask
    ).sqrt()


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The lower median of the elements that take part; NaN where none does."""
    if not isinstance(dim, int):
        raise TypeError(f"masked.median(): dim must be an int, got {dim!r}")
    input = converted(input, dtype)
    if mask is None:
        return input.median(dim, keepdim)[0]
    if input.is_floating_point():
        return selected(input, mask, float("nan")).nanmedian(dim, keepdim)[0]
    if not bool(fitting_mask(input, mask).any(dim).all()):
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating point"
        )
    wide = selected(input.to(dtypes.float64), mask, float("nan"))
    return wide.nanmedian(dim, keepdim)[0].to(input.dtype)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The norm of order `ord` of the elements that take part."""
    order = 2.0 if ord is None else ord
    neutral = float("inf") if order == -float("inf") else 0
    found = selected(input, mask, neutral)
    return vector_norm(found, order, dims_of(input, dim), bool(keepdim), dtype=dtype)


def logsumexp(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The logarithm of the sum of the exponentials of the elements that take part."""
    input = converted(input, dtype)
    found = selected(input, mask, smallest("logsumexp", input.dtype))
    return found.logsumexp(dims_of(input, dim), bool(keepdim))


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: dtypes.dtype | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """The logarithm of the sum of two exponentials, of which masks can leave out one or both."""
    parts = [converted(x, dtype) for x in (input, other)]
    one, two = (
        selected(x, mask, smallest("logaddexp", x.dtype))
        for x, mask in zip(parts, (input_mask, other_mask), strict=True)
    )
    return one.logaddexp(two)
