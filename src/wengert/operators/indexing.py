"""Slices at a vector of indices, masks, positions in the flattened tensor, and embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends import meta
from ..backends.geometry import wrap_dim
from ..core import dtypes
from ..core.errors import shape_text
from ..core.numbers import check_number
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..dispatch.out import copy_to_out
from ..transforms.batching import indexing as batched
from ..transforms.batching.rules import varying
from . import shapes
from .along import packed
from .declare import linear, nondifferentiable
from .getitem import (
    INTEGER_TYPES,
    add_at,
    check_range,
    index,
    index_backward,
    refuse_meta,
    tangent_of,
    update,
)
from .pointwise import new_zeros, where, zeros_like
from .products import total_size
from .scatter import gather

__all__ = [
    "argwhere", "embedding", "index_add", "index_copy", "index_fill", "index_select", "masked_fill",
    "masked_scatter", "masked_select", "nonzero", "one_hot", "put", "take", "take_along_dim",
]  # fmt: skip

_OUT_OF_RANGE = "index out of range in self: "


def _scalar_name(array: Any) -> str:
    return dtypes.from_numpy(array.dtype).scalar_name


# One vector of indices for a whole dimension ------------------------------------------------------


def _key_at(dim: int, index: Any) -> tuple:
    return (slice(None),) * dim + (index.reshape(-1),)


def _indices_at(dim: int, ndim: int, index: Tensor) -> list:
    return [None] * wrap_dim(dim, ndim) + [index]


def _index_select(xp: Any, x: Any, dim: int, index: Any) -> Any:
    dim = wrap_dim(dim, x.ndim)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype not in INTEGER_TYPES:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if x.ndim == 0:
        if index.size != 1:
            raise RuntimeError(
                "index_select(): Index to scalar can have only 1 value, got "
                f"{index.size} value(s)"
            )
        check_range(index, dim, 1, _OUT_OF_RANGE, IndexError)
        return x.copy()
    if x.ndim > 1 and index.size and not x.shape[dim]:
        raise RuntimeError(
            "index_select(): self indexing axis dim should be positive: there is nothing to select "
            f"in dimension {dim} of shape {shape_text(x.shape)}"
        )
    check_range(index, dim, x.shape[dim], _OUT_OF_RANGE, IndexError)
    return x.take(index.reshape(-1), dim)


def _index_select_backward(g: Tensor, shape: tuple, dim: int, index: Tensor) -> Tensor:
    if not shape:
        return g
    index = index.reshape(-1)
    return index_backward.call((g, shape, _indices_at(dim, len(shape), index)))


index_select = linear(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    _index_select,
    lambda g, self_shape, dim, index: _index_select_backward(g, self_shape, dim, index),
    shape=lambda x, dim, index: shapes.replaced(x, dim, index.size),
    batch=batched.index_select,
    raises="values",
    doc="The slices at given indices of a dimension, as a copy.",
)


def _check_slices(name: str, x: Any, dim: int, index: Any, source: Any) -> int:
    """Check the operands of index_add or index_copy; the dimension, counted from the front."""
    dim = wrap_dim(dim, x.ndim)
    if index.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
            f"{_scalar_name(index)} and size: {shape_text(index.shape)}"
        )
    if index.dtype not in INTEGER_TYPES or (
        name == "index_copy_" and index.dtype != dtypes.int64.numpy
    ):
        raise RuntimeError(
            f"{name}(): Expected a long tensor for index, but got {_scalar_name(index)}"
        )
    if source.dtype != x.dtype:
        raise RuntimeError(
            f"{name}(): self and source expected to have the same dtype, and must have the same "
            f"scalar type, but got (self) {_scalar_name(x)} and (source) {_scalar_name(source)}"
        )
    count = source.shape[dim] if source.ndim else 1
    error = IndexError if name == "index_copy_" else RuntimeError
    if index.size != count:
        raise error(
            f"{name}(): Number of indices ({index.size}) should be equal to source.size(dim): "
            f"({count}), for dim: {dim}"
        )
    rest, source_rest = list(x.shape), list(source.shape)
    del rest[dim : dim + 1], source_rest[dim : dim + 1]
    if rest != source_rest or name == "index_add_" and source.ndim > x.ndim:
        raise RuntimeError(
            f"{name}(): source tensor shape must match self tensor shape, excluding the specified "
            f"dimension. Got self.shape = {shape_text(x.shape)} source.shape = "
            f"{shape_text(source.shape)}: same slice shapes are needed"
        )
    prefix = "index_copy_(): " if name == "index_copy_" else _OUT_OF_RANGE
    check_range(index, dim, x.shape[dim] if x.ndim else 1, prefix, IndexError)
    return dim


def _index_add(xp: Any, out: Any, dim: int, index: Any, source: Any, alpha: Any) -> None:
    dim = _check_slices("index_add_", out, dim, index, source)
    factor = check_number(alpha, dtypes.from_numpy(out.dtype))
    values = source if factor == 1 else (source * factor).astype(out.dtype)
    if out.ndim:
        add_at(xp, out, _key_at(dim, index), values)
    else:
        out += values.reshape(())


index_add: Operator = update(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    _index_add,
    {
        "self": lambda g: g,
        "source": lambda g, dim, index, source_shape, alpha: (
            index_select.call((g, dim, index)) * alpha
        ).reshape(source_shape),
    },
    lambda tangents, self, dim, index, source, alpha: index_add.call(
        (
            tangent_of(tangents, "self", self),
            dim,
            index,
            tangent_of(tangents, "source", source),
            alpha,
        )
    ),
    shape=shapes.as_first,
    batch=batched.slices("scatter_add"),
    raises="values",
    doc="The tensor with `alpha` times the slices of `source` added at given indices.",
)


def _index_copy(xp: Any, out: Any, dim: int, index: Any, source: Any) -> None:
    dim = _check_slices("index_copy_", out, dim, index, source)
    if out.ndim:
        out[_key_at(dim, index)] = source
    elif source.size:
        out[...] = source.reshape(-1)[-1]


index_copy: Operator = update(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    _index_copy,
    {
        "self": lambda g, dim, index: index_fill.call((g, dim, index, 0)),
        "source": lambda g, dim, index, source_shape: index_select.call(
            (g, dim, index)
        ).reshape(source_shape),
    },
    lambda tangents, self, dim, index, source: index_copy.call(
        (tangent_of(tangents, "self", self), dim, index, tangent_of(tangents, "source", source))
    ),
    widens=False,
    shape=shapes.as_first,
    batch=batched.slices("scatter"),
    raises="values",
    doc="The tensor with the slices at given indices replaced by those of `source`.",
)


def _index_fill(xp: Any, out: Any, dim: int, index: Any, value: Any) -> None:
    dim = wrap_dim(dim, out.ndim)
    if index.dtype != dtypes.int64.numpy:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    _check_value("index_fill_", value)
    is_complex = isinstance(value, complex) or getattr(value, "dtype", out.dtype).kind == "c"
    if is_complex and out.dtype.kind != "c":
        raise RuntimeError(
            "index_fill_(): Converting complex Scalar to non-complex type is not supported"
        )
    if not hasattr(value, "dtype"):
        value = check_number(value, dtypes.from_numpy(out.dtype))
    length = out.shape[dim] if out.ndim else 1
    if index.size and (index.min().item() < -length or index.max().item() >= length):
        wrong = index[(index < -length) | (index >= length)][0].item()
        raise IndexError(f"index {wrong} is out of bounds for dimension {dim} with size {length}")
    if out.ndim:
        out[_key_at(dim, index)] = value
    elif index.size:
        out[...] = value


def _check_value(name: str, value: Any) -> None:
    if getattr(value, "ndim", 0):
        raise RuntimeError(
            f"{name} only supports a 0-dimensional value tensor, but got tensor with {value.ndim} "
            "dimension(s)."
        )


def _wrapped(index: Tensor, length: int) -> Tensor:
    """Indices counted from the front."""
    return where(index < 0, index + length, index)


def _filled_part(g: Tensor, dim: int, index: Tensor) -> Tensor:
    """The gradient where `index` points, else zero."""
    marked = index_fill.call((zeros_like(g), dim, index, 1))
    return where(marked == 0, 0, g)


index_fill: Operator = update(
    "index_fill(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    _index_fill,
    {
        "self": lambda g, dim, index: index_fill.call((g, dim, index, 0)),
        "value": lambda g, dim, index: _filled_part(g, dim, index).sum(),
    },
    lambda tangents, self, dim, index, value: index_fill.call(
        (tangent_of(tangents, "self", self), dim, index, tangent_of(tangents, "value", value))
    ),
    widens=False,
    to_expanded=True,
    keeps_order=True,
    name=lambda self, dim, index, value: f"IndexFillBackward{int(isinstance(value, Tensor))}",
    shape=shapes.as_first,
    batch=batched.index_fill,
    raises="values",
    doc="The tensor with one value written into the slices at given indices.",
    overload="int_Tensor",
)
index_fill.broadcasts = True


# Masks --------------------------------------------------------------------------------------------


def _check_fill(out: Any, mask: Any, value: Any) -> None:
    if mask.dtype.kind != "b":
        raise RuntimeError(
            "masked_fill_ only supports boolean masks, but got mask with dtype "
            f"{dtypes.from_numpy(mask.dtype).name}"
        )
    _check_value("masked_fill_", value)
    if not hasattr(value, "dtype"):
        check_number(value, dtypes.from_numpy(out.dtype))
    elif value.dtype.kind == "c" and out.dtype.kind != "c":
        check_number(value.item(), dtypes.from_numpy(out.dtype))


def _masked_fill(xp: Any, x: Any, mask: Any, value: Any) -> Any:
    _check_fill(x, mask, value)
    return packed(xp.where(mask, xp.asarray(value).astype(x.dtype), x))


def _masked_fill_into(xp: Any, out: Any, mask: Any, value: Any) -> None:
    _check_fill(out, mask, value)
    _check_mask_fits(xp, out, mask)
    xp.copyto(out, xp.asarray(value).astype(out.dtype), where=mask)


def _check_mask_fits(xp: Any, out: Any, mask: Any) -> None:
    whole = np.broadcast_shapes(out.shape, mask.shape)
    if whole != out.shape:
        raise RuntimeError(
            f"output with shape {shape_text(out.shape)} doesn't match the broadcast shape "
            f"{shape_text(whole)}"
        )


masked_fill: Operator = update(
    "masked_fill(Tensor self, Tensor mask, Tensor value) -> Tensor",
    _masked_fill_into,
    {
        "self": lambda g, mask: masked_fill.call((g, mask, 0)),
        "value": lambda g, mask: where(mask, g, 0).sum(),
    },
    lambda tangents, self, mask, value: masked_fill.call(
        (tangent_of(tangents, "self", self), mask, tangent_of(tangents, "value", value))
    ),
    kernel=_masked_fill,
    widens=False,
    to_expanded=True,
    name=lambda self, mask, value: f"MaskedFillBackward{int(isinstance(value, Tensor))}",
    shape=shapes.broadcast,
    batch=batched.masked_fill,
    doc="The tensor with one value where the mask is true.",
    overload="Tensor",
)
masked_fill.broadcasts = True


def _masked_select(xp: Any, x: Any, mask: Any) -> Any:
    if mask.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    x, mask = xp.broadcast_arrays(x, mask)
    return x[mask]


def _masked_select_backward(g: Tensor, shape: tuple, mask: Tensor) -> Tensor:
    whole = np.broadcast_shapes(shape, mask.array.shape)
    return index_backward.call((g, whole, [mask.expand(whole)]))


masked_select = linear(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    _masked_select,
    lambda g, self_shape, mask: _masked_select_backward(g, self_shape, mask),
    meta=refuse_meta("masked_select"),
    batch=batched.masked_select,
    doc="The elements where the mask is true, in one dimension.",
)
masked_select.broadcasts = True


def _masked_scatter(xp: Any, out: Any, mask: Any, source: Any) -> None:
    if mask.dtype.kind != "b":
        raise RuntimeError(
            "masked_scatter_ only supports boolean masks, but got mask with dtype "
            f"{dtypes.from_numpy(mask.dtype).name}"
        )
    if source.dtype != out.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got "
            f"{_scalar_name(out)} and {_scalar_name(source)}"
        )
    _check_mask_fits(xp, out, mask)
    mask = xp.broadcast_to(mask, out.shape)
    count = mask.sum().item()
    if source.size < count:
        raise RuntimeError(
            f"masked_scatter: Number of elements of source < number of ones in mask ({source.size} "
            f"< {count})"
        )
    out[mask] = source.reshape(-1)[:count]


def _masked_scatter_whole(xp: Any, x: Any, mask: Any, source: Any) -> Any:
    out = xp.broadcast_to(x, np.broadcast_shapes(x.shape, mask.shape)).copy()
    _masked_scatter(xp, out, mask, source)
    return out


def _masked_scatter_source(g: Tensor, mask: Tensor, shape: tuple) -> Tensor:
    """The gradient of the source, in which the ones of the mask are counted to find a place."""
    size = total_size(shape)
    if not size:
        return new_zeros.call((g, shape))
    mask = mask.expand(g.array.shape).reshape(-1)
    places = where(mask, mask.cumsum(0) - 1, 0)
    picked = where(mask, g.reshape(-1), 0)
    return index_backward.call((picked, (size,), [places])).reshape(shape)


masked_scatter: Operator = update(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    _masked_scatter,
    {
        "self": lambda g, mask: masked_fill.call((g, mask, 0)),
        "source": lambda g, mask, source_shape: _masked_scatter_source(g, mask, source_shape),
    },
    lambda tangents, self, mask, source: masked_scatter.call(
        (tangent_of(tangents, "self", self), mask, tangent_of(tangents, "source", source))
    ),
    kernel=_masked_scatter_whole,
    widens=False,
    from_itself=True,
    meta=lambda x, mask, source: meta.empty(np.broadcast_shapes(x.shape, mask.shape), x.dtype),
    batch=batched.masked_scatter,
    raises="values",
    doc="The tensor with the elements of `source`, in order, where the mask is true.",
)
masked_scatter.broadcasts = True


# Positions in the flattened tensor ----------------------------------------------------------------


def _check_flat(name: str, x: Any, index: Any) -> None:
    if index.dtype != dtypes.int64.numpy:
        raise RuntimeError(
            f"{name}(): Expected a long tensor for index, but got {_scalar_name(index)}"
        )
    if index.size and not x.size:
        raise IndexError(f"{name}(): tried to {name} from an empty tensor")
    if index.size and (index.min().item() < -x.size or index.max().item() >= x.size):
        wrong = index[(index < -x.size) | (index >= x.size)][0].item()
        raise IndexError(
            f"out of range: tried to access index {wrong} on a tensor of {x.size} elements."
        )


def _take(xp: Any, x: Any, index: Any) -> Any:
    _check_flat("take", x, index)
    return x.take(index) if index.size else xp.zeros(index.shape, x.dtype)


take = linear(
    "take(Tensor self, Tensor index) -> Tensor",
    _take,
    lambda g, self_shape, index: index_backward.call(
        (g.reshape(-1), (total_size(self_shape),), [index.reshape(-1)])
    ).reshape(self_shape),
    shape=lambda x, index: index.shape,
    batch=batched.take,
    raises="values",
    doc="The elements at given positions of the flattened tensor.",
)


def _put(xp: Any, out: Any, index: Any, source: Any, accumulate: bool) -> None:
    if source.dtype != out.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{_scalar_name(out)} and source.dtype = {_scalar_name(source)}"
        )
    if index.size != source.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.size}, index.numel() = {index.size}"
        )
    _check_flat("put_", out, index)
    positions = xp.where(index < 0, index + out.size, index).reshape(-1)
    key = xp.unravel_index(positions, out.shape) if out.ndim else ()
    if accumulate:
        xp.add.at(out, key, source.reshape(-1) if out.ndim else source.sum())
    elif index.size:
        out[key] = source.reshape(-1) if out.ndim else source.reshape(-1)[-1]


put: Operator = update(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    _put,
    {
        "self": lambda g, index, accumulate: (
            g
            if accumulate
            else put.call((g, index, new_zeros.call((g, index.array.shape)), False))
        ),
        "source": lambda g, index, source_shape: take.call((g, index)).reshape(source_shape),
    },
    lambda tangents, self, index, source, accumulate: put.call(
        (
            tangent_of(tangents, "self", self),
            index,
            tangent_of(tangents, "source", source),
            accumulate,
        )
    ),
    keeps_order=True,
    shape=shapes.as_first,
    batch=batched.put,
    raises="values",
    doc="The tensor with values written at, or added to, positions of the flattened tensor.",
)


def take_along_dim(
    input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Elements picked along a dimension, where the other dimensions broadcast.

    Without `dim` the tensor is flattened first. Negative indices count from the end.
    """
    if indices.array.dtype != dtypes.int64.numpy:
        raise RuntimeError(
            "wengert.take_along_dim(): dtype of indices should be Long but got "
            f"{_scalar_name(indices.array)}"
        )
    if dim is None:
        indices = indices.reshape(-1)
        return gather(input.reshape(-1), 0, _wrapped(indices, input.array.size), out=out)
    shape, index_shape = input.array.shape, indices.array.shape
    if len(shape) != len(index_shape):
        raise RuntimeError(
            "take_along_dim(): input and indices should have the same number of dimensions, but "
            f"got {len(shape)} dimensions for input, and {len(index_shape)} dimensions for indices"
        )
    dim = wrap_dim(dim, len(shape))
    if not shape:
        return gather(input, 0, indices, out=out)
    others = np.broadcast_shapes(
        (*shape[:dim], 1, *shape[dim + 1 :]), (*index_shape[:dim], 1, *index_shape[dim + 1 :])
    )
    input = input.expand((*others[:dim], shape[dim], *others[dim + 1 :]))
    indices = indices.expand((*others[:dim], index_shape[dim], *others[dim + 1 :]))
    return gather(input, dim, _wrapped(indices, shape[dim]), out=out)


