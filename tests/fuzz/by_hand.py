"""PyTorch's functions with derivatives that contradict each other, made of simpler ones.

Where a program differs, and no longer does when PyTorch computes these functions from their
definitions, its own rules for them are the reason.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from fuzz.second_opinion import Replaced

LARGEST = 4  # rows of a matrix whose determinant is computed as a sum over permutations


def _det(lib: Any, x: Any) -> Any:
    count = x.shape[-1]
    if count > LARGEST or count == 0:
        return lib.linalg.det(x)
    total = 0
    for places in itertools.permutations(range(count)):
        swaps = sum(a > b for a, b in itertools.combinations(places, 2))
        term = (-1) ** swaps
        for row, column in enumerate(places):
            term = term * x[..., row, column]
        total = total + term
    return total


def _logdet(lib: Any, x: Any) -> Any:
    return _det(lib, x).log()


Slogdet = namedtuple("Slogdet", "sign logabsdet")


def _slogdet(lib: Any, x: Any) -> Any:
    det = _det(lib, x)
    return Slogdet(det.sgn(), det.abs().log())


def _cholesky_inverse(lib: Any, x: Any, upper: bool = False) -> Any:
    lower = x.triu().mH if upper else x.tril()
    return lib.linalg.inv(lower @ lower.mH)


def _maximum(lib: Any, x: Any, y: Any) -> Any:
    both = lib.result_type(x, y)
    if not both.is_floating_point:
        return lib.maximum(x, y)
    x, y = x.to(both), y.to(both)
    # Of equal operands it is half of each; one that is not a number leaves both their gradients.
    return lib.where(x == y, (x + y) / 2, lib.where(x > y, x, lib.where(x < y, y, x + y)))


def _minimum(lib: Any, x: Any, y: Any) -> Any:
    if not lib.result_type(x, y).is_floating_point:
        return lib.minimum(x, y)
    return -_maximum(lib, -x, -y)


def _celu(lib: Any, x: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    if inplace:
        return lib.nn.functional.celu(x, alpha, inplace)
    grown = alpha * lib.expm1(lib.where(x > 0, 0, x) / alpha)
    return lib.where(x > 0, x, grown)


def _fmax(lib: Any, x: Any, y: Any) -> Any:
    return lib.where((x >= y) | (y != y), x, y)


def _fmin(lib: Any, x: Any, y: Any) -> Any:
    return lib.where((x <= y) | (y != y), x, y)


def _householder_product(lib: Any, x: Any, tau: Any) -> Any:
    unit = lib.eye(*x.shape[-2:], dtype=x.dtype, device=x.device)
    vectors, y = x.tril(-1) + unit, unit
    for i in reversed(range(tau.shape[-1])):
        vector, factor = vectors[..., i : i + 1], tau[..., i, None, None]
        y = y - factor * (vector @ (vector.mH @ y))
    return y.expand(x.shape).clone()


Solved = namedtuple("Solved", "solution cloned_coefficient")


def _triangular_solve(
    lib: Any, b: Any, a: Any, upper: bool = True, transpose: bool = False,
    unitriangular: bool = False,
) -> Solved:  # fmt: skip
    turned = a.mT if transpose else a
    solution = lib.linalg.solve_triangular(
        turned, b, upper=upper != transpose, unitriangular=unitriangular
    )
    return Solved(solution, a.expand(*solution.shape[:-2], *a.shape[-2:]).clone())


def _matrix_exp(lib: Any, x: Any) -> Any:
    wide = lib.float32 if x.dtype in (lib.float16, lib.bfloat16) else x.dtype
    return lib.matrix_exp(x.to(wide)).to(x.dtype)


def _polar(lib: Any, radius: Any, angle: Any) -> Any:
    return lib.complex(radius * angle.cos(), radius * angle.sin())


def _atan2(lib: Any, y: Any, x: Any) -> Any:
    common = lib.result_type(y, x)
    if not common.is_floating_point:
        common = lib.get_default_dtype()
    return lib.atan2(y.to(common), x.to(common))


def _cdist(lib: Any, a: Any, b: Any, p: float = 2.0, **options: Any) -> Any:
    if p != math.inf or 0 in (*a.shape, *b.shape):
        return lib.cdist(a, b, p, **options)
    return (a.unsqueeze(-2) - b.unsqueeze(-3)).abs().amax(-1)


def _pdist(lib: Any, x: Any, p: float = 2.0) -> Any:
    if p != math.inf or x.shape[0] < 2 or 0 in x.shape:
        return lib.pdist(x, p)
    rows = itertools.combinations(range(x.shape[0]), 2)
    return lib.stack([(x[i] - x[j]).abs().amax(-1) for i, j in rows])


#: What a reduction without the element itself begins with.
BEGINNING = {"amax": -math.inf, "amin": math.inf}


def _scatter_reduce(
    lib: Any, x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Any:
    if not include_self and reduce in BEGINNING:
        met = lib.zeros_like(x, dtype=lib.bool).scatter(dim, index, True)
        x = lib.where(met, BEGINNING[reduce], x)
    return lib.scatter_reduce(
        x, dim, index, src, reduce, include_self=include_self or reduce in BEGINNING
    )


def _index_reduce(
    lib: Any, x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    if not include_self and reduce in BEGINNING:
        x = x.index_fill(dim, index, BEGINNING[reduce])
    return lib.index_reduce(
        x, dim, index, source, reduce, include_self=include_self or reduce in BEGINNING
    )


def _cummax(lib: Any, x: Any, dim: int) -> Any:
    return lib.cummax(x, dim)  # of a copy: the gradient of nothing is the operand itself


def _cummin(lib: Any, x: Any, dim: int) -> Any:
    return lib.cummin(x, dim)


def _logcumsumexp(lib: Any, x: Any, dim: int) -> Any:
    if x.numel() == 0 or x.dim() == 0:
        return lib.logcumsumexp(x, dim)
    parts = [x.narrow(dim, 0, end + 1).logsumexp(dim) for end in range(x.shape[dim])]
    return lib.stack(parts, dim)


def _cross(lib: Any, x: Any, y: Any, dim: int | None = None) -> Any:
    if dim is None:
        dim = [i for i, n in enumerate(x.shape) if n == 3][0]
    x, y = lib.broadcast_tensors(x, y)
    return x.roll(-1, dim) * y.roll(-2, dim) - x.roll(-2, dim) * y.roll(-1, dim)


def _as_strided_scatter(
    lib: Any, x: Any, src: Any, size: Any, stride: Any, storage_offset: int | None = None
) -> Any:
    out = x.clone()
    out.as_strided(size, stride, storage_offset or 0).copy_(src)
    return out


def _normalized(x: Any, dims: list[int], weight: Any, bias: Any, eps: float) -> Any:
    centred = x - x.mean(dims, keepdim=True)
    y = centred / ((centred * centred).mean(dims, keepdim=True) + eps).sqrt()
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def _layer_norm(
    lib: Any, x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    return _normalized(x, list(range(-len(shape), 0)), weight, bias, eps)


def _native_layer_norm(
    lib: Any, x: Any, shape: Any, weight: Any, bias: Any, eps: float
) -> Any:
    dims = list(range(-len(shape), 0))
    mean = x.mean(dims, keepdim=True)
    scale = (((x - mean) * (x - mean)).mean(dims, keepdim=True) + eps).rsqrt()
    return _normalized(x, dims, weight, bias, eps), mean.detach(), scale.detach()


def _batch_norm(
    lib: Any, x: Any, mean: Any, variance: Any, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    if not training or mean is not None or variance is not None:
        return lib.nn.functional.batch_norm(
            x, mean, variance, weight, bias, training, momentum, eps
        )
    return _normalized_channels(x, [0, *range(2, x.dim())], weight, bias, eps)


def _instance_norm(
    lib: Any, x: Any, mean: Any = None, variance: Any = None, weight: Any = None, bias: Any = None,
    use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    if not use_input_stats or mean is not None or variance is not None:
        return lib.nn.functional.instance_norm(
            x, mean, variance, weight, bias, use_input_stats, momentum, eps
        )
    return _normalized_channels(x, list(range(2, x.dim())), weight, bias, eps)


def _normalized_channels(x: Any, dims: list[int], weight: Any, bias: Any, eps: float) -> Any:
    """With a weight and a bias for each channel, the second dimension."""
    shape = [1, -1] + [1] * (x.dim() - 2)
    weight, bias = (None if part is None else part.reshape(shape) for part in (weight, bias))
    return _normalized(x, dims, weight, bias, eps)


def _copied_parts(view: str) -> Callable:
    """Copies of views, each with a node of its own."""

    def compute(lib: Any, x: Any, *args: Any, **options: Any) -> tuple:
        parts = getattr(lib, view)(x, *args, **options)
        return tuple(part.clone(memory_format=lib.contiguous_format) for part in parts)

    return compute


BY_HAND: dict[str, Callable] = {
    "det": _det, "logdet": _logdet, "slogdet": _slogdet, "native_layer_norm": _native_layer_norm,
    "cholesky_inverse": _cholesky_inverse, "polar": _polar, "layer_norm": _layer_norm,
    "batch_norm": _batch_norm, "instance_norm": _instance_norm, "atan2": _atan2, "cdist": _cdist,
    "arctan2": _atan2, "pdist": _pdist, "scatter_reduce": _scatter_reduce,
    "index_reduce": _index_reduce, "as_strided_scatter": _as_strided_scatter,
    "matrix_exp": _matrix_exp, "cummax": _cummax, "cummin": _cummin,
    "logcumsumexp": _logcumsumexp, "cross": _cross, "householder_product": _householder_product,
    "orgqr": _householder_product, "triangular_solve": _triangular_solve, "maximum": _maximum,
    "minimum": _minimum, "fmax": _fmax, "fmin": _fmin, "celu": _celu,
    "unbind_copy": _copied_parts("unbind"),
    "split_copy": _copied_parts("split"), "unsafe_split": _copied_parts("split"),
    "split_with_sizes_copy": _copied_parts("split_with_sizes"),
    "unsafe_split_with_sizes": _copied_parts("split_with_sizes"),
    "unsafe_chunk": _copied_parts("chunk"),
}  # fmt: skip
METHODS = re.compile(rf"\b([a-z]\d+)\.({'|'.join(BY_HAND)})\(")
CHANGES = re.compile(rf"\b([a-z]\d+)\.({'|'.join(BY_HAND)})_\(")
USES = re.compile(rf"\b({'|'.join(BY_HAND)})_?\b")


class ByHand(Replaced):
    """A library with such functions, and with changes in place by them."""

    def changed(self, x: Any, name: str, *args: Any, **options: Any) -> Any:
        y = BY_HAND[name](self._module, x.clone(), *args, **options)
        if not self._module.can_cast(y.dtype, x.dtype):
            return getattr(x, name + "_")(*args, **options)  # which refuses this
        return x.copy_(y)


def by_hand(lib: Any) -> Any:
    """The library with such functions made of simpler ones, where these take the operands."""

    def wrap(name: str, function: Any) -> Any:
        if name not in BY_HAND:
            return function

        def compute(*args: Any, **options: Any) -> Any:
            if "out" in options:
                return function(*args, **options)
            # Definitions save other operands, which may be changed later.
            copies = [arg.clone() if isinstance(arg, lib.Tensor) else arg for arg in args]
            try:
                return BY_HAND[name](lib, *copies, **options)
            except Exception:  # some calls have nothing to do, and are not checked
                return function(*args, **options)

        return compute

    return ByHand(lib, wrap)


def as_functions(source: str) -> str:
    """The source with calls of these methods as those of functions, which can be replaced."""
    source = METHODS.sub(lambda call: f"torch.{call[2]}({call[1]}, ", source)
    source = CHANGES.sub(lambda call: f"torch.changed({call[1]}, '{call[2]}', ", source)
    return source.replace(", )", ")")
