"""Copies, casts and fills: clone, to, copy_, fill_, zero_, and the zeros that rules need."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..backends import meta
from ..backends.casting import as_real_for
from ..backends.layout import copied
from ..backends.loop_codes import COPY
from ..backends.placement import of_array, transfer
from ..core.dtypes import from_numpy
from ..core.errors import broadcast_error, shape_text
from ..core.layouts import inverse_order
from ..core.numbers import check_number
from ..core.registry import operator_named
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from . import shapes
from .declare import ELEMENTWISE, linear, nondifferentiable, primitive

__all__ = ["clone"]

_IN_PLACE = "transforms.batching.views.in_place"

zeros_like = nondifferentiable(
    "_zeros_like(Tensor self) -> Tensor",
    lambda xp, x: xp.zeros(x.shape, x.dtype),
    shape=shapes.as_first,
    batch=ELEMENTWISE,
    doc="Zeros in the shape and dtype of a tensor, as gradient rules need them.",
)
new_zeros = nondifferentiable(
    "_new_zeros(Tensor self, int[] size) -> Tensor",
    lambda xp, x, size: xp.zeros(size, x.dtype),
    meta=lambda x, size: meta.empty(size, x.dtype),
    batch=lambda operator, args, dims: (operator.call(args), None),
    doc="Zeros of a size in the dtype of a tensor, as gradient rules need them.",
)

clone = linear(
    "clone(Tensor self) -> Tensor",
    lambda xp, x: copied(x),
    lambda g: g,
    meta=copied,
    batch=_IN_PLACE,
    doc="A copy that gradients flow through.",
)
stop_gradient = nondifferentiable(
    "_stop_gradient(Tensor(a) self) -> Tensor(a)",
    lambda xp, x: x.view(),
    view=True,
    batch=_IN_PLACE,
    doc="A view of this memory that no gradient passes: detach() in a graph.",
)
with_value = primitive(
    "_with_value(Tensor self, Tensor value) -> Tensor",
    lambda xp, x, value: copied(value),
    {"self": lambda g: g, "value": None},
    lambda tangents: tangents.get("self"),
    meta=lambda x, value: copied(value),
    batch=ELEMENTWISE,
    doc="Another value with the gradient of `self`: what a change outside the graph means in it.",
)
cast = linear(
    "_to_copy(Tensor self, dtype dtype) -> Tensor",
    lambda xp, x, dtype: copied(as_real_for(dtype.numpy, x), dtype.numpy),
    lambda g: g,
    meta=lambda x, dtype: copied(x, dtype.numpy),
    name="ToCopyBackward0",
    batch=_IN_PLACE,
    doc="A copy with another dtype; the engine casts the gradient back.",
)

pack = linear(
    "_contiguous(Tensor self) -> Tensor",
    lambda xp, x: x.copy("C"),
    lambda g: g,
    name="CloneBackward0",
    shape=shapes.as_first,
    batch="transforms.batching.views.in_front",
    doc="A copy in row-major order.",
)


def _packed_in_order(xp: Any, x: Any, order: tuple[int, ...]) -> Any:
    return x.transpose(order).copy("C").transpose(inverse_order(order))


pack_in_order = linear(
    "_contiguous_in_order(Tensor self, int[] order) -> Tensor",
    _packed_in_order,
    lambda g: g,
    name="CloneBackward0",
    meta=lambda x, order: meta.empty(
        tuple([x.shape[d] for d in order]), x.dtype
    ).transpose(inverse_order(order)),
    batch="transforms.batching.copies.in_order",
    doc="A copy whose dimensions follow each other in memory in the given order.",
)
to_device = linear(
    "_to_device(Tensor self, Device device, Device source) -> Tensor",
    lambda xp, x, device, source: transfer(x, device),
    lambda g, source: g.to(source),
    name="ToCopyBackward0",
    meta=lambda x, device, source: transfer(x, device),
    batch=_IN_PLACE,
    doc="A copy on another device.",
)


def _fitting(value: Any, array_dtype: Any) -> Any:
    """One value that an array of this type can hold, or an error."""
    if not hasattr(value, "dtype"):
        return check_number(value, from_numpy(array_dtype))
    if value.ndim:
        raise RuntimeError(
            "fill_ only supports 0-dimension value tensor but got tensor with "
            f"{value.ndim} dimensions."
        )
    return as_real_for(array_dtype, value)


def _copy_kernel(xp: Any, target: Any, source: Any, non_blocking: bool) -> Any:
    source = as_real_for(target.dtype, xp.asarray(source))
    if source.ndim > target.ndim or any(
        a != b and a != 1
        for a, b in zip(reversed(source.shape), reversed(target.shape), strict=False)
    ):
        cause = RuntimeError(
            f"output with shape {shape_text(target.shape)} doesn't match the broadcast shape "
            f"{shape_text(source.shape)}: copy_() cannot enlarge its target"
        )
        raise broadcast_error("copy_", (target, source), cause)
    return xp.broadcast_to(source, target.shape)


copy: Operator = primitive(
    "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
    _copy_kernel,
    {"self": lambda g: zeros_like(g), "src": lambda g: g},
    lambda tangents, self: (
        copy(self, tangents["src"]) if "src" in tangents else zeros_like(tangents["self"])
    ),
    inplace=True,
    widens=False,
    shape=shapes.as_first,
    batch="transforms.batching.copies.copy",
    name="CopyBackwards",
    doc="The values of `src` in the shape and dtype of the tensor.",
)
fill: Operator = primitive(
    "fill(Tensor self, Tensor value) -> Tensor",
    lambda xp, x, value: xp.full(x.shape, _fitting(value, x.dtype), x.dtype),
    {"self": lambda g: zeros_like(g), "value": lambda g: g.sum()},
    lambda tangents, self: (
        fill(self, tangents["value"]) if "value" in tangents else zeros_like(tangents["self"])
    ),
    inplace=True,
    widens=False,
    shape=shapes.as_first,
    batch="transforms.batching.copies.fill",
    name=lambda self, value: f"FillBackward{2 + int(isinstance(value, Tensor))}",
    doc="One value in the shape and dtype of the tensor.",
    overload="Tensor",
)
zero = primitive(
    "zero(Tensor self) -> Tensor",
    lambda xp, x: xp.zeros(x.shape, x.dtype),
    lambda g: zeros_like(g),
    lambda tangents: zeros_like(tangents["self"]),
    inplace=True,
    widens=False,
    shape=shapes.as_first,
    batch=ELEMENTWISE,
    doc="Zeros in the shape and dtype of the tensor.",
)


def _onto_meta(rule: Any, target: Any, *rest: Any) -> Any:
    if of_array(target).type != "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    return rule(target, *rest)


for _operator in (copy, fill):
    _operator.broadcasts = True
    _operator.meta_rule = partial(_onto_meta, _operator.meta_rule)
copy.moves_operands = True
copy.native_code = COPY
for _name in ("copy_", "fill_"):
    operator_named(_name).casts_freely = True
for _name in ("fill_", "zero_"):
    operator_named(_name).uniform = True
copy_ = operator_named("copy_")
fill_ = operator_named("fill_")
zero_ = operator_named("zero_")
