"""Reductions: sums, means, products, variances, logical reductions and comparisons of tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..backends import meta
from ..backends.backend import backend_of, has_elements
from ..backends.loop_codes import SPREAD, TOTAL
from ..backends.loops import loops
from ..backends.reductions import PRODUCT, SUM, reduce
from ..core import dtypes
from ..core.errors import broadcast_error, shape_text, warn_user
from ..core.registry import apply
from ..core.tensor import Tensor
from ..dispatch.operator import overloaded
from ..dispatch.out import copy_to_out
from ..dispatch.presentation import presented
from ..transforms.batching.moving import at_front
from ..transforms.batching.rules import along, elementwise, flat, over_all
from . import shapes
from .along import (
    in_dtype,
    normal_dims,
    packed,
    reduced,
    reduced_size,
    restore_dims,
    scalar_name,
    sum_dtype,
    widened,
    working_dtype,
)
from .declare import by_loop, composite, linear, nondifferentiable, primitive
from .pointwise import isnan, logical_not, where, zeros_like
from .unrecorded import unrecorded

__all__ = [
    "all", "allclose", "any", "count_nonzero", "equal", "isclose", "mean", "nanmean", "nansum",
    "prod", "std", "std_mean", "sum", "sum_to_size", "var", "var_mean",
]  # fmt: skip

# Sums --------------------------------------------------------------------------------------------


def _sum(xp: Any, x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    goal = sum_dtype(x, dtype)
    if x.dtype.kind == "c":
        x = in_dtype(x, goal)
    work = working_dtype(goal)
    dims = normal_dims(dim, x.ndim)
    out = _by_loop(SUM, x, dims, keepdim, work)
    if out is None:
        out = packed(xp.sum(x, axis=dims, dtype=work, keepdims=keepdim))
    return out if work == goal else out.astype(goal)


def _by_loop(kind: int, x: Any, dims: tuple[int, ...], keepdim: bool, dtype: Any) -> Any:
    """A reduction by a loop in C, if the array is of the type that it is computed in."""
    return reduce(kind, x, dims, keepdim) if x.dtype == dtype else None


def _sum_all(xp: Any, x: Any, dtype: Any) -> Any:
    if dtype is None:
        small = loops.unary(TOTAL, x)
        if small is not None:
            return small
    return _sum(xp, x, None, False, dtype)


_sum_whole = linear(
    "sum(Tensor self, *, dtype? dtype=None) -> Tensor",
    _sum_all,
    by_loop(SPREAD, lambda g, self_shape: apply("expand", g, self_shape, False)),
    shape=shapes.number,
    batch=over_all("sum.dim_IntList"),
    doc="Sum of all elements.",
    out="typed",
)
_sum_whole.native_code = TOTAL
_sum_along = linear(
    "sum.dim_IntList(Tensor self, int[]? dim, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    _sum,
    lambda g, self_shape, dim, keepdim: apply(
        "expand", restore_dims(g, self_shape, dim, keepdim), self_shape, False
    ),
    name="SumBackward1",
    shape=reduced,
    batch=along("dim"),
    doc="Sum over all or the given dimensions.",
    out="typed",
)
sum = overloaded(_sum_whole, _sum_along)


def kept_sum(x: Tensor, dim: int | tuple[int, ...] | None) -> Tensor:
    """The sum along dimensions that stay with length one."""
    return _sum_along.call((x, (dim,) if isinstance(dim, int) else dim, True, None))


@composite(public="method")
def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """Sum over the dimensions that were broadcast from `size`."""
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    given = input.array.shape
    extra = len(given) - len(shape)
    inner = []
    for i, n in enumerate(shape):
        if extra < 0 or n != given[i + extra]:
            if extra < 0 or n != 1:
                raise RuntimeError(
                    f"size {{{shape_text(shape)}}} is not expandable to size "
                    f"{{{shape_text(given)}}}."
                )
            inner.append(i + extra)
    if inner:
        out = _sum_along.call((input, (*range(extra), *inner), True, None))
        return out.reshape(shape) if extra else out
    if not shape:
        return sum(input)
    return _sum_along.call((input, tuple(range(extra)), False, None)) if extra else input


def _sum_to(xp: Any, x: Any, size: tuple) -> Any:
    rows = loops.sum_rows(x) if x.ndim == 2 else None
    if rows is not None and rows.shape == size:
        return rows
    out = x if x.ndim == 1 else _sum(xp, x, tuple(range(x.ndim - 1)), False, None)
    return out if out.shape == size else _sum(xp, out, (0,), True, None)


def _sum_to_batched(operator: Any, args: tuple, dims: tuple) -> tuple[Any, int]:
    x, size = at_front(args[0], dims[0]), args[1]
    if x.array.ndim > 2:
        x = apply("sum.dim_IntList", x, tuple(range(1, x.array.ndim - 1)), False, None)
    if x.array.shape[1:] != size:
        x = apply("sum.dim_IntList", x, (1,), True, None)
    return x, 0


sum_to = linear(
    "_sum_to(Tensor self, int[] size) -> Tensor",
    _sum_to,
    lambda g, self_shape: g.expand(self_shape),
    name="SumBackward1",
    meta=lambda x, size: meta.empty(size, sum_dtype(x, None)),
    batch=_sum_to_batched,
    doc="Sum to a vector that broadcasting had expanded: the gradient of a bias.",
)


def _nansum(xp: Any, x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if x.dtype.kind == "c":
        raise RuntimeError("nansum does not support complex inputs")
    if x.dtype.kind in "fV":
        x = xp.where(xp.isnan(x), x.dtype.type(0), x)
    return _sum(xp, x, dim, keepdim, dtype)


def _nansum_gradient(g: Tensor, x: Tensor, dim: Any, keepdim: bool) -> Tensor:
    return restore_dims(g, x.shape, dim, keepdim) * logical_not(isnan(x))


nansum = primitive(
    "nansum(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    _nansum,
    lambda g, self, dim, keepdim: _nansum_gradient(g, self, dim, keepdim),
    lambda tangents, self, dim, keepdim, dtype: sum(
        where(isnan(self), 0, tangents["self"]), dim, keepdim, dtype=dtype
    ),
    widens=False,
    shape=reduced,
    batch=along("dim"),
    doc="Sum over all or the given dimensions, NaN taken as zero.",
    out="typed as floats",
)

# Means -------------------------------------------------------------------------------------------


def _mean_dtype(x: Any, dtype: Any) -> Any:
    goal = x.dtype if dtype is None else dtype.numpy
    if goal.kind in "biu":
        which = "Input dtype" if dtype is None else "Optional dtype"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {which} must be either a floating point or "
            f"complex dtype. Got: {scalar_name(goal)}"
        )
    return goal


def _mean(xp: Any, x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    goal = _mean_dtype(x, dtype)
    if x.dtype.kind == "c":
        x = in_dtype(x, goal)
    dims = normal_dims(dim, x.ndim)
    out = _by_loop(SUM, x, dims, keepdim, working_dtype(goal))
    if out is None:
        out = packed(xp.sum(x, axis=dims, dtype=working_dtype(goal), keepdims=keepdim))
    out = xp.divide(out, reduced_size(x.shape, dims))
    return out.astype(goal, copy=False)


def _mean_all(xp: Any, x: Any, dtype: Any) -> Any:
    if dtype is None:
        small = loops.unary(TOTAL, x)
        if small is not None:
            return small / x.size if x.size else small * math.nan
    return _mean(xp, x, None, False, dtype)


def _spread_mean(g: Tensor, shape: tuple, dim: Any, keepdim: bool) -> Tensor:
    """The gradient of a mean for each element; of no elements, that of one does not matter."""
    return restore_dims(g / max(reduced_size(shape, dim), 1), shape, dim, keepdim)


_mean_whole = linear(
    "mean(Tensor self, *, dtype? dtype=None) -> Tensor",
    _mean_all,
    lambda g, self_shape: apply("expand", g / max(math.prod(self_shape), 1), self_shape, False),
    shape=shapes.number,
    batch=over_all("mean.dim"),
    doc="Mean of all elements.",
    out="casts",
)
_mean_along = linear(
    "mean.dim(Tensor self, int[]? dim, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    _mean,
    lambda g, self_shape, dim, keepdim: apply(
        "expand", _spread_mean(g, self_shape, dim, keepdim), self_shape, False
    ),
    name="MeanBackward1",
    shape=reduced,
    batch=along("dim"),
    doc="Mean over all or the given dimensions.",
    out="casts",
)
mean = overloaded(_mean_whole, _mean_along)


def kept_mean(x: Tensor, dims: tuple[int, ...] | None) -> Tensor:
    """The mean along dimensions that stay with length one."""
    return _mean_along.call((x, dims, True, None))


def nanmean(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: dtypes.dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Mean over all or the given dimensions of the elements that are not NaN."""
    if input.array.dtype.kind in "biu":
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            + scalar_name(input.array.dtype)
        )
    if dtype is not None and dtype.category < dtypes.FLOATING:
        raise RuntimeError(
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating "
            f"point or complex dtype. Got: {dtype.scalar_name}"
        )
    present = sum(logical_not(isnan(input)), dim, keepdim)
    result = nansum(input, dim, keepdim, dtype=dtype) / present
    return result if out is None else copy_to_out("nanmean", result, out)


