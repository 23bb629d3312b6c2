"""Methods of Tensor that few programs use: Python functions of elements, orders, diagonals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends.geometry import span
from ..core.arrays import is_level
from ..core.errors import shape_text
from ..core.loading import load
from ..core.registry import operator_named
from ..core.tensor import Tensor
from ..creation.factories import empty_strided
from ..transforms.memory import check_readable


def _elements(name: str, self: Tensor) -> Any:
    """The array of a tensor that a Python function may write into."""
    if self.requires():
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() "
            "instead."
        )
    check_readable(self)
    if self.device.type != "cpu":
        raise TypeError(f"{name} is only implemented on CPU tensors")
    return self.array


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by what a Python function makes of it, slowly."""
    array = _elements("apply_", self)
    for index in np.ndindex(array.shape):
        array[index] = callable(array[index].item())
    self.bump("apply_")
    return self


def _mapped(name: str, self: Tensor, others: tuple, callable: Callable[..., Any]) -> Tensor:
    array = _elements(name, self)
    sources = [_elements(name, other.detach().expand(self.shape)) for other in others]
    for index in np.ndindex(array.shape):
        array[index] = callable(array[index].item(), *[s[index].item() for s in sources])
    self.bump(name)
    return self


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by a Python function of it and of that of another tensor."""
    return _mapped("map_", self, (tensor,), callable)


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace each element by a Python function of it and of those of two other tensors."""
    return _mapped("map2_", self, (x, y), callable)


def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the one with the largest steps in memory to that with the smallest."""
    strides = self.stride()
    if ambiguity_check:
        steps = [s for s, n in zip(strides, self.shape, strict=True) if n != 1]
        if len(set(steps)) != len(strides):
            raise RuntimeError(
                "The tensor does not have unique dim order, or cannot map to exact one of the "
                f"given memory formats: sizes {shape_text(self.shape)}, strides "
                + shape_text(strides)
            )
    return tuple(sorted(range(len(strides)), key=lambda d: -strides[d]))


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Set the elements whose indices are all the same; of a tall matrix repeatedly if `wrap`."""
    rank = self.dim()
    if rank < 2:
        raise RuntimeError("dimensions must larger than 1")
    if rank > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    count, step = min(self.shape), sum(self.stride())
    self.as_strided((count,), (step,), self.storage_offset()).fill_(fill_value)
    if wrap and rank == 2:
        rows, columns = self.shape
        for first in range(columns + 1, rows, columns + 1):
            rest = min(columns, rows - first)
            self.narrow(0, first, rest).fill_diagonal_(fill_value)
    return self


def new_empty_strided(
    self: Tensor,
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """An uninitialised tensor with the given strides, of the type and on the device of this one."""
    made: Tensor = empty_strided(
        size, stride, dtype=self.dtype if dtype is None else dtype, layout=layout,
        device=self.device if device is None else device, requires_grad=requires_grad,
        pin_memory=pin_memory,
    )  # fmt: skip
    if not is_level(self):
        return made
    memory = self.new_empty((span(made.shape, made.stride()),), dtype=made.dtype)
    made = memory.as_strided_(made.shape, made.stride())
    return made.requires_grad_() if requires_grad else made


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Refused: page-locked memory serves copies to an accelerator."""
    raise RuntimeError(
        "Cannot access accelerator device when none is available: pin_memory() locks memory for "
        "copies to one, and tensors here are in ordinary memory"
    )


def prelu(self: Tensor, weight: Tensor) -> Tensor:
    """The tensor, with elements below zero multiplied by `weight`, one for each channel."""
    return load("nn.functional").prelu(self, weight)


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What becomes of this tensor when `other` is loaded for it: itself with those values.

    With `assign` it is `other`, with the gradient flag of this one.
    """
    if assign:
        return other.detach().requires_grad_(self.requires_grad)
    return self.detach().copy_(other)


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool = True) -> Tensor:
    """The tensor itself, since all tensors are dense; cast to `dtype` if that is given."""
    return self if dtype is None else self.to(dtype)


def where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """The tensor's elements where `condition` holds, else those of `other`."""
    return operator_named("where").call((condition, self, other))
