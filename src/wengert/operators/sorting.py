"""Order: sort, topk, medians and quantiles, distinct elements, search in sorted sequences."""

from __future__ import annotations

import math
from typing import Any

from .. import return_types
from ..backends import meta
from ..backends.backend import backend_of
from ..backends.layout import empty_in_order
from ..core import dtypes
from ..core.errors import shape_text
from ..core.tensor import Tensor
from ..creation.conversion import tensor
from ..dispatch.operator import overloaded
from ..dispatch.out import copy_to_out
from ..transforms.batching.moving import batch_size, flattened, reshaped, with_batch
from ..transforms.batching.rules import along, flat, varying
from . import shapes
from .along import (
    check_not_empty,
    check_ordered,
    normal_dim,
    packed,
    put_along,
    reduced,
    reduced_pair,
    returning,
    scalar_name,
    shared_evenly,
    shared_tangent,
    take_along,
    widened,
)
from .conditions import require
from .declare import composite, nondifferentiable, primitive
from .getitem import refuse_meta
from .pointwise import ceil, floor, isnan, lerp, logical_not, round, where
from .reduce import any, sum

__all__ = [
    "argsort", "bucketize", "kthvalue", "median", "mode", "msort", "nanmedian", "nanquantile",
    "quantile", "searchsorted", "sort", "topk", "unique", "unique_consecutive",
]  # fmt: skip

_INT64 = dtypes.int64.numpy

# Sorting -----------------------------------------------------------------------------------------


def _order(xp: Any, x: Any, dim: int, descending: bool) -> Any:
    """Indices that sort; equal elements keep their order, NaN counts as largest."""
    if not descending:
        return xp.argsort(x, axis=dim, kind="stable")
    backwards = xp.argsort(xp.flip(x, dim), axis=dim, kind="stable")
    return x.shape[dim] - 1 - xp.flip(backwards, dim)


def _sort(xp: Any, x: Any, dim: int, descending: bool, stable: bool | None) -> Any:
    dim = normal_dim(dim, x.ndim)
    if x.dtype.kind == "c":
        raise RuntimeError("Sort does not support complex dtypes on CPU")
    if not x.ndim:
        return x.copy(), xp.zeros((), _INT64)
    order = _order(xp, x, dim, descending)
    values = xp.take_along_axis(x, order, dim)
    return _in_order_of(xp, x, values), _in_order_of(xp, x, order)


def _in_order_of(xp: Any, x: Any, values: Any) -> Any:
    """An array of the shape of `x` in the memory order of `x`."""
    if x.flags.c_contiguous:
        return values
    out = empty_in_order(x, values.dtype)
    out[...] = values
    return out


def _selecting(
    schema: str,
    kernel: Any,
    doc: str,
    reduces: bool = False,
    meta_rule: Any = None,
    name: Any = None,
) -> Any:
    """An operator that selects elements along `dim`, and their indices, each element once.

    One that `reduces` has an argument `keepdim` and leaves at most one element.
    """
    base, _, overload = schema.partition("(")[0].partition(".")
    vjp: Any = lambda g, self_shape, dim, out1: put_along(g[0], self_shape, dim, out1, True)
    jvp: Any = lambda tangents, dim, out1: (take_along(tangents["self"], dim, out1, True), None)
    if reduces:
        vjp = lambda g, self_shape, dim, keepdim, out1: put_along(
            g[0], self_shape, dim, out1, keepdim
        )
        jvp = lambda tangents, dim, keepdim, out1: (
            take_along(tangents["self"], dim, out1, keepdim),
            None,
        )
    operator = primitive(
        schema + " -> (Tensor values, Tensor indices)",
        kernel,
        vjp,
        jvp,
        nondifferentiable_outputs=(1,),
        shape=reduced_pair if reduces else shapes.pair_as_first,
        meta=meta_rule,
        batch=along("dim"),
        name=name or f"{base.title()}Backward{1 if overload else 0}",
        cost="slow",
        doc=doc,
    )
    return returning(getattr(return_types, base), operator)


sort = _selecting(
    "sort(Tensor self, int dim=-1, bool descending=False, *, bool? stable=None)",
    _sort,
    "Elements in order along a dimension, and their indices; equal elements keep their order.",
    name=lambda self, dim, descending, stable: f"SortBackward{int(stable is not None)}",
)
argsort = nondifferentiable(
    "argsort(Tensor self, int dim=-1, bool descending=False, *, bool? stable=None) -> Tensor",
    lambda xp, x, dim, descending, stable: _sort(xp, widened(x), dim, descending, stable)[1],
    shape=shapes.as_first,
    batch=along("dim"),
    cost="slow",
    doc="Indices that sort along a dimension.",
)


