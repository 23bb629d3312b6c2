"""LU factors with row exchanges: factoring, unpacking, solving by them."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .. import return_types
from ..backends import meta, systems
from ..backends.backend import backend_of
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..transforms.batching.rules import leading
from .along import scalar_name
from .copying import pack
from .declare import composite, primitive
from .diagonals import diag_embed, tril, triu
from .joining import cat
from .linalg_kernels import (
    INFO,
    by_columns,
    check_equation,
    each_matrix,
    into,
    meta_columns,
    raise_first,
)
from .linalg_solving import solve_triangular
from .nn import constant_pad_nd

__all__ = ["lu", "lu_solve", "lu_unpack"]

# Factors ------------------------------------------------------------------------------------------


def _check_factorable(a: Any, pivot: bool) -> None:
    if a.ndim < 2:
        raise RuntimeError(
            "torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: "
            f"{list(a.shape)} instead"
        )
    if a.dtype.kind not in "fc" or a.dtype.itemsize == 2:
        raise NotImplementedError(f"\"lu_cpu\" not implemented for '{scalar_name(a.dtype)}'")
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


def _factored(xp: Any, a: Any, pivot: bool, checked: str) -> Any:
    _check_factorable(a, pivot)
    if (found := systems.factored(a)) is not None:
        if checked:
            raise_first(checked, found[2], _zero_divisor)
        return found
    *batch, m, n = a.shape
    out = xp.empty((*batch, n, m), a.dtype).swapaxes(-1, -2)
    pivots, info = xp.empty((*batch, min(m, n)), INFO), xp.zeros(tuple(batch), INFO)
    if not a.size:
        return out, pivots, info
    (getrf,) = backend_of(a).scipy_linalg("lapack").get_lapack_funcs(("getrf",), (a,))
    found = each_matrix(getrf, a)
    out.reshape(-1, m, n)[...] = np.stack([factors for factors, _, _ in found])
    pivots.reshape(-1, min(m, n))[...] = np.stack([rows for _, rows, _ in found]) + 1
    info.reshape(-1)[...] = [failed for _, _, failed in found]
    if checked:
        raise_first(checked, info, _zero_divisor)
    return out, pivots, info


def _zero_divisor(place: int) -> str:
    return (
        f"U[{place},{place}] is zero and using it on lu_solve would result in a division by zero. "
        "If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
        "linalg.lu_factor_ex(A, pivot)"
    )


def _factored_meta(a: Any, pivot: bool, checked: str) -> Any:
    _check_factorable(a, pivot)
    *batch, m, n = a.shape
    return (
        meta_columns(a.shape, a.dtype),
        meta.empty((*batch, min(m, n)), INFO),
        meta.empty(tuple(batch), INFO),
    )


def _parts(packed: Tensor) -> tuple[Tensor, Tensor]:
    """The unit lower and the upper triangular matrix that are packed into one."""
    m, n = packed.array.shape[-2:]
    k = min(m, n)
    lower = tril(packed.narrow(-1, 0, k), -1)
    ones = packed.new_ones((*packed.array.shape[:-2], k))
    unit = diag_embed(ones)
    if m > k:
        unit = constant_pad_nd.call((unit, (0, 0, 0, m - k), 0))
    return lower + unit, triu(packed.narrow(-2, 0, k))


def _solved(matrix: Tensor, right: Tensor, upper: bool, left: bool = True) -> Tensor:
    return solve_triangular.call((matrix, right, upper, left, not upper))


def _over_adjoint(x: Tensor, upper: Tensor) -> Tensor:
    """``x U^-H`` with an upper triangular U."""
    return solve_triangular.call((upper.mH, x, False, False, False))


def _under_adjoint(lower: Tensor, x: Tensor) -> Tensor:
    """``L^-H x`` with a unit lower triangular L."""
    return solve_triangular.call((lower.mH, x, True, True, True))


def _zero_like(x: Any, shape: tuple[int, ...], like: Any) -> Tensor:
    return like.new_zeros(shape) if x is None else x


def _gradient(by_l: Any, by_u: Any, exchange: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """The gradient of a matrix ``P L U`` by those of its factors."""
    m, n = lower.array.shape[-2], upper.array.shape[-1]
    k = min(m, n)
    by_l = _zero_like(by_l, lower.array.shape, lower)
    by_u = _zero_like(by_u, upper.array.shape, upper)
    l1, u1 = lower.narrow(-2, 0, k), upper.narrow(-1, 0, k)
    through_l = l1.mH @ by_l.narrow(-2, 0, k)
    through_u = by_u.narrow(-1, 0, k) @ u1.mH
    if n > k:  # the other columns of U are L^-1 P^T times those of the matrix
        rest = by_u.narrow(-1, k, n - k)
        through_l = through_l - rest @ upper.narrow(-1, k, n - k).mH
    if m > k:  # the other rows of L are those of the matrix times U^-1
        below = by_l.narrow(-2, k, m - k)
        through_u = through_u - lower.narrow(-2, k, m - k).mH @ below
    inner = _over_adjoint(tril(through_l, -1) + triu(through_u), u1)
    found = _under_adjoint(l1, inner)
    if n > k:
        found = cat([found, _under_adjoint(l1, rest)], -1)
    if m > k:
        found = cat([found, _over_adjoint(below, u1)], -2)
    return exchange @ found


def _tangents(
    t: Tensor, exchange: Tensor, lower: Tensor, upper: Tensor
) -> tuple[Tensor, Tensor]:
    """How L and U change if the matrix ``P L U`` changes in direction `t`."""
    m, n = lower.array.shape[-2], upper.array.shape[-1]
    k = min(m, n)
    t = exchange.mT @ t
    l1, u1 = lower.narrow(-2, 0, k), upper.narrow(-1, 0, k)
    inner = _solved(l1, t.narrow(-2, 0, k).narrow(-1, 0, k), False)
    inner = _solved(u1, inner, True, left=False)
    by_row, by_column = tril(inner, -1), triu(inner)
    dl, du = l1 @ by_row, by_column @ u1
    if n > k:
        rest = _solved(l1, t.narrow(-1, k, n - k), False)
        du = cat([du, rest - by_row @ upper.narrow(-1, k, n - k)], -1)
    if m > k:
        below = _solved(u1, t.narrow(-2, k, m - k), True, left=False)
        dl = cat([dl, below - lower.narrow(-2, k, m - k) @ by_column], -2)
    return dl, du


def _exchange(packed: Tensor, pivots: Tensor) -> Tensor:
    return _unpack.call((packed, pivots, False, True))[0]


def _packed_gradient(g: Any, packed: Tensor, pivots: Tensor) -> Tensor | None:
    if g is None:
        return None
    k = min(packed.array.shape[-2:])
    by_l, by_u = tril(g.narrow(-1, 0, k), -1), triu(g.narrow(-2, 0, k))
    return _gradient(by_l, by_u, _exchange(packed, pivots), *_parts(packed))


def _packed_tangent(t: Tensor, packed: Tensor, pivots: Tensor) -> tuple:
    return _joined(*_tangents(t, _exchange(packed, pivots), *_parts(packed))), None, None


def _joined(lower: Tensor, upper: Tensor) -> Tensor:
    """The strict lower triangle of one and the upper one of the other in one matrix."""
    m, n = lower.array.shape[-2], upper.array.shape[-1]
    lower, upper = tril(lower, -1), triu(upper)
    if n > m:
        lower = constant_pad_nd.call((lower, (0, n - m), 0))
    if m > n:
        upper = constant_pad_nd.call((upper, (0, 0, 0, m - n), 0))
    return lower + upper


_factor: Operator = primitive(
    "_linalg_lu_factor(Tensor A, bool pivot, str checked) -> (Tensor LU, Tensor pivots, Tensor "
    "info)",
    _factored,
    lambda g, out0, out1: _packed_gradient(g[0], out0, out1),
    lambda tangents, out0, out1: _packed_tangent(tangents["A"], out0, out1),
    nondifferentiable_outputs=(1, 2),
    widens=False,
    meta=_factored_meta,
    batch=leading,
    name="LinalgLuFactorExBackward0",
    raises="values",
    cost="slow",
    doc="LU factors of matrices in one matrix, the exchanged rows, and where a divisor is zero.",
)


def lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """The factors of ``A = P L U`` in one matrix, and which rows were exchanged in each step."""
    found = _factor.call((A, pivot, "torch.linalg.lu_factor"))[:2]
    return into("linalg_lu_factor", return_types.linalg_lu_factor(found), out)


def lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Any = None
) -> Any:
    """LU factors, exchanged rows, and for each matrix the place of a divisor that is zero."""
    found = _factor.call((A, pivot, "torch.linalg.lu_factor_ex" if check_errors else ""))
    return into("linalg_lu_factor_ex", return_types.linalg_lu_factor_ex(found), out)


def factors(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """The permutation, lower and upper triangular matrix of ``A = P L U``."""
    packed, pivots, _ = _factor.call((A, pivot, ""))
    found = return_types.linalg_lu(_unpack.call((packed, pivots, True, True)))
    return into("linalg_lu", found, out)


def lu(
    A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None
) -> tuple[Tensor, ...]:
    """LU factors and exchanged rows, see `linalg.lu_factor`; with `get_infos` as by `lu_factor_ex`.

    Without `get_infos` a divisor that is zero is refused.
    """
    _deprecated("lu", "lu_factor or lu_factor_ex")
    found = _factor.call((A, pivot, "" if get_infos else "torch.linalg.lu_factor"))
    return into("lu", tuple(found[: 2 + bool(get_infos)]), out)


def _deprecated(name: str, other: str) -> None:
    warnings.warn(
        f"torch.{name} is deprecated in favor of torch.linalg.{other}", UserWarning, stacklevel=4
    )


# Factors unpacked ---------------------------------------------------------------------------------


def _check_unpackable(packed: Any, pivots: Any) -> None:
    if packed.ndim < 2:
        raise RuntimeError(
            "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: "
            f"{list(packed.shape)} instead"
        )
    if pivots.dtype != INFO:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 "
            "dtype.\nNote: this function is intended to be used with the output produced by "
            "torch.linalg.lu_factor"
        )


def permutation(xp: Any, pivots: Any, rows: int) -> Any:
    """The order of rows that exchanging them one after the other leads to."""
    *batch, steps = pivots.shape
    flat = pivots.reshape(math.prod(batch), steps)
    order = xp.tile(xp.arange(rows), (flat.shape[0], 1))
    every = xp.arange(flat.shape[0])
    for step in range(steps):
        other = flat[:, step] - 1
        kept = order[every, other]
        order[every, other] = order[:, step]
        order[:, step] = kept
    return order.reshape(*batch, rows)


def _unpacked(xp: Any, packed: Any, pivots: Any, unpack_data: bool, unpack_pivots: bool) -> Any:
    _check_unpackable(packed, pivots)
    m, n = packed.shape[-2:]
    k = min(m, n)
    exchange = lower = upper = xp.empty((0,), packed.dtype)
    if unpack_pivots:
        order = permutation(xp, pivots, m)
        exchange = (order[..., None, :] == xp.arange(m)[:, None]).astype(packed.dtype)
    if unpack_data:
        unit = xp.eye(m, k, dtype=packed.dtype)
        lower = xp.ascontiguousarray(xp.tril(packed[..., :k], -1)) + unit
        upper = xp.ascontiguousarray(xp.triu(packed[..., :k, :]))
    return exchange, lower, upper


def _unpacked_meta(packed: Any, pivots: Any, unpack_data: bool, unpack_pivots: bool) -> Any:
    _check_unpackable(packed, pivots)
    *batch, m, n = packed.shape
    k = min(m, n)
    nothing: tuple[int, ...] = (0,)
    shapes = [
        (*batch, m, m) if unpack_pivots else nothing,
        (*batch, m, k) if unpack_data else nothing,
        (*batch, k, n) if unpack_data else nothing,
    ]
    return tuple([meta.empty(shape, packed.dtype) for shape in shapes])


def _unpacked_gradient(g: list, shape: tuple[int, ...], unpack_data: bool) -> Tensor | None:
    by_l, by_u = g[-2:]  # a graph gives one for the permutation, too
    if not unpack_data or (by_l is None and by_u is None):
        return None
    *batch, m, n = shape
    k = min(m, n)
    by_l = _zero_like(by_l, (*batch, m, k), by_u)
    return _joined(by_l, _zero_like(by_u, (*batch, k, n), by_l))


def _unpacked_tangent(t: Tensor, unpack_data: bool) -> tuple:
    if not unpack_data:
        return None, None, None
    k = min(t.array.shape[-2:])
    return None, tril(t.narrow(-1, 0, k), -1), triu(t.narrow(-2, 0, k))


def _unpacked_batched(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    found, dim = leading(operator, args, dims)
    data, pivots = (dim if flag else None for flag in args[2:])
    return found, (pivots, data, data)


_unpack: Operator = primitive(
    "_lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) "
    "-> (Tensor P, Tensor L, Tensor U)",
    _unpacked,
    {
        "LU_data": lambda g, LU_data_shape, unpack_data: _unpacked_gradient(
            g, LU_data_shape, unpack_data
        )
    },
    lambda tangents, unpack_data: _unpacked_tangent(tangents["LU_data"], unpack_data),
    nondifferentiable_outputs=(0,),
    widens=False,
    meta=_unpacked_meta,
    batch=_unpacked_batched,
    undefined=True,
    name="LuUnpackBackward0",
    doc="The permutation, lower and upper triangular matrix of LU factors in one matrix.",
)


@composite(public="function")
def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
    *,
    out: Any = None,
) -> Any:
    """The permutation, lower and upper triangular matrix of what `linalg.lu_factor` gives.

    What is not to be unpacked is an empty tensor.
    """
    found = _unpack.call((LU_data, LU_pivots, unpack_data, unpack_pivots))
    return into("lu_unpack", return_types.lu_unpack(found), out)


# Solutions ----------------------------------------------------------------------------------------


def solution(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False,
    out: Any = None,
) -> Tensor:  # fmt: skip
    """The X of ``A X = B`` by the LU factors of A; of ``X A = B`` unless `left`.

    With `adjoint` the equation is that of the adjoint of A.
    """
    check_equation("linalg.lu_solve", LU.array, B.array, left)
    if pivots.array.dtype != INFO:
        raise RuntimeError(
            "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32"
        )
    if pivots.array.shape != LU.array.shape[:-1]:
        raise RuntimeError(
            "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the "
            "matrix"
        )
    if not left:
        found = solution(LU, pivots, B.mH, adjoint=not adjoint).mH
        return into("linalg_lu_solve", pack.call1(found), out)
    exchange = _exchange(LU.detach(), pivots)
    if adjoint:
        inner = solve_triangular.call((LU.mH, B, False, True, False))
        found = by_columns(exchange @ solve_triangular.call((LU.mH, inner, True, True, True)))
    else:
        inner = solve_triangular.call((LU, exchange.mT @ B, False, True, True))
        found = solve_triangular.call((LU, inner, True, True, False))
    return into("linalg_lu_solve", found, out)


def lu_solve(
    input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """The X of ``A X = input`` by the LU factors of A, see `linalg.lu_solve`."""
    _deprecated("lu_solve", "lu_solve, which takes LU, pivots and B in this order")
    return solution(LU_data, LU_pivots, input, out=out)

