"""Fourier transforms: complex to complex, real to complex and back, and what is made of them.

Three operators transform along given dimensions at the lengths that the tensor has; the functions
of `wengert.fft` cut, pad and convert around them. They are linear, and their transposes are made of
one another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.backend import backend_of
from ..core import dtypes
from ..core.errors import dimension_error
from ..core.tensor import Tensor
from ..creation.factories import tensor
from ..dispatch.operator import Operator
from ..transforms.batching.rules import along
from .complex import conj, conj_physical, real
from .declare import linear
from .nn import constant_pad_nd
from .views import slice_

__all__ = []

#: How a transform is scaled: not at all, by the root of the number of elements, or by that number.
NONE, ROOT, FULL = 0, 1, 2
_NORMS = {
    True: {None: NONE, "backward": NONE, "ortho": ROOT, "forward": FULL},
    False: {None: FULL, "backward": FULL, "ortho": ROOT, "forward": NONE},
}
_WORDS = {
    (True, NONE): "backward", (True, ROOT): "ortho", (True, FULL): "forward",
    (False, NONE): "forward", (False, ROOT): "ortho", (False, FULL): "backward",
}  # fmt: skip


def _in_order(x: Any, dim: tuple[int, ...], ends: bool, transform: Any) -> Any:
    """What `transform` makes of an array and its dimensions, laid out in memory as by PyTorch.

    Transformed dimensions lie behind the others, both from large steps to small ones; if one
    `ends` a transform, the last of `dim` remains the last.
    """
    rank = x.ndim
    chosen = [d % rank for d in dim]
    if chosen == [rank - 1] and x.flags.c_contiguous:
        return transform(x, (rank - 1,))
    last = chosen[-1:] if ends else []
    groups = ([d for d in range(rank) if d not in chosen], chosen[: len(chosen) - len(last)])
    order = [d for group in groups for d in sorted(group, key=lambda d: -x.strides[d])] + last
    if order == list(range(rank)):
        return transform(x, tuple(order[rank - len(dim) :]))
    found = transform(x.transpose(order), tuple(range(rank - len(dim), rank)))
    return found.transpose([order.index(d) for d in range(rank)])


def _c2c(xp: Any, x: Any, dim: tuple[int, ...], normalization: int, forward: bool) -> Any:
    if not dim:
        return x.copy("K")
    function = backend_of(x).fourier("fftn" if forward else "ifftn")
    word = _WORDS[forward, normalization]
    return _in_order(x, dim, False, lambda x, axes: function(x, axes=axes, norm=word))


def _r2c(xp: Any, x: Any, dim: tuple[int, ...], normalization: int, onesided: bool) -> Any:
    function = backend_of(x).fourier("rfftn" if onesided else "fftn")
    word = _WORDS[True, normalization]
    return _in_order(x, dim, True, lambda x, axes: function(x, axes=axes, norm=word))


def _c2r(xp: Any, x: Any, dim: tuple[int, ...], normalization: int, last_dim_size: int) -> Any:
    x = _c2c(xp, x, dim[:-1], normalization, False) if len(dim) > 1 else x
    function, word = backend_of(x).fourier("irfftn"), _WORDS[False, normalization]
    return _in_order(
        x, dim[-1:], True, lambda x, axes: function(x, [last_dim_size], axes=axes, norm=word)
    )


def _half(shape: tuple[int, ...], dim: tuple[int, ...], onesided: bool) -> tuple[int, ...]:
    """The shape of the transform of a real tensor: of the last dimension, half is enough."""
    if not onesided:
        return shape
    last = dim[-1] % len(shape)
    return (*shape[:last], shape[last] // 2 + 1, *shape[last + 1 :])


def _of_length(shape: tuple[int, ...], dim: tuple[int, ...], length: int) -> tuple[int, ...]:
    last = dim[-1] % len(shape)
    return (*shape[:last], length, *shape[last + 1 :])


c2c: Operator = linear(
    "_fft_c2c(Tensor self, int[] dim, int normalization, bool forward) -> Tensor",
    _c2c,
    lambda g, dim, normalization, forward: c2c.call((g, dim, normalization, not forward)),
    shape=lambda x, *rest: x.shape,
    batch=along("dim", empty_means_all=False),
    name="FftC2CBackward0",
    cost="slow",
    doc="The Fourier transform, or its inverse, of a complex tensor along dimensions.",
)
r2c: Operator = linear(
    "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
    _r2c,
    lambda g, self_shape, dim, normalization, onesided: _r2c_transpose(
        g, self_shape, dim, normalization, onesided
    ),
    shape=lambda x, dim, normalization, onesided: _half(x.shape, dim, onesided),
    batch=along("dim"),
    name="FftR2CBackward0",
    cost="slow",
    doc="The Fourier transform of a real tensor, whole or up to the middle of the last dimension.",
)
c2r: Operator = linear(
    "_fft_c2r(Tensor self, int[] dim, int normalization, int last_dim_size) -> Tensor",
    _c2r,
    lambda g, dim, normalization, last_dim_size: _c2r_transpose(
        g, dim, normalization, last_dim_size
    ),
    shape=lambda x, dim, normalization, length: _of_length(x.shape, dim, length),
    batch=along("dim"),
    name="FftC2RBackward0",
    cost="slow",
    doc="The inverse Fourier transform of the half of a Hermitian tensor.",
)


def _r2c_transpose(
    g: Tensor, shape: tuple[int, ...], dim: tuple[int, ...], normalization: int, onesided: bool
) -> Tensor:
    """The real part of the inverse transform, of a half by half the work."""
    if not onesided:
        return real(c2c.call((g, dim, normalization, False)))
    length = shape[dim[-1]]
    return c2r.call((_weighted(g, dim, length, 0.5), dim, normalization, length))


def _c2r_transpose(g: Tensor, dim: tuple[int, ...], normalization: int, length: int) -> Tensor:
    return _weighted(r2c.call((g, dim, normalization, True)), dim, length, 2.0)


def _weighted(half: Tensor, dim: tuple[int, ...], length: int, weight: float) -> Tensor:
    """Half a transform with a weight for every element that stands for its mirror image too."""
    last = dim[-1] % half.array.ndim
    count = half.array.shape[last]
    doubled = length - count
    if doubled <= 0:
        return half
    weights = np.ones((count, *(1,) * (half.array.ndim - 1 - last)), half.array.real.dtype)
    weights[1 : 1 + doubled] = weight
    return half * tensor(weights, device=half.device)


# What the functions of wengert.fft share ---------------------------------------------------------


def normalization_of(norm: str | None, forward: bool) -> int:
    """The scale that a word for it means in a direction."""
    found = _NORMS[forward].get(norm)
    if found is None:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return found


def resized(x: Tensor, dims: tuple[int, ...], sizes: tuple[int, ...]) -> Tensor:
    """The tensor cut, or padded by zeros, to the lengths of some dimensions."""
    pads = [0] * (2 * x.array.ndim)
    for dim, size in zip(dims, sizes, strict=True):
        if size < 1:
            raise RuntimeError(f"Invalid number of data points ({size}) specified")
        missing = size - x.array.shape[dim]
        if missing < 0:
            x = slice_.call((x, dim, 0, size, 1))
        elif missing:
            pads[2 * (x.array.ndim - 1 - dim % x.array.ndim) + 1] = missing
    return constant_pad_nd(x, pads) if any(pads) else x


def prepared(x: Tensor, to_complex: bool) -> Tensor:
    """The tensor in a type that can be transformed."""
    if x.dtype in (dtypes.float16, dtypes.bfloat16):
        raise RuntimeError(f"Unsupported dtype {x.dtype.scalar_name}")
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(dtypes.get_default_dtype())
    if to_complex and not x.is_complex():
        x = x.to(dtypes.complex64 if x.dtype is dtypes.float32 else dtypes.complex128)
    return x


def one_dim(x: Tensor, dim: int) -> int:
    """A dimension as a number from zero on."""
    rank = x.array.ndim
    if not rank:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not -rank <= dim < rank:
        raise dimension_error(dim, rank)
    return dim % rank


def dims_and_sizes(
    x: Tensor, s: Any, dim: Any, half: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The dimensions to transform and their lengths, by default those that the tensor has.

    A tensor that has a `half` of its last dimension is transformed to the whole of it.
    """
    rank = x.array.ndim
    sizes = None if s is None else [s] if isinstance(s, int) else list(s)
    if dim is not None:
        dims = tuple(one_dim(x, d) for d in ([dim] if isinstance(dim, int) else dim))
        if len(set(dims)) < len(dims):
            raise RuntimeError("FFT dims must be unique")
        if sizes is not None and len(sizes) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif sizes is not None:
        if len(sizes) > rank:
            raise RuntimeError(
                f"Got shape with {len(sizes)} values but input tensor only has {rank} dimensions."
            )
        dims = tuple(range(rank - len(sizes), rank))
    else:
        dims = tuple(range(rank))
    own = [x.array.shape[d] for d in dims]
    if half and own:
        own[-1] = 2 * (own[-1] - 1)
    given = own if sizes is None else [a if b == -1 else b for a, b in zip(own, sizes, strict=True)]
    return dims, tuple(given)


