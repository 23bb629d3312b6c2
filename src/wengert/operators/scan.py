"""Cumulative operators along one dimension: sums, products, extrema, differences, integrals."""

from __future__ import annotations

import math
from typing import Any

from .. import return_types
from ..backends import row_loops
from ..backends.backend import backend_of, has_elements
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..dispatch.out import copy_to_out
from ..transforms.batching.rules import along
from . import shapes
from .along import (
    check_ordered,
    in_dtype,
    normal_dim,
    packed,
    returning,
    scalar_name,
    sum_dtype,
    working_dtype,
)
from .declare import composite, linear, primitive
from .pointwise import exp, real_part, where, zeros_like
from .reduce import sum
from .unrecorded import unrecorded

__all__ = [
    "cummax", "cummin", "cumprod", "cumsum", "cumulative_trapezoid", "diff", "logcumsumexp",
    "trapezoid",
]  # fmt: skip

# Building blocks of the gradient rules -----------------------------------------------------------


def _shift(xp: Any, x: Any, dim: int, step: int, fill: Any) -> Any:
    out = xp.full_like(x, fill)
    if x.ndim:
        front = (slice(None),) * normal_dim(dim, x.ndim)
        if step > 0:
            out[(*front, slice(step, None))] = x[(*front, slice(None, -step))]
        else:
            out[(*front, slice(None, step))] = x[(*front, slice(-step, None))]
    return out


shift: Operator = primitive(
    "_shift(Tensor self, int dim, int step, Scalar fill=0) -> Tensor",
    _shift,
    lambda g, dim, step: shift(g, dim, -step, 0),
    lambda tangents, dim, step: shift(tangents["self"], dim, step, 0),
    widens=False,
    shape=shapes.as_first,
    batch=along("dim"),
    doc="Elements moved by `step` along a dimension; what falls off is lost, gaps take `fill`.",
)


def _recurrence(xp: Any, factor: Any, term: Any, dim: int, reverse: bool) -> Any:
    """Doubling: after each round an element covers twice as many of its predecessors."""
    if not term.ndim:
        return term.copy()
    work = xp.result_type(factor, term)
    a = xp.moveaxis(factor, dim, 0).astype(work)
    out = term.astype(work)
    b = xp.moveaxis(out, dim, 0)
    if reverse:
        a, b = a[::-1], b[::-1]
    step = 1
    while step < len(b):
        b[step:] += a[step:] * b[:-step]
        a[step:] *= a[:-step].copy()
        step *= 2
    return out


def _against(reverse: bool) -> int:
    """The shift that brings each element's predecessor into its place."""
    return -1 if reverse else 1


def _recurrence_transpose(g: Tensor, factor: Tensor, dim: int, reverse: bool) -> Tensor:
    following = shift(factor.conj(), dim, -_against(reverse))
    return recurrence(following, g, dim, not reverse)


recurrence = primitive(
    "_recurrence(Tensor factor, Tensor term, int dim, bool reverse=False) -> Tensor",
    _recurrence,
    {
        "factor": lambda g, factor, dim, reverse, out: (
            _recurrence_transpose(g, factor, dim, reverse)
            * shift(out, dim, _against(reverse)).conj()
        ),
        "term": lambda g, factor, dim, reverse: _recurrence_transpose(g, factor, dim, reverse),
    },
    lambda tangents, factor, dim, reverse, out: _recurrence_tangent(
        tangents, factor, dim, reverse, out
    ),
    shape=shapes.broadcast,
    batch=along("dim"),
    cost="slow",
    doc="`y[k] = factor[k] * y[k - 1] + term[k]` along a dimension, or backwards from its end.",
)


def _recurrence_tangent(
    tangents: dict[str, Tensor], factor: Tensor, dim: int, reverse: bool, out: Tensor
) -> Tensor:
    change = tangents.get("term")
    if "factor" in tangents:
        through_factor = tangents["factor"] * shift(out, dim, _against(reverse))
        change = through_factor if change is None else change + through_factor
    return recurrence(factor, change, dim, reverse)


# Cumulative sums and products --------------------------------------------------------------------


def _accumulation(function: str) -> Any:
    def kernel(xp: Any, x: Any, dim: int, dtype: Any) -> Any:
        goal = sum_dtype(x, dtype)
        x = packed(in_dtype(x, goal))
        dim = normal_dim(dim, x.ndim)
        if not x.ndim:
            return x.copy()
        out = row_loops.cumsum(x) if function == "cumsum" and dim == x.ndim - 1 else None
        if out is None:
            out = getattr(xp, function)(x, axis=dim, dtype=working_dtype(goal))
            if function == "cumsum" and out.dtype.kind in "fc":
                out += 0  # sums begin with zero, which has no sign
        return out.astype(goal, copy=False)

    return kernel


def _reverse_cumsum(g: Tensor, dim: int) -> Tensor:
    return cumsum(g.flip(dim), dim).flip(dim) if g.array.ndim else g


