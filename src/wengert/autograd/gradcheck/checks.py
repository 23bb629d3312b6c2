"""The checks behind `gradcheck` and `gradgradcheck`, in the order in which they run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import wengert
from wengert.autograd.gradcheck.comparison import compare
from wengert.autograd.gradcheck.jacobians import as_tuple, differentiated, wants_grad
from wengert.autograd.gradcheck.modes import ForwardMode, RandomVectors, ReverseMode, Tolerances
from wengert.autograd.gradcheck.properties import (
    check_batched_forward,
    check_batched_reverse,
    check_undefined_cotangents,
    check_undefined_tangents,
    check_zero_cotangent,
)


def check_inputs(inputs: Sequence[Any]) -> None:
    """Refuse inputs that cannot be varied, and warn of those too coarse to be."""
    if not differentiated(inputs):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them"
            " have requires_grad=True."
        )
    for index, x in enumerate(inputs):
        if not wants_grad(x):
            continue
        if x.dtype not in (wengert.float64, wengert.complex128):
            warnings.warn(
                f"Input #{index} requires gradient and is not a double precision floating point or"
                " complex. This check will likely fail if all the inputs are not of double"
                " precision floating point or complex.",
                stacklevel=3,
            )
        if x.numel() and 0 in [step for step, n in zip(x.stride(), x.shape, strict=True) if n > 1]:
            raise RuntimeError(
                f"The {index}th input has a dimension with stride 0. gradcheck only supports"
                " inputs that are non-overlapping to be able to compute the numerical gradients"
                " correctly. You should call .contiguous on the input before passing it to"
                " gradcheck."
            )


def check_derivatives(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    tolerances: Tolerances,
    *,
    backward: bool,
    forward: bool,
    undefined: bool,
    batched_backward: bool,
    batched_forward: bool,
    fast: bool,
) -> None:
    """Raise GradcheckError for the first of the requested checks that fails."""
    results = _results(func, inputs)
    outputs = [out for out in results if out.requires_grad]
    xs = differentiated(inputs)
    if backward:
        compare(ReverseMode(func, inputs, results, tolerances), fast)
    if forward:
        compare(ForwardMode(func, inputs, results, tolerances), fast)
        if undefined:
            check_undefined_tangents(func, inputs)
    if batched_forward:
        check_batched_forward(func, inputs)
    if batched_backward:
        check_batched_reverse(outputs, xs)
    if backward:
        check_zero_cotangent(outputs, xs)
        if undefined:
            check_undefined_cotangents(func, inputs)


def gradient_function(
    func: Callable[..., Any], inputs: tuple[Any, ...], cotangents: tuple[Any, ...]
) -> Callable[..., tuple[wengert.Tensor, ...]]:
    """The gradients of `func` as a function of its inputs, followed by the output gradients."""
    recorded = [wants_grad(value) for value in (*inputs, *cotangents)]

    def gradients(*values: Any) -> tuple[wengert.Tensor, ...]:
        # Forward mode hands over tensors without a graph: record them as the originals were.
        for value, record in zip(values, recorded, strict=True):
            if record and not value.requires_grad:
                value.requires_grad = True
        primals, seeds = values[: len(inputs)], values[len(inputs) :]
        outputs = tuple(out for out in as_tuple(func(*primals)) if out.requires_grad)
        xs = tuple(x for x, record in zip(primals, recorded, strict=False) if record)
        if not outputs or not xs:
            return ()
        grads = wengert.autograd.grad(outputs, xs, seeds, create_graph=True, allow_unused=True)
        return tuple(grad for grad in grads if grad is not None)

    return gradients


def random_cotangents(
    func: Callable[..., Any], inputs: tuple[Any, ...], non_contiguous: bool
) -> tuple[wengert.Tensor, ...]:
    """For each differentiable output a tensor of values in [-1, 1) that requires grad."""
    draw = RandomVectors()
    cotangents = []
    for out in _results(func, inputs):
        if not out.requires_grad:
            continue
        shape = (*out.shape, 2) if non_contiguous else out.shape
        values = draw.uniform(shape, out) * 2 - 1
        if out.is_complex():
            values = values + 1j * (draw.uniform(shape, out) * 2 - 1)
        if non_contiguous:
            values = values.select(-1, 0)
        cotangents.append(values.detach().requires_grad_(True))
    return tuple(cotangents)


def _results(func: Callable[..., Any], inputs: Sequence[Any]) -> tuple[wengert.Tensor, ...]:
    results = as_tuple(func(*inputs))
    for index, out in enumerate(results):
        if not isinstance(out, wengert.Tensor):
            raise TypeError(
                f"gradcheck expects func to return tensors, but output {index} has type"
                f" {type(out)}."
            )
    return results
