"""What a derivative must satisfy besides its value: linearity at zero, absent and batched terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import wengert
from wengert.autograd.gradcheck.comparison import close
from wengert.autograd.gradcheck.errors import (
    BATCHED_FORWARD,
    BATCHED_REVERSE,
    NOT_MULTIPLIED,
    UNDEFINED_IS_CHECKED,
    UNDEFINED_NOT_HANDLED,
    UNDEFINED_NOT_ZERO,
    GradcheckError,
)
from wengert.autograd.gradcheck.jacobians import (
    as_tuple,
    differentiated,
    forward_derivative,
    reverse_derivative,
    wants_grad,
)
from wengert.autograd.gradcheck.modes import RandomVectors, split_inputs
from wengert.core.errors import warn_user
from wengert.func.mapping import vmap_tangents

_BATCH = 2


def check_zero_cotangent(outputs: Sequence[wengert.Tensor], xs: Sequence[wengert.Tensor]) -> None:
    """A backward given zeros must return zeros, of each input's dtype, device and size."""
    if not xs:
        raise GradcheckError("no Tensors requiring grad found in input")
    if not outputs:
        return
    grads = wengert.autograd.grad(
        tuple(outputs),
        tuple(xs),
        tuple(wengert.zeros_like(out) for out in outputs),
        retain_graph=True,
        allow_unused=True,
    )
    for grad, x in zip(grads, xs, strict=True):
        if grad is None:
            continue
        if not _is_zero(grad):
            raise GradcheckError(NOT_MULTIPLIED)
        if grad.dtype != x.dtype:
            raise GradcheckError(f"grad is incorrect type: {grad.dtype} for an input of {x.dtype}")
        if grad.device != x.device:
            raise GradcheckError("grad is incorrect device")
        if grad.shape != x.shape:
            raise GradcheckError(
                f"grad is incorrect size: {tuple(grad.shape)} for an input of {tuple(x.shape)}"
            )


def check_undefined_cotangents(func: Callable[..., Any], inputs: Sequence[Any]) -> None:
    """Outputs whose gradient is absent, all of them and one at a time, must count as zero."""
    xs = differentiated(inputs)
    count = len(_differentiable(func, inputs))
    for absent in [set(range(count))] + ([{k} for k in range(count)] if count > 1 else []):
        outputs = _differentiable(func, inputs)
        if outputs:
            _check_absent(outputs, xs, absent)


def check_undefined_tangents(func: Callable[..., Any], inputs: Sequence[Any]) -> None:
    """An input without a tangent must give what a tangent of zeros gives."""
    func, inputs, _ = split_inputs(func, inputs)
    draw = RandomVectors()
    tangents = [draw.uniform_like(x) if wants_grad(x) else None for x in inputs]
    for i, tangent in enumerate(tangents):
        if tangent is None:
            continue
        zero = wengert.zeros_like(tangent)
        with_zeros = forward_derivative(func, inputs, [*tangents[:i], zero, *tangents[i + 1 :]])
        plain = [x.detach() if j == i else x for j, x in enumerate(inputs)]
        without = forward_derivative(func, plain, [*tangents[:i], None, *tangents[i + 1 :]])
        for index, ((_, expected), (_, got)) in enumerate(zip(with_zeros, without, strict=True)):
            if expected is None or got is None:
                continue
            if not close(got, expected, rtol=1e-5, atol=1e-8):
                raise GradcheckError(
                    f"Mismatch in tangent values for output with index: {index} when input: {i}"
                    f" has an undefined tangent value. Got: {got} but expected: {expected}"
                )


