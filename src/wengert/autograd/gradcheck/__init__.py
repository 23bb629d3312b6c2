"""Check derivatives against finite differences: `gradcheck` and `gradgradcheck`.

The checks themselves are imported by the first call, as few programs that use autograd make one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import wengert
from wengert.autograd.gradcheck.errors import GradcheckError

__all__ = [
    "gradcheck",
    "gradgradcheck",
    "GradcheckError",
    "get_numerical_jacobian",
    "get_analytical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
]

_DEPRECATED = frozenset(name for name in __all__ if name.startswith("get_"))


def __getattr__(name: str) -> Any:
    if name in _DEPRECATED:
        # on first use, as they warn that they will go
        from wengert.autograd.gradcheck import deprecated

        return getattr(deprecated, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _checks() -> Any:
    # on first use: few programs that use autograd check it
    from wengert.autograd.gradcheck import checks

    return checks


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
    checks = _checks()
    args = checks.as_tuple(inputs)
    checks.check_inputs(args)
    try:
        checks.check_derivatives(
            func,
            args,
            checks.Tolerances(eps, atol, rtol, nondet_tol, check_grad_dtypes),
            backward=check_backward_ad,
            forward=check_forward_ad,
            undefined=check_undefined_grad,
            batched_backward=check_batched_grad,
            batched_forward=check_batched_forward_grad,
            fast=fast_mode,
        )
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
    checks = _checks()
    args = checks.as_tuple(inputs)
    if grad_outputs is None:
        cotangents = checks.random_cotangents(func, args, gen_non_contig_grad_outputs)
    else:
        cotangents = checks.as_tuple(grad_outputs)
    return gradcheck(
        checks.gradient_function(func, args, cotangents),
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
