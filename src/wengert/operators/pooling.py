"""Pools of neighbouring elements: the largest, the mean, and the way back from the largest.

They work on the last dimensions, as many as the kernel has; all others are a batch.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

from ..backends import meta, pooling_loops
from ..backends.layout import row_major
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..transforms.batching.rules import leading
from .along import packed, scalar_name, widened, working_dtype
from .convolution import channels_innermost, channels_moved
from .declare import linear, primitive
from .scatter import added_along

__all__ = []

Sizes = tuple[int, ...]


def pooled_sizes(sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
                 ceil_mode: bool) -> Sizes:  # fmt: skip
    """The numbers of windows; a last one that begins behind the input and its border is none."""
    found = []
    for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True):
        count = (n + 2 * p - d * (k - 1) - 1 + (s - 1) * ceil_mode) // s + 1
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1
        found.append(count)
    return tuple(found)


def _extended(xp: Any, x: Any, value: Any, reach: Sizes, padding: Sizes) -> Any:
    """The array with a border before it and behind it up to `reach` in its last dimensions."""
    lead = x.ndim - len(reach)
    if not any(padding) and all(r <= n for r, n in zip(reach, x.shape[lead:], strict=True)):
        return x
    sizes = [max(r, n + p) for r, n, p in zip(reach, x.shape[lead:], padding, strict=True)]
    out = xp.full((*x.shape[:lead], *sizes), value, x.dtype)
    inside = [slice(p, p + n) for p, n in zip(padding, x.shape[lead:], strict=True)]
    out[(..., *inside)] = x
    return out


def _reach(sizes: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes) -> Sizes:
    """Where the last of so many windows ends."""
    return tuple(
        [
            (n - 1) * s + d * (k - 1) + 1
            for n, k, s, d in zip(sizes, kernel, stride, dilation, strict=True)
        ]
    )


def _places(place: Sizes, sizes: Sizes, stride: Sizes, dilation: Sizes) -> tuple:
    """The index of one element of every window."""
    return (
        ...,
        *[
            slice(k * d, k * d + (n - 1) * s + 1, s)
            for k, n, s, d in zip(place, sizes, stride, dilation, strict=True)
        ],
    )


def _outer(xp: Any, vectors: list, combine: Any) -> Any:
    """A grid of what `combine` makes of one number of each vector."""
    found = vectors[0]
    for vector in vectors[1:]:
        found = combine(found[..., None], vector)
    return found


# The largest --------------------------------------------------------------------------------------


def _check_type(name: str, x: Any) -> None:
    if x.dtype.kind in "bc":
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(x.dtype)}'")


def _lowest(xp: Any, x: Any) -> Any:
    return -math.inf if x.dtype.kind not in "iu" else xp.iinfo(x.dtype).min


def _quickly_chosen(
    xp: Any, wide: Any, lowest: Any, sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes,
    dilation: Sizes,
) -> tuple | None:  # fmt: skip
    """The largest elements, and the first place in the window of one that is equal.

    None where values need care: NaN, or such that cannot be told from the border.
    """
    if math.prod(kernel) > 127:
        return None
    places = list(product(*map(range, kernel)))
    parts = [wide[_places(place, sizes, stride, dilation)] for place in places]
    out = parts[0].copy()
    for part in parts[1:]:
        xp.maximum(part, out, out=out)  # of equal ones the first, as its place says
    careful = (out == lowest).any()
    if out.dtype.kind == "f":
        careful = careful | (out != out).any()
    if careful.item():
        return None
    chosen = xp.zeros(out.shape, xp.int8)
    for code in range(len(parts) - 1, 0, -1):
        xp.copyto(chosen, code, where=parts[code] == out)
    xp.copyto(chosen, 0, where=parts[0] == out)
    return out, chosen


def _carefully_chosen(
    xp: Any, wide: Any, lowest: Any, sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes,
    dilation: Sizes,
) -> tuple:  # fmt: skip
    """As `_quickly_chosen` for all values: of NaN the last counts, and the border does not."""
    steps = row_major(kernel, 1)
    # Where all elements are as low as the border, the first one that is no border is taken.
    firsts = [
        xp.where(start < 0, -(start // d), 0) * step
        for start, d, step in zip(
            [xp.arange(n) * s - p for n, s, p in zip(sizes, stride, padding, strict=True)],
            dilation, steps, strict=True,
        )
    ]  # fmt: skip
    shape = (*wide.shape[: wide.ndim - len(kernel)], *sizes)
    chosen = xp.zeros(shape, xp.int64)
    chosen += _outer(xp, firsts, lambda a, b: a + b)
    out = xp.full(shape, lowest, wide.dtype)
    for code, place in enumerate(product(*map(range, kernel))):
        part = wide[_places(place, sizes, stride, dilation)]
        better = part > out
        if wide.dtype.kind == "f":
            better |= part != part
        xp.copyto(out, part, where=better)
        xp.copyto(chosen, code, where=better)
    return out, chosen


def _max_pool(
    xp: Any, x: Any, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
    ceil_mode: bool,
) -> tuple:  # fmt: skip
    count = len(kernel)
    _check_type(f"max_pool{count}d", x)
    goal, turned = x.dtype, channels_innermost(x) and x.ndim == count + 2
    planes = x.shape[x.ndim - count :]
    sizes = pooled_sizes(planes, kernel, stride, padding, dilation, ceil_mode)
    x = packed(widened(x))
    found = pooling_loops.largest(x, kernel, sizes, stride, padding, dilation)
    if found is None:
        found = _largest(xp, x, planes, sizes, kernel, stride, padding, dilation)
    out, indices = found
    out = out.astype(goal, copy=False)
    if turned:
        return channels_moved(xp, out), channels_moved(xp, indices)
    return out, indices


def _largest(
    xp: Any, x: Any, planes: Sizes, sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes,
    dilation: Sizes,
) -> tuple:  # fmt: skip
    """The largest elements of windows, and their places, of any arrays."""
    lowest = _lowest(xp, x)
    wide = _extended(xp, x, lowest, _reach(sizes, kernel, stride, dilation), padding)
    found = _quickly_chosen(xp, wide, lowest, sizes, kernel, stride, padding, dilation)
    if found is None:
        found = _carefully_chosen(xp, wide, lowest, sizes, kernel, stride, padding, dilation)
    out, chosen = found
    rows = row_major(planes, 1)
    offsets = _outer(
        xp, [xp.arange(k) * (d * r) for k, d, r in zip(kernel, dilation, rows, strict=True)],
        lambda a, b: a + b,
    ).reshape(-1)  # fmt: skip
    starts = _outer(
        xp, [(xp.arange(n) * s - p) * r
             for n, s, p, r in zip(sizes, stride, padding, rows, strict=True)],
        lambda a, b: a + b,
    )  # fmt: skip
    indices = xp.take(offsets, chosen) + starts
    if any(padding):  # a window of a dilated kernel may lie in the border as a whole
        indices = xp.minimum(indices, math.prod(planes) - 1)
    return out, indices


def _turned_meta(x: Any, shape: Sizes, count: int, kind: Any) -> Any:
    if not (channels_innermost(x) and x.ndim == count + 2):
        return meta.empty(shape, kind)
    order = (0, *range(2, len(shape)), 1)
    steps = row_major(tuple([shape[i] for i in order]), kind.itemsize)
    return meta.of_strides(shape, tuple([steps[order.index(i)] for i in range(len(shape))]), kind)


def _max_pool_meta(x: Any, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
                   ceil_mode: bool) -> tuple:  # fmt: skip
    count = len(kernel)
    _check_type(f"max_pool{count}d", x)
    lead = x.shape[: x.ndim - count]
    sizes = pooled_sizes(x.shape[x.ndim - count :], kernel, stride, padding, dilation, ceil_mode)
    shape = (*lead, *sizes)
    whole = meta.np.dtype("int64")
    return _turned_meta(x, shape, count, x.dtype), _turned_meta(x, shape, count, whole)


def flat_planes(t: Tensor, count: int) -> Tensor:
    """The last `count` dimensions as one."""
    return t.reshape(_flat(t.array.shape, count))


def _flat(shape: Sizes, count: int) -> Sizes:
    """A shape whose last `count` dimensions are one; NumPy cannot tell its length from nothing."""
    lead = len(shape) - count
    return (*shape[:lead], math.prod(shape[lead:]))


def _spread(xp: Any, g: Any, indices: Any, size: Sizes) -> Any:
    found = pooling_loops.spread(g, indices, size)
    if found is not None:
        return found
    lead, places = g.shape[: g.ndim - len(size)], _flat(g.shape, len(size))
    whole = (*lead, math.prod(size))
    added = added_along(xp, g.reshape(places), whole, -1, indices.reshape(places))
    return added.reshape(*lead, *size)


def _in_planes(x: Any, indices: Any, size: Sizes) -> Any:
    return meta.empty((*x.shape[: x.ndim - len(size)], *size), x.dtype)


def _picked(g: Tensor, indices: Tensor, size: Sizes) -> Tensor:
    """The elements at places in their planes."""
    flat = flat_planes(g, len(size)).gather(-1, flat_planes(indices, len(size)))
    return flat.reshape(indices.array.shape)


_max_pool_backward: Operator = linear(
    "_max_pool_backward(Tensor grad, Tensor indices, int[] size) -> Tensor",
    _spread,
    lambda g, indices, size: _picked(g, indices, size),
    widens=True,
    meta=_in_planes,
    batch=leading,
    called=True,
    name=lambda grad, indices, size: f"MaxPool{len(size)}DWithIndicesBackwardBackward0",
    doc="Zeros in planes of a size, with a gradient added at the places of `indices`.",
)
max_pool: Operator = primitive(
    "_max_pool(Tensor self, int[] kernel_size, int[] stride, int[] padding, int[] dilation, "
    "bool ceil_mode) -> (Tensor, Tensor)",
    _max_pool,
    lambda g, self_shape, kernel_size, out1: _max_pool_backward.call(
        (g[0], out1, tuple(self_shape[-len(kernel_size) :]))
    ),
    lambda tangents, kernel_size, out1: (_picked(tangents["self"], out1, kernel_size), None),
    nondifferentiable_outputs=(1,),
    widens=False,
    meta=_max_pool_meta,
    batch=leading,
    called=True,
    name=lambda self, kernel_size, *rest: f"MaxPool{len(kernel_size)}DWithIndicesBackward0",
    doc="The largest element of every window, and where in its plane it is.",
)


# The mean -----------------------------------------------------------------------------------------


def _window_counts(
    xp: Any, planes: Sizes, sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes,
    include_pad: bool, divisor: int | None, kind: Any,
) -> Any:  # fmt: skip
    """What the sum of every window is divided by."""
    if divisor is not None:
        return xp.full((1,) * len(sizes), divisor, kind)
    lengths = []
    for n, m, k, s, p in zip(planes, sizes, kernel, stride, padding, strict=True):
        start = xp.arange(m) * s - p
        end = xp.minimum(start + k, n + p)
        if not include_pad:
            start, end = xp.maximum(start, 0), xp.minimum(end, n)
        lengths.append(end - start)
    return _outer(xp, lengths, lambda a, b: a * b).astype(kind)


def _avg_pool(
    xp: Any, x: Any, kernel: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool,
    include_pad: bool, divisor: int | None,
) -> Any:  # fmt: skip
    count = len(kernel)
    _check_type(f"avg_pool{count}d", x)
    goal, turned = x.dtype, channels_innermost(x) and x.ndim == count + 2
    lead, planes = x.shape[: x.ndim - count], x.shape[x.ndim - count :]
    ones = (1,) * count
    sizes = pooled_sizes(planes, kernel, stride, padding, ones, ceil_mode)
    x = packed(widened(x))
    wide = _extended(xp, x, 0, _reach(sizes, kernel, stride, ones), padding)
    out = xp.zeros((*lead, *sizes), x.dtype)
    for place in product(*map(range, kernel)):
        out += wide[_places(place, sizes, stride, ones)]
    counts = _window_counts(
        xp, planes, sizes, kernel, stride, padding, include_pad, divisor, x.dtype
    )
    if x.dtype.kind in "iu":
        out = xp.sign(out) * (xp.abs(out) // counts)
    else:
        out /= counts
    out = out.astype(goal, copy=False)
    return channels_moved(xp, out) if turned else out


def _avg_spread(
    xp: Any, g: Any, planes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes,
    include_pad: bool, divisor: int | None,
) -> Any:  # fmt: skip
    count = len(kernel)
    goal, lead, sizes = g.dtype, g.shape[: g.ndim - count], g.shape[g.ndim - count :]
    g, ones = widened(g), (1,) * count
    part = g / _window_counts(
        xp, planes, sizes, kernel, stride, padding, include_pad, divisor,
        working_dtype(goal) if goal.kind == "f" else g.dtype,
    )  # fmt: skip
    reach = _reach(sizes, kernel, stride, ones)
    whole = [max(r, n + p) for r, n, p in zip(reach, planes, padding, strict=True)]
    out = xp.zeros((*lead, *whole), g.dtype)
    for place in product(*map(range, kernel)):
        out[_places(place, sizes, stride, ones)] += part
    inside = [slice(p, p + n) for p, n in zip(padding, planes, strict=True)]
    return xp.ascontiguousarray(out[(..., *inside)]).astype(goal, copy=False)


def _avg_pool_meta(x: Any, kernel: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool,
                   *rest: Any) -> Any:  # fmt: skip
    count = len(kernel)
    _check_type(f"avg_pool{count}d", x)
    planes = x.shape[x.ndim - count :]
    sizes = pooled_sizes(planes, kernel, stride, padding, (1,) * count, ceil_mode)
    return _turned_meta(x, (*x.shape[: x.ndim - count], *sizes), count, x.dtype)


avg_pool: Operator = linear(
    "_avg_pool(Tensor self, int[] kernel_size, int[] stride, int[] padding, bool ceil_mode, "
    "bool count_include_pad, int? divisor_override) -> Tensor",
    _avg_pool,
    lambda g, self_shape, kernel_size, stride, padding, count_include_pad, divisor_override: (
        _avg_pool_backward.call(
            (g, tuple(self_shape[-len(kernel_size) :]), kernel_size, stride, padding,
             count_include_pad, divisor_override)
        )
    ),
    meta=_avg_pool_meta,
    batch=leading,
    name=lambda self, kernel_size, *rest: f"AvgPool{len(kernel_size)}DBackward0",
    doc="The mean of every window.",
)  # fmt: skip
_avg_pool_backward: Operator = linear(
    "_avg_pool_backward(Tensor self, int[] size, int[] kernel_size, int[] stride, int[] padding, "
    "bool count_include_pad, int? divisor_override) -> Tensor",
    _avg_spread,
    lambda g, self_shape, kernel_size, stride, padding, count_include_pad, divisor_override: (
        avg_pool.call(
            (g, kernel_size, stride, padding,
             _was_ceiled(g.array.shape, self_shape, kernel_size, stride, padding),
             count_include_pad, divisor_override)
        )
    ),
    meta=lambda g, size, kernel, *rest: meta.empty((*g.shape[: g.ndim - len(kernel)], *size),
                                                   g.dtype),
    batch=leading,
    name=lambda self, size, *rest: f"AvgPool{len(size)}DBackwardBackward0",
    doc="A gradient of means, spread over their windows.",
)  # fmt: skip


def _was_ceiled(planes: Sizes, sizes: Sizes, kernel: Sizes, stride: Sizes,
                padding: Sizes) -> bool:  # fmt: skip
    """Whether that many windows are there only if the last may reach beyond the border."""
    count = len(kernel)
    plain = pooled_sizes(planes[-count:], kernel, stride, padding, (1,) * count, False)
    return plain != tuple(sizes[-count:])


# The way back -------------------------------------------------------------------------------------


def _unpool(xp: Any, x: Any, indices: Any, size: Sizes) -> Any:
    count = len(size)
    _check_type(f"max_unpooling{count}d", x)
    lead, volume = x.shape[: x.ndim - count], math.prod(size)
    if indices.size:
        low, high = indices.min().item(), indices.max().item()
        if low < 0 or high >= volume:
            raise RuntimeError(
                f"Found an invalid max index: {low if low < 0 else high} (output volumes are of "
                f"size {'x'.join(map(str, size))})"
            )
    out = xp.zeros((math.prod(lead), volume), x.dtype)
    rows = xp.arange(out.shape[0])[:, None]
    places = (out.shape[0], math.prod(x.shape[len(lead) :]))
    out[rows, indices.reshape(places)] = x.reshape(places)
    return out.reshape(*lead, *size)


max_unpool: Operator = linear(
    "_max_unpool(Tensor self, Tensor indices, int[] size) -> Tensor",
    _unpool,
    lambda g, indices, size: _picked(g, indices, size),
    meta=_in_planes,
    batch=leading,
    name=lambda self, indices, size: f"MaxUnpool{len(size)}DBackward0",
    raises="values",
    doc="Zeros, with the elements at the places in their plane that `indices` tells.",
)
