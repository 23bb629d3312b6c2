"""What distributions share: arguments that broadcast, lazy attributes, probabilities and logits."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from numbers import Number
from typing import Any

from ..autograd.grad_mode import enable_grad
from ..core import dtypes
from ..core.tensor import Tensor
from ..creation.conversion import tensor
from ..creation.random import randn
from ..operators.joining import broadcast_tensors
from ..operators.softmax import log_softmax, softmax

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors and numbers as tensors of one shape; numbers take the type of the first tensor."""
    if not all(isinstance(each, (Tensor, Number)) for each in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__."
        )
    tensors = [each for each in values if isinstance(each, Tensor)]
    if len(tensors) == len(values):
        return tuple(broadcast_tensors(*values))
    options: dict[str, Any] = {"dtype": dtypes.get_default_dtype()}
    if tensors:
        options = {"dtype": tensors[0].dtype, "device": tensors[0].device}
    made = [each if isinstance(each, Tensor) else tensor(each, **options) for each in values]
    return tuple(broadcast_tensors(*made))


def standard_normal(shape: Any, like: Tensor) -> Tensor:
    """Standard normal numbers of the type of a tensor."""
    return randn(tuple(shape), dtype=like.dtype, device=like.device)


def sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities that are neither 0 nor 1."""
    eps = dtypes.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities, of logits of one event each or along the last dimension."""
    return logits.sigmoid() if is_binary else softmax(logits, -1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Logits, of probabilities of one event each or along the last dimension."""
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


def normalized_logits(logits: Tensor) -> Tensor:
    """Logarithms of probabilities along the last dimension."""
    return log_softmax(logits, -1)


class lazy_property:
    """An attribute that is computed when it is first read, with gradients."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def _entries(n: int, diag: int) -> int:
    """How many entries a matrix has up to a diagonal."""
    return sum(max(min(i + diag + 1, n), 0) for i in range(n))


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Lower triangular matrices with the entries of vectors, row by row."""
    count = vec.shape[-1]
    n = next(n for n in range(1, count + 2 + abs(diag)) if _entries(n, diag) >= count)
    if _entries(n, diag) != count:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower "
            "triangular part of a square D x D matrix."
        )
    rows = [(i, j) for i in range(n) for j in range(max(min(i + diag + 1, n), 0))]
    places = tensor([i * n + j for i, j in rows], dtype=dtypes.int64, device=vec.device)
    flat = vec.new_zeros(vec.shape[:-1] + (n * n,)).index_copy(-1, places, vec)
    return flat.reshape(vec.shape[:-1] + (n, n))


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The entries of the lower triangular parts of matrices, row by row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    places = [i * n + j for i in range(n) for j in range(max(min(i + diag + 1, n), 0))]
    flat = mat.reshape(mat.shape[:-2] + (n * n,))
    return flat.index_select(-1, tensor(places, dtype=dtypes.int64, device=mat.device))