def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Elements in order along the first dimension."""
    values = sort(input, 0).values
    return values if out is None else copy_to_out("msort", values, out, (), True)


def _checked_topk(x: Any, k: int, dim: int) -> tuple[int, int]:
    """The dimension, from the front, and its length."""
    dim = normal_dim(dim, x.ndim)
    length = x.shape[dim] if x.ndim else 1
    if not 0 <= k <= length:
        raise RuntimeError(
            f"selected index k out of range: topk() got k={k} for dimension {dim} of size {length} "
            f"of a tensor of shape {shape_text(x.shape)}"
        )
    if x.dtype.kind in "bc":
        word = "bool" if x.dtype.kind == "b" else "complex"
        raise RuntimeError(f"topk does not support {word} dtypes")
    return dim, length


def _topk_meta(x: Any, k: int, dim: int, largest: bool, sorted: bool) -> Any:
    dim, _ = _checked_topk(x, k, dim)
    return _meta_pair(x, shapes.replaced(x, dim, k))


def _meta_pair(x: Any, shape: tuple[int, ...]) -> Any:
    """Values and indices without values."""
    return meta.empty(shape, x.dtype), meta.empty(shape, _INT64)


def _topk(xp: Any, x: Any, k: int, dim: int, largest: bool, sorted: bool) -> Any:
    dim, length = _checked_topk(x, k, dim)
    if not x.ndim:
        return x.copy(), xp.zeros((), _INT64)
    if 0 < k <= length // 8:
        first = length - k if largest else 0
        candidates = xp.argpartition(x, first if largest else k - 1, axis=dim)
        candidates = _slice(candidates, dim, first, first + k)
        picked = xp.take_along_axis(x, candidates, dim)
        order = xp.take_along_axis(candidates, _order(xp, picked, dim, largest), dim)
        order = xp.ascontiguousarray(order)
    else:
        order = _slice(_order(xp, x, dim, largest), dim, 0, k).copy("C")
    return xp.take_along_axis(x, order, dim), order


def _slice(x: Any, dim: int, start: int, stop: int) -> Any:
    return x[(slice(None),) * dim + (slice(start, stop),)]


topk = _selecting(
    "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True)",
    _topk,
    "The `k` largest or smallest elements along a dimension, and their indices.",
    meta_rule=_topk_meta,
)

# One element by its rank -------------------------------------------------------------------------


def _pick(xp: Any, x: Any, dim: int, keepdim: bool, index: Any) -> Any:
    """The elements at `index`, of size one along `dim`, with that dimension kept or not."""
    values = xp.take_along_axis(x, index, dim)
    return (values, index) if keepdim else (xp.squeeze(values, dim), xp.squeeze(index, dim))


def _check_number(name: str, x: Any) -> None:
    if x.dtype.kind in "bc":
        raise NotImplementedError(f'"{name}" not implemented for \'{scalar_name(x.dtype)}\'')


def _checked_rank(x: Any, k: int, dim: int) -> int:
    """The dimension, from the front."""
    dim = normal_dim(dim, x.ndim)
    check_not_empty("kthvalue", x, (dim,))
    _check_number("kthvalue", x)
    if not 1 <= k <= (x.shape[dim] if x.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    return dim


def _kthvalue_meta(x: Any, k: int, dim: int, keepdim: bool) -> Any:
    return _meta_pair(x, reduced(x, _checked_rank(x, k, dim), keepdim))


def _kthvalue(xp: Any, x: Any, k: int, dim: int, keepdim: bool) -> Any:
    dim = _checked_rank(x, k, dim)
    if not x.ndim:
        return x.copy(), xp.zeros((), _INT64)
    # A copy, which does not keep the order of all the others.
    index = _slice(_order(xp, x, dim, False), dim, k - 1, k).copy("C")
    return _pick(xp, x, dim, keepdim, index)


kthvalue = _selecting(
    "kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False)",
    _kthvalue,
    "The `k`-th smallest element along a dimension, and its index.",
    reduces=True,
    meta_rule=_kthvalue_meta,
)


def _median_index(xp: Any, x: Any, dim: int, ignores_nan: bool) -> Any:
    """Index of the median, the lower one of two; with NaN, of the first NaN or of the others'."""
    order = _order(xp, x, dim, False)
    length = x.shape[dim]
    numbers = packed(xp.sum(x == x, axis=dim, keepdims=True))
    if ignores_nan:
        rank = xp.maximum(numbers - 1, 0) // 2
    else:
        rank = xp.where(numbers < length, numbers, (length - 1) // 2)
    return xp.take_along_axis(order, rank, dim)


def _besides(name: str) -> str:
    return " that are not NaN" if name == "nanmedian" else ""


def _median_of_all(name: str) -> Any:
    def kernel(xp: Any, x: Any) -> Any:
        _check_number(name, x)
        flat = x.reshape(-1)
        if not flat.size:
            missing = float("nan") if x.dtype.kind in "fV" else xp.iinfo(x.dtype).min
            return xp.full((), missing, x.dtype)
        return flat[_median_index(xp, flat, 0, name == "nanmedian")].reshape(())

    return primitive(
        f"{name}(Tensor self) -> Tensor",
        kernel,
        lambda g, self, out: shared_evenly(g, self, out),
        lambda tangents, self, out: shared_tangent(tangents["self"], self, out),
        shape=shapes.number,
        batch=flat(f"{name}.dim", several=True),
        cost="slow",
        doc=f"The median of all elements{_besides(name)}, the lower one of two.",
    )


def _median_along(name: str) -> Any:
    def kernel(xp: Any, x: Any, dim: int, keepdim: bool) -> Any:
        dim = normal_dim(dim, x.ndim)
        check_not_empty(name, x, (dim,))
        _check_number(name, x)
        if not x.ndim:
            return x.copy(), xp.zeros((), _INT64)
        return _pick(xp, x, dim, keepdim, _median_index(xp, x, dim, name == "nanmedian"))

    return _selecting(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False)",
        kernel,
        f"The median of all elements or along a dimension{_besides(name)}, the lower one of two, "
        "and its index.",
        reduces=True,
    )