# Products ----------------------------------------------------------------------------------------


def _prod(xp: Any, x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    goal = sum_dtype(x, dtype)
    work = working_dtype(goal)
    x = in_dtype(x, goal)
    dims = normal_dims(dim, x.ndim)
    out = _by_loop(PRODUCT, x, dims, keepdim, work)
    if out is None:
        out = packed(xp.prod(x, axis=dims, dtype=work, keepdims=keepdim))
    return out if work == goal else out.astype(goal)


def _product_of_others(x: Tensor, dim: int) -> Tensor:
    """For each element the product of all others along `dim`; no division, so zeros do no harm."""
    from .scan import cumprod, shift

    if not x.array.ndim:
        return zeros_like(x) + 1
    before = shift(cumprod(x, dim), dim, 1, 1)
    after = shift(cumprod(x.flip(dim), dim), dim, 1, 1).flip(dim)
    return before * after


def _product_slope(x: Tensor, out: Tensor) -> Tensor:
    """The derivative of the product of all elements, in the type that was asked for."""
    return _product_of_others(x.to(out.dtype).reshape(-1), 0).reshape(x.shape)


def _nothing_of_two_zeros(x: Any, out: Any) -> Any:
    """Zeros for a product with two factors of zero, whatever they are multiplied by: NaN, too."""
    if not has_elements(x) or not x.ndim:
        return None
    product = out.item()
    is_without_zeros = product != 0 and product == product  # NaN may have zeros beside them
    if is_without_zeros or (x == 0).sum().item() < 2:
        return None
    return backend_of(x).xp.zeros_like(x, out.dtype)


def _product_gradient(g: Tensor, x: Tensor, out: Tensor) -> Tensor:
    nothing = unrecorded(_nothing_of_two_zeros, x, out)
    return g * _product_slope(x, out).conj() if nothing is None else nothing


_prod_whole = primitive(
    "prod(Tensor self, *, dtype? dtype=None) -> Tensor",
    lambda xp, x, dtype: _prod(xp, x, None, False, dtype),
    lambda g, self, out: _product_gradient(g, self, out),
    lambda tangents, self, out: sum(tangents["self"] * _product_slope(self, out)),
    widens=False,
    shape=shapes.number,
    batch=flat("prod.dim_int"),
    doc="Product of all elements.",
    out="typed",
)
_prod_along = primitive(
    "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    _prod,
    lambda g, self, dim, keepdim, out: (
        restore_dims(g, self.shape, dim, keepdim)
        * _product_of_others(self.to(out.dtype), dim).conj()
    ),
    lambda tangents, self, dim, keepdim, out: sum(
        tangents["self"] * _product_of_others(self.to(out.dtype), dim), dim, keepdim
    ),
    widens=False,
    name="ProdBackward1",
    shape=reduced,
    batch=along("dim"),
    doc="Product of all elements, or over one dimension.",
    out="typed",
)
prod = overloaded(_prod_whole, _prod_along)

# Variances ---------------------------------------------------------------------------------------


def _freedom(shape: tuple, dim: Any, correction: Any) -> Any:
    """Degrees of freedom: the number of elements less the correction, one if None."""
    return reduced_size(shape, dim) - (1 if correction is None else correction)


def _checked_freedom(name: str, x: Any, dims: tuple[int, ...], correction: Any) -> Any:
    if x.dtype.kind in "biu":
        raise RuntimeError("std and var only support floating point and complex dtypes")
    freedom = _freedom(x.shape, dims, correction)
    if freedom <= 0:
        warn_user(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the "
            "reduction factor (input numel divided by output numel).",
        )
    return freedom


def _moments(name: str, x: Any, dim: Any, correction: Any, keepdim: bool) -> tuple[Any, Any]:
    """Variance or deviation, and mean, without values."""
    _checked_freedom(name, x, normal_dims(dim, x.ndim), correction)
    shape = reduced(x, dim, keepdim)
    return meta.empty(shape, x.real.dtype), meta.empty(shape, x.dtype)


def _variance(
    name: str, xp: Any, x: Any, dim: Any, correction: Any, keepdim: bool
) -> tuple[Any, Any]:
    """Variance and mean, in the type they are computed in."""
    dims = normal_dims(dim, x.ndim)
    freedom = _checked_freedom(name, x, dims, correction)
    center = xp.divide(packed(xp.sum(x, axis=dims, keepdims=True)), reduced_size(x.shape, dims))
    away = x - center
    square = away.real**2 + away.imag**2 if x.dtype.kind == "c" else away * away
    total = packed(xp.sum(square, axis=dims, keepdims=True))
    rounded = xp.abs(center) * (2 * xp.finfo(x.dtype).eps)
    if x.size and (total <= rounded * rounded * x.size).any().item():
        # Equal numbers may differ from their mean by its rounding, and have no variance.
        first = x[tuple(slice(0, 1) if d in dims else slice(None) for d in range(x.ndim))]
        equal = (x == first).all(axis=dims, keepdims=True)
        total = xp.where(equal, xp.zeros_like(total), total)
    var = xp.divide(total, max(freedom, 0))
    if keepdim:
        return var, center
    return xp.squeeze(var, axis=dims), xp.squeeze(center, axis=dims)


def _standard(
    name: str, xp: Any, x: Any, dim: Any, correction: Any, keepdim: bool
) -> tuple[Any, Any]:
    var, center = _variance(name, xp, x, dim, correction, keepdim)
    return xp.sqrt(var), center


def _var_gradient(g: Tensor, x: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    freedom = _freedom(x.shape, dim, correction)
    away = x - kept_mean(x, dim)
    g = restore_dims(g, x.shape, dim, keepdim)
    if freedom <= 0 and (dim is None or not x.shape):
        return g * where(away == 0, math.nan, math.inf)
    return g * _slope(freedom) * away


def _moments_gradient(
    g: list, root: Tensor | None, x: Tensor, dim: Any, correction: Any, keepdim: bool
) -> Tensor | None:
    """The gradient of a variance, or of its root, and a mean, each of which may have none."""
    spread, middle = g
    of_mean = None if middle is None else _spread_mean(middle, x.shape, dim, keepdim)
    if spread is None:
        return None if of_mean is None else apply("expand", of_mean, x.array.shape, False)
    of_variance = spread if root is None else spread * _half_inverse(root)
    found = _var_gradient(of_variance, x, dim, correction, keepdim)
    if _freedom(x.shape, dim, correction) <= 0:
        # It is not finite, and must not spoil the mean's where nobody asks for the variance.
        found = where(restore_dims(spread, x.shape, dim, keepdim) == 0, 0, found)
    return found if of_mean is None else found + of_mean


def _slope(freedom: Any) -> float:
    return 2 / freedom if freedom else math.inf


def _var_tangent(t: Tensor, x: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    freedom = _freedom(x.shape, dim, correction)
    away = x - mean(x, dim, True)
    product = (away.conj() * t).real if x.is_complex() else away * t
    return sum(product, dim, keepdim) * _slope(freedom)


def _half_inverse(out: Tensor) -> Tensor:
    """The derivative of the square root by its result, taken as zero at zero."""
    vanishes = out == 0
    return where(vanishes, 0, 0.5 / where(vanishes, 1, out))


_MOMENT = "(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False)"
_var = primitive(
    f"var{_MOMENT} -> Tensor",
    lambda xp, *args: _variance("var", xp, *args)[0],
    lambda g, self, dim, correction, keepdim: _var_gradient(g, self, dim, correction, keepdim),
    lambda tangents, self, dim, correction, keepdim: _var_tangent(
        tangents["self"], self, dim, correction, keepdim
    ),
    meta=lambda x, *args: _moments("var", x, *args)[0],
    batch=along("dim"),
    out="casts",
    overload="correction",
    doc="Variance over all or the given dimensions, by default with Bessel's correction.",
)
_std = primitive(
    f"std{_MOMENT} -> Tensor",
    lambda xp, *args: _standard("std", xp, *args)[0],
    lambda g, self, dim, correction, keepdim, out: _var_gradient(
        g * _half_inverse(out), self, dim, correction, keepdim
    ),
    lambda tangents, self, dim, correction, keepdim, out: (
        _var_tangent(tangents["self"], self, dim, correction, keepdim) * _half_inverse(out)
    ),
    meta=lambda x, *args: _moments("std", x, *args)[0],
    batch=along("dim"),
    out="casts",
    overload="correction",
    doc="Standard deviation over all or the given dimensions.",
)
_var_mean = primitive(
    f"var_mean{_MOMENT} -> (Tensor, Tensor)",
    lambda xp, *args: _variance("var_mean", xp, *args),
    lambda g, self, dim, correction, keepdim: _moments_gradient(
        g, None, self, dim, correction, keepdim
    ),
    lambda tangents, self, dim, correction, keepdim: (
        _var_tangent(tangents["self"], self, dim, correction, keepdim),
        mean(tangents["self"], dim, keepdim),
    ),
    meta=lambda x, *args: _moments("var_mean", x, *args),
    batch=along("dim"),
    out="casts",
    overload="correction",
    public="function",
    undefined=True,
    doc="Variance and mean over all or the given dimensions.",
)
_std_mean = primitive(
    f"std_mean{_MOMENT} -> (Tensor, Tensor)",
    lambda xp, *args: _standard("std_mean", xp, *args),
    lambda g, self, dim, correction, keepdim, out0: _moments_gradient(
        g, out0, self, dim, correction, keepdim
    ),
    lambda tangents, self, dim, correction, keepdim, out0: (
        _var_tangent(tangents["self"], self, dim, correction, keepdim) * _half_inverse(out0),
        mean(tangents["self"], dim, keepdim),
    ),
    meta=lambda x, *args: _moments("std_mean", x, *args),
    batch=along("dim"),
    out="casts",
    overload="correction",
    public="function",
    undefined=True,
    doc="Standard deviation and mean over all or the given dimensions.",
)


def _unbiased_or_corrected(operator: Any) -> Callable[..., Any]:
    """The older ``(unbiased)`` and ``(dim, unbiased, keepdim)`` beside the operator's signature."""

    def function(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        names: tuple[str, ...] = ("dim", "unbiased", "keepdim")
        if args and isinstance(args[0], bool):
            names = ("unbiased",)
        if len(args) > len(names):
            raise TypeError(
                f"{operator.name}() takes at most {len(names)} positional arguments after the "
                f"tensor, {len(args)} were given; signature: {operator.schema.text}"
            )
        for name, value in zip(names, args, strict=False):
            if name in kwargs:
                raise TypeError(f"{operator.name}() got multiple values for argument '{name}'")
            kwargs[name] = value
        if "unbiased" in kwargs:
            if "correction" in kwargs:
                raise TypeError(f"{operator.name}() takes either unbiased or correction, not both")
            kwargs["correction"] = int(kwargs.pop("unbiased"))
        return operator(input, **kwargs)

    return presented(function, operator.name, __name__, operator)


var = _unbiased_or_corrected(_var)
std = _unbiased_or_corrected(_std)
var_mean = _unbiased_or_corrected(_var_mean)
std_mean = _unbiased_or_corrected(_std_mean)

# Logic -------------------------------------------------------------------------------------------


def _logical(name: str) -> Callable:
    def kernel(xp: Any, x: Any, dim: Any, keepdim: bool) -> Any:
        dims = () if dim == () else normal_dims(dim, x.ndim)
        out = packed(getattr(xp, name)(x.astype(bool), axis=dims, keepdims=keepdim))
        return out.astype(x.dtype) if x.dtype == dtypes.uint8.numpy else out

    return kernel


all = nondifferentiable(
    "all(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    _logical("all"),
    shape=reduced,
    batch=along("dim", empty_means_all=False),
    doc="Whether all elements are non-zero, over all or the given dimensions.",
    out="flags",
)
any = nondifferentiable(
    "any(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    _logical("any"),
    shape=reduced,
    batch=along("dim", empty_means_all=False),
    doc="Whether one element is non-zero, over all or the given dimensions.",
    out="flags",
)
count_nonzero = nondifferentiable(
    "count_nonzero(Tensor self, int[]? dim=None) -> Tensor",
    lambda xp, x, dim: packed(
        xp.sum(x != 0, axis=normal_dims(dim, x.ndim), dtype=dtypes.int64.numpy)
    ),
    shape=reduced,
    batch=along("dim"),
    doc="How many elements are not zero, over all or the given dimensions.",
)

# Comparison of whole tensors ---------------------------------------------------------------------


def _isclose(xp: Any, x: Any, y: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    if x.dtype != y.dtype:
        raise RuntimeError(f"{scalar_name(x.dtype)} did not match {scalar_name(y.dtype)}")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not tolerance >= 0:
            raise RuntimeError(
                f"{name} must be greater than or equal to zero, but got {tolerance:g}"
            )
    try:
        close = xp.equal(x, y)
    except ValueError as error:
        raise broadcast_error("isclose", (x, y), error) from None
    if x.dtype.kind in "biu":
        x, y = x.astype(dtypes.float64.numpy), y.astype(dtypes.float64.numpy)
    x, y = widened(x), widened(y)
    if equal_nan:
        close = close | (xp.isnan(x) & xp.isnan(y))
    distance = xp.abs(x - y)
    return close | (xp.isfinite(distance) & (distance <= atol + xp.abs(rtol * y)))


isclose = nondifferentiable(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, "
    "bool equal_nan=False) -> Tensor",
    _isclose,
    shape=shapes.broadcast,
    batch=elementwise,
    doc="Whether elements differ by at most `atol + rtol * abs(other)`.",
)


def allclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> bool:
    """Whether all elements differ by at most `atol + rtol * abs(other)`."""
    return all(isclose(input, other, rtol, atol, equal_nan)).item()


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and equal elements."""
    for position, value in enumerate((input, other), 1):
        if not isinstance(value, Tensor):
            name = "input" if position == 1 else "other"
            raise TypeError(
                f"equal(): argument '{name}' (position {position}) must be Tensor, not "
                f"{type(value).__name__}"
            )
    return input.array.shape == other.array.shape and all(input == other).item()
