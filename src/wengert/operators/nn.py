"""Layers that pay as operators of their own: layer normalisation and padding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..backends import meta, row_loops
from ..core import dtypes
from ..core.errors import shape_text
from ..core.numbers import check_number
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..transforms.batching.moving import all_batched, at_front, rank_of, shape_of
from ..transforms.batching.rules import broadcast
from .along import is_half, mean_kept, packed, widened
from .declare import primitive
from .pointwise import rsqrt
from .reduce import kept_mean
from .shapes import check_size
from .unrecorded import unrecorded

__all__ = ["constant_pad_nd", "native_layer_norm"]

# Layer normalisation ------------------------------------------------------------------------------


def _check_normalized(
    name: str, x: Any, shape: tuple, refused: str = "biuc", **parameters: Any
) -> None:
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
            f"element, but got normalized_shape = {shape_text(shape)}"
        )
    for parameter, value in parameters.items():
        if value is not None and value.shape != shape:
            raise RuntimeError(
                f"Expected {parameter} to be of same shape as normalized_shape, but got {parameter}"
                f" of shape {shape_text(value.shape)} and normalized_shape = {shape_text(shape)}"
            )
    if x.shape[-len(shape) :] != shape:
        raise RuntimeError(
            f"Given normalized_shape={shape_text(shape)}, expected input with shape "
            f"[*, {shape_text(shape)[1:]}, but got input of size{shape_text(x.shape)}"
        )
    if x.dtype.kind in refused:
        kind = dtypes.from_numpy(x.dtype).scalar_name
        raise NotImplementedError(f"\"{name}\" not implemented for '{kind}'")


def _layer_norm(xp: Any, x: Any, shape: tuple, weight: Any, bias: Any, eps: float) -> tuple:
    _check_normalized("LayerNormKernelImpl", x, shape, weight=weight, bias=bias)
    goal, x = x.dtype, packed(widened(x))
    parameters = [None if p is None else widened(p) for p in (weight, bias)]
    fused = row_loops.layer_norm(x, len(shape), *parameters, eps)
    if fused is not None:
        return tuple([a.astype(goal, copy=False) for a in fused])
    dims = tuple(range(x.ndim - len(shape), x.ndim))
    mean = mean_kept(xp, x, dims)
    out = x - mean
    spread = mean_kept(xp, out * out, dims)
    scale = 1 / xp.sqrt(spread + x.dtype.type(eps))
    out *= scale
    if weight is not None:
        out *= weight
    if bias is not None:
        out += bias
    return tuple([a.astype(goal, copy=False) for a in (out, mean, scale)])


# A gradient reads mean and scale from the forward pass, of which they are results without history.
# These operators give them one: they return what is known, and their derivative is that of
# computing it from the input. So every level of transforms can differentiate the gradient again.


def _known_batched(operator: Any, args: tuple, dims: tuple) -> tuple[Any, int]:
    return operator.call(all_batched(args, dims)), 0


_known_mean: Operator = primitive(
    "_known_mean(Tensor input, Tensor mean, int[] dim) -> Tensor",
    lambda xp, x, mean, dim: mean.copy(),
    lambda g, input, dim: g.expand(input.array.shape) / _count(input, dim),
    lambda tangents, dim: tangents["input"].mean(dim, True),
    widens=False,
    guarded=False,
    meta=lambda x, mean, dim: meta.empty(mean.shape, mean.dtype),
    batch=_known_batched,
    doc="The mean of the input over `dim`, which has been computed before.",
)
_known_scale: Operator = primitive(
    "_known_scale(Tensor input, Tensor mean, Tensor scale, int[] dim) -> Tensor",
    lambda xp, x, mean, scale, dim: scale.copy(),
    lambda g, input, mean, scale, dim: (
        _scale_change(input, mean, scale, dim) * g / _count(input, dim)
    ),
    lambda tangents, input, mean, scale, dim: (
        (_scale_change(input, mean, scale, dim) * tangents["input"]).mean(dim, True)
    ),
    widens=False,
    guarded=False,
    meta=lambda x, mean, scale, dim: meta.empty(scale.shape, scale.dtype),
    batch=_known_batched,
    doc="The reciprocal standard deviation of the input over `dim`, computed before.",
)


def _count(x: Tensor, dims: tuple[int, ...]) -> int:
    """The number of elements that one mean is taken over."""
    return math.prod([x.array.shape[dim] for dim in dims])


def _scale_change(x: Tensor, mean: Tensor, scale: Tensor, dims: tuple[int, ...]) -> Tensor:
    """What the mean of a change of the input is weighted by in the change of the scale."""
    unit, scale = _standardized(x, mean, scale, dims)
    return -(scale * scale) * unit


def _standardized(
    x: Tensor, mean: Tensor, scale: Tensor, dims: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """The input less its mean and times its scale, and the scale; both can be differentiated."""
    mean, scale = _known_mean.call((x, mean, dims)), _known_scale.call((x, mean, scale, dims))
    return (x - mean) * scale, scale


def _last(shape: tuple) -> tuple[int, ...]:
    """The dimensions that are normalised."""
    return tuple(range(-len(shape), 0))


def _through_standardized(t: Tensor, unit: Tensor, scale: Tensor, dims: tuple) -> Tensor:
    """The symmetric derivative of standardizing applied to a gradient or a tangent."""
    return scale * (t - kept_mean(t, dims) - unit * kept_mean(t * unit, dims))


def _layer_norm_input(
    g: Tensor, x: Tensor, shape: tuple, weight: Any, mean: Tensor, scale: Tensor
) -> Tensor:
    fused = unrecorded(row_loops.layer_norm_gradient, g, x, len(shape), weight, mean, scale)
    if fused is not None:
        return fused
    dims = _last(shape)
    unit, scale = _standardized(x, mean, scale, dims)
    return _through_standardized(g if weight is None else g * weight, unit, scale, dims)


def _layer_norm_weight(
    g: Tensor, x: Tensor, shape: tuple, mean: Tensor, scale: Tensor
) -> Tensor:
    """The gradient by the weight, summed over rows by a loop or left to the engine to sum."""
    fused = unrecorded(row_loops.layer_norm_weight, g, x, len(shape), mean, scale)
    return g * _standardized(x, mean, scale, _last(shape))[0] if fused is None else fused


def _layer_norm_tangent(
    tangents: dict, x: Tensor, shape: tuple, weight: Any, mean: Tensor, scale: Tensor
) -> tuple:
    dims = _last(shape)
    unit, scale = _standardized(x, mean, scale, dims)
    total: Any = 0
    if "input" in tangents:
        total = _through_standardized(tangents["input"], unit, scale, dims)
        total = total if weight is None else total * weight
    if "weight" in tangents:
        total = total + tangents["weight"] * unit
    if "bias" in tangents:
        total = total + tangents["bias"]
    return total, None, None


def _layer_norm_batched(operator: Any, args: tuple, dims: tuple) -> tuple[tuple, tuple]:
    """Parameters that differ between the examples are applied after the normalisation."""
    x, shape, weight, bias, eps = args
    batch = None if dims[0] is None else 0
    x = at_front(x, dims[0])
    if dims[2] is dims[3] is None:
        return operator.call((x, shape, weight, bias, eps)), (0, 0, 0)
    given = {"weight": (weight, dims[2]), "bias": (bias, dims[3])}
    shapes = {n: np.empty(shape_of(p, d)) for n, (p, d) in given.items() if p is not None}
    _check_normalized(operator.name, x.array, shape, "", **shapes)
    out, mean, scale = operator.call((x, shape, None, None, eps))
    dim: int | None = batch
    for name, parameter, place in (("mul", weight, dims[2]), ("add", bias, dims[3])):
        if parameter is not None:
            out, dim = broadcast(name, (out, parameter), (dim, place))
    return (out, mean, scale), (dim, batch, batch)


def _layer_norm_meta(x: Any, shape: tuple, weight: Any, bias: Any, eps: float) -> tuple:
    _check_normalized("LayerNormKernelImpl", x, shape, weight=weight, bias=bias)
    moments = meta.empty(x.shape[: x.ndim - len(shape)] + (1,) * len(shape), x.dtype)
    return meta.empty(x.shape, x.dtype), moments, moments


native_layer_norm = primitive(
    "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, "
    "float eps) -> (Tensor, Tensor, Tensor)",
    _layer_norm,
    {
        "input": lambda g, input, normalized_shape, weight, out1, out2: _layer_norm_input(
            g[0], input, normalized_shape, weight, out1, out2
        ),
        "weight": lambda g, input, normalized_shape, out1, out2: _layer_norm_weight(
            g[0], input, normalized_shape, out1, out2
        ),
        "bias": lambda g: g[0],
    },
    lambda tangents, input, normalized_shape, weight, out1, out2: _layer_norm_tangent(
        tangents, input, normalized_shape, weight, out1, out2
    ),
    nondifferentiable_outputs=(1, 2),
    widens=False,
    meta=_layer_norm_meta,
    batch=_layer_norm_batched,
    doc="Normalised input, mean and reciprocal standard deviation over the last dimensions.",
    public="function",
)


def rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """The input divided by the root of the mean of its squares over the last dimensions."""
    shape = tuple(normalized_shape)
    scale = None if weight is None else weight.array
    _check_normalized("rms_norm", input.array, shape, "biu", weight=scale)
    dims = tuple(range(-len(shape), 0))
    x = input.to(dtypes.float32) if is_half(input.array.dtype) else input
    floor = dtypes.finfo(x.dtype).eps if eps is None else eps
    out = x * rsqrt((x * x).mean(dims, True) + floor)
    out = (out if weight is None else out * weight).contiguous()
    return out.to(input.dtype)


# Padding ------------------------------------------------------------------------------------------


def _padding(x: Any, pad: tuple) -> tuple[tuple[int, ...], list[tuple[int, int]]]:
    """The shape with a border and its widths in each dimension.

    `pad` has pairs for the last dimension, then the one before it; negative ones crop.
    """
    widths = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    widths = [(0, 0)] * (x.ndim - len(widths)) + widths[::-1]
    shape = tuple([n + before + after for n, (before, after) in zip(x.shape, widths, strict=True)])
    if any(n < 0 for n in shape):
        raise RuntimeError(
            f"The input size {shape_text(x.shape)}, plus negative padding {list(pad)}, resulted in "
            f"a negative output size {shape_text(shape)}: narrow(): length must be non-negative."
        )
    if any(n + min(b, 0) + min(a, 0) < 0 for n, (b, a) in zip(x.shape, widths, strict=True)):
        raise RuntimeError(
            f"narrow(): length must be non-negative: the padding {list(pad)} takes away more than "
            f"a tensor of shape {shape_text(x.shape)} has"
        )
    return shape, widths


def _pad(xp: Any, x: Any, pad: tuple, value: Any) -> Any:
    shape, widths = _padding(x, pad)
    check_size(shape, x.dtype.itemsize)
    out = xp.full(shape, check_number(value, dtypes.from_numpy(x.dtype)), x.dtype)
    inside = [slice(max(b, 0), n - max(a, 0)) for n, (b, a) in zip(shape, widths, strict=True)]
    kept = [slice(max(-b, 0), n + min(a, 0)) for n, (b, a) in zip(x.shape, widths, strict=True)]
    out[tuple(inside)] = x[tuple(kept)]
    return out


def _pad_batched(operator: Any, args: tuple, dims: tuple) -> tuple[Any, int]:
    x, pad, value = args
    if len(pad) > 2 * rank_of(x, dims[0]):
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad "
            f"length is {len(pad)} while the input has {rank_of(x, dims[0])} dimensions."
        )
    return operator.call((at_front(x, dims[0]), pad, value)), 0


constant_pad_nd: Operator = primitive(
    "constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor",
    _pad,
    lambda g, pad: constant_pad_nd.call((g, tuple([-n for n in pad]), 0)),
    lambda tangents, pad: constant_pad_nd.call((tangents["self"], pad, 0)),
    widens=False,
    meta=lambda x, pad, value: meta.empty(_padding(x, pad)[0], x.dtype),
    batch=_pad_batched,
    doc="The tensor with a border of one value.",
    public="function",
)
