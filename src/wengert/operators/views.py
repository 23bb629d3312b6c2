"""Views and other changes of shape."""

from __future__ import annotations

from typing import Any

from ..backends.numpy import view_shape
from ..tensor import Tensor
from .declare import linear


def _inferred(shape: tuple, size: int) -> tuple:
    known = 1
    for n in shape:
        known *= 1 if n == -1 else n
    if -1 in shape:
        if shape.count(-1) > 1:
            raise RuntimeError("only one dimension can be inferred")
        if known == 0 or size % known:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")
        return tuple(size // known if n == -1 else n for n in shape)
    if known != size:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")
    return tuple(shape)


def _view(xp: Any, x: Any, size: tuple) -> Any:
    out = view_shape(x, _inferred(size, x.size))
    if out is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    return out


view_ = linear(
    "view(Tensor(a) self, int[] size) -> Tensor(a)",
    _view,
    lambda g, self_shape: reshape(g, self_shape),
    view=True,
    doc="The same memory in another shape.",
)


def reshape(input: Tensor, *shape: Any) -> Tensor:
    """The same elements in another shape, as a view where the memory allows it."""
    size = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    array = input.array
    size = _inferred(size, array.size)
    if view_shape(array, size) is None:
        return view_.call((input.clone().contiguous(), size))
    return view_.call((input, size))


expand = linear(
    "expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)",
    lambda xp, x, size, implicit: _expand(xp, x, size),
    lambda g, self_shape: g.sum_to_size(self_shape),
    view=True,
    doc="A view in which dimensions of size one are repeated without copying.",
)


def _expand(xp: Any, x: Any, size: tuple) -> Any:
    extra = len(size) - x.ndim
    if extra < 0:
        raise RuntimeError(
            f"expand(): the number of sizes provided ({len(size)}) must be greater or equal to the "
            f"number of dimensions in the tensor ({x.ndim})"
        )
    target = tuple(x.shape[i - extra] if n == -1 and i >= extra else n for i, n in enumerate(size))
    for i, n in enumerate(x.shape):
        if n not in (1, target[i + extra]):
            raise RuntimeError(
                f"The expanded size of the tensor ({target[i + extra]}) must match the existing "
                f"size ({n}) at non-singleton dimension {i + extra}. Target sizes: "
                f"{list(target)}. Tensor sizes: {list(x.shape)}"
            )
    return _writable(xp, x, target)


def _writable(xp: Any, x: Any, shape: tuple) -> Any:
    """broadcast_to without its read-only flag, as strides."""
    extra = len(shape) - x.ndim
    strides = (0,) * extra + tuple(
        0 if n == 1 and shape[i + extra] != 1 else s
        for i, (n, s) in enumerate(zip(x.shape, x.strides, strict=True))
    )
    return xp.lib.stride_tricks.as_strided(x, shape, strides)