cumsum = linear(
    "cumsum(Tensor self, int dim, *, dtype? dtype=None) -> Tensor",
    _accumulation("cumsum"),
    lambda g, dim: _reverse_cumsum(g, dim),
    inplace=True,
    shape=shapes.as_first,
    batch=along("dim"),
    doc="Sums of the elements up to each place along a dimension.",
    out="typed",
)
def _gradient_up_to_zeros(g: Any, x: Any, dim: int, out: Any) -> Any:
    """The gradient of cumprod where factors are zero; None where there are none.

    Up to the first zero it is that of the elements before it, and at that zero that of the
    elements up to the second: all others count as nothing, NaN too.
    """
    if not has_elements(x) or not x.ndim:
        return None
    zero = x == 0
    if not zero.any().item():
        return None
    xp = backend_of(x).xp
    zeros = xp.cumsum(zero, normal_dim(dim, x.ndim))
    before = _shift(xp, out, dim, 1, 1).conj()

    def part(number: int) -> Any:
        """The gradient of elements that come after so many zeros."""
        here = zeros == number
        following = _shift(xp, xp.where(here & ~zero, x, 0), dim, -1, 0).conj()
        return before * _recurrence(xp, following, xp.where(here, g, 0), dim, True)

    slopes = xp.where(zeros == 0, part(0), xp.where(zero & (zeros == 1), part(1), 0))
    return slopes.astype(g.dtype, copy=False)


def _cumprod_gradient(g: Tensor, x: Tensor, dim: int, out: Tensor) -> Tensor:
    found = unrecorded(_gradient_up_to_zeros, g, x, dim, out)
    if found is not None:
        return found
    return shift(out, dim, 1, 1).conj() * recurrence(shift(x, dim, -1).conj(), g, dim, True)


cumprod = primitive(
    "cumprod(Tensor self, int dim, *, dtype? dtype=None) -> Tensor",
    _accumulation("cumprod"),
    lambda g, self, dim, out: _cumprod_gradient(g, self, dim, out),
    lambda tangents, self, dim, out: recurrence(
        self, tangents["self"] * shift(out, dim, 1, 1), dim
    ),
    inplace=True,
    widens=False,
    shape=shapes.as_first,
    batch=along("dim"),
    cost="slow",
    doc="Products of the elements up to each place along a dimension.",
    out="typed",
)

# logcumsumexp ------------------------------------------------------------------------------------


def _logcumsumexp(xp: Any, x: Any, dim: int) -> Any:
    if x.dtype.kind in "biu":
        raise NotImplementedError(f'"logcumsumexp" not implemented for \'{scalar_name(x.dtype)}\'')
    dim = normal_dim(dim, x.ndim)
    if not x.ndim:
        return x.copy()
    if x.dtype.kind != "c":
        return backend_of(x).accumulate("logaddexp", packed(x), dim)
    out = x.copy()
    lines = xp.moveaxis(out, dim, 0)
    for i in range(1, len(lines)):
        lines[i] = _logaddexp(xp, lines[i - 1], lines[i])
    return out


def _logaddexp(xp: Any, x: Any, y: Any) -> Any:
    """For complex numbers, by the larger real part."""
    high, low = xp.where(x.real < y.real, y, x), xp.where(x.real < y.real, x, y)
    return xp.where(xp.isinf(high.real) & (high == low), high, high + xp.log1p(xp.exp(low - high)))


