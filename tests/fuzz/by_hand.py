"""PyTorch's functions with derivatives that contradict each other, made of simpler ones.

Where a program differs, and no longer does when PyTorch computes these functions from their
definitions, its own rules for them are the reason.
"""

from __future__ import annotations

import itertools
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


def _polar(lib: Any, radius: Any, angle: Any) -> Any:
    return lib.complex(radius * angle.cos(), radius * angle.sin())


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
    shape = [1, -1] + [1] * (x.dim() - 2)
    weight, bias = (None if part is None else part.reshape(shape) for part in (weight, bias))
    return _normalized(x, [0, *range(2, x.dim())], weight, bias, eps)


def _instance_norm(lib: Any, x: Any, *args: Any, **options: Any) -> Any:
    if args or options:
        return lib.nn.functional.instance_norm(x, *args, **options)
    return _normalized(x, list(range(2, x.dim())), None, None, 1e-5)


BY_HAND: dict[str, Callable] = {
    "det": _det, "logdet": _logdet, "slogdet": _slogdet, "native_layer_norm": _native_layer_norm,
    "cholesky_inverse": _cholesky_inverse, "polar": _polar, "layer_norm": _layer_norm,
    "batch_norm": _batch_norm, "instance_norm": _instance_norm,
}  # fmt: skip
METHODS = re.compile(rf"\b([a-z]\d+)\.({'|'.join(BY_HAND)})\(")
USES = re.compile(rf"\b({'|'.join(BY_HAND)})\b")


def by_hand(lib: Any) -> Any:
    """The library with such functions made of simpler ones."""

    def wrap(name: str, function: Any) -> Any:
        if name not in BY_HAND:
            return function

        def compute(*args: Any, **options: Any) -> Any:
            if "out" in options:
                return function(*args, **options)
            return BY_HAND[name](lib, *args, **options)

        return compute

    return Replaced(lib, wrap)


def as_functions(source: str) -> str:
    """The source with calls of these methods as those of functions, which can be replaced."""
    return METHODS.sub(lambda call: f"torch.{call[2]}({call[1]}, ", source).replace(", )", ")")
