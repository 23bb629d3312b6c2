"""Functions that programs still call by names for which there are better ones."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from . import copying
from .declare import composite
from .linalg_kernels import into
from .linalg_norms import matrix_norm
from .norms import norm, vector_norm

__all__ = [
    "detach", "fill", "frobenius_norm", "get_device", "is_same_size", "norm_except_dim",
    "nuclear_norm",
]  # fmt: skip

_function = composite(public="function")


@_function
def detach(input: Tensor) -> Tensor:
    """The tensor without its history, sharing its memory: ``input.detach()``."""
    return input.detach()


@_function
def fill(input: Tensor, value: Any) -> Tensor:
    """One value in the shape and dtype of `input`: ``full_like`` with a gradient for `value`."""
    return copying.fill.call((input, value))


@_function
def get_device(input: Tensor) -> int:
    """The number of the tensor's device, -1 for the CPU."""
    return input.get_device()


@_function
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape."""
    return input.is_same_size(other)


@_function
def frobenius_norm(
    input: Tensor, dim: Any, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The root of the sum of squares over one or two dimensions: ``linalg.vector_norm``."""
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) > 2:
        raise RuntimeError(
            f"Expected at most 2 dimensions, but got {len(dims)} dimensions instead."
        )
    return into("frobenius_norm", vector_norm(input, 2.0, dims or None, keepdim), out)


@_function
def nuclear_norm(
    input: Tensor, dim: Any = (-2, -1), keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The sum of the singular values of matrices: ``linalg.matrix_norm(input, "nuc")``."""
    if isinstance(dim, bool):  # PyTorch's other form, without dimensions
        dim, keepdim = (-2, -1), dim
    return into("nuclear_norm", matrix_norm(input, "nuc", dim, keepdim), out)


@_function
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norms over all dimensions but one, which stay as dimensions of length one; -1: all."""
    if dim == -1:
        return norm(v, pow)
    if dim not in (0, v.ndim - 1):
        order = [dim, *[d for d in range(v.ndim) if d != dim]]
        return norm_except_dim(v.permute(order), pow, 0).movedim(0, dim)
    others = [d for d in range(v.ndim) if d != dim]
    return norm(v, pow, others, True) if others else v.abs()
