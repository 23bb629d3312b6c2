"""Extrema and where they are: max, min, amax, amin, aminmax, argmax, argmin."""

from __future__ import annotations

from typing import Any

from .. import return_types
from ..backends.reductions import LARGEST, LEAST, reduce
from ..core.tensor import Tensor
from ..dispatch.presentation import presented
from ..transforms.batching.rules import along, along_one, over_all
from . import shapes
from .along import (
    check_not_empty,
    check_ordered,
    normal_dim,
    normal_dims,
    packed,
    put_along,
    reduced,
    reduced_pair,
    restore_dims,
    returning,
    shared_evenly,
    shared_tangent,
    take_along,
    widened,
)
from .declare import nondifferentiable, primitive
from .pointwise import maximum, minimum
from .reduce import kept_sum, sum

__all__ = ["amax", "amin", "aminmax", "argmax", "argmin", "max", "min"]


def _check_any(name: str, x: Any, error: type[Exception] = RuntimeError) -> None:
    if x.size == 0:
        raise error(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
            "reduction dim with the 'dim' argument."
        )


def _share_by_count(g: Tensor, x: Tensor, out: Tensor, dim: Any, keepdim: bool) -> Tensor:
    chosen = x == restore_dims(out, x.shape, dim, keepdim)
    g = restore_dims(g, x.shape, dim, keepdim)
    return g * chosen / kept_sum(chosen, dim)


def _tangent_by_count(t: Tensor, x: Tensor, out: Tensor, dim: Any, keepdim: bool) -> Tensor:
    chosen = x == restore_dims(out, x.shape, dim, keepdim)
    return sum(t * chosen, dim, keepdim) / sum(chosen, dim, keepdim)


# Values over several dimensions ------------------------------------------------------------------


def _extremum(name: str, function: str) -> Any:
    def kernel(xp: Any, x: Any, dim: Any, keepdim: bool) -> Any:
        if dim is None or dim == ():
            _check_any(name, x)
        dims = normal_dims(dim, x.ndim)
        check_not_empty(name, x, dims)
        check_ordered(name, x)
        out = reduce(LARGEST if function == "max" else LEAST, x, dims, keepdim)
        if out is not None:
            return out
        return packed(getattr(xp, function)(x, axis=dims, keepdims=keepdim))

    return primitive(
        f"{name}(Tensor self, int[]? dim=[], bool keepdim=False) -> Tensor",
        kernel,
        lambda g, self, dim, keepdim, out: _share_by_count(g, self, out, dim, keepdim),
        lambda tangents, self, dim, keepdim, out: _tangent_by_count(
            tangents["self"], self, out, dim, keepdim
        ),
        shape=reduced,
        batch=along("dim"),
        doc=f"The {function}imum over all or the given dimensions; ties share the gradient.",
    )


amax = _extremum("amax", "max")
amin = _extremum("amin", "min")


def _aminmax(xp: Any, x: Any, dim: int | None, keepdim: bool) -> Any:
    if dim is None and x.size == 0:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
            "identity."
        )
    dims = normal_dims(dim, x.ndim)
    check_not_empty("aminmax", x, dims)
    check_ordered("aminmax", x)
    lowest, highest = xp.min(x, axis=dims, keepdims=keepdim), xp.max(x, axis=dims, keepdims=keepdim)
    return packed(lowest), packed(highest)


_aminmax_operator = primitive(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    _aminmax,
    lambda g, self, dim, keepdim, out0, out1: (
        _share_by_count(g[0], self, out0, dim, keepdim)
        + _share_by_count(g[1], self, out1, dim, keepdim)
    ),
    lambda tangents, self, dim, keepdim, out0, out1: (
        _tangent_by_count(tangents["self"], self, out0, dim, keepdim),
        _tangent_by_count(tangents["self"], self, out1, dim, keepdim),
    ),
    shape=reduced_pair,
    batch=along_one("dim"),
    doc="Minimum and maximum together, over all or one dimension.",
)
aminmax = returning(return_types.aminmax, _aminmax_operator)