# Where elements are -------------------------------------------------------------------------------

argwhere = nondifferentiable(
    "argwhere(Tensor self) -> Tensor",
    lambda xp, x: xp.argwhere(x),
    meta=refuse_meta("nonzero"),
    batch=varying("nonzero()"),
    doc="The indices of the elements that are not zero, one row for each.",
)


def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not zero: as rows, or as one tensor per dimension."""
    ndim = input.array.ndim
    if not as_tuple:
        found = argwhere.call1(input)
        return found if out is None else copy_to_out("nonzero", found, out, (), True)
    if out is not None:
        raise TypeError("nonzero(): out= and as_tuple=True do not go together")
    found = argwhere.call1(input.reshape(1) if ndim == 0 else input)
    return found.unbind(1)


def _one_hot(xp: Any, x: Any, num_classes: int) -> Any:
    if x.dtype != dtypes.int64.numpy:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not x.size and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if x.size and x.min().item() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = x.max().item() + 1
    elif x.size and x.max().item() >= num_classes:
        raise RuntimeError(
            f"Class values must be smaller than num_classes. one_hot() got the class "
            f"{x.max().item()} and num_classes={num_classes}"
        )
    return (packed(x)[..., None] == xp.arange(num_classes)).astype(x.dtype)


def _one_hot_meta(x: Any, num_classes: int) -> Any:
    if num_classes == -1:
        return refuse_meta("one_hot")()
    return meta.sampled(_one_hot, lambda x, classes: (*x.shape, classes), x, num_classes)


one_hot = nondifferentiable(
    "_one_hot(Tensor self, int num_classes=-1) -> Tensor",
    _one_hot,
    meta=_one_hot_meta,
    batch=batched.one_hot,
    raises="values",
    doc="For each class number a row of zeros with a one in its place.",
    public="",
    aten="one_hot",
)


# Embedding ----------------------------------------------------------------------------------------


def _embedding(
    xp: Any, weight: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Any:
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices.dtype not in INTEGER_TYPES:
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got {_scalar_name(indices)} instead (while checking arguments for "
            "embedding)"
        )
    if sparse:
        raise NotImplementedError("embedding(): sparse gradients are not supported")
    if indices.size and (indices.min().item() < 0 or indices.max().item() >= weight.shape[0]):
        wrong = indices.min().item() if indices.min().item() < 0 else indices.max().item()
        raise IndexError(
            f"index out of range in self: embedding() got the index {wrong}, and weight has "
            f"{weight.shape[0]} rows"
        )
    return weight.take(indices, 0)


def _embedding_backward(
    g: Tensor, shape: tuple, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    """Rows of the gradient added up by index; those of the padding are left out."""
    if padding_idx >= 0:
        g = masked_fill.call((g, (indices == padding_idx).unsqueeze(-1), 0))
    if scale_grad_by_freq:
        ones = zeros_like(indices) + 1
        counts = index.call((index_backward.call((ones, shape[:1], [indices])), [indices]))
        g = g / counts.unsqueeze(-1)
    return index_backward.call((g, shape, [indices]))


embedding = linear(
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, "
    "bool sparse=False) -> Tensor",
    _embedding,
    lambda g, weight_shape, indices, padding_idx, scale_grad_by_freq: _embedding_backward(
        g, weight_shape, indices, padding_idx, scale_grad_by_freq
    ),
    shape=lambda weight, indices, *rest: (*indices.shape, *weight.shape[1:]),
    batch=batched.embedding,
    raises="values",
    doc="The rows of a table at given indices.",
    public="function",
)
