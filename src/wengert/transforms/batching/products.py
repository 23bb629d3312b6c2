"""Rules of products of vectors and matrices.

If one operand alone is batched, the batch is folded into its free dimension, the one that is not
summed over: one large product in place of many small ones, and the other operand is used as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import from_numpy
from ...core.registry import apply, operator_named
from ...core.tensor import Tensor
from .moving import (
    at_front,
    batch_size,
    cast,
    common_dtype,
    moved,
    padded,
    rank_of,
    reshaped,
    sample_of,
    shape_of,
    with_batch,
)
from .rules import Rule, broadcast


def _folded(x: Tensor, batch: int, free: int) -> tuple[Tensor, bool]:
    """`x` with its batch dimension merged into the free one, counted without the batch.

    The second result says whether the batch counts slower than the free dimension.
    """
    if batch == free + 1:
        first = False
    else:
        x, first = moved(x, batch, free), True
    shape = x.array.shape
    return reshaped(x, (*shape[:free], shape[free] * shape[free + 1], *shape[free + 2 :])), first


def _unfolded(out: Tensor, place: int, size: int, first: bool) -> tuple[Tensor, int]:
    """The dimension at `place` as two again, and where the batch dimension of `size` is."""
    shape = out.array.shape
    length = shape[place] // size
    pair = (size, length) if first else (length, size)
    out = apply("_unsafe_view", out, (*shape[:place], *pair, *shape[place + 1 :]))
    return out, place if first else place + 1


def product(lead: int, left: int, right: int, both: str) -> Rule:
    """The rule of products of matrices with `lead` dimensions in front of them.

    `left` and `right` are the free dimensions of the operands, and the operator `both` multiplies
    batches.
    """

    def rule(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
        x, y = args
        size = batch_size(args, dims)
        if not size or rank_of(x, dims[0]) != lead + 2 or rank_of(y, dims[1]) != lead + 2:
            return _each(operator, both, lead, args, dims)
        if dims[1] is None and (lead or dims[0] in (left, left + 1)):
            x, first = _folded(x, dims[0], left)
            return _unfolded(operator.call((x, y)), lead, size, first)
        if dims[0] is None and (lead or dims[1] in (right, right + 1)):
            y, first = _folded(y, dims[1], right)
            return _unfolded(operator.call((x, y)), lead + 1, size, first)
        return _each(operator, both, lead, args, dims)

    return rule


def _each(operator: Any, both: str, lead: int, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """The products of all examples by the operator for batches."""
    size = batch_size(args, dims)
    x, y = [with_batch(v, d, size) for v, d in zip(args, dims, strict=True)]
    if not lead:
        columns = _columns(both, x, y)
        return apply(both, x, y) if columns is None else apply("mul", *columns), 0
    rows = []
    for v in (x, y):
        length, count, *shape = v.array.shape
        rows.append(reshaped(v, (length * count, *shape)))
    out = apply(both, *rows)
    return apply("_unsafe_view", out, (size, x.array.shape[1], *out.array.shape[1:])), 0


def _columns(both: str, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor] | None:
    """Operands whose elementwise product is that of the matrices, if nothing is summed.

    Such are the gradients of weights for single examples. No product of matrices is as fast.
    """
    if x.array.ndim != 3 or y.array.ndim != 3 or x.array.dtype != y.array.dtype:
        return None
    inner, other = 1 if both == "_bmm_left" else 2, 2 if both == "_bmm_right" else 1
    if x.array.shape[inner] != 1 or y.array.shape[other] != 1 or x.array.dtype.kind == "b":
        return None
    if inner == 1:
        x = apply("transpose", x, 1, 2).conj()
    if other == 2:
        y = apply("transpose", y, 1, 2).conj()
    return x, y


def matrix_vector(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """mv(self, vec)."""
    x, v = args
    size = batch_size(args, dims)
    if not size:
        pass  # nothing would tell the folded dimensions apart again
    elif dims[1] is None and v.array.ndim == 1 and rank_of(x, dims[0]) == 2 and dims[0] < 2:
        x, first = _folded(x, dims[0], 0)
        return _unfolded(operator.call((x, v)), 0, args[0].array.shape[dims[0]], first)
    elif dims[0] is None and v.array.ndim == x.array.ndim == 2:
        return apply("mm", at_front(v, dims[1]), apply("transpose", x, 0, 1)), 0
    column = with_batch(v, dims[1], size)
    out = apply("bmm", with_batch(x, dims[0], size), apply("unsqueeze", column, column.array.ndim))
    return apply("select", out, 2, 0), 0


def inner(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """dot(self, tensor), and vdot(self, other), which conjugates the first."""
    x, y = args
    if operator.name == "vdot":
        x = x.conj()
    if dims[1] is None and x.array.ndim == 2:
        return apply("mv", at_front(x, dims[0]), y), 0
    if dims[0] is None and y.array.ndim == 2:
        return apply("mv", at_front(y, dims[1]), x), 0
    x, y = at_front(x, dims[0]), at_front(y, dims[1])
    out = apply("bmm", apply("unsqueeze", x, 1), apply("unsqueeze", y, y.array.ndim))
    return reshaped(out, out.array.shape[:1]), 0


# Products that are added to something ------------------------------------------------------------


def added(product: Callable[[tuple, tuple], tuple[Any, Any]], promotes: bool = False) -> Rule:
    """The rule of ``beta * self + alpha * product``; `self` expands to the shape of the product.

    An operator that does not promote its operands refuses those of different types.
    """

    def rule(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
        values = args[:3]
        if len({v.array.dtype for v in values}) > 1:
            if not promotes:
                operator.kernel(np, *[sample_of(v, d) for v, d in zip(args, dims, strict=True)])
            goal = common_dtype(values, dims[:3])
            values = tuple([cast(v, goal) for v in values])
        x, left, right = values
        beta, alpha = args[3:]
        size = batch_size(args, dims)
        if size and _shares_rows(operator, x, left, right, dims):
            left, first = _folded(left, dims[1], 0)
            out = operator.call((x, left, right, beta, alpha))
            return _unfolded(out, 0, size, first)
        out, dim = product((left, right), dims[1:3])
        number = {"i": int, "u": int, "b": bool}.get(x.array.dtype.kind)
        if number is not None:
            beta, alpha = number(beta), number(alpha)
        return _plus(out if alpha == 1 else out * alpha, dim, x, dims[0], beta)

    return rule


def _shares_rows(operator: Any, x: Tensor, left: Tensor, right: Tensor, dims: tuple) -> bool:
    """Whether addmm adds the same to every row, so that rows of all examples may be mixed."""
    return (
        operator.name == "addmm"
        and dims[0] is dims[2] is None
        and dims[1] < 2
        and left.array.ndim == 3
        and left.array.shape[dims[1]] > 0
        and (x.array.ndim < 2 or x.array.shape[0] == 1)
    )


def _plus(out: Tensor, dim: int | None, x: Tensor, batch: int | None, beta: Any) -> tuple[Any, Any]:
    """`out + beta * x`, where `x` expands to the shape of `out`; beta zero leaves even NaN out."""
    shape = shape_of(out, dim)
    if batch is None:
        x = apply("expand", x, shape, False)
    else:
        x = padded(x, batch, len(shape))
        x = apply("expand", x, (x.array.shape[0], *shape), False)
        batch = 0
    if beta == 0:
        return out, dim
    return broadcast("add", (out, x, beta), (dim, batch, None))


def by_operator(name: str) -> Callable[[tuple, tuple], tuple[Any, Any]]:
    """The product of two operands, of which one, both or none are batched, by an operator."""

    def multiply(args: tuple, dims: tuple) -> tuple[Any, Any]:
        operator = operator_named(name)
        if dims == (None, None):
            return operator.call(args), None
        return operator.batch_rule(operator, args, dims)

    return multiply


def summed_bmm(args: tuple, dims: tuple) -> tuple[Any, Any]:
    """The sum of the products of the matrices of two batches."""
    out, dim = by_operator("bmm")(args, dims)
    place = None if dim is None else 0
    summed = (0 if dim is None else 1,)
    kind = from_numpy(out.array.dtype)
    return apply("sum.dim_IntList", at_front(out, dim), summed, False, kind), place


def outer(args: tuple, dims: tuple) -> tuple[Any, Any]:
    """All products of the elements of two vectors."""
    for value, dim in zip(args, dims, strict=True):
        if rank_of(value, dim) != 1:
            raise RuntimeError(f"addr: Expected 1-D vectors, but got {rank_of(value, dim)}-D")
    x, y = [at_front(v, d) for v, d in zip(args, dims, strict=True)]
    x, y = apply("unsqueeze", x, x.array.ndim), apply("unsqueeze", y, y.array.ndim - 1)
    return apply("mul", x, y), None if dims == (None, None) else 0


def affine(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """``self @ weight.T + bias``: many examples of one layer are one larger batch of rows."""
    bias, x, weight = args
    size = batch_size(args, dims)
    if dims[0] is dims[2] is None and dims[1] < 2 and bias.array.ndim < 2 and size:
        rows, first = _folded(x, dims[1], 0)
        return _unfolded(operator.call((bias, rows, weight)), 0, size, first)
    if weight.array.dtype.kind == "c":
        weight = weight.conj()
    out, dim = by_operator("_mm_right")((x, weight), dims[1:])
    return _plus(out, dim, bias, dims[0], 1)
