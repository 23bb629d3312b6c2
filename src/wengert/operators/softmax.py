"""Normalisation of exponentials: logsumexp, softmax, log_softmax, softmin."""

from __future__ import annotations

from typing import Any

from ..backends import row_loops
from ..core import dtypes
from ..core.tensor import Tensor
from ..transforms.batching.rules import along
from . import shapes
from .along import in_dtype, normal_dims, packed, reduced, restore_dims, scalar_name, working_dtype
from .declare import composite, primitive
from .pointwise import exp
from .reduce import kept_sum, sum
from .unrecorded import unrecorded

__all__ = ["log_softmax", "logsumexp", "softmax", "softmin"]

# logsumexp ---------------------------------------------------------------------------------------


def _finite_peak(xp: Any, x: Any, dims: tuple[int, ...]) -> Any:
    """The largest real part over `dims`, zero where that is no finite number."""
    peak = xp.max(x.real, axis=dims, keepdims=True)
    return xp.where(xp.isfinite(peak), peak, 0).astype(peak.dtype)


def _logsumexp(xp: Any, x: Any, dim: Any, keepdim: bool) -> Any:
    dims = normal_dims(dim, x.ndim)
    goal = dtypes.get_default_dtype().numpy if x.dtype.kind in "biu" else x.dtype
    x = in_dtype(x, working_dtype(goal))
    if x.size == 0:
        return xp.log(xp.sum(xp.exp(x), axis=dims, keepdims=keepdim)).astype(goal, copy=False)
    if dims == (x.ndim - 1,):
        fused = row_loops.logsumexp(x)
        if fused is not None:
            return (fused.reshape((*fused.shape, 1)) if keepdim else fused).astype(goal, copy=False)
    peak = _finite_peak(xp, x, dims)
    out = xp.log(packed(xp.sum(xp.exp(x - peak), axis=dims, keepdims=keepdim)))
    out += (peak if keepdim else xp.squeeze(peak, axis=dims))
    return out.astype(goal, copy=False)


def _share(x: Tensor, dim: Any, keepdim: bool, out: Tensor) -> Tensor:
    """What each element contributes to its sum of exponentials."""
    return exp(x - restore_dims(out, x.shape, dim, keepdim))


logsumexp = primitive(
    "logsumexp(Tensor self, int[] dim, bool keepdim=False) -> Tensor",
    _logsumexp,
    lambda g, self, dim, keepdim, out: (
        restore_dims(g, self.shape, dim, keepdim) * _share(self, dim, keepdim, out).conj()
    ),
    lambda tangents, self, dim, keepdim, out: sum(
        tangents["self"] * _share(self, dim, keepdim, out), dim, keepdim
    ),
    shape=reduced,
    batch=along("dim"),
    doc="Logarithm of the sum of exponentials over the given dimensions, without overflow.",
    out="casts",
)

# softmax -----------------------------------------------------------------------------------------


def _converted(name: str, x: Any, dtype: Any) -> tuple[Any, Any]:
    """The array in the type to compute in, in rows; the type of the result."""
    goal = x.dtype if dtype is None else dtype.numpy
    if goal.kind in "biuc":
        raise NotImplementedError(f'"{name}" not implemented for \'{scalar_name(goal)}\'')
    return packed(in_dtype(x, working_dtype(goal))), goal


def _shifted(xp: Any, x: Any, dims: tuple[int, ...]) -> Any:
    """A new array that is at most zero along `dims`."""
    return xp.asarray(x - (xp.max(x, axis=dims, keepdims=True) if x.size else 0))


def _softmax(xp: Any, x: Any, dim: int, dtype: Any) -> Any:
    dims = normal_dims(dim, x.ndim)
    x, goal = _converted("softmax", x, dtype)
    e = row_loops.softmax(x) if dims == (x.ndim - 1,) else None
    if e is None:
        e = _shifted(xp, x, dims)
        xp.exp(e, out=e)
        e /= xp.sum(e, axis=dims, keepdims=True)
    return e.astype(goal, copy=False)


def _log_softmax(xp: Any, x: Any, dim: int, dtype: Any) -> Any:
    dims = normal_dims(dim, x.ndim)
    x, goal = _converted("log_softmax", x, dtype)
    out = row_loops.log_softmax(x) if dims == (x.ndim - 1,) else None
    if out is None:
        out = _shifted(xp, x, dims)
        out -= xp.log(xp.sum(xp.exp(out), axis=dims, keepdims=True))
    return out.astype(goal, copy=False)


def _is_last(dim: int, x: Tensor) -> bool:
    return dim in (-1, x.array.ndim - 1)


def _log_softmax_gradient(g: Tensor, dim: int, out: Tensor) -> Tensor:
    if _is_last(dim, out):
        fused = unrecorded(row_loops.log_softmax_gradient, g, out)
        if fused is not None:
            return fused
    return g - exp(out) * kept_sum(g, dim)


def _centered(t: Tensor, dim: int, out: Tensor) -> Tensor:
    """The symmetric matrix of derivatives of softmax applied to `t`."""
    if _is_last(dim, out):
        fused = unrecorded(row_loops.softmax_gradient, t, out)
        if fused is not None:
            return fused
    return out * (t - kept_sum(t * out, dim))


softmax = primitive(
    "softmax(Tensor self, int dim, dtype? dtype=None) -> Tensor",
    _softmax,
    lambda g, dim, out: _centered(g, dim, out),
    lambda tangents, dim, out: _centered(tangents["self"], dim, out),
    widens=False,
    shape=shapes.as_first,
    batch=along("dim"),
    doc="Exponentials along a dimension, divided by their sum.",
    overload="int",
)
log_softmax = primitive(
    "log_softmax(Tensor self, int dim, dtype? dtype=None) -> Tensor",
    _log_softmax,
    lambda g, dim, out: _log_softmax_gradient(g, dim, out),
    lambda tangents, dim, out: tangents["self"] - kept_sum(exp(out) * tangents["self"], dim),
    widens=False,
    shape=shapes.as_first,
    batch=along("dim"),
    doc="Logarithm of softmax, without the loss of accuracy of taking it afterwards.",
    overload="int",
)


@composite(public="")
def softmin(input: Tensor, dim: int, dtype: dtypes.dtype | None = None) -> Tensor:
    """Softmax of the negative."""
    return softmax(-input, dim, dtype)