def transformed(x: Tensor, s: Any, dim: Any, norm: str | None, forward: bool) -> Tensor:
    """A complex transform."""
    scale = normalization_of(norm, forward)
    x = prepared(x, True)
    dims, sizes = dims_and_sizes(x, s, dim)
    return c2c.call((resized(x, dims, sizes), dims, scale, forward))


def halved(name: str, x: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    """The half of the transform of a real tensor."""
    scale = normalization_of(norm, True)
    x, dims = _real_numbers(name, x, s, dim)
    return r2c.call((x, dims, scale, True))


def halved_inverse(name: str, x: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    """The half of the inverse transform of a real tensor: along the last dimension, then others."""
    scale = normalization_of(norm, False)
    x, dims = _real_numbers(name, x, s, dim)
    half = r2c.call((x, dims[-1:], scale, True))
    if len(dims) == 1:
        return conj(half)
    return c2c.call((conj_physical(half), dims[:-1], scale, False))


def _real_numbers(name: str, x: Tensor, s: Any, dim: Any) -> tuple[Tensor, tuple[int, ...]]:
    """A real tensor, cut and padded to the sizes of its dimensions that are transformed."""
    if x.is_complex():
        raise RuntimeError(
            f"{name} expects a real-valued input tensor, but got {x.dtype.scalar_name}"
        )
    x = prepared(x, False)
    dims, sizes = dims_and_sizes(x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    return resized(x, dims, sizes), dims


def transformed_line(x: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Tensor:
    """A complex transform along one dimension, of a real tensor by half the work."""
    place = one_dim(x, dim)
    if n is None and x.array.shape[place]:  # nothing is cut, padded or converted
        if x.dtype in (dtypes.complex64, dtypes.complex128):
            return c2c.call((x, (place,), normalization_of(norm, forward), forward))
        if x.dtype in (dtypes.float32, dtypes.float64):
            out = r2c.call((x, (place,), normalization_of(norm, forward), False))
            return out if forward else conj(out)
    sizes = None if n is None else (n,)
    if x.is_complex():
        return transformed(x, sizes, place, norm, forward)
    scale = normalization_of(norm, forward)
    x = prepared(x, False)
    dims, lengths = dims_and_sizes(x, sizes, place)
    out = r2c.call((resized(x, dims, lengths), dims, scale, False))
    return out if forward else conj(out)


def restored(
    name: str, x: Tensor, s: Any, dim: Any, norm: str | None, conjugated: bool = False
) -> Tensor:
    """The real tensor whose transform, or its conjugate, is given by a half."""
    scale = normalization_of(norm, False)
    x = prepared(x, True)
    dims, sizes = dims_and_sizes(x, s, dim, half=True)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    length = sizes[-1]
    if length < 1:
        raise RuntimeError(f"Invalid number of data points ({length}) specified")
    x = resized(x, dims, (*sizes[:-1], length // 2 + 1))
    return c2r.call((conj(x) if conjugated else x, dims, scale, length))


def reversed_norm(norm: str | None) -> str | None:
    """The word that scales a transform as the given one scales its inverse."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


def rolled_by_half(x: Tensor, dim: Any, backwards: bool) -> Tensor:
    """The tensor with its zero frequencies moved to the middle, or back."""
    dims = tuple(range(x.array.ndim)) if dim is None else dim
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    sizes = [x.array.shape[one_dim(x, d)] for d in dims]
    steps = [(n + 1) // 2 if backwards else n // 2 for n in sizes]
    return x.roll(steps, dims) if dims else x.clone()


def frequencies(n: int, d: float, half: bool) -> list[float]:
    """The frequencies of a transform of `n` samples that are `d` apart."""
    whole = range(n // 2 + 1) if half else [*range((n + 1) // 2), *range(-(n // 2), 0)]
    return [k / (n * d) for k in whole] if n else []