median = overloaded(_median_of_all("median"), _median_along("median"))
nanmedian = overloaded(_median_of_all("nanmedian"), _median_along("nanmedian"))


def _mode(xp: Any, x: Any, dim: int, keepdim: bool) -> Any:
    """In sorted order each value is a run; the longest run's last element is the answer."""
    dim = normal_dim(dim, x.ndim)
    check_not_empty("mode", x, (dim,))
    check_ordered("mode", x)
    if not x.ndim:
        return x.copy(), xp.zeros((), _INT64)
    order = _order(xp, x, dim, False)
    ordered = xp.take_along_axis(x, order, dim)
    place = xp.arange(x.shape[dim]).reshape((-1,) + (1,) * (x.ndim - dim - 1))
    length = x.shape[dim]
    starts = _slice(ordered, dim, 1, length) != _slice(ordered, dim, 0, length - 1)
    starts = xp.concatenate([xp.ones_like(_slice(ordered, dim, 0, 1), bool), starts], axis=dim)
    run = place - backend_of(x).accumulate("maximum", xp.where(starts, place, 0), dim)
    best = xp.expand_dims(xp.argmax(run, axis=dim), dim)
    return _pick(xp, x, dim, keepdim, xp.take_along_axis(order, best, dim))


mode = _selecting(
    "mode(Tensor self, int dim=-1, bool keepdim=False)",
    _mode,
    "The most frequent element along a dimension, the smallest of several, and its last index.",
    reduces=True,
)

# Quantiles ---------------------------------------------------------------------------------------

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(
    name: str, x: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str
) -> Tensor:
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {interpolation}"
        )
    ranks_of = _checked_levels(name, x, q)
    ndim = x.array.ndim
    where_to = 0 if dim is None else normal_dim(dim, ndim)
    rows = x.reshape(-1) if dim is None or not ndim else x.movedim(where_to, -1)
    ordered = sort(rows).values
    *others, length = rows.array.shape
    if keepdim:
        others = [1] * ndim if dim is None else [*others[:where_to], 1, *others[where_to:]][:ndim]
        ordered = ordered.view(*others, length)
    nan = isnan(ordered)
    last = length - 1
    if name == "nanquantile":
        tops = (sum(logical_not(nan), -1, True) - 1).clamp(min=0)
        ranks = ranks_of * tops
    else:
        ranks = where(any(nan, -1, True), last, ranks_of * last)
    result = _interpolated(ordered, ranks, interpolation)
    if isinstance(q, Tensor) and q.array.ndim:
        return result.unsqueeze_(0).transpose_(0, -1).squeeze_(-1)
    return result.squeeze_(-1)


def _checked_levels(name: str, x: Tensor, q: Any) -> Tensor:
    """The levels as a vector in the type of `x`."""
    if x.array.dtype not in (dtypes.float32.numpy, dtypes.float64.numpy):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if not x.array.size:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
        return x.new_full((1,), q)
    if q.array.dtype != x.array.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if q.array.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    require((q >= 0) & (q <= 1), f"{name}() q values must be in the range [0, 1]")
    return q.reshape(-1)


