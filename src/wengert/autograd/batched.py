"""Gradients for a batch of output gradients, by one walk through the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.tensor import Tensor
from ..dispatch.levels import lifted, unwrapped
from ..transforms.levels import VmapLevel


def batched_grad(
    grad: Callable[..., tuple], roots: tuple, targets: tuple, grads: tuple, **options: Any
) -> tuple:
    """`grad` with the first dimension of every output gradient, and of the results, as a batch."""
    size = _batch_size(grads)
    _check_shapes(roots, grads)
    level = VmapLevel(size, of_derivatives=True)
    with level.entered():
        lifts = [None if g is None else lifted(g, level, 0) for g in grads]
        found = grad(roots, targets, lifts, **options)
        values = [None if g is None else unwrapped(g, level) for g in found]
    return tuple([None if value is None else _in_front(*value, size) for value in values])


def _in_front(value: Tensor, dim: int | None, size: int) -> Tensor:
    """A gradient with its batch dimension first."""
    if dim is None:
        return value.expand((size, *value.array.shape))
    return value.movedim(dim, 0) if dim else value


def _batch_size(grads: tuple) -> int:
    sizes = {g.array.shape[0] for g in grads if isinstance(g, Tensor) and g.array.ndim}
    if len(sizes) != 1:
        raise ValueError(
            "grad(): with is_grads_batched=True, grad_outputs must have a first dimension of one "
            f"and the same length, which counts the batch; got lengths {sorted(sizes)}"
        )
    return sizes.pop()


def _check_shapes(roots: tuple, grads: tuple) -> None:
    for i, (out, g) in enumerate(zip(roots, grads, strict=False)):
        if not (isinstance(out, Tensor) and isinstance(g, Tensor)):
            continue
        if g.array.shape[1:] != out.array.shape or not g.array.ndim:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output "
                "as the batch dimension. The sizes of the remaining dimensions are expected to "
                "match the shape of corresponding output, but a mismatch was detected: "
                f"grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of "
                f"{out.shape}."
            )