# max and min: of all, along one dimension, of two tensors ----------------------------------------


def _of_all(name: str) -> Any:
    def kernel(xp: Any, x: Any) -> Any:
        _check_any(name, x)
        check_ordered(f"{name}_all", x)
        return getattr(xp, name)(x)

    return primitive(
        f"{name}(Tensor self) -> Tensor",
        kernel,
        lambda g, self, out: shared_evenly(g, self, out),
        lambda tangents, self, out: shared_tangent(tangents["self"], self, out),
        name=f"{name.title()}Backward1",
        shape=shapes.number,
        batch=over_all("a" + name),
        out="casts",
        doc=f"The {name}imum of all elements; ties share the gradient.",
    )


def _along(name: str) -> Any:
    def kernel(xp: Any, x: Any, dim: int, keepdim: bool) -> Any:
        dim = normal_dim(dim, x.ndim)
        check_not_empty(name, x, (dim,))
        if x.dtype.kind == "c":
            raise RuntimeError(f"{name}(): does not support complex input")
        if not x.ndim:
            return x.copy(), xp.zeros((), "int64")
        indices = xp.expand_dims(_first(xp, name, x, dim), dim)
        values = xp.take_along_axis(x, indices, dim)
        if keepdim:
            return values, indices
        return xp.squeeze(values, dim), xp.squeeze(indices, dim)

    return primitive(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        kernel,
        lambda g, self_shape, dim, keepdim, out1: put_along(g[0], self_shape, dim, out1, keepdim),
        lambda tangents, dim, keepdim, out1: (
            take_along(tangents["self"], dim, out1, keepdim),
            None,
        ),
        nondifferentiable_outputs=(1,),
        name=f"{name.title()}Backward0",
        shape=reduced_pair,
        batch=along("dim"),
        out="casts",
        doc=f"The {name}imum of all elements; given `dim`, along it and with its index; given a "
        "second tensor, elementwise.",
    )


def _first(xp: Any, name: str, x: Any, dim: int | None, keepdim: bool = False) -> Any:
    """Index of the first extremum; NaN counts as both largest and smallest."""
    function = xp.argmax if name.endswith("max") else xp.argmin
    return function(widened(x), axis=dim, keepdims=keepdim)


def _named(name: str, pairwise: Any) -> Any:
    whole, along, kind = _of_all(name), _along(name), getattr(return_types, name)
    along_named = returning(kind, along)

    def function(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        if "other" in kwargs or (args and isinstance(args[0], Tensor)):
            return pairwise(input, *args, **kwargs)
        if args or "dim" in kwargs or "axis" in kwargs:
            return along_named(input, *args, **kwargs)
        if kwargs or not isinstance(input, Tensor):
            return whole(input, **kwargs)
        return whole.call1(input)

    presented(function, name, __name__, along)
    function.forms = (whole, along)  # type: ignore[attr-defined]
    return function


max = _named("max", maximum)
min = _named("min", minimum)


def _position(name: str) -> Any:
    def kernel(xp: Any, x: Any, dim: int | None, keepdim: bool) -> Any:
        if x.dtype.kind in "bc":
            word = "bool" if x.dtype.kind == "b" else "complex"
            raise RuntimeError(f"{name}(): does not support {word} input")
        if dim is None:
            _check_any(name, x, IndexError)
            return _first(xp, name, x, None, keepdim)
        dim = normal_dim(dim, x.ndim)
        check_not_empty(name, x, (dim,))
        return _first(xp, name, x, dim if x.ndim else None, keepdim)

    return nondifferentiable(
        f"{name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        kernel,
        shape=reduced,
        batch=along_one("dim"),
        doc=f"Index of the {name[3:]}imum of all elements, or along a dimension.",
    )


argmax = _position("argmax")
argmin = _position("argmin")