def _interpolated(ordered: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    """The values at fractional places of sorted rows."""
    shape = (*ordered.shape[:-1], ranks.array.shape[-1])
    if interpolation == "nearest":
        return ordered.gather(-1, round(ranks).long().expand(shape))
    below, above = floor(ranks), ceil(ranks)
    low = ordered.gather(-1, (above if interpolation == "higher" else below).long().expand(shape))
    if interpolation in ("lower", "higher"):
        return low
    high = ordered.gather(-1, above.long().expand(shape))
    weights = ranks.new_full(ranks.shape, 0.5) if interpolation == "midpoint" else ranks - below
    return lerp(low, high, weights)


def _named_quantile(name: str, doc: str) -> Any:
    def function(
        input: Tensor,
        q: float | Tensor,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
        out: Tensor | None = None,
    ) -> Tensor:
        result = _quantile(name, input, q, dim, keepdim, interpolation)
        return result if out is None else copy_to_out(name, result, out, (), True)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


quantile = _named_quantile(
    "quantile", "The quantiles at levels `q` of all elements or along a dimension; NaN spreads."
)
nanquantile = _named_quantile(
    "nanquantile", "The quantiles at levels `q` of the elements that are not NaN."
)


# Distinct elements -------------------------------------------------------------------------------


def _no_derivative(name: str) -> Any:
    def rule(g: Any) -> Tensor:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented")

    return rule


def _nothing(xp: Any) -> Any:
    return xp.zeros(0, _INT64)


def _distinct_dim(dim: int, x: Any) -> int:
    """The dimension whose slices are compared, if they can be."""
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    dim = normal_dim(dim, x.ndim)
    if 0 in x.shape and x.shape[dim]:
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
        )
    return dim


def _unique(xp: Any, x: Any, dim: int | None, inverse: bool, counts: bool) -> Any:
    check_ordered("unique", x)
    if dim is not None:
        dim = _distinct_dim(dim, x)
        if not x.size:
            return x.copy(), _nothing(xp), _nothing(xp)
    found = xp.unique(
        x, return_inverse=inverse, return_counts=counts, axis=dim, equal_nan=False
    )
    parts = list(found) if inverse or counts else [found]
    values = parts.pop(0)
    where_from = how_often = _nothing(xp)
    if inverse:
        where_from = parts.pop(0).reshape(x.shape if dim is None else -1)
    if counts:
        how_often = parts.pop(0)
    return values, where_from.astype(_INT64, copy=False), how_often.astype(_INT64, copy=False)


