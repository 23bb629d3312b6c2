"""Products of Householder reflections: what `geqrf` gives, multiplied out or applied.

A reflection ``1 - tau v v^H`` is stored as one column of a matrix, below its diagonal; the elements
of v above are zero and the one on the diagonal is one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import return_types
from ..backends import meta
from ..core.tensor import Tensor
from ..transforms.batching.rules import leading
from .along import scalar_name
from .declare import composite, primitive
from .diagonals import diag_embed, tril
from .joining import cat
from .linalg_kernels import by_columns, check_floating, columns, into, meta_columns
from .special_kernels import refused

__all__ = ["geqrf", "orgqr", "ormqr"]


def _check_matrix(a: Any) -> None:
    if a.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    check_floating("torch.geqrf", a)


def _geqrf(xp: Any, a: Any) -> Any:
    _check_matrix(a)
    *batch, m, n = a.shape
    if not a.size:
        return columns(a.copy()), xp.zeros((*batch, min(m, n)), a.dtype)
    turned, tau = xp.linalg.qr(a, "raw")
    return columns(turned.swapaxes(-1, -2)), tau


def _geqrf_meta(a: Any) -> Any:
    _check_matrix(a)
    *batch, m, n = a.shape
    return meta_columns(a.shape, a.dtype), meta.empty((*batch, min(m, n)), a.dtype)


_reflections = primitive(
    "_geqrf(Tensor self) -> (Tensor a, Tensor tau)",
    _geqrf,
    refused("geqrf"),
    lambda tangents: refused("geqrf")(tangents["self"]),
    widens=False,
    meta=_geqrf_meta,
    batch=leading,
    name="GeqrfBackward0",
    cost="slow",
    doc="The QR decomposition as LAPACK stores it: R, and below it reflections.",
)


def geqrf(input: Tensor, *, out: Any = None) -> Any:
    """R of ``input = Q R`` with Householder reflections below its diagonal, and their factors."""
    return into("geqrf", return_types.geqrf(_reflections.call((input,))), out)


def _check_reflections(name: str, input: Tensor, tau: Tensor) -> None:
    a, t = input.array, tau.array
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    check_floating(name, a)
    if a.shape[-1] < t.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    if t.shape[:-1] != a.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
            f"{list(t.shape[:-1])}"
        )
    if a.dtype != t.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {scalar_name(t.dtype)} does not match input dtype "
            f"{scalar_name(a.dtype)}"
        )


def _vectors(input: Tensor, count: int) -> Tensor:
    """The vectors of the reflections, as columns."""
    *batch, m, _ = input.array.shape
    unit = diag_embed(input.new_ones((*batch, count)))
    if m > count:
        unit = cat([unit, input.new_zeros((*batch, m - count, count))], -2)
    return tril(input.narrow(-1, 0, count), -1) + unit


def _reflected(vectors: Tensor, tau: Tensor, other: Tensor, adjoint: bool) -> Tensor:
    """The product of all reflections, or its adjoint, times `other`."""
    count = tau.array.shape[-1]
    factors = tau.conj() if adjoint else tau
    for i in range(count) if adjoint else range(count - 1, -1, -1):
        v = vectors.narrow(-1, i, 1)
        factor = factors.narrow(-1, i, 1).unsqueeze(-1)
        other = other - factor * (v @ (v.mH @ other))
    return other


def householder_product(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first columns of a product of Householder reflections, as `geqrf` gives them."""
    name = "torch.linalg.householder_product"
    _check_reflections(name, input, tau)
    *batch, m, n = input.array.shape
    if m < n:
        raise RuntimeError(
            f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    unit = input.new_zeros((*batch, m, n)) + _identity(input, m, n)
    found = _reflected(_vectors(input, tau.array.shape[-1]), tau, unit, False)
    return into("linalg_householder_product", by_columns(found), out, False)


def _identity(like: Tensor, m: int, n: int) -> Tensor:
    return like.new_tensor(np.eye(m, n))


@composite(also="")
def orgqr(input: Tensor, input2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Another name of linalg.householder_product(), by that of LAPACK's routine."""
    return householder_product(input, input2, out=out)


def ormqr(
    input: Tensor,
    tau: Tensor,
    other: Tensor,
    left: bool = True,
    transpose: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The product Q of Householder reflections times `other`, or `other` times Q unless `left`.

    With `transpose` it is the adjoint of Q, as LAPACK's routine has it.
    """
    if input.array.ndim < 2:
        raise RuntimeError("torch.ormqr: input must have at least 2 dimensions.")
    if other.array.ndim < 2:
        raise RuntimeError("torch.ormqr: other must have at least 2 dimensions.")
    side = -2 if left else -1
    if other.array.shape[side] != input.array.shape[-2]:
        raise RuntimeError(
            f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]"
        )
    if tau.array.shape[-1] > input.array.shape[-1]:
        raise RuntimeError(
            f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], "
            "input.shape[-1])"
        )
    _check_reflections("torch.ormqr", input, tau)
    vectors = _vectors(input, tau.array.shape[-1])
    if left:
        found = _reflected(vectors, tau, other, transpose)
    else:
        found = _reflected(vectors, tau, other.mH, not transpose).mH.clone()  # no view
    return into("ormqr", by_columns(found), out)
