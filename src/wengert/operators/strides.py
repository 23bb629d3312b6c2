"""Views by strides: as_strided and unfold, and the operators that undo them."""

from __future__ import annotations

from typing import Any

from ..backends import meta
from ..backends.backend import backend_of
from ..backends.geometry import (
    at,
    may_overlap,
    memory_size,
    offset_of,
    owner_of,
    seen_from,
    span,
    strided,
    wrap_dim,
)
from ..core.errors import shape_text
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..tape.views import strided_steps
from ..transforms.batching import views as batched
from . import shapes
from .declare import linear
from .pointwise import zeros_like

__all__ = ["as_strided", "unfold"]


def _as_strided(
    xp: Any,
    x: Any,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    layout: tuple[int, ...],
) -> Any:
    item = x.dtype.itemsize
    in_bytes = tuple([s * item for s in layout])
    if x.strides != in_bytes and not _equivalent(x.shape, x.strides, in_bytes):
        x = laid_out(xp, x, layout)
    _check_bounds(x, size, stride, offset)
    return strided(x, size, tuple([s * item for s in stride]), offset * item)


def _equivalent(shape: tuple, one: tuple, other: tuple) -> bool:
    return 0 in shape or all(n == 1 or a == b for n, a, b in zip(shape, one, other, strict=True))


def laid_out(xp: Any, x: Any, layout: tuple[int, ...]) -> Any:
    """A copy of `x` with the given strides: a tangent of a tensor that has them."""
    in_bytes = tuple([s * x.dtype.itemsize for s in layout])
    if backend_of(x).shape_only:
        return meta.of_strides(x.shape, in_bytes, x.dtype)
    memory = xp.zeros(max(span(x.shape, layout), 1), x.dtype)
    copy = strided(memory, x.shape, in_bytes)
    copy[...] = x
    return copy


def _check_bounds(x: Any, size: tuple, stride: tuple, offset: int) -> None:
    owner = owner_of(x)
    start = offset + offset_of(x)
    needed = span(size, stride)
    if type(x) is not type(owner) or not needed:  # a meta array has no memory to leave
        return
    item = x.dtype.itemsize
    in_bytes = memory_size(owner)
    if start < 0 or (start + needed) * item > in_bytes:
        raise RuntimeError(
            f"setStorage: sizes {shape_text(size)}, strides {shape_text(stride)}, storage offset "
            f"{start}, and itemsize {item} requiring a storage size of {(start + needed) * item} "
            f"are out of bounds for storage of size {in_bytes}"
        )


def _as_strided_backward(
    g: Tensor,
    shape: tuple[int, ...],
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    layout: tuple[int, ...],
) -> Tensor:
    start = min(offset, 0)
    inner = restride.call((g, size, stride, offset - start, shape, layout, -start))
    if not may_overlap(shape, layout):
        return inner
    # Elements of the input that share memory share its gradient too.
    ones = zeros_like(inner) + 1
    count = restride.call((ones, shape, layout, 0, shape, layout, 0))
    return inner / count


as_strided_relative = linear(
    "_as_strided(Tensor(a) self, int[] size, int[] stride, int offset, int[] layout) -> Tensor(a)",
    _as_strided,
    lambda g, self_shape, size, stride, offset, layout: _as_strided_backward(
        g, self_shape, size, stride, offset, layout
    ),
    view=True,
    batch=batched.as_strided,
    overlaps=True,
    doc="The memory of a tensor that has the strides `layout`, seen with other strides and from "
    "`offset` elements after its first one.",
)


def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """The memory of a tensor with any size and strides, counted in elements."""
    out: Tensor = as_strided_relative.call(
        (input, *seen_from(input.array, size, stride, storage_offset))
    )
    meta = out.view_meta
    if (
        meta is not None and meta.steps[0] is not None and meta.base.array.dtype == out.array.dtype
    ):  # it may show elements of the base that the view between does not
        meta.steps = strided_steps(out, meta.base)
    return out


def _positions(xp: Any, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Any:
    """The place in memory of every index."""
    positions = xp.asarray(offset)
    for n, s in zip(size, stride, strict=True):
        positions = positions[..., None] + xp.arange(n) * s
    return positions


def _restride(
    xp: Any,
    x: Any,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    new_size: tuple[int, ...],
    new_stride: tuple[int, ...],
    new_offset: int,
) -> Any:
    memory = xp.zeros(
        max(offset + span(size, stride), new_offset + span(new_size, new_stride)), x.dtype
    )
    places = _positions(xp, size, stride, offset)
    if may_overlap(size, stride):
        xp.add.at(memory, places, x)
    else:
        memory[places] = x
    return memory[_positions(xp, new_size, new_stride, new_offset)]


restride: Operator = linear(
    "_restride(Tensor self, int[] size, int[] stride, int offset, int[] new_size, "
    "int[] new_stride, int new_offset) -> Tensor",
    _restride,
    lambda g, size, stride, offset, new_size, new_stride, new_offset: restride.call(
        (g, new_size, new_stride, new_offset, size, stride, offset)
    ),
    widens=True,
    meta=lambda x, *args: meta.empty(args[3], x.dtype),
    batch=batched.restride,
    doc="A tensor added into zeroed memory by one set of strides and read from it by another.",
)


def _unfold(xp: Any, x: Any, dimension: int, size: int, step: int) -> Any:
    dim = wrap_dim(dimension, x.ndim)
    length = x.shape[dim] if x.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(
            f"maximum size for tensor at dimension {dim} is {length} but size is {size}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not x.ndim:
        return strided(x, (size,), (x.dtype.itemsize,))
    stride = x.strides[dim]
    shape = (*x.shape[:dim], (length - size) // step + 1, *x.shape[dim + 1 :], size)
    return strided(x, shape, (*x.strides[:dim], stride * step, *x.strides[dim + 1 :], stride))


def _add_windows(xp: Any, g: Any, input_sizes: tuple, dim: int, size: int, step: int) -> Any:
    out = xp.zeros(input_sizes, g.dtype)
    if not out.ndim:
        return g.sum().astype(g.dtype)
    dim = wrap_dim(dim, out.ndim)
    windows = g.shape[dim]
    for i in range(size):
        out[at(dim, slice(i, i + (windows - 1) * step + 1, step))] += g[..., i]
    return out


unfold = linear(
    "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
    _unfold,
    lambda g, self_shape, dimension, size, step: add_windows.call(
        (g, self_shape, dimension, size, step)
    ),
    view=True,
    batch=batched.unfold,
    overlaps=True,
    doc="All windows of `size` indices of a dimension, `step` apart, as a last dimension.",
    public="method",
)
add_windows: Operator = linear(
    "unfold_backward(Tensor grad_in, int[] input_sizes, int dim, int size, int step) -> Tensor",
    _add_windows,
    lambda g, dim, size, step: unfold.call((g, dim, size, step)),
    widens=True,
    meta=shapes.sized,
    batch=batched.unfold_backward,
    doc="A gradient of windows added up where the windows overlap.",
)