def _unique_consecutive(xp: Any, x: Any, dim: int | None, inverse: bool, counts: bool) -> Any:
    check_ordered("unique_consecutive", x)
    axis = 0 if dim is None else _distinct_dim(dim, x)
    lines = x.reshape(-1) if dim is None else xp.moveaxis(x, axis, 0)
    rows = lines.reshape(len(lines), -1) if lines.size else lines.reshape(len(lines), 0)
    starts = xp.ones(len(lines), bool)
    starts[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    values = lines[starts] if dim is None else xp.moveaxis(lines[starts], 0, axis)
    where_from = xp.cumsum(starts, dtype=_INT64) - 1 if inverse else _nothing(xp)
    if inverse and dim is None:
        where_from = where_from.reshape(x.shape)
    how_often = _nothing(xp)
    if counts:
        edges = xp.append(xp.flatnonzero(starts), len(lines))
        how_often = xp.diff(edges).astype(_INT64, copy=False)
    return values, where_from, how_often


def _distinct(name: str, kernel: Any, doc: str, node_name: Any = None) -> Any:
    return primitive(
        f"{name}(Tensor self, int? dim=None, bool return_inverse=False, bool return_counts=False)"
        " -> (Tensor, Tensor, Tensor)",
        kernel,
        _no_derivative(name),
        None,
        nondifferentiable_outputs=(1, 2),
        meta=refuse_meta(name.strip("_2")),
        batch=varying(name.strip("_2")),
        cost="slow",
        name=node_name,
        doc=doc,
    )


_unique2 = _distinct(
    "_unique2",
    _unique,
    "Distinct elements in order.",
    lambda self, dim, *_: "Unique2Backward0" if dim is None else "UniqueDimBackward0",
)
_consecutive = _distinct(
    "_unique_consecutive", _unique_consecutive, "Elements without repetitions of their neighbour."
)


def _wanted(found: tuple, inverse: bool, counts: bool) -> Any:
    values, where_from, how_often = found
    if inverse:
        return (values, where_from, how_often) if counts else (values, where_from)
    return (values, how_often) if counts else values


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Distinct elements, or slices along `dim`, always in order; their places and counts."""
    found = _unique2(input, dim, return_inverse, return_counts)
    return _wanted(found, return_inverse, return_counts)


def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Elements, or slices along `dim`, that differ from the one before; their places and counts."""
    found = _consecutive(input, dim, return_inverse, return_counts)
    return _wanted(found, return_inverse, return_counts)


# Search in sorted sequences ----------------------------------------------------------------------


def _searchsorted(
    xp: Any, sequence: Any, values: Any, out_int32: bool, right: bool, side: str | None, sorter: Any
) -> Any:
    check_ordered("searchsorted", sequence)
    check_ordered("searchsorted", values)
    if sequence.dtype.kind == "b":
        raise NotImplementedError("\"searchsorted_out_cpu\" not implemented for 'Bool'")
    _check_search(sequence, values, right, side, sorter)
    which = "right" if right or side == "right" else "left"
    if sorter is not None:
        sequence = xp.take_along_axis(sequence, sorter, -1)
    sequence, values = widened(sequence), widened(values)
    if sequence.ndim == 1:
        found = xp.searchsorted(sequence, values, which)
    else:
        found = xp.empty(values.shape, _INT64)
        count = math.prod(values.shape[:-1])
        rows = [a.reshape(count, a.shape[-1]) for a in (found, sequence, values)]
        for i in range(count):
            rows[0][i] = xp.searchsorted(rows[1][i], rows[2][i], which)
    return xp.asarray(found).astype(dtypes.int32.numpy if out_int32 else _INT64, copy=False)


def _check_search(sequence: Any, values: Any, right: bool, side: str | None, sorter: Any) -> None:
    if side not in (None, "left", "right"):
        raise RuntimeError(f"searchsorted(): side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise RuntimeError(
            "searchsorted(): side and right can't be set to opposites, got side of left while "
            "right was True"
        )
    if not sequence.ndim:
        raise RuntimeError(
            "searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    if sequence.ndim > 1 and not values.ndim:
        raise RuntimeError(
            "searchsorted(): input value can be a scalar only when boundaries tensor dimension is "
            f"1, but we got boundaries tensor dim({sequence.ndim}) and a scalar"
        )
    if sequence.ndim > 1 and sequence.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions "
            "of boundaries tensor and input value tensor must match, but we got boundaries tensor "
            f"{shape_text(sequence.shape)} and input value tensor {shape_text(values.shape)}"
        )
    if sorter is None:
        return
    if sorter.shape != sequence.shape:
        raise RuntimeError(
            "searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
            f"{shape_text(sequence.shape)} and got sorter tensor {shape_text(sorter.shape)}"
        )
    if sorter.dtype != _INT64:
        raise RuntimeError(
            "searchsorted(): sorter must be a tensor of long dtype but got dtype "
            + scalar_name(sorter.dtype)
        )


def _search_batched(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """Examples with sequences of their own are rows; one sequence for all leaves values alone."""
    sequence, values, *options, sorter = args
    several = dims[0] is not None or dims[-1] is not None
    if not several and sequence.array.ndim == 1:
        return operator.call(args), dims[1]
    size = batch_size(args, dims)
    sequence = with_batch(sequence, dims[0], size)
    sorter = None if sorter is None else with_batch(sorter, dims[-1], size)
    values = with_batch(values, dims[1], size)
    if sequence.array.ndim > 2:
        return operator.call((sequence, values, *options, sorter)), 0
    found = operator.call((sequence, flattened(values, 0), *options, sorter))
    return reshaped(found, values.array.shape), 0


_search = nondifferentiable(
    "searchsorted(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, "
    "str? side=None, Tensor? sorter=None) -> Tensor",
    _searchsorted,
    shape=lambda sequence, values, *rest: values.shape,
    batch=_search_batched,
    cost="slow",
    doc="Where values would be inserted into sorted sequences, the last dimension of a tensor.",
    overload="Tensor",
)


@composite(public="function")
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Where values would be inserted into sorted sequences, the last dimension of a tensor."""
    values = input if isinstance(input, Tensor) else tensor(input)
    return _search(
        sorted_sequence, values, out_int32=out_int32, right=right, side=side, sorter=sorter, out=out
    )


@composite(public="function")
def bucketize(
    input: Tensor | float,
    boundaries: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The numbers of the intervals between sorted `boundaries` that values lie in."""
    if boundaries.array.ndim != 1:
        raise RuntimeError(
            f"boundaries tensor must be 1 dimension, but got dim({boundaries.array.ndim})"
        )
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)
