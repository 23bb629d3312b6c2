"""Gathering and scattering along one dimension, with an index for every element."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.backend import is_array
from ..backends.geometry import wrap_dim
from ..core.dtypes import from_numpy, int64
from ..core.errors import shape_text
from ..core.numbers import check_number
from ..core.registry import operator_named
from ..core.state import thread_state
from ..core.tensor import Tensor
from ..creation.factories import ones_like
from ..creation.ranges import arange
from ..dispatch.operator import Operator
from ..transforms.batching import indexing as batched
from . import shapes
from .along import packed
from .declare import linear
from .getitem import INTEGER_TYPES, add_rows, check_range, tangent_of, update
from .joining import cat
from .pointwise import where, zeros_like
from .scan import recurrence, shift

__all__ = ["gather", "scatter", "scatter_add", "scatter_reduce"]

# gather and scatter -------------------------------------------------------------------------------


def _check_along(name: str, x: Any, dim: int, index: Any, src: Any = None) -> int:
    """Check the operands of gather or scatter; the dimension, counted from the front."""
    dim = wrap_dim(dim, x.ndim)
    if index.size and index.dtype not in INTEGER_TYPES:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    what = "input" if name == "gather" else "self"
    if index.size and max(index.ndim, 1) != max(x.ndim, 1):
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as {what} tensor"
        )
    if src is not None:
        _check_source(name, x, index, src)
    if not index.size:
        return dim
    for i in range(index.ndim if x.ndim else 0):
        fits = i == dim or index.shape[i] <= x.shape[i]
        room = index.shape[i] if src is None else src.shape[i] if src.ndim else 1
        if not fits or index.shape[i] > room:
            start = "Expected"
            if name == "gather":
                start = f"Size does not match at dimension {i} expected"
            message = (
                f"{start} index {shape_text(index.shape)} to be no larger than self "
                f"{shape_text(x.shape)} apart from dimension {dim}"
            )
            if src is not None:
                message += f" and to be no larger size than src {shape_text(src.shape)}"
            raise RuntimeError(message)
    check_range(index, dim, x.shape[dim] if x.ndim else 1)
    return dim


def _check_source(name: str, x: Any, index: Any, src: Any) -> None:
    if src.dtype != x.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    if index.size and max(index.ndim, 1) != max(src.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")


def _grid(xp: Any, dim: int, index: Any) -> list:
    """For each dimension of the index its own positions; the index itself in place of `dim`."""
    ndim = index.ndim
    return [
        index if i == dim else xp.arange(n).reshape((-1,) + (1,) * (ndim - 1 - i))
        for i, n in enumerate(index.shape)
    ]


def _along(xp: Any, dim: int, index: Any) -> tuple:
    """The key with which `x[key]` is x gathered along `dim`."""
    return tuple(_grid(xp, dim, index)) if index.ndim else (index,)


def _positions(xp: Any, shape: tuple, dim: int, index: Any) -> Any:
    """Where the indexed elements lie in a contiguous array of `shape`."""
    if index.ndim < 2:
        return index
    if dim == index.ndim - 1 and index.shape[:-1] == shape[:-1]:
        rows = xp.arange(0, _size(shape), shape[-1]) if shape[-1] else index
        return index + rows.reshape((*shape[:-1], 1))
    total: Any = 0
    for i, steps in enumerate(_grid(xp, dim, index)):
        total = steps + total * shape[i]
    return total


def _size(shape: tuple) -> int:
    total = 1
    for length in shape:
        total *= length
    return total


def _gather(xp: Any, x: Any, dim: int, index: Any, sparse_grad: bool) -> Any:
    dim = _check_along("gather", x, dim, index)
    if not index.size:
        return xp.zeros(index.shape, x.dtype)
    if x.flags.c_contiguous:
        return x.reshape(-1).take(_positions(xp, x.shape, dim, index))
    return packed(x[_along(xp, dim, index)])


def added_along(xp: Any, g: Any, size: tuple, dim: int, index: Any) -> Any:
    """Zeros of a size with elements added along a dimension, at places that are there."""
    out = xp.zeros(size, g.dtype)
    _write_sum(xp, out, dim, index, g)
    return out


def _write_sum(xp: Any, out: Any, dim: int, index: Any, src: Any) -> None:
    """Add `src` to `out` at the places `index` names, as checked before."""
    if not index.size:
        return
    dim = wrap_dim(dim, out.ndim)
    src = _cropped(src, index.shape)
    if out.flags.c_contiguous:
        positions = xp.asarray(_positions(xp, out.shape, dim, index)).reshape(-1)
        add_rows(xp, out, positions, src.reshape(-1))
    else:
        xp.add.at(out, _along(xp, dim, index), src)


def _cropped(src: Any, shape: tuple) -> Any:
    """The leading part of an array or tensor, in the shape of the index."""
    if src.shape == shape:
        return src
    if src.ndim != len(shape):
        return src.reshape(shape)
    return src[tuple([slice(0, n) for n in shape])]


gather = linear(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    _gather,
    lambda g, self_shape, dim, index: _gather_backward_.call((g, self_shape, dim, index)),
    shape=lambda x, dim, index, sparse_grad: index.shape,
    batch=batched.gather,
    raises="values",
    doc="Elements picked along a dimension, by an index for each of them.",
)
_gather_backward_: Operator = linear(
    "_gather_backward(Tensor grad, int[] size, int dim, Tensor index) -> Tensor",
    added_along,
    lambda g, dim, index: gather.call((g, dim, index, False)),
    widens=True,
    meta=shapes.sized,
    batch=batched.gather_backward,
    doc="Zeros of a size with a gradient added where gather picked from.",
)


def _padded(g: Tensor, shape: tuple) -> Tensor:
    """The gradient of the part of a source that an index uses, as that of the whole source."""
    if g.array.shape == shape:
        return g
    if g.array.ndim != len(shape):
        return g.reshape(shape)
    missing = [whole - part for whole, part in zip(shape, g.array.shape, strict=True)]
    widths = tuple([n for width in reversed(missing) for n in (0, width)])
    return operator_named("constant_pad_nd").call((g, widths, 0))


def _scatter(xp: Any, out: Any, dim: int, index: Any, src: Any, reduce: str | None) -> None:
    has_values = is_array(src)
    dim = _check_along("scatter", out, dim, index, src if has_values else None)
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if not index.size:
        return
    target = out if out.ndim else out.reshape(1)
    key = _along(xp, dim, index)
    values = _cropped(src, index.shape) if has_values else check_number(src, from_numpy(out.dtype))
    if reduce is None:
        target[key] = values
    else:
        (xp.add if reduce == "add" else xp.multiply).at(target, key, values)


def _scatter_self(g: Tensor, dim: int, index: Tensor, reduce: str | None) -> Tensor:
    if reduce == "multiply":
        raise NotImplementedError(
            "the derivative of scatter() with reduce='multiply' is not implemented; use "
            "scatter_reduce() with reduce='prod'"
        )
    return g if reduce == "add" else scatter.call((g, dim, index, 0, None))


def _scatter_source(
    g: Tensor, dim: int, index: Tensor, src_shape: tuple, reduce: str | None
) -> Tensor:
    _scatter_self(g, dim, index, reduce if reduce == "multiply" else "add")
    return _padded(gather.call((g, dim, index, False)), src_shape)


scatter: Operator = update(
    "scatter(Tensor self, int dim, Tensor index, Tensor src, *, str? reduce=None) -> Tensor",
    _scatter,
    {
        "self": lambda g, dim, index, reduce: _scatter_self(g, dim, index, reduce),
        "src": lambda g, dim, index, src_shape, reduce: _scatter_source(
            g, dim, index, src_shape, reduce
        ),
    },
    lambda tangents, self, dim, index, src, reduce: scatter.call(
        (tangent_of(tangents, "self", self), dim, index, tangent_of(tangents, "src", src), reduce)
    ),
    widens=False,
    name=lambda self, dim, index, src, reduce: (
        f"ScatterBackward{int(not isinstance(src, Tensor))}"
    ),
    shape=shapes.as_first,
    batch=batched.scatter,
    raises="values",
    doc="The tensor with elements of `src`, or one number, written along a dimension.",
    aliases={"value": "src"},
    overload="src",
)
scatter.broadcasts = True


def _scatter_add(xp: Any, out: Any, dim: int, index: Any, src: Any) -> None:
    _check_along("scatter", out, dim, index, src)
    _write_sum(xp, out, dim, index, src)


scatter_add: Operator = update(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    _scatter_add,
    {
        "self": lambda g: g,
        "src": lambda g, dim, index, src_shape: _padded(
            gather.call((g, dim, index, False)), src_shape
        ),
    },
    lambda tangents, self, dim, index, src: scatter_add.call(
        (tangent_of(tangents, "self", self), dim, index, tangent_of(tangents, "src", src))
    ),
    shape=shapes.as_first,
    batch=batched.scatter,
    raises="values",
    doc="The tensor with elements of `src` added along a dimension.",
)


# scatter_reduce -----------------------------------------------------------------------------------

_REDUCTIONS = {
    "sum": "add", "mean": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum",
}  # fmt: skip


def _neutral(reduce: str, dtype: Any) -> Any:
    """What does not change the result of a reduction."""
    if reduce in ("sum", "mean", "prod"):
        return int(reduce == "prod")
    if dtype.kind == "b":
        return reduce == "amin"
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.min if reduce == "amax" else limits.max
    return -np.inf if reduce == "amax" else np.inf


def _scatter_reduce(
    xp: Any, out: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool
) -> None:
    if reduce not in _REDUCTIONS:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    dim = _check_along("scatter", out, dim, index, src)
    if not index.size:
        return
    target = out if out.ndim else out.reshape(1)
    key = _along(xp, dim, index)
    if not include_self:
        target[key] = _neutral(reduce, out.dtype)
    getattr(xp, _REDUCTIONS[reduce]).at(target, key, _cropped(src, index.shape))
    if reduce == "mean":
        count = xp.full(target.shape, int(include_self))
        xp.add.at(count, key, 1)
        count = xp.maximum(count, 1)
        target[...] = target // count if out.dtype.kind in "iu" else target / count


def _scatter_weights(
    self: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    include_self: bool,
    out: Tensor,
) -> tuple[Any, Tensor]:
    """Derivative of each result by its element of `self`, and by each element of `src`."""
    src = _cropped(src, index.array.shape)
    mine = zeros_like(self) + 1
    if not include_self:
        mine = scatter.call((mine, dim, index, 0, None))
    ones = zeros_like(src) + 1
    if reduce == "sum":
        return mine, ones
    if reduce == "mean":
        share = 1 / _at_least_one(scatter_add.call((mine, dim, index, ones)))
        return mine * share, gather.call((share, dim, index, False))
    if reduce == "prod":
        return _product_weights(self, dim, index, src, include_self, mine)
    wins = mine * (self == out).to(self.dtype)
    src_wins = (src == gather.call((out, dim, index, False))).to(self.dtype)
    share = 1 / _at_least_one(scatter_add.call((wins, dim, index, src_wins)))
    return wins * share, src_wins * gather.call((share, dim, index, False))


def _at_least_one(count: Tensor) -> Tensor:
    return where(count == 0, 1, count)


def _product_weights(
    self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool, mine: Tensor
) -> tuple[Tensor, Tensor]:
    """For each factor the product of all others that go to the same place."""
    if not index.array.size:
        return mine, zeros_like(src) + 1
    state = thread_state()
    if not state.grad_enabled and not state.layers:
        return _product_quotients(self, dim, index, src, include_self, mine)
    return _product_scans(self, dim, index, src, mine)


def _product_quotients(
    self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool, mine: Tensor
) -> tuple[Tensor, Tensor]:
    """Products of all others by division: faster, and right as long as nobody differentiates it."""
    zero, src_zero = self == 0, src == 0
    zeros = scatter_add.call((mine * zero.to(self.dtype), dim, index, src_zero.to(self.dtype)))
    safe, src_safe = where(zero, 1, self), where(src_zero, 1, src)
    product = scatter_reduce.call((safe, dim, index, src_safe, "prod", include_self))
    src_zeros = gather.call((zeros, dim, index, False))
    src_product = gather.call((product, dim, index, False))
    return (
        mine * where(zeros == zero.to(self.dtype), product / safe, 0),
        where(src_zeros == src_zero.to(self.dtype), src_product / src_safe, 0),
    )


def _product_scans(
    self: Tensor, dim: int, index: Tensor, src: Tensor, mine: Tensor
) -> tuple[Tensor, Tensor]:
    """Products of all others in the order of their places, from both sides.

    Nothing is divided by: derivatives of every order hold where factors are zero, too.
    """
    dim = wrap_dim(dim, self.array.ndim)
    lines, places, factors = [
        each if each.array.ndim else each.reshape(1) for each in (self, index, src)
    ]
    length = lines.array.shape[dim]
    whole = places.array.shape
    reached = _cropped(lines, (*whole[:dim], length, *whole[dim + 1 :]))
    own = _cropped(mine if mine.array.ndim else mine.reshape(1), reached.array.shape)
    numbers = arange(length, device=self.device).reshape((-1,) + (1,) * (len(whole) - dim - 1))
    groups = cat([numbers.expand(reached.array.shape), places.to(int64)], dim)
    order = groups.argsort(dim=dim, stable=True)
    ordered = cat([where(own == 0, 1, reached), factors], dim).gather(dim, order)
    others = _products_of_others(ordered, groups.gather(dim, order), dim)
    others = zeros_like(others).scatter(dim, order, others)
    of_self = own * others.narrow(dim, 0, length)
    if reached.array.shape != lines.array.shape:
        of_self = _inserted(mine, of_self)
    of_src = others.narrow(dim, length, whole[dim])
    return of_self.reshape(self.array.shape), of_src.reshape(src.array.shape)


def _products_of_others(ordered: Tensor, groups: Tensor, dim: int) -> Tensor:
    """For each element the product of the others in its group; groups lie side by side."""
    continues = shift(groups, dim, 1, -1) == groups
    before = recurrence(
        where(continues, shift(ordered, dim, 1), 0), where(continues, 0, ones_like(ordered)), dim
    )
    goes_on = shift(groups, dim, -1, -1) == groups
    after = recurrence(
        where(goes_on, shift(ordered, dim, -1), 0), where(goes_on, 0, ones_like(ordered)), dim, True
    )
    return before * after


def _inserted(whole: Tensor, part: Tensor) -> Tensor:
    """`whole` with its leading part replaced."""
    mask = _padded(ones_like(part), whole.array.shape)
    return where(mask == 0, whole, _padded(part, whole.array.shape))


def _scatter_reduce_source(
    g: Tensor, dim: int, index: Tensor, src_shape: tuple, weights: tuple
) -> Tensor:
    return _padded(gather.call((g, dim, index, False)) * weights[1].conj(), src_shape)


def _of_self(values: Tensor, dim: int, index: Tensor, include_self: bool) -> Tensor:
    """Zeros where elements of `self` take no part, whatever is there: NaN times zero is NaN."""
    return values if include_self else scatter.call((values, dim, index, 0, None))


def _scatter_reduce_tangent(
    tangents: dict,
    self: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    weights: tuple,
    include_self: bool,
) -> Tensor:
    t = _cropped(tangent_of(tangents, "src", src), index.array.shape)
    mine = _of_self(tangent_of(tangents, "self", self) * weights[0], dim, index, include_self)
    return scatter_add.call((mine, dim, index, t * weights[1]))


scatter_reduce: Operator = update(
    "scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, "
    "bool include_self=True) -> Tensor",
    _scatter_reduce,
    {
        "self": lambda g, self, dim, index, src, reduce, include_self, out: _of_self(
            g * _scatter_weights(self, dim, index, src, reduce, include_self, out)[0].conj(),
            dim,
            index,
            include_self,
        ),
        "src": lambda g, self, dim, index, src, reduce, include_self, out: _scatter_reduce_source(
            g,
            dim,
            index,
            src.array.shape,
            _scatter_weights(self, dim, index, src, reduce, include_self, out),
        ),
    },
    lambda tangents, self, dim, index, src, reduce, include_self, out: _scatter_reduce_tangent(
        tangents,
        self,
        dim,
        index,
        src,
        _scatter_weights(self, dim, index, src, reduce, include_self, out),
        include_self,
    ),
    shape=shapes.as_first,
    batch=batched.scatter,
    raises="values",
    cost="slow",
    doc="The tensor with elements of `src` reduced into it along a dimension.",
    overload="two",
)
