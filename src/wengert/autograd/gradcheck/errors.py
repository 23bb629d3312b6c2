"""The error that a failed check raises, and what it says."""

from __future__ import annotations


class GradcheckError(RuntimeError):
    """Raised by `gradcheck` and `gradgradcheck` for a derivative that fails a check."""


DTYPE_MISMATCH = "Gradient has dtype mismatch"
FORWARD_DTYPE_MISMATCH = "Forward AD gradient has dtype mismatch."
INCORRECT_SIZE = "Analytical gradient has incorrect size"
NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple"
    " times gives different values, although analytical gradient matches numerical gradient. The"
    " tolerance for nondeterminism was {}. If the function is known to be non-deterministic, raise"
    " the tolerance with `nondet_tol`."
)
NOT_CONSTANT = (
    "Numerical gradient for function expected to be zero: no output requires grad, yet an output"
    " changes with the inputs."
)
FAST_FAILED_SLOW_PASSED = (
    "Fast gradcheck failed but element-wise differences are small. This means that the test"
    " might've passed in slow_mode! Call it with `fast_mode=False` to find out.\n"
)
NOT_MULTIPLIED = "backward not multiplied by grad_output"
UNDEFINED_IS_CHECKED = (
    "Backwards compatibility: New undefined gradient support checking feature is enabled by default"
    ' and fails for this function; "check_undefined_grad=False" switches it off.'
)
UNDEFINED_NOT_HANDLED = (
    "Expected backward function to handle undefined output grads, but got: {}\n"
    "Use check_undefined_grad=False where an absent gradient cannot occur."
)
UNDEFINED_NOT_ZERO = (
    "Expected all input grads to be undefined or zero when all output grads are undefined or zero."
    " Use check_undefined_grad=False where an absent gradient cannot occur."
)
BATCHED_REVERSE = (
    "gradcheck or gradgradcheck failed while testing batched gradient computation. Use"
    " `check_batched_grad=False` for a function whose backward vmap cannot batch."
)
BATCHED_FORWARD = (
    "gradcheck failed while testing batched gradient computation with forward-mode AD. Use"
    " `check_batched_forward_grad=False` for a function that vmap cannot batch."
)
