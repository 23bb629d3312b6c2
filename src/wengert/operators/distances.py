"""Distances, products in three dimensions, covariances, and limits of norms."""

from __future__ import annotations

import math
from typing import Any

from ..backends.geometry import wrap_dim
from ..core.registry import operator_named
from ..core.size import broadcast_shapes
from ..core.tensor import Tensor
from ..creation.ranges import triu_indices
from ..dispatch.operator import Operator
from ..dispatch.out import copy_to_out
from ..transforms.batching.rules import leading
from .conditions import require
from .declare import composite, primitive
from .matmul import matmul
from .norms import vector_norm
from .pointwise import clamp, real_part, where, zeros_like

__all__ = [
    "cdist", "corrcoef", "cov", "dist", "pdist", "renorm", "renorm_",
]  # fmt: skip

_MODES = (
    "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist",
)  # fmt: skip
#: So many differences are in memory at a time.
_BLOCK = 1 << 20


def _euclidean(xp: Any, x: Any, y: Any) -> Any:
    out = xp.zeros((*x.shape[:-1], y.shape[-2]), x.dtype)
    rows = max(1, _BLOCK // max(1, y.shape[-2] * y.shape[-1] * math.prod(x.shape[:-2])))
    for start in range(0, x.shape[-2], rows):
        part = x[..., start : start + rows, None, :] - y[..., None, :, :]
        out[..., start : start + rows, :] = xp.sqrt((part * part).sum(-1))
    return out


def _per_distance(g: Tensor, out: Tensor) -> Tensor:
    """A gradient divided by the distances, zero where there is none."""
    zero = out == 0
    return where(zero, 0, g / where(zero, 1, out))


def _pull(weights: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The sum of differences to all rows of `y`, weighted."""
    return weights.sum(-1, keepdim=True) * x - matmul(weights, y)


def _push(tangents: dict[str, Tensor], x: Tensor, y: Tensor, out: Tensor) -> Tensor:
    total = zeros_like(out)
    if "x1" in tangents:
        t = tangents["x1"]
        total = total + (x * t).sum(-1, keepdim=True) - matmul(t, y.mT)
    if "x2" in tangents:
        t = tangents["x2"]
        total = total + (y * t).sum(-1).unsqueeze(-2) - matmul(x, t.mT)
    return _per_distance(total, out)


_euclidean_distances: Operator = primitive(
    "_euclidean_dist(Tensor x1, Tensor x2) -> Tensor",
    _euclidean,
    {
        "x1": lambda g, x1, x2, out: _pull(_per_distance(g, out), x1, x2),
        "x2": lambda g, x1, x2, out: _pull(_per_distance(g, out).mT, x2, x1),
    },
    lambda tangents, x1, x2, out: _push(tangents, x1, x2, out),
    shape=lambda x, y: (*x.shape[:-1], y.shape[-2]),
    batch=leading,
    cost="product",
    name="CdistBackward0",
    doc="Distances between all rows of two batches of matrices.",
)


@composite(public="function")
def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """The p-norm distances between all rows of two batches of matrices."""
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    if x1.array.ndim < 2 or x2.array.ndim < 2:
        raise RuntimeError("cdist only supports at least 2D tensors, X1 got: "
                           f"{x1.array.ndim}D, X2 got: {x2.array.ndim}D")  # fmt: skip
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: "
            f"{x2.shape[-1]}"
        )
    if not (x1.is_floating_point() and x2.is_floating_point()):
        raise RuntimeError("cdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    batch = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    x1 = x1.expand((*batch, *x1.shape[-2:]))
    x2 = x2.expand((*batch, *x2.shape[-2:]))
    if p == 2:
        return _euclidean_distances.call((x1, x2))
    return vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


@composite(public="function")
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm distances between every pair of rows of a matrix."""
    if input.array.ndim != 2:
        raise RuntimeError(
            f"pdist only supports 2D tensors, got: {input.array.ndim}D"
        )
    if not input.is_floating_point():
        raise RuntimeError("pdist only supports floating-point dtypes")
    n = input.shape[0]
    first, second = triu_indices(n, n, 1, device=input.device)
    return vector_norm(input[first] - input[second], p, -1)


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of the difference of two tensors."""
    return vector_norm(input - other, p)


# Products and covariances ------------------------------------------------------------------------


def _weights(name: str, given: Tensor, count: int, whole: bool) -> Tensor:
    if given.array.ndim > 1:
        raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got "
                           f"{name} with {given.array.ndim} dimensions")  # fmt: skip
    if whole and (given.is_floating_point() or given.is_complex()):
        raise RuntimeError(
            f"cov(): expected {name} to have integral dtype but got {name} with {given.dtype} dtype"
        )
    if not whole and not given.is_floating_point():
        raise RuntimeError(
            f"cov(): expected {name} to have floating point dtype but got {name} with "
            f"{given.dtype} dtype"
        )
    if given.numel() != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input "
            f"but got {given.numel()} != {count}"
        )
    require(given >= 0, f"cov(): {name} cannot be negative")
    return given


def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """The covariance matrix of variables in rows, whose observations are the columns."""
    if input.array.ndim > 2:
        raise RuntimeError("cov(): expected input to have two or fewer dimensions but got an "
                           f"input with {input.array.ndim} dimensions")  # fmt: skip
    if input.array.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    single = input.array.ndim < 2
    rows = input.reshape(1, -1) if single else input
    count = rows.shape[1]
    weights = None
    if fweights is not None:
        weights = _weights("fweights", fweights, count, True)
    if aweights is not None:
        given = _weights("aweights", aweights, count, False)
        weights = given if weights is None else weights * given
    if weights is None:
        total: Any = count
        mean = rows.sum(1, keepdim=True) / count
    else:
        total = weights.sum()
        mean = (rows * weights).sum(1, keepdim=True) / total
    norm = total - correction
    if aweights is not None and correction:
        assert weights is not None
        norm = total - correction * (weights * aweights).sum() / total
    norm = clamp(norm, 0) if isinstance(norm, Tensor) else max(norm, 0)
    centred = rows - mean
    weighted = centred if weights is None else centred * weights
    out = matmul(weighted, centred.t().conj()) / norm
    return out.squeeze()


def corrcoef(input: Tensor) -> Tensor:
    """The correlation coefficients of variables in rows, whose observations are the columns."""
    if input.array.ndim > 2:
        raise RuntimeError("corrcoef(): expected input to have two or fewer dimensions but got an "
                           f"input with {input.array.ndim} dimensions")  # fmt: skip
    covariances = cov(input)
    if not covariances.array.ndim:
        return covariances / covariances
    deviation = real_part(covariances.diagonal()).sqrt()
    out = covariances / deviation.unsqueeze(-1) / deviation.unsqueeze(0)
    if out.is_complex():
        return operator_named("complex")(out.real.clamp(-1, 1), out.imag.clamp(-1, 1))
    return clamp(out, -1, 1)


# Limited norms -----------------------------------------------------------------------------------


def _factors(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    if p <= 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported, but p is {p}")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if input.array.ndim < 2:
        raise RuntimeError(
            f"renorm: input needs at least 2 dimensions, got {input.array.ndim} dimensions"
        )
    dim = wrap_dim(dim, input.array.ndim)
    others = tuple(d for d in range(input.array.ndim) if d != dim)
    norms = vector_norm(input, p, others, True)
    return where(norms > maxnorm, maxnorm / (norms + 1e-7), 1)


def renorm(
    input: Tensor, p: float, dim: int, maxnorm: float, *, out: Tensor | None = None
) -> Tensor:
    """The tensor whose parts along `dim` have a p-norm of `maxnorm` at most."""
    result = (input * _factors(input, p, dim, maxnorm)).contiguous()
    return result if out is None else copy_to_out("renorm", result, out, (), True)


@composite(public="method")
def renorm_(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """In-place form of renorm()."""
    return operator_named("mul_")(input, _factors(input.clone(), p, dim, maxnorm))
