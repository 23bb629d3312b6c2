"""Jacobian helpers that older programs import; `wengert.autograd.functional` replaces them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import wengert
from wengert.autograd.gradcheck.jacobians import (
    as_tuple,
    differentiated,
    evaluator,
    numerical_jacobian,
    reverse_jacobian,
)
from wengert.autograd.gradcheck.modes import reentrant


def get_numerical_jacobian(
    fn: Callable[[Any], Any],
    inputs: Any,
    target: Any = None,
    eps: float = 1e-3,
    grad_out: float = 1.0,
) -> tuple[wengert.Tensor, ...]:
    """Deprecated: the Jacobian of the first output of `fn(inputs)` in each tensor of `target`,
    which defaults to the inputs that require grad."""
    _warn("get_numerical_jacobian")
    _check_grad_out(grad_out, "get_numerical_jacobian")
    outputs = as_tuple(fn(inputs))
    _check_real(outputs, "get_numerical_jacobian")
    evaluate = evaluator(fn, (inputs,))
    targets = differentiated(as_tuple(inputs if target is None else target))
    return tuple(numerical_jacobian(evaluate, x, outputs, eps)[0] for x in targets)


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable[..., Any],
    input_idx: int,
    inputs: Sequence[Any],
    outputs: Sequence[wengert.Tensor],
    eps: float,
    input: wengert.Tensor | None = None,
    is_forward_ad: bool = False,
) -> tuple[wengert.Tensor, ...]:
    """The Jacobian of each output of `fn(*inputs)` in the input at `input_idx`.

    `input`, when given, is the tensor to vary. Complex outputs need `is_forward_ad` and a real
    input.
    """
    x = inputs[input_idx] if input is None else input
    if not x.requires_grad:
        raise AssertionError("Expected input to have requires_grad=True")
    if any(out.is_complex() for out in outputs) and (x.is_complex() or not is_forward_ad):
        raise AssertionError("Expected ds_dx to be real-valued, not complex")
    return tuple(numerical_jacobian(evaluator(fn, inputs), x, outputs, eps))


def get_analytical_jacobian(
    inputs: Any, output: wengert.Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[wengert.Tensor, ...], bool, bool, bool]:
    """Deprecated: the reverse-mode Jacobian of `output` in each input that requires grad, and
    whether it is reproducible within `nondet_tol` and of the right sizes and dtypes."""
    _warn("get_analytical_jacobian")
    _check_grad_out(grad_out, "get_analytical_jacobian")
    _check_real((output,), "get_analytical_jacobian")
    xs = differentiated(as_tuple(inputs))
    first, right_size, right_dtype = reverse_jacobian(output, xs)
    second, _, _ = reverse_jacobian(output, xs)
    return first, reentrant(first, second, nondet_tol), right_size, right_dtype


def _warn(name: str) -> None:
    warnings.warn(
        f"`{name}` is deprecated; use wengert.autograd.functional.jacobian or gradcheck.",
        FutureWarning,
        stacklevel=3,
    )


def _check_grad_out(grad_out: float, name: str) -> None:
    if grad_out != 1.0:
        raise ValueError(
            f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0."
        )


def _check_real(outputs: Sequence[wengert.Tensor], name: str) -> None:
    if any(out.is_complex() for out in outputs):
        raise ValueError(
            f"Expected output to be non-complex. {name} no longer supports functions that return"
            " complex outputs."
        )
