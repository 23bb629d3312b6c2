"""Convolution and its transpose in any number of dimensions, and the gradient of their weights.

Two operators are closed under differentiation: the gradient of a convolution by its input is the
transposed convolution with the same weight, and the gradient by its weight is linear in both of its
arguments. Columns of windows are multiplied with the weight in blocks of images.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

from ..backends import meta, window_loops
from ..backends.geometry import strided
from ..backends.layout import row_major
from ..core.errors import shape_text
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..transforms.batching import convolutions as batched
from .along import scalar_name, widened
from .declare import composite, linear, primitive

__all__ = ["convolution"]

#: So many elements of columns are in memory at a time, which the processor's caches hold.
_BLOCK = 1 << 18

Sizes = tuple[int, ...]

# Sizes --------------------------------------------------------------------------------------------


def convolved_sizes(sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes,
                    dilation: Sizes) -> Sizes:  # fmt: skip
    """The lengths of what a convolution gives, which are not positive where nothing fits."""
    return tuple(
        [
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True)
        ]
    )


def spread_sizes(sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
                 extra: Sizes) -> Sizes:  # fmt: skip
    """The lengths of what a transposed convolution gives."""
    return tuple(
        [
            (n - 1) * s - 2 * p + d * (k - 1) + 1 + e
            for n, k, s, p, d, e in zip(
                sizes, kernel, stride, padding, dilation, extra, strict=True
            )
        ]
    )


def _missing(wanted: Sizes, sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes,
             dilation: Sizes) -> Sizes:  # fmt: skip
    """The output padding with which a transposed convolution gives the wanted lengths."""
    least = spread_sizes(sizes, kernel, stride, padding, dilation, (0,) * len(sizes))
    return tuple([n - m for n, m in zip(wanted, least, strict=True)])


def _per_channel(sizes: Sizes) -> str:
    return "(" + " x ".join(map(str, sizes)) + ")"


def _check_options(stride: Sizes, padding: Sizes, dilation: Sizes, extra: Sizes,
                   groups: int) -> None:  # fmt: skip
    if any(p < 0 for p in padding):
        raise RuntimeError("negative padding is not supported")
    if any(e < 0 for e in extra):
        raise RuntimeError("negative output_padding is not supported")
    if any(s <= 0 for s in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(d <= 0 for d in dilation):
        raise RuntimeError(f"dilation should be greater than zero, but got {list(dilation)}")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")


def _check_channels(x: Any, weight: Any, bias: Any, transposed: bool, groups: int) -> None:
    shape = shape_text(weight.shape)
    if weight.shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but "
            f"got weight of size {shape} instead"
        )
    if weight.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size [{shape}] instead"
        )
    channels = weight.shape[0] if transposed else weight.shape[1] * groups
    if x.shape[1] != channels:
        which = "transposed=1" if transposed else f"groups={groups}"
        raise RuntimeError(
            f"Given {which}, weight of size {shape}, expected input{shape_text(x.shape)} to have "
            f"{channels} channels, but got {x.shape[1]} channels instead"
        )
    made = weight.shape[1] * groups if transposed else weight.shape[0]
    if bias is not None and bias.shape != (made,):
        which = "transposed=1, " if transposed else ""
        raise RuntimeError(
            f"Given {which}weight of size {shape}, expected bias to be 1-dimensional with {made} "
            f"elements, but got bias of size {shape_text(bias.shape)} instead"
        )


def _check_types(x: Any, weight: Any, bias: Any) -> None:
    if x.dtype.kind == "b":
        raise NotImplementedError(f"\"convolution\" not implemented for '{scalar_name(x.dtype)}'")
    if x.dtype != weight.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(x.dtype)} but found {scalar_name(weight.dtype)}: "
            "input and weight of a convolution must have the same dtype"
        )
    if bias is not None and bias.dtype != x.dtype:
        raise RuntimeError(
            f"Input type ({scalar_name(x.dtype)}) and bias type ({scalar_name(bias.dtype)}) should "
            "be the same"
        )


def _result_shape(
    x: Any, weight: Any, bias: Any, stride: Sizes, padding: Sizes, dilation: Sizes,
    transposed: bool, extra: Sizes, groups: int,
) -> Sizes:  # fmt: skip
    """The shape of a convolution, after checking all its arguments."""
    _check_options(stride, padding, dilation, extra, groups)
    _check_channels(x, weight, bias, transposed, groups)
    _check_types(x, weight, bias)
    kernel, sizes = weight.shape[2:], x.shape[2:]
    if transposed:
        if any(e >= s and e >= d for e, s, d in zip(extra, stride, dilation, strict=True)):
            raise RuntimeError(
                "output padding must be smaller than either stride or dilation, but got "
                f"output_padding: {list(extra)} stride: {list(stride)} dilation: {list(dilation)}"
            )
        found = spread_sizes(sizes, kernel, stride, padding, dilation, extra)
        if any(n <= 0 for n in found):
            raise RuntimeError(
                f"Given input size per channel: {_per_channel(sizes)}. Calculated output size per "
                f"channel: {_per_channel(found)}. Output size is too small"
            )
        return (x.shape[0], weight.shape[1] * groups, *found)
    found = convolved_sizes(sizes, kernel, stride, padding, dilation)
    if any(n <= 0 for n in found):
        whole = tuple([n + 2 * p for n, p in zip(sizes, padding, strict=True)])
        reach = tuple([d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)])
        raise RuntimeError(
            f"Calculated padded input size per channel: {_per_channel(whole)}. Kernel size: "
            f"{_per_channel(reach)}. Kernel size can't be greater than actual input size"
        )
    return (x.shape[0], weight.shape[0], *found)


# Kernels ------------------------------------------------------------------------------------------


def bordered(xp: Any, x: Any, padding: Sizes, value: Any = 0) -> Any:
    """The array with a border on both sides of its last dimensions."""
    if not any(padding):
        return x
    lead = x.ndim - len(padding)
    inner = [n + 2 * p for n, p in zip(x.shape[lead:], padding, strict=True)]
    out = xp.full((*x.shape[:lead], *inner), value, x.dtype)
    out[
        (slice(None),) * lead
        + tuple([slice(p, p + n) for n, p in zip(x.shape[lead:], padding, strict=True)])
    ] = x
    return out


def windows(x: Any, kernel: Sizes, sizes: Sizes, stride: Sizes, dilation: Sizes) -> Any:
    """All windows of the last dimensions as a view: their elements, then their places."""
    lead = x.ndim - len(kernel)
    steps = x.strides[lead:]
    return strided(
        x,
        (*x.shape[:lead], *kernel, *sizes),
        (
            *x.strides[:lead],
            *[step * d for step, d in zip(steps, dilation, strict=True)],
            *[step * s for step, s in zip(steps, stride, strict=True)],
        ),
    )


def _blocks(count: int, size: int) -> Iterator[slice]:
    """Ranges of images of which each has columns of `size` elements."""
    step = max(1, min(count, _BLOCK // max(size, 1)))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def _as_matrices(xp: Any, x: Any, groups: int) -> Any:
    """Images as one matrix for each group, of channels by places of all images."""
    count, channels = x.shape[:2]
    return xp.swapaxes(x, 0, 1).reshape(groups, channels // groups, -1)


def _gathered(
    xp: Any, x: Any, weight: Any, shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
    groups: int,
) -> Any:  # fmt: skip
    """A convolution: products of the weight with columns, each the elements of one window."""
    kernel, sizes = weight.shape[2:], shape[2:]
    places, count, made = math.prod(sizes), shape[0], shape[1] // groups
    rows = weight.reshape(groups, made, -1)
    length = rows.shape[2] * groups
    out = xp.empty(shape, x.dtype)
    if window_loops.gather(x, rows, out, kernel, sizes, stride, padding, dilation, groups):
        return out
    framed = bordered(xp, x, padding)
    for block in _blocks(count, length * places):
        part = block.stop - block.start
        columns = _columns(xp, framed[block], kernel, sizes, stride, dilation)
        columns = columns.reshape(groups, -1, part * places)
        if part == 1:
            xp.matmul(rows, columns, out=out[block].reshape(groups, made, places))
            continue
        found = xp.matmul(rows, columns).reshape(shape[1], part, *sizes)
        out[block] = xp.swapaxes(found, 0, 1)
    return out


def _columns(
    xp: Any, framed: Any, kernel: Sizes, sizes: Sizes, stride: Sizes, dilation: Sizes
) -> Any:
    """The windows of images: channels and places in the window come first, then images and the
    places of windows."""
    seen = windows(framed, kernel, sizes, stride, dilation)
    return xp.moveaxis(seen, 0, -len(sizes) - 1)


def _spread(
    xp: Any, x: Any, weight: Any, shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
    groups: int,
) -> Any:  # fmt: skip
    """A transposed convolution: windows are computed and added up where they overlap."""
    kernel, sizes = weight.shape[2:], x.shape[2:]
    border = tuple([d * (k - 1) - p for k, p, d in zip(kernel, padding, dilation, strict=True)])
    if max(stride) == 1 and min(border) >= 0 and x.shape[1] <= shape[1]:
        reach = convolved_sizes(sizes, kernel, stride, border, dilation)
        if reach == shape[2:]:
            turned = _turned(xp, weight, groups)
            return _gathered(xp, x, turned, shape, stride, border, dilation, groups)
    out = xp.zeros(shape, x.dtype)
    if window_loops.spread(
        xp.ascontiguousarray(x), xp.ascontiguousarray(weight), out, kernel, stride, padding,
        dilation, groups,
    ):  # fmt: skip
        return out
    count, made, places = shape[0], shape[1], math.prod(sizes)
    whole = [n + 2 * p for n, p in zip(shape[2:], padding, strict=True)]
    out = xp.zeros((count, made, *whole), x.dtype)
    rows = xp.swapaxes(weight.reshape(groups, weight.shape[0] // groups, -1), 1, 2)
    for block in _blocks(count, rows.shape[1] * groups * places):
        part = x[block]
        columns = xp.matmul(rows, part.reshape(part.shape[0], groups, -1, places))
        columns = columns.reshape(part.shape[0], made, *kernel, *sizes)
        target = out[block]
        for place in product(*map(range, kernel)):
            where = [
                slice(k * d, k * d + (n - 1) * s + 1, s)
                for k, d, n, s in zip(place, dilation, sizes, stride, strict=True)
            ]
            target[(slice(None), slice(None), *where)] += columns[
                (slice(None), slice(None), *place)
            ]
    inside = [slice(p, p + n) for p, n in zip(padding, shape[2:], strict=True)]
    return xp.ascontiguousarray(out[(slice(None), slice(None), *inside)])


def _turned(xp: Any, weight: Any, groups: int) -> Any:
    """The weight of the convolution that a transposed one with steps of one is."""
    grouped = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
    turned = xp.swapaxes(grouped, 1, 2)[(..., *[slice(None, None, -1)] * (weight.ndim - 2))]
    return turned.reshape(groups * weight.shape[1], -1, *weight.shape[2:])


def channels_innermost(x: Any) -> bool:
    """Whether pictures or volumes have the channels of each place side by side in memory.

    Where lengths of one leave it open, the strides of those dimensions decide, as in PyTorch.
    """
    if x.ndim not in (4, 5) or not x.size or not x.strides[1]:
        return False
    least = 0
    for dim in (1, *range(x.ndim - 1, 1, -1), 0):
        step = x.strides[dim]
        if step < least or (dim == 0 and least == x.strides[1]):
            return False
        least = step * x.shape[dim]
    return True


def channels_moved(xp: Any, out: Any) -> Any:
    """The array in the order in which the channels of each place are side by side."""
    return xp.moveaxis(xp.ascontiguousarray(xp.moveaxis(out, 1, -1)), -1, 1)


def _convolve(
    xp: Any, x: Any, weight: Any, bias: Any, stride: Sizes, padding: Sizes, dilation: Sizes,
    transposed: bool, extra: Sizes, groups: int,
) -> Any:  # fmt: skip
    shape = _result_shape(
        x, weight, bias, stride, padding, dilation, transposed, extra, groups
    )
    goal, turned = x.dtype, channels_innermost(x) or channels_innermost(weight)
    if not math.prod(shape) or not weight.size:
        out = xp.zeros(shape, goal)
    else:
        kernel = _spread if transposed else _gathered
        out = kernel(
            xp, widened(x), widened(weight), shape, stride, padding, dilation, groups
        )
    if bias is not None:
        out += bias.reshape(-1, *(1,) * len(stride)).astype(out.dtype, copy=False)
    out = out.astype(goal, copy=False)
    return channels_moved(xp, out) if turned else out


def _convolve_meta(x: Any, weight: Any, *rest: Any) -> Any:
    shape = _result_shape(x, weight, *rest)
    if not (channels_innermost(x) or channels_innermost(weight)):
        return meta.empty(shape, x.dtype)
    order = (0, *range(2, len(shape)), 1)
    steps = row_major(tuple([shape[i] for i in order]), x.dtype.itemsize)
    strides = tuple([steps[order.index(i)] for i in range(len(shape))])
    return meta.of_strides(shape, strides, x.dtype)


def _weight_gradient(
    xp: Any, x: Any, g: Any, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
    groups: int,
) -> Any:  # fmt: skip
    count, channels, made, sizes = x.shape[0], x.shape[1] // groups, g.shape[1], g.shape[2:]
    goal, places = x.dtype, math.prod(sizes)
    x, g = widened(x), widened(g)
    length = channels * math.prod(kernel)
    if not x.size or not g.size:
        return xp.zeros((made, channels, *kernel), goal)
    out = xp.empty((made, channels, *kernel), x.dtype)
    if not window_loops.weigh(
        x, xp.ascontiguousarray(g), out, kernel, sizes, stride, padding, dilation, groups
    ):
        total = xp.zeros((groups, length, made // groups), x.dtype)
        framed = bordered(xp, x, padding)
        for block in _blocks(count, length * groups * places):
            columns = _columns(xp, framed[block], kernel, sizes, stride, dilation)
            columns = columns.reshape(groups, length, -1)
            total += xp.matmul(columns, xp.swapaxes(_as_matrices(xp, g[block], groups), 1, 2))
        out = xp.swapaxes(total, 1, 2).reshape(out.shape)
    return out.astype(goal, copy=False)


# Operators ----------------------------------------------------------------------------------------


def _conjugate(x: Tensor) -> Tensor:
    return x.conj() if x.array.dtype.kind == "c" else x


def _cropped(x: Tensor, sizes: Sizes) -> Tensor:
    """The first elements of the last dimensions."""
    lead = x.array.ndim - len(sizes)
    if x.array.shape[lead:] == tuple(sizes):
        return x
    return x[(..., *[slice(n) for n in sizes])]


def _input_gradient(
    g: Tensor, weight: Tensor, shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
    transposed: bool, groups: int,
) -> Tensor:  # fmt: skip
    """The gradient by an input of `shape`: the transposed operator with the same weight."""
    weight, none = _conjugate(weight), (0,) * len(stride)
    if transposed:
        found = convolve.call((g, weight, None, stride, padding, dilation, False, none, groups))
        return _cropped(found, shape[2:])
    extra = _missing(
        shape[2:], g.array.shape[2:], weight.array.shape[2:], stride, padding, dilation
    )
    return convolve.call((g, weight, None, stride, padding, dilation, True, extra, groups))


def _weight_rule(
    g: Tensor, x: Tensor, shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
    transposed: bool, groups: int,
) -> Tensor:  # fmt: skip
    x = _conjugate(x)
    pair = (g, x) if transposed else (x, g)
    return weight_gradient.call((*pair, shape[2:], stride, padding, dilation, groups))


def _tangent(
    tangents: dict, x: Tensor, weight: Tensor, stride: Sizes, padding: Sizes, dilation: Sizes,
    transposed: bool, extra: Sizes, groups: int, out: Tensor,
) -> Tensor:  # fmt: skip
    options = (stride, padding, dilation, transposed, extra, groups)
    terms = []
    if "input" in tangents:
        terms.append(convolve.call((tangents["input"], weight, None, *options)))
    if "weight" in tangents:
        terms.append(convolve.call((x, tangents["weight"], None, *options)))
    if "bias" in tangents:
        bias = tangents["bias"].reshape((-1, *(1,) * len(stride)))
        terms.append(bias if terms else bias.expand(out.array.shape))
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


convolve: Operator = primitive(
    "_convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, "
    "int[] dilation, bool transposed, int[] output_padding, int groups) -> Tensor",
    _convolve,
    {
        "input": lambda g, input_shape, weight, stride, padding, dilation, transposed, groups: (
            _input_gradient(
                g, weight, input_shape, stride, padding, dilation, transposed, groups
            )
        ),
        "weight": lambda g, input, weight_shape, stride, padding, dilation, transposed, groups: (
            _weight_rule(g, input, weight_shape, stride, padding, dilation, transposed, groups)
        ),
        "bias": lambda g: g.sum((0, *range(2, g.array.ndim))),
    },
    lambda tangents, input, weight, stride, padding, dilation, transposed, output_padding, groups,
    out: _tangent(
        tangents, input, weight, stride, padding, dilation, transposed, output_padding, groups,
        out,
    ),
    widens=False,
    meta=_convolve_meta,
    batch=batched.convolution,
    cost="product",
    called=True,
    aten="convolution",
    name="ConvolutionBackward0",
    doc="Convolution, or its transpose, with all options given.",
)  # fmt: skip
weight_gradient: Operator = linear(
    "_convolution_weight(Tensor input, Tensor grad, int[] kernel, int[] stride, int[] padding, "
    "int[] dilation, int groups) -> Tensor",
    _weight_gradient,
    {
        "input": lambda g, input_shape, grad, stride, padding, dilation, groups: (
            _input_gradient(
                _conjugate(grad), _conjugate(g), input_shape, stride, padding, dilation, False,
                groups,
            )
        ),
        "grad": lambda g, input, grad_shape, stride, padding, dilation, groups: _cropped(
            convolve.call(
                (_conjugate(input), g, None, stride, padding, dilation, False,
                 (0,) * len(stride), groups)
            ),
            grad_shape[2:],
        ),
    },
    meta=lambda x, g, kernel, stride, padding, dilation, groups: meta.empty(
        (g.shape[1], x.shape[1] // groups, *kernel), x.dtype
    ),
    batch=batched.weight_gradient,
    cost="product",
    called=True,
    name="ConvolutionBackwardBackward0",
    doc="The gradient of a convolution by its weight, from the input and the gradient.",
)  # fmt: skip


def expanded(name: str, value: Any, count: int) -> Sizes:
    """An option of a convolution for each of its dimensions."""
    if isinstance(value, int):
        return (value,) * count
    sizes = tuple(value)
    if len(sizes) == 1:
        return sizes * count
    if len(sizes) != count:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {count} values to match "
            f"the convolution dimensions, but got {name}={list(sizes)}"
        )
    return sizes


@composite(public="function")
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Tensor:
    """A convolution, or its transpose, in as many dimensions as the weight has behind two."""
    count = weight.array.ndim - 2
    if count < 1 or input.array.ndim not in (count + 1, count + 2):
        raise RuntimeError(
            f"Expected {count + 2}-dimensional input for {count + 2}-dimensional weight "
            f"{shape_text(weight.array.shape)}, but got {input.array.ndim}-dimensional input of "
            f"size {shape_text(input.array.shape)} instead"
        )
    if input.array.dtype.kind == "c":
        raise NotImplementedError(
            f"\"convolution\" not implemented for '{scalar_name(input.array.dtype)}': conv{count}d "
            "takes complex numbers"
        )
    single = input.array.ndim == count + 1
    out = convolve.call(
        (
            input.unsqueeze(0) if single else input,
            weight,
            bias,
            expanded("stride", stride, count),
            expanded("padding", padding, count),
            expanded("dilation", dilation, count),
            bool(transposed),
            expanded("output_padding", output_padding, count),
            groups,
        )
    )
    return out.squeeze(0) if single else out
