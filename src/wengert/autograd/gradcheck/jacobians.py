"""Jacobians of a function at a point, by finite differences, reverse mode and forward mode.

A Jacobian is a matrix with one row per element of an input and one column per element of an
output. For a complex input the row holds the derivative along the real axis plus 1j times that
along the imaginary axis, which is the gradient autograd gives for a real output.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import wengert

Evaluate = Callable[[], tuple["wengert.Tensor", ...]]


def as_tuple(value: Any) -> tuple[Any, ...]:
    if isinstance(value, (tuple, list)):
        return tuple(value)
    return (value,)


def wants_grad(value: Any) -> bool:
    return isinstance(value, wengert.Tensor) and value.requires_grad


def differentiated(inputs: Sequence[Any]) -> list[wengert.Tensor]:
    """The tensors among `inputs` that require grad."""
    return [x for x in inputs if wants_grad(x)]


def evaluator(func: Callable[..., Any], inputs: Sequence[Any]) -> Evaluate:
    """A call of `func` on `inputs` as they stand, with results that outlive a change of them."""
    return lambda: tuple(out.detach().clone() for out in as_tuple(func(*inputs)))


def numerical_derivative(
    evaluate: Evaluate,
    entry: wengert.Tensor,
    directions: Sequence[Any],
    eps: float,
    where: str = "",
) -> list[wengert.Tensor]:
    """Central differences of every output when `entry`, part of an input, moves in place.

    `directions` is one step for a real entry; for a complex one a step along the real axis and one
    along the imaginary axis, both given as real numbers.
    """
    along_real = _difference_quotients(evaluate, entry, directions[0] * eps, eps, where)
    if len(directions) == 1:
        return along_real
    along_imaginary = _difference_quotients(evaluate, entry, directions[1] * (1j * eps), eps, where)
    return [re + 1j * im for re, im in zip(along_real, along_imaginary, strict=True)]


def numerical_jacobian(
    evaluate: Evaluate, x: wengert.Tensor, outputs: Sequence[wengert.Tensor], eps: float
) -> list[wengert.Tensor]:
    """The Jacobian of each output in `x`, an input that `evaluate` reads; `x` is restored."""
    directions = (1.0, 1.0) if x.is_complex() else (1.0,)
    rows: list[list[wengert.Tensor]] = [[] for _ in outputs]
    data = x.data
    for index in itertools.product(*map(range, x.shape)):
        derivative = numerical_derivative(
            evaluate, data[index], directions, eps, f" on index {index}"
        )
        for row, column in zip(rows, derivative, strict=True):
            row.append(column.reshape(-1))
    return [
        wengert.stack(row) if row else _zeros(0, out.numel(), like=out)
        for row, out in zip(rows, outputs, strict=True)
    ]


def reverse_derivative(
    output: wengert.Tensor, inputs: Sequence[wengert.Tensor], cotangent: wengert.Tensor
) -> tuple[wengert.Tensor | None, ...]:
    return wengert.autograd.grad(
        output, tuple(inputs), cotangent, retain_graph=True, allow_unused=True
    )


def reverse_jacobian(
    output: wengert.Tensor, inputs: Sequence[wengert.Tensor]
) -> tuple[tuple[wengert.Tensor, ...], bool, bool]:
    """The Jacobian of `output` in each input, and whether all gradients had the inputs' sizes and
    dtypes; a gradient of another size counts as zero."""
    columns = [
        reverse_derivative(output, inputs, one_hot(output, element))
        for element in range(output.numel())
    ]
    right_size = right_dtype = True
    matrices = []
    for position, x in enumerate(inputs):
        flat = []
        for grads in columns:
            grad = grads[position]
            fits = grad is None or grad.shape == x.shape
            right_size = right_size and fits
            right_dtype = right_dtype and (grad is None or grad.dtype == x.dtype)
            if grad is None or not fits:
                grad = wengert.zeros_like(x)
            flat.append(grad.detach().reshape(-1).to(x.dtype))
        matrices.append(wengert.stack(flat, dim=1) if flat else _zeros(x.numel(), 0, like=x))
    return tuple(matrices), right_size, right_dtype


def forward_derivative(
    func: Callable[..., Any], inputs: Sequence[Any], tangents: Sequence[wengert.Tensor | None]
) -> list[tuple[wengert.Tensor, wengert.Tensor | None]]:
    """Each output's primal and tangent, given a tangent or None for each entry of `inputs`."""
    forward_ad = wengert.autograd.forward_ad
    with forward_ad.dual_level():
        duals = [
            x if tangent is None else forward_ad.make_dual(x.detach(), tangent)
            for x, tangent in zip(inputs, tangents, strict=True)
        ]
        pairs = [
            forward_ad.unpack_dual(out) if is_inexact(out) else (out, None)
            for out in as_tuple(func(*duals))
        ]
        return [(primal, tangent) for primal, tangent in pairs]


def one_hot(like: wengert.Tensor, element: int) -> wengert.Tensor:
    """A tensor shaped like `like`, one at the flat position `element` and zero elsewhere."""
    result = _zeros(*like.shape, like=like)
    result.view(-1)[element] = 1
    return result


def is_inexact(value: Any) -> bool:
    return isinstance(value, wengert.Tensor) and (value.is_floating_point() or value.is_complex())


def _zeros(*shape: int, like: wengert.Tensor) -> wengert.Tensor:
    return wengert.zeros(shape, dtype=like.dtype, device=like.device)


def _difference_quotients(
    evaluate: Evaluate, entry: wengert.Tensor, step: Any, eps: float, where: str
) -> list[wengert.Tensor]:
    original = entry.clone()
    try:
        entry.copy_(original - step)
        below = evaluate()
        entry.copy_(original + step)
        above = evaluate()
    finally:
        entry.copy_(original)
    if len(below) != len(above):
        raise AssertionError(
            f"Expected `func` to return as many outputs when inputs are perturbed{where} by {eps},"
            f" but got: {len(below)} and {len(above)}."
        )
    return [
        _difference(lower, upper, eps, where) / (2 * eps)
        for lower, upper in zip(below, above, strict=True)
    ]


def _difference(
    lower: wengert.Tensor, upper: wengert.Tensor, eps: float, where: str
) -> wengert.Tensor:
    for kind, first, second in (
        ("shape", lower.shape, upper.shape),
        ("dtype", lower.dtype, upper.dtype),
    ):
        if first != second:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {kind} when inputs are"
                f" perturbed{where} by {eps}, but got: {kind}s {first} and {second}."
            )
    if is_inexact(lower):
        return upper - lower
    return upper.to(wengert.float64) - lower.to(wengert.float64)
