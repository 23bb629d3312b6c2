"""Pictures in other sizes: along each dimension, every new element is a weighted sum of old ones.

The ways to do so differ in the weights alone: the nearest element, linear and cubic interpolation,
with smoothing where the result is smaller (`aa`), and the mean of parts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..backends import meta
from ..backends.placement import of_array, transfer
from ..dispatch.operator import Operator
from ..transforms.batching.rules import leading
from .along import packed, scalar_name, widened
from .convolution import channels_innermost, channels_moved
from .declare import linear
from .pooling import _turned_meta

__all__ = []

Sizes = tuple[int, ...]

# Weights ------------------------------------------------------------------------------------------


def _step(length: int, count: int, align: bool, scale: float) -> float:
    """How far apart the places of neighbouring new elements are; `scale` may tell."""
    if align:
        return (length - 1) / (count - 1) if count > 1 else 0.0
    return 1.0 / scale if scale > 0 else length / count


def _nearest(length: int, count: int, shift: float, scale: float) -> tuple[Any, Any]:
    # In float32, as other libraries do: the element that is taken depends on the rounding.
    step = np.float32(1.0 / scale) if scale > 0 else np.float32(length) / np.float32(count)
    places = np.floor((np.arange(count, dtype=np.float32) + np.float32(shift)) * step)
    return np.minimum(places.astype(np.int64), length - 1)[:, None], np.ones((count, 1))


def _linear(length: int, count: int, align: bool, scale: float) -> tuple[Any, Any]:
    step = _step(length, count, align, scale)
    places = np.arange(count) * step if align else (np.arange(count) + 0.5) * step - 0.5
    places = np.maximum(places, 0)
    first = np.minimum(places.astype(np.int64), length - 1)
    share = np.minimum(np.maximum(places - first, 0), 1)
    second = np.minimum(first + 1, length - 1)
    return np.stack([first, second], 1), np.stack([1 - share, share], 1)


def _cubic_near(x: Any, a: float) -> Any:
    return ((a + 2) * x - (a + 3)) * x * x + 1


def _cubic_far(x: Any, a: float) -> Any:
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def cubic_weights(share: Any, a: float = -0.75) -> list:
    """The weights of the four elements around a place `share` behind the second."""
    return [
        _cubic_far(share + 1, a), _cubic_near(share, a), _cubic_near(1 - share, a),
        _cubic_far(2 - share, a),
    ]  # fmt: skip


def _cubic(length: int, count: int, align: bool, scale: float) -> tuple[Any, Any]:
    step = _step(length, count, align, scale)
    places = np.arange(count) * step if align else (np.arange(count) + 0.5) * step - 0.5
    first = np.floor(places)
    positions = first.astype(np.int64)[:, None] + np.arange(-1, 3)
    return np.clip(positions, 0, length - 1), np.stack(cubic_weights(places - first), 1)


#: For smoothing: how many elements to each side take part, and their weights by distance.
_FILTERS: dict[str, tuple[int, Any]] = {
    "linear aa": (1, lambda x: np.maximum(1 - x, 0)),
    "cubic aa": (
        2,
        lambda x: np.where(
            x < 1, _cubic_near(x, -0.5), np.where(x < 2, _cubic_far(x, -0.5), 0)
        ),
    ),
    "lanczos aa": (3, lambda x: np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0)),
}


def _smoothed(length: int, count: int, align: bool, scale: float, mode: str) -> tuple[Any, Any]:
    """Interpolation whose support grows with the distance of new elements."""
    step = _step(length, count, align, scale)
    wide = max(step, 1.0)
    reach, weight_at = _FILTERS[mode]
    support = reach * wide
    centers = step * (np.arange(count) + 0.5)
    starts = np.maximum((centers - support + 0.5).astype(np.int64), 0)
    ends = np.minimum((centers + support + 0.5).astype(np.int64), length)
    most = max(int((ends - starts).max()), 1) if count else 1
    positions = starts[:, None] + np.arange(most)
    distance = np.abs((positions - centers[:, None] + 0.5) / wide)
    weights = weight_at(distance)
    weights = np.where(positions < ends[:, None], weights, 0)
    return np.minimum(positions, length - 1), weights / weights.sum(1, keepdims=True)


def _parts(length: int, count: int) -> tuple[Any, Any]:
    """Means of parts: part `i` of `count` goes from the floor of `i` to the ceiling of `i + 1`."""
    starts = np.arange(count) * length // max(count, 1)
    ends = -(-(np.arange(count) + 1) * length // max(count, 1))
    most = int((ends - starts).max()) if count else 1
    positions = starts[:, None] + np.arange(most)
    weights = (positions < ends[:, None]) / (ends - starts)[:, None]
    return np.minimum(positions, length - 1), weights


@lru_cache(maxsize=256)
def _taps(mode: str, length: int, count: int, align: bool, scale: float) -> tuple[Any, Any]:
    """For each new element the positions of old ones and their weights."""
    if mode == "nearest":
        return _nearest(length, count, 0.0, scale)
    if mode == "nearest-exact":
        return _nearest(length, count, 0.5, scale)
    if mode == "linear":
        return _linear(length, count, align, scale)
    if mode == "cubic":
        return _cubic(length, count, align, scale)
    if mode == "mean":
        return _parts(length, count)
    return _smoothed(length, count, align, scale, mode)


# Operators ----------------------------------------------------------------------------------------


def _each(mode: str, old: Sizes, new: Sizes, align: bool, scales: tuple) -> list:
    """The taps of all dimensions."""
    given = scales or (0.0,) * len(new)
    return [
        _taps(mode, length, count, align, float(scale))
        for length, count, scale in zip(old, new, given, strict=True)
    ]


def _check_type(x: Any, mode: str, count: int) -> None:
    picture = count == 2 and mode.startswith(("linear", "cubic"))
    if x.dtype.kind in "bc" or (x.dtype.kind in "iu" and not (
        x.dtype == np.uint8 and (picture or mode.startswith("nearest"))
    )):  # fmt: skip
        raise NotImplementedError(
            f"\"upsample ({mode})\" not implemented for '{scalar_name(x.dtype)}'"
        )


def _resample(xp: Any, x: Any, size: Sizes, mode: str, align: bool, scales: tuple) -> Any:
    count = len(size)
    _check_type(x, mode, count)
    lead = x.ndim - count
    goal, turned = x.dtype, channels_innermost(x) and x.ndim == count + 2
    taps = _each(mode, x.shape[lead:], size, align, scales)
    if x.dtype.kind == "u" and not mode.startswith("nearest"):
        x = _resample_bytes(xp, x, taps)
        return channels_moved(xp, x) if turned else x
    x, here = packed(widened(x)), of_array(x)
    given = x
    for axis, (positions, weights) in enumerate(taps, lead):
        if positions.shape[1] == 1 and np.array_equal(positions[:, 0], np.arange(x.shape[axis])):
            continue
        found: Any = None
        for tap in range(positions.shape[1]):
            part = xp.take(x, transfer(positions[:, tap], here), axis=axis)
            if not mode.startswith("nearest"):
                shape = (-1,) + (1,) * (x.ndim - axis - 1)
                weight = transfer(weights[:, tap].astype(x.dtype), here).reshape(shape)
                part = part * weight
                if mode == "mean" or mode.endswith("aa"):  # what takes no part may be infinite
                    part = xp.where(weight == 0, 0, part)
            found = part if found is None else found + part
        x = found
    x = x.astype(goal, copy=x is given)
    return channels_moved(xp, x) if turned else x


def _matrix(length: int, positions: Any, weights: Any) -> Any:
    """The weights of old elements, in a row for each new one."""
    matrix = np.zeros((positions.shape[0], length))
    np.add.at(matrix, (np.arange(positions.shape[0])[:, None], positions), weights)
    return matrix


def _resample_bytes(xp: Any, x: Any, taps: list) -> Any:
    """Pictures of bytes: along rows and then along columns, in whole numbers, rounded each time.

    Weights are fractions with as many binary digits as 16 bits hold, as PyTorch has them. What
    keeps its length stays as it is, whatever the scale.
    """
    here = of_array(x)
    for axis, (positions, weights) in zip((-1, -2), reversed(taps), strict=True):
        if positions.shape[0] == x.shape[axis]:
            continue
        matrix = _matrix(x.shape[axis], positions, weights)
        largest, digits = matrix.max(initial=0.0), 0
        while digits < 22 and int(0.5 + largest * 2 ** (digits + 1)) < 2**15:
            digits += 1
        scaled = matrix * 2**digits
        whole = np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int32)
        moved = xp.moveaxis(x, axis, -1).astype(np.int32)
        total = xp.matmul(moved, transfer(np.ascontiguousarray(whole.T), here))
        rounded = xp.clip((total + 2 ** (digits - 1)) >> digits, 0, 255).astype(np.uint8)
        x = xp.moveaxis(rounded, -1, axis)
    return x.copy("C")


def _collect(xp: Any, g: Any, size: Sizes, mode: str, align: bool, scales: tuple) -> Any:
    count = len(size)
    lead = g.ndim - count
    goal, g, here = g.dtype, widened(g), of_array(g)
    taps = _each(mode, size, g.shape[lead:], align, scales)
    finite = bool(xp.isfinite(g).all().item())
    for axis, (positions, weights) in enumerate(taps, lead):
        moved = xp.moveaxis(g, axis, -1)
        if finite:
            matrix = _matrix(size[axis - lead], positions, weights)
            found = xp.matmul(moved, transfer(matrix.astype(g.dtype), here))
        else:
            found = _collect_apart(xp, moved, size[axis - lead], positions, weights)
        g = xp.moveaxis(found, -1, axis)
    return xp.ascontiguousarray(g).astype(goal, copy=False)


def _collect_apart(xp: Any, g: Any, length: int, positions: Any, weights: Any) -> Any:
    """Gradients collected along the last dimension, by each weight that is not zero.

    In a product of matrices what is not a number would spread to elements that take no part.
    """
    found = xp.zeros((*g.shape[:-1], length), g.dtype)
    for new, tap in zip(*np.nonzero(weights), strict=True):
        found[..., positions[new, tap]] += g[..., new] * g.dtype.type(weights[new, tap])
    return found


_WORDS = {"linear": {1: "Linear", 2: "Bilinear", 3: "Trilinear"}}
_NAMES = {"nearest": "Nearest", "nearest-exact": "NearestExact", "cubic": "Bicubic",
          "lanczos": "Lanczos"}  # fmt: skip


def _node_name(count: int, mode: str) -> str:
    if mode == "mean":
        return f"AdaptiveAvgPool{count}DBackward0"
    kind, smooth = mode.removesuffix(" aa"), "Aa" * mode.endswith(" aa")
    word = _NAMES.get(kind) or _WORDS[kind][count]
    return f"Upsample{word}{count}D{smooth}Backward0"


def _resample_meta(x: Any, size: Sizes, mode: str, *rest: Any) -> Any:
    count = len(size)
    _check_type(x, mode, count)
    return _turned_meta(x, (*x.shape[: x.ndim - count], *size), count, x.dtype)


resample: Operator = linear(
    "_resample(Tensor self, int[] size, str mode, bool align_corners, float[] scales) -> Tensor",
    _resample,
    lambda g, self_shape, size, mode, align_corners, scales: _resample_backward.call(
        (g, tuple(self_shape[-len(size) :]), mode, align_corners, scales)
    ),
    meta=_resample_meta,
    batch=leading,
    name=lambda self, size, mode, *rest: _node_name(len(size), mode),
    doc="The tensor with other lengths of its last dimensions, as `mode` says.",
)
_resample_backward: Operator = linear(
    "_resample_backward(Tensor self, int[] size, str mode, bool align_corners, float[] scales) "
    "-> Tensor",
    _collect,
    lambda g, self_shape, size, mode, align_corners, scales: resample.call(
        (g, tuple(self_shape[-len(size) :]), mode, align_corners, scales)
    ),
    meta=lambda g, size, *rest: meta.empty((*g.shape[: g.ndim - len(size)], *size), g.dtype),
    batch=leading,
    name="UpsampleBackwardBackward0",
    doc="A gradient of weighted sums, collected by the elements that they are sums of.",
)
