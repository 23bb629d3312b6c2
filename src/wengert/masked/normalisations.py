"""Running sums and normalisations of the elements that a mask lets take part."""

from __future__ import annotations

from ..core import dtypes
from ..core.tensor import Tensor
from .reductions import converted, largest, norm, selected, smallest


def cumsum(
    input: Tensor,
    dim: int,
    *,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Sums up to each element along `dim` of those that take part."""
    kind = input.dtype if dtype is None else dtype
    return selected(converted(input, dtype), mask, 0).cumsum(dim, dtype=kind)


def cumprod(
    input: Tensor,
    dim: int,
    *,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Products up to each element along `dim` of those that take part."""
    kind = input.dtype if dtype is None else dtype
    return selected(converted(input, dtype), mask, 1).cumprod(dim, dtype=kind)


def softmax(
    input: Tensor,
    dim: int,
    *,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Exponentials scaled to sum one along `dim`; zero for elements that take no part."""
    input = converted(input, dtype)
    return selected(input, mask, smallest("softmax", input.dtype)).softmax(dim)


def log_softmax(
    input: Tensor,
    dim: int,
    *,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The logarithms of softmax()."""
    input = converted(input, dtype)
    return selected(input, mask, smallest("log_softmax", input.dtype)).log_softmax(dim)


def softmin(
    input: Tensor,
    dim: int,
    *,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Exponentials of the negated elements scaled to sum one along `dim`."""
    input = converted(input, dtype)
    return (-selected(input, mask, largest("softmin", input.dtype))).softmax(dim)


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Elements divided by their norm along `dim`, or by `eps` if that is larger."""
    input = converted(input, dtype)
    size = norm(input, ord, dim, keepdim=True, mask=mask)
    return selected(input, mask, 0) / size.clamp(min=eps)
