"""Check derivatives against finite differences: `gradcheck` and `gradgradcheck`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import wengert
from wengert.autograd.gradcheck.comparison import compare
from wengert.autograd.gradcheck.deprecated import (
    get_analytical_jacobian,
    get_numerical_jacobian,
    get_numerical_jacobian_wrt_specific_input,
)
from wengert.autograd.gradcheck.errors import GradcheckError
from wengert.autograd.gradcheck.jacobians import as_tuple, differentiated, wants_grad
from wengert.autograd.gradcheck.modes import (
    ForwardMode,
    RandomVectors,
    ReverseMode,
    Tolerances,
)
from wengert.autograd.gradcheck.properties import (
    check_batched_forward,
    check_batched_reverse,
    check_undefined_cotangents,
    check_undefined_tangents,
    check_zero_cotangent,
    require_vmap,
)

__all__ = [
    "gradcheck",
    "gradgradcheck",
    "GradcheckError",
    "get_numerical_jacobian",
    "get_analytical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
]


def gradcheck(
    func: Callable[..., wengert.Tensor | Sequence[wengert.Tensor]],
    inputs: wengert.Tensor | Sequence[wengert.Tensor],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check the derivatives of `func` at `inputs` against central differences with step `eps`.

    All inputs that require grad are checked, and all outputs that do. They pass when every entry
    of the Jacobians agrees within `atol + rtol * abs(numerical)`, or with `fast_mode` when random
    projections of the Jacobians agree. Inputs should be float64 or complex128 and must not overlap
    themselves in memory; they are varied in place and restored.

    Beyond the values: gradients must be reproducible within `nondet_tol`, zero for zero output
    gradients, of the inputs' dtypes (`check_grad_dtypes`), indifferent to absent output gradients
    or tangents (`check_undefined_grad`), and equal when batched (`check_batched_grad`,
    `check_batched_forward_grad`). `masked` concerns sparse inputs and has no effect on dense ones.

    Returns True, or raises GradcheckError, or returns False instead of that with
    `raise_exception=False`.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    if check_batched_grad and not check_backward_ad:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_backward_ad to be True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
        )
    if check_batched_grad:
        require_vmap("check_batched_grad")
    if check_batched_forward_grad:
        require_vmap("check_batched_forward_grad")
    args = as_tuple(inputs)
    _check_inputs(args)
    tolerances = Tolerances(eps, atol, rtol, nondet_tol, check_grad_dtypes)
    try:
        results = _results(func, args)
        if check_backward_ad:
            compare(ReverseMode(func, args, results, tolerances), fast_mode)
        if check_forward_ad:
            compare(ForwardMode(func, args, results, tolerances), fast_mode)
            if check_undefined_grad:
                check_undefined_tangents(func, args)
        if check_batched_forward_grad:
            check_batched_forward(func, args)
        if check_backward_ad:
            outputs = [out for out in results if out.requires_grad]
            xs = differentiated(args)
            if check_batched_grad:
                check_batched_reverse(outputs, xs)
            check_zero_cotangent(outputs, xs)
            if check_undefined_grad:
                check_undefined_cotangents(func, args)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., wengert.Tensor | Sequence[wengert.Tensor]],
    inputs: wengert.Tensor | Sequence[wengert.Tensor],
    grad_outputs: wengert.Tensor | Sequence[wengert.Tensor | None] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Check the derivatives of the gradients of `func`, in its inputs and in `grad_outputs`.

    Gradients as a function of both are put through `gradcheck`, whose options have the same
    meaning here; `check_rev_over_rev` and `check_fwd_over_rev` choose the mode of the outer
    derivative. `grad_outputs` are drawn at random when left out, as non-contiguous tensors with
    `gen_non_contig_grad_outputs`.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError(
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
        )
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError(
            "Setting check_undefined_grad=True requires check_rev_over_rev to be True"
        )
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_rev_over_rev to be True"
        )
    args = as_tuple(inputs)
    if grad_outputs is None:
        cotangents = _random_cotangents(func, args, gen_non_contig_grad_outputs)
    else:
        cotangents = as_tuple(grad_outputs)
    recorded = [wants_grad(value) for value in (*args, *cotangents)]

    def gradients(*values: Any) -> tuple[wengert.Tensor, ...]:
        # Forward mode hands over tensors without a graph: record them as the originals were.
        values = tuple(
            value.requires_grad_(True) if record else value
            for value, record in zip(values, recorded, strict=True)
        )
        primals, seeds = values[: len(args)], values[len(args) :]
        outputs = tuple(out for out in as_tuple(func(*primals)) if out.requires_grad)
        xs = tuple(x for x, record in zip(primals, recorded, strict=False) if record)
        if not outputs or not xs:
            return ()
        grads = wengert.autograd.grad(outputs, xs, seeds, create_graph=True, allow_unused=True)
        return tuple(grad for grad in grads if grad is not None)

    return gradcheck(
        gradients,
        (*args, *cotangents),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _check_inputs(inputs: Sequence[Any]) -> None:
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
        if any(step == 0 and size > 1 for step, size in zip(x.stride(), x.shape, strict=True)):
            raise RuntimeError(
                f"The {index}th input has a dimension with stride 0. gradcheck only supports"
                " inputs that are non-overlapping to be able to compute the numerical gradients"
                " correctly. You should call .contiguous on the input before passing it to"
                " gradcheck."
            )


def _results(func: Callable[..., Any], inputs: Sequence[Any]) -> tuple[wengert.Tensor, ...]:
    results = as_tuple(func(*inputs))
    for index, out in enumerate(results):
        if not isinstance(out, wengert.Tensor):
            raise TypeError(
                f"gradcheck expects func to return tensors, but output {index} has type"
                f" {type(out)}."
            )
    return results


def _random_cotangents(
    func: Callable[..., Any], inputs: Sequence[Any], non_contiguous: bool
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
