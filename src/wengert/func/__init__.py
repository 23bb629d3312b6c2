"""Function transforms: derivatives and batching of functions, nested in any order.

>>> import wengert
>>> from wengert.func import grad, vmap
>>> vmap(grad(grad(wengert.sin)))(wengert.tensor([0.0, 1.0]))
tensor([-0.0000, -0.8415])
"""

from __future__ import annotations

from .differentiation import debug_unwrap, grad, grad_and_value, vjp
from .forward import jvp, linearize
from .functionalization import functionalize
from .jacobians import hessian, jacfwd, jacrev
from .mapping import vmap
from .modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from .rearranging import rearrange

__all__ = [
    "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian",
    "jacfwd", "jacrev", "jvp", "linearize", "rearrange", "replace_all_batch_norm_modules_",
    "stack_module_state", "vjp", "vmap",
]  # fmt: skip
