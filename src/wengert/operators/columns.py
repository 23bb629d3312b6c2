"""The windows of pictures as columns of matrices, and columns added up to pictures again."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

from ..backends import meta
from ..dispatch.operator import Operator
from ..transforms.batching.rules import leading
from .along import widened
from .convolution import bordered, convolved_sizes, windows
from .declare import linear

__all__ = []

Sizes = tuple[int, ...]


def _columns(
    xp: Any, x: Any, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes
) -> Any:
    sizes = convolved_sizes(x.shape[-2:], kernel, stride, padding, dilation)
    seen = windows(bordered(xp, x, padding), kernel, sizes, stride, dilation)
    shape = (*x.shape[:-3], x.shape[-3] * math.prod(kernel), math.prod(sizes))
    return seen.copy("C").reshape(shape)  # windows of one element are the picture itself


def _pictures(
    xp: Any, x: Any, size: Sizes, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes
) -> Any:
    goal, x = x.dtype, widened(x)
    sizes = convolved_sizes(size, kernel, stride, padding, dilation)
    channels = x.shape[-2] // math.prod(kernel)
    columns = x.reshape(*x.shape[:-2], channels, *kernel, *sizes)
    whole = [n + 2 * p for n, p in zip(size, padding, strict=True)]
    out = xp.zeros((*x.shape[:-2], channels, *whole), x.dtype)
    for place in product(*map(range, kernel)):
        target = [
            slice(k * d, k * d + (n - 1) * s + 1, s)
            for k, d, n, s in zip(place, dilation, sizes, stride, strict=True)
        ]
        out[(..., *target)] += columns[(..., *place, slice(None), slice(None))]
    inside = [slice(p, p + n) for p, n in zip(padding, size, strict=True)]
    return xp.ascontiguousarray(out[(..., *inside)]).astype(goal, copy=False)


def _columns_meta(
    x: Any, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes
) -> Any:
    sizes = convolved_sizes(x.shape[-2:], kernel, stride, padding, dilation)
    shape = (*x.shape[:-3], x.shape[-3] * math.prod(kernel), math.prod(sizes))
    return meta.empty(shape, x.dtype)


im2col: Operator = linear(
    "_im2col(Tensor self, int[] kernel_size, int[] dilation, int[] padding, int[] stride) "
    "-> Tensor",
    _columns,
    lambda g, self_shape, kernel_size, dilation, padding, stride: col2im.call(
        (g, tuple(self_shape[-2:]), kernel_size, dilation, padding, stride)
    ),
    meta=_columns_meta,
    batch=leading,
    name="Im2ColBackward0",
    doc="All windows of pictures, each a column.",
)
col2im: Operator = linear(
    "_col2im(Tensor self, int[] output_size, int[] kernel_size, int[] dilation, int[] padding, "
    "int[] stride) -> Tensor",
    _pictures,
    lambda g, kernel_size, dilation, padding, stride: im2col.call(
        (g, kernel_size, dilation, padding, stride)
    ),
    widens=True,
    meta=lambda x, size, kernel, *rest: meta.empty(
        (*x.shape[:-2], x.shape[-2] // math.prod(kernel), *size), x.dtype
    ),
    batch=leading,
    name="Col2ImBackward0",
    doc="Columns added up to pictures of which they are the windows.",
)
