"""Making a fresh tensor a leaf that requires grad."""

from __future__ import annotations

from ..core import dtypes
from ..core.tensor import Tensor


def require_grad(fresh: Tensor, wanted: bool = True) -> Tensor:
    """Make a fresh tensor a leaf that requires grad if `wanted`; its type must allow that."""
    if wanted is False:
        return fresh
    if wanted is not True:
        raise TypeError(f"argument 'requires_grad' must be bool, not {type(wanted).__name__}")
    if not dtypes.is_differentiable(fresh.array.dtype):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    fresh.requires_grad = True
    return fresh
