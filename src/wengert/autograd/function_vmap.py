"""How a custom Function is batched: which of its two ways it has, and what that way returns.

`call_batched` is the whole meeting point of Functions and vmap: the transform calls it with its own
level switched off and wraps what it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .function_node import no_setup_context


class VmapInfo(NamedTuple):
    """What a `vmap` staticmethod is told about the transform that calls it."""

    batch_size: int
    randomness: str


def batching_rule(function: Any) -> Callable:
    """The `vmap` staticmethod of a Function, or the rule that is derived for it."""
    from .function import Function

    if function.setup_context is no_setup_context:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
            f"jacrev, ...), it must override the setup_context staticmethod; {function.__name__} "
            "has a forward that takes ctx"
        )
    written = function.vmap is not Function.vmap
    if function.generate_vmap_rule and written:
        raise RuntimeError(
            f"You tried to vmap over {function.__name__}, but it has both generate_vmap_rule=True "
            "and an overridden vmap staticmethod. Delete one of them"
        )
    if not function.generate_vmap_rule and not written:
        raise RuntimeError(
            f"You tried to vmap over {function.__name__}, but it does not have vmap support. "
            "Override the vmap staticmethod or set generate_vmap_rule=True"
        )
    return function.vmap if written else _derived(function)


def call_batched(function: Any, info: VmapInfo, in_dims: tuple, args: tuple) -> tuple[Any, Any]:
    """The outputs of a Function on batched arguments, and where their batch dims are."""
    returned = batching_rule(function)(info, in_dims, *args)
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with "
            f"pytree structure compatible with the output. {function.__name__} returned a "
            f"{type(returned).__name__}"
        )
    output, out_dims = returned
    if isinstance(out_dims, tuple) and (
        not isinstance(output, tuple) or len(output) != len(out_dims)
    ):
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) "
            f"tuple. Expected out_dims={out_dims} to be compatible with the structure of `output`, "
            f"a {type(output).__name__}"
        )
    return output, out_dims


def _derived(function: Any) -> Callable:
    """The rule for ``generate_vmap_rule=True``: the Function's own methods under vmap."""
    raise RuntimeError(
        f"{function.__name__} sets generate_vmap_rule=True, which needs vmap, and this version "
        "does not have it; override the vmap staticmethod"
    )
