"""Checkpointing with reentrancy: the backward of the region runs a forward and a backward inside.

The older way. It knows only the tensors among the arguments, so at least one of them must require
grad, and it cannot serve `autograd.grad` or a backward with ``inputs=``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from ...autograd import _is_checkpoint_valid, backward
from ...autograd.function import Function
from ...autograd.grad_mode import enable_grad, no_grad
from ...core.tensor import Tensor
from ...creation.generator import fork_rng, get_rng_state, set_rng_state


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs with every tensor detached, its `requires_grad` kept."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            + type(inputs).__name__
        )
    return tuple(
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs
    )


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no input requires grad: the region's parameters would get no gradient."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


class CheckpointFunction(Function):
    """Runs a function without recording, and again with recording in the backward."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:  # type: ignore[override]
        """Run the function without recording; only its inputs are kept."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.preserve_rng_state = preserve_rng_state
        if preserve_rng_state:
            ctx.rng_state = get_rng_state()
        ctx.positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.others = [None if isinstance(a, Tensor) else a for a in args]
        ctx.save_for_backward(*[a for a in args if isinstance(a, Tensor)])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Run the function again with recording, and backward through that."""
        if not _is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, checkpoint is incompatible with .grad() or passing an "
                "`inputs` parameter to .backward(). To resolve this error, you can either set "
                "use_reentrant=False, or call .backward() without passing the `inputs` argument."
            )
        args = list(ctx.others)
        for position, t in zip(ctx.positions, ctx.saved_tensors, strict=True):
            args[position] = t
        with fork_rng(enabled=ctx.preserve_rng_state):
            if ctx.preserve_rng_state:
                set_rng_state(ctx.rng_state)
            inputs = detach_variable(tuple(args))
            with enable_grad():
                outputs = ctx.run_function(*inputs)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        recorded = [
            (out, g)
            for out, g in zip(outputs, grads, strict=True)
            if isinstance(out, Tensor) and out.requires_grad
        ]
        if not recorded:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        backward([out for out, _ in recorded], [g for _, g in recorded])
        return (None, None, *[x.grad if isinstance(x, Tensor) else None for x in inputs])