def _running_sum(x: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """Parts of the running sum of exponentials, each counted in units of the largest so far.

    The factor by which the sum up to the previous place shrinks as the unit grows, the exponential
    of each element, and the sum. The unit is a constant: it cancels in every ratio.
    """
    largest = cummax(real_part(x.detach()), dim)[0]
    unit = where(largest == -math.inf, 0, largest)
    shrinking = exp(shift(largest, dim, 1, -math.inf) - unit)
    exponential = exp(x - unit)
    total = recurrence(shrinking, exponential, dim)
    return shrinking, exponential, where(total == 0, 1, total)


def _logcumsumexp_gradient(g: Tensor, x: Tensor, dim: int) -> Tensor:
    shrinking, exponential, total = _running_sum(x, dim)
    return exponential.conj() * recurrence(
        shift(shrinking, dim, -1), g / total.conj(), dim, True
    )


def _logcumsumexp_tangent(t: Tensor, x: Tensor, dim: int) -> Tensor:
    shrinking, exponential, total = _running_sum(x, dim)
    return recurrence(shrinking, exponential * t, dim) / total


logcumsumexp = primitive(
    "logcumsumexp(Tensor self, int dim) -> Tensor",
    _logcumsumexp,
    lambda g, self, dim: _logcumsumexp_gradient(g, self, dim),
    lambda tangents, self, dim: _logcumsumexp_tangent(tangents["self"], self, dim),
    shape=shapes.as_first,
    batch=along("dim"),
    cost="slow",
    doc="Logarithms of the sums of exponentials up to each place along a dimension.",
)

# Running extrema ---------------------------------------------------------------------------------


def _running(name: str, ufunc: str) -> Any:
    def kernel(xp: Any, x: Any, dim: int) -> Any:
        check_ordered(name, x)
        dim = normal_dim(dim, x.ndim)
        if not x.ndim:
            return x.copy(), xp.zeros((), "int64")
        x = packed(x)
        values = backend_of(x).accumulate(ufunc, x, dim)
        place = xp.arange(x.shape[dim]).reshape((-1,) + (1,) * (x.ndim - dim - 1))
        renewed = (x == values) | (x != x)
        return values, backend_of(x).accumulate("maximum", xp.where(renewed, place, 0), dim)

    return returning(
        getattr(return_types, name),
        primitive(
            f"{name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
            kernel,
            lambda g, self, dim, out1: zeros_like(self).scatter_add(dim, out1, g[0]),
            lambda tangents, dim, out1: (tangents["self"].gather(dim, out1), None),
            nondifferentiable_outputs=(1,),
            shape=shapes.pair_as_first,
            batch=along("dim"),
            cost="slow",
            doc=f"The {ufunc} of the elements up to each place along a dimension, and its index.",
        ),
    )


cummax = _running("cummax", "maximum")
cummin = _running("cummin", "minimum")

# Differences and integrals -----------------------------------------------------------------------


def _diff_once(x: Tensor, dim: int) -> Tensor:
    length = max(x.array.shape[dim] - 1, 0)
    upper, lower = x.narrow(dim, x.array.shape[dim] - length, length), x.narrow(dim, 0, length)
    return upper != lower if x.array.dtype.kind == "b" else upper - lower


def _check_joins(x: Tensor, piece: Tensor, dim: int) -> None:
    if piece.array.ndim != x.array.ndim:
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    for i, (n, given) in enumerate(zip(x.array.shape, piece.array.shape, strict=True)):
        if i != dim and n != given:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input "
                f"except along the differencing dimension; input.size({i}) = {n}, but got "
                f"tensor.size({i}) = {given}"
            )


def _joined(pieces: list[Tensor], dim: int) -> Tensor:
    from .joining import cat

    return cat(pieces, dim) if len(pieces) > 1 else pieces[0]


def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The `n`-th differences of neighbours along a dimension, the tensor itself for none."""
    if not input.array.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    dim = normal_dim(dim, input.array.ndim)
    pieces = [piece for piece in (prepend, input, append) if piece is not None]
    for piece in pieces:
        _check_joins(input, piece, dim)
    joined = _joined(pieces, dim) if n else input
    rounds = min(n, joined.array.shape[dim])
    result = joined if n else joined.clone()
    for _ in range(rounds):
        result = _diff_once(result, dim)
    return result if out is None else copy_to_out("diff", result, out)


def _trapezoids(name: str, y: Tensor, x: Tensor, dim: int) -> Tensor:
    """Twice the areas of the trapezoids between neighbouring samples, one less than samples."""
    heights = _neighbours(y, dim)
    if x.array.ndim == 1 and y.array.ndim > 1:
        if x.array.shape[0] != y.array.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        return heights * diff(x).reshape((-1,) + (1,) * (y.array.ndim - dim - 1))
    along = dim if x.array.ndim > y.array.ndim else dim - y.array.ndim
    return heights * diff(x, dim=along)


def _neighbours(y: Tensor, dim: int) -> Tensor:
    """Sums of neighbouring samples."""
    length = max(y.array.shape[dim] - 1, 0)
    return y.narrow(dim, y.array.shape[dim] - length, length) + y.narrow(dim, 0, length)


def _check_samples(name: str, y: Tensor, x: Tensor | None, dx: Any) -> None:
    for argument, value in (("y", y), ("x", x)):
        if value is not None and value.array.dtype.kind == "b":
            raise RuntimeError(
                f"{name}: received a bool input for `{argument}`, but bool is not supported"
            )
    if isinstance(dx, (bool, complex)):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number. Got {dx}")


@composite(public="function")
def trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Any = 1, dim: int = -1
) -> Tensor:
    """The integral of samples `y`, at the places `x` or `dx` apart, by the trapezoidal rule."""
    _check_samples("trapezoid", y, x, dx)
    dim = normal_dim(dim, y.array.ndim)
    if y.array.ndim and not y.array.shape[dim]:
        return sum(y, dim, dtype=y.dtype)
    if x is not None:
        return sum(_trapezoids("trapezoid", y, x, dim), dim) / 2
    # Samples may be whole numbers of few bits, which are added as ones of 64 bits.
    return (sum(y, dim) - (y.select(dim, 0) + y.select(dim, -1)) * 0.5) * dx


@composite(public="function")
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Any = 1, dim: int = -1
) -> Tensor:
    """The integrals of samples `y` up to each place by the trapezoidal rule."""
    _check_samples("cumulative_trapezoid", y, x, dx)
    dim = normal_dim(dim, y.array.ndim)
    if x is not None:
        return cumsum(_trapezoids("cumulative_trapezoid", y, x, dim), dim) / 2
    return cumsum(_neighbours(y, dim) * (dx / 2), dim)
