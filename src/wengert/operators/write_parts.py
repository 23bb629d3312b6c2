"""A tensor with a part of it replaced: a row, a range, a diagonal, slices at indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..backends.geometry import at, diagonal_view, sliced, wrap_dim
from ..backends.layout import copied
from ..core.errors import shape_text
from ..core.registry import operator_named
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..transforms.batching.rules import along
from . import shapes
from .declare import composite, primitive
from .diagonals import diagonal
from .getitem import tangent_of
from .pointwise import zeros_like
from .scatter import scatter_reduce
from .views import select, slice_

__all__ = [
    "diagonal_scatter", "index_reduce", "index_reduce_", "select_scatter",
    "slice_scatter",
]  # fmt: skip


def _replacing(name: str, view: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that writes its second argument into a view of a copy of the first."""

    def kernel(xp: Any, x: Any, src: Any, *place: Any) -> Any:
        out = copied(x)
        target = view(out, *place)
        if target.shape != src.shape:
            raise RuntimeError(
                f"{name}(): expected src to have a size equal to the slice of self. src size = "
                f"{shape_text(src.shape)}, slice size = {shape_text(target.shape)}"
            )
        target[...] = src
        return out

    return kernel


def _both(operator: Operator, tangents: dict, x: Tensor, src: Tensor, *place: Any) -> Tensor:
    """The tangent: the operator on the tangents of both, zeros where there is none."""
    return operator.call(
        (tangent_of(tangents, "self", x), tangent_of(tangents, "src", src), *place)
    )


def _without(operator: Operator, part: Any, g: Tensor, *place: Any) -> Tensor:
    """The gradient with zeros in the place that was written."""
    return operator.call((g, zeros_like(part.call((g, *place))), *place))


select_scatter: Operator = primitive(
    "select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor",
    _replacing("select_scatter", lambda x, dim, index: x[at(wrap_dim(dim, x.ndim), index)]),
    {
        "self": lambda g, dim, index: _without(select_scatter, select, g, dim, index),
        "src": lambda g, dim, index: select.call((g, dim, index)),
    },
    lambda tangents, self, src, dim, index: _both(
        select_scatter, tangents, self, src, dim, index
    ),
    widens=False,
    shape=shapes.as_first,
    batch=along("dim"),
    doc="The tensor with the part at an `index` of a dimension replaced by `src`.",
)
slice_scatter: Operator = primitive(
    "slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, "
    "int step=1) -> Tensor",
    _replacing(
        "slice_scatter",
        lambda x, dim, start, end, step: sliced(x, wrap_dim(dim, x.ndim), start, end, step),
    ),
    {
        "self": lambda g, dim, start, end, step: _without(
            slice_scatter, slice_, g, dim, start, end, step
        ),
        "src": lambda g, dim, start, end, step: slice_.call((g, dim, start, end, step)),
    },
    lambda tangents, self, src, dim, start, end, step: _both(
        slice_scatter, tangents, self, src, dim, start, end, step
    ),
    widens=False,
    shape=shapes.as_first,
    batch=along("dim"),
    doc="The tensor with a range of a dimension replaced by `src`.",
)
diagonal_scatter: Operator = primitive(
    "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    _replacing("diagonal_scatter", diagonal_view),
    {
        "self": lambda g, offset, dim1, dim2: _without(
            diagonal_scatter, diagonal, g, offset, dim1, dim2
        ),
        "src": lambda g, offset, dim1, dim2: diagonal.call((g, offset, dim1, dim2)),
    },
    lambda tangents, self, src, offset, dim1, dim2: _both(
        diagonal_scatter, tangents, self, src, offset, dim1, dim2
    ),
    widens=False,
    shape=shapes.as_first,
    batch=along("dim1", "dim2"),
    doc="The tensor with a diagonal of two dimensions replaced by `src`.",
)


# Slices at indices -------------------------------------------------------------------------------

_REDUCTIONS = ("prod", "mean", "amax", "amin")


def _as_scatter(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool
) -> Tensor:
    """The index of every element of `source` along the dimension."""
    if reduce not in _REDUCTIONS:
        raise RuntimeError(
            f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}."
        )
    if input.is_complex() and (reduce in ("amax", "amin") or not include_self):
        raise NotImplementedError(
            f"\"index_reduce\" not implemented for '{input.dtype.scalar_name}'"
        )
    if index.array.ndim > 1:
        raise IndexError("index_reduce(): Index is supposed to be a vector")
    if not input.array.ndim:
        return index.reshape(source.array.shape)
    shape = [1] * source.array.ndim
    shape[wrap_dim(dim, source.array.ndim)] = -1
    return index.reshape(shape).expand(source.array.shape)


def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *,
    include_self: bool = True,
) -> Tensor:  # fmt: skip
    """The tensor with slices of `source` multiplied, averaged or compared into given indices."""
    places = _as_scatter(input, dim, index, source, reduce, include_self)
    return scatter_reduce(input, dim, places, source, reduce, include_self=include_self)


@composite(public="method")
def index_reduce_(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *,
    include_self: bool = True,
) -> Tensor:  # fmt: skip
    """In-place form of index_reduce()."""
    places = _as_scatter(input, dim, index, source, reduce, include_self)
    return operator_named("scatter_reduce_")(
        input, dim, places, source, reduce, include_self=include_self
    )
