"""Parametrizations of weights: orthogonal, with a norm of its own, with spectral norm one."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from ...autograd.grad_mode import no_grad
from ...backends.backend import backend_of
from ...core import dtypes
from ...core.tensor import Tensor, wrap
from ...creation.factories import zeros_like
from ...creation.random import randn
from ...creation.ranges import eye
from ...operators.joining import cat
from ...operators.linalg_functions import matrix_exp
from ...operators.linalg_least_squares import qr
from ...operators.linalg_solving import solve
from ...operators.matmul import mv, vdot
from ...operators.reduce import allclose
from .. import functional as F
from ..modules.module import Module
from . import parametrize
from .weights import norm_except_dim, normalized_weight, output_dim

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

# Orthogonal matrices ------------------------------------------------------------------------------


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _is_orthogonal(q: Tensor) -> bool:
    n, k = q.shape[-2:]
    identity = eye(k, dtype=q.dtype, device=q.device)
    return allclose(q.mH @ q, identity, atol=10.0 * n * dtypes.finfo(q.dtype).eps)


def _make_orthogonal(a: Tensor) -> Tensor:
    """The orthogonal factor of a QR decomposition with a positive diagonal."""
    q, r = qr(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _reflected(a: Tensor, tau: Tensor) -> Tensor:
    """The product of Householder reflections, whose vectors are ones followed by columns of `a`."""
    n, k = a.shape[-2:]
    identity = eye(n, k, dtype=a.dtype, device=a.device)
    vectors = a.tril(-1) + identity
    result = identity.expand(a.shape)
    for i in reversed(range(k)):
        vector = vectors[..., i : i + 1]
        result = result - tau[..., i, None, None] * vector @ (vector.mT @ result)
    return result


def _reflections(q: Tensor) -> Tensor:
    """Vectors of reflections below a diagonal of signs, of which `_reflected` makes `q` again."""
    values = q.detach().array
    raw, tau = backend_of(values).xp.linalg.qr(values, mode="raw")
    a, tau = wrap(raw).mT.contiguous(), wrap(tau)
    signs = a.diagonal(dim1=-2, dim2=-1).sign()
    # A factor of zero means that there was nothing to reflect: the diagonal keeps its sign.
    a.diagonal(dim1=-2, dim2=-1).copy_(signs.masked_fill(tau == 0, -1.0))
    return a


class _Orthogonal(Module):
    def __init__(
        self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True
    ) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        """An orthogonal matrix, or one with orthogonal rows or columns, for any matrix."""
        is_wide = X.size(-2) < X.size(-1)
        x = X.mT if is_wide else X
        result = self._by_reflections(x) if self._reflects() else self._by_skew_matrix(x)
        if hasattr(self, "base"):
            result = self.base @ result
        return result.mT if is_wide else result

    def _reflects(self) -> bool:
        return self.orthogonal_map is _OrthMaps.householder

    def _by_skew_matrix(self, x: Tensor) -> Tensor:
        n, k = x.shape[-2:]
        x = x.tril()
        if n != k:
            x = cat([x, x.new_zeros(n, n - k).expand(*x.shape[:-2], -1, -1)], -1)
        skew = x - x.mH
        if self.orthogonal_map is _OrthMaps.matrix_exp:
            return matrix_exp(skew)[..., :k]
        identity = eye(n, dtype=skew.dtype, device=skew.device)
        return solve(identity - skew / 2, identity + skew / 2)[..., :k]

    def _by_reflections(self, x: Tensor) -> Tensor:
        below = x.tril(-1)
        tau = 2.0 / (1.0 + (below * below).sum(-2))
        # The diagonal holds signs, which are not trained.
        signs = x.diagonal(dim1=-2, dim2=-1).to(dtypes.int32)
        return _reflected(below, tau) * signs.unsqueeze(-2)

    def right_inverse(self, Q: Tensor) -> Tensor:
        """A matrix that is mapped to `Q`, or to what is orthogonal in its stead."""
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of "
                f"shape {Q.shape}."
            )
        with no_grad():
            is_wide = Q.size(-2) < Q.size(-1)
            q = Q.mT if is_wide else Q
            if hasattr(self, "base"):
                self.base = self._completed(q)
                start = zeros_like(Q)
                start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
                return start
            if not self._reflects():
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley "
                    "parametrizations when use_trivialization=False."
                )
            found = _reflections(q)
            return found.mT if is_wide else found

    def _completed(self, q: Tensor) -> Tensor:
        """A square orthogonal matrix that begins with the columns of `q`, made orthogonal."""
        n, k = q.shape[-2:]
        if n == k:
            return q.clone() if _is_orthogonal(q) else _make_orthogonal(q)
        more = randn(*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)
        return _make_orthogonal(cat([q, more], -1))


def _weight_of(module: Any, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def orthogonal(
    module: Any,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Any:
    """Parametrize a weight as an orthogonal matrix; returns the module.

    `orthogonal_map` is ``"matrix_exp"``, ``"cayley"`` or ``"householder"``. With
    `use_trivialization` the weight is a fixed orthogonal matrix times such a map.
    """
    weight = _weight_of(module, name)
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        is_square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if is_square or weight.is_complex() else "householder"
    if orthogonal_map not in _OrthMaps.__members__:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    made = _Orthogonal(weight, _OrthMaps[orthogonal_map], use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)


# Norms --------------------------------------------------------------------------------------------


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """The direction `weight_v` with the norms `weight_g`."""
        return normalized_weight(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The norms of a weight, and the weight."""
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int = 0) -> Any:
    """Parametrize a weight by its norms along all dimensions but `dim` and its direction.

    States that the older `weight_norm` has saved can be loaded. Returns the module.
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def read_older_names(state: dict[str, Any], prefix: str, *rest: Any) -> None:
        older = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state for key in older):
            for i, key in enumerate(older):
                state[f"{prefix}parametrizations.{name}.original{i}"] = state.pop(key)

    module._register_load_state_dict_pre_hook(read_older_names)
    return module


class _SpectralNorm(Module):
    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(
                "Dimension out of range (expected to be in range of "
                f"[-{ndim}, {ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got n_power_iterations="
                f"{n_power_iterations}"
            )
        self.dim = dim % ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight.detach())
            for name, size in zip(("_u", "_v"), matrix.shape, strict=True):
                start = matrix.new_empty(size).normal_(0, 1)
                self.register_buffer(name, F.normalize(start, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        return weight.movedim(self.dim, 0).flatten(1)

    def _power_method(self, matrix: Tensor, count: int) -> None:
        """Turn both vectors, in place, towards those of the largest singular value."""
        with no_grad():
            for _ in range(count):
                self._u.copy_(F.normalize(mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        """The weight divided by its largest singular value, which is found a little better."""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies, so that a further call does not spoil the graph of this one.
        u, v = self._u.clone(), self._v.clone()
        return weight / vdot(u, mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value, which we assume to have the norm one."""
        return value


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Parametrize a weight by dividing it by its largest singular value; returns the module."""
    weight = _weight_of(module, name)
    dim = output_dim(module) if dim is None else dim
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, made)