def check_batched_reverse(outputs: Sequence[wengert.Tensor], xs: Sequence[wengert.Tensor]) -> None:
    """One backward over a batch of cotangents must equal a backward for each."""
    draw = RandomVectors()
    for position, out in enumerate(outputs):
        cotangents = [draw.uniform_like(out) for _ in range(_BATCH)]
        expected = [reverse_derivative(out, xs, cotangent) for cotangent in cotangents]
        try:
            batched = wengert.autograd.grad(
                out,
                tuple(xs),
                wengert.stack(cotangents),
                retain_graph=True,
                allow_unused=True,
                is_grads_batched=True,
            )
        except RuntimeError as error:
            raise GradcheckError(
                f"While computing batched gradients, got: {error}\n\n{BATCHED_REVERSE}"
            ) from error
        for i, grad in enumerate(batched):
            singles = [grads[i] for grads in expected]
            if grad is not None:
                _compare_batch(grad, singles, position, i, BATCHED_REVERSE)


def check_batched_forward(func: Callable[..., Any], inputs: Sequence[Any]) -> None:
    """One forward pass over a batch of tangents must equal a pass for each, input by input."""
    draw = RandomVectors()
    positions = [j for j, x in enumerate(inputs) if wants_grad(x)]
    for i, position in enumerate(positions):

        def pushed(tangent: wengert.Tensor, position: int = position) -> tuple[Any, ...]:
            tangents = [tangent if j == position else None for j in range(len(inputs))]
            plain = [x.detach() if isinstance(x, wengert.Tensor) else x for x in inputs]
            return tuple(
                wengert.zeros_like(primal) if out is None else out
                for primal, out in forward_derivative(func, plain, tangents)
            )

        tangents = [draw.uniform_like(inputs[position]) for _ in range(_BATCH)]
        expected = [pushed(tangent) for tangent in tangents]
        try:
            batched = vmap_tangents(pushed)(wengert.stack(tangents))
        except RuntimeError as error:
            raise GradcheckError(
                f"While computing batched gradients, got: {error}\n\n{BATCHED_FORWARD}"
            ) from error
        for index, result in enumerate(batched):
            _compare_batch(result, [outs[index] for outs in expected], index, i, BATCHED_FORWARD)


def _without_gradient(out: wengert.Tensor) -> wengert.Tensor:
    """A copy of `out` that passes no gradient at all back to it."""
    copy = out.clone()
    copy.grad_fn.register_prehook(lambda grads: (None,))
    return copy


def _check_absent(
    outputs: Sequence[wengert.Tensor], xs: Sequence[wengert.Tensor], absent: set[int]
) -> None:
    roots = tuple(_without_gradient(out) if k in absent else out for k, out in enumerate(outputs))
    seeds = tuple(wengert.zeros_like(out) for out in outputs)
    try:
        grads = wengert.autograd.grad(roots, tuple(xs), seeds, allow_unused=True)
    except RuntimeError as error:
        warn_user(UNDEFINED_IS_CHECKED)
        raise GradcheckError(UNDEFINED_NOT_HANDLED.format(error)) from error
    if not all(grad is None or _is_zero(grad) for grad in grads):
        warn_user(UNDEFINED_IS_CHECKED)
        raise GradcheckError(UNDEFINED_NOT_ZERO)


def _differentiable(func: Callable[..., Any], inputs: Sequence[Any]) -> list[wengert.Tensor]:
    return [out for out in as_tuple(func(*inputs)) if out.requires_grad]


def _is_zero(tensor: wengert.Tensor) -> bool:
    return bool((tensor == 0).all())


def _compare_batch(
    batched: wengert.Tensor,
    singles: Sequence[wengert.Tensor | None],
    output: int,
    x: int,
    explanation: str,
) -> None:
    expected = wengert.stack(
        [
            wengert.zeros_like(got) if single is None else single
            for single, got in zip(singles, batched.unbind(0), strict=True)
        ]
    )
    if not close(batched, expected, rtol=1e-5, atol=1e-8):
        raise GradcheckError(
            f"For output {output} and input {x}:\n\n{explanation}\n\n"
            f"Got:\n{batched}\n\nExpected:\n{expected}"
        )
