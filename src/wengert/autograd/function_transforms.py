"""Custom Functions inside `grad`, `jvp` and `vmap` (`dispatch/levels.py`).

A Function has a derivative of its own at every level. So at a level of `grad` or `jvp` it is called
on the values below, and the call is recorded at this level with the result as its `forward`. At a
level of `vmap` its batching rule is called on the values below: the `vmap` staticmethod, or the
rule that ``generate_vmap_rule = True`` asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.arrays import made_inside
from ..core.tensor import Tensor
from ..dispatch.levels import Level, lifted
from .function_node import no_vmap


class VmapInfo(NamedTuple):
    """What a `vmap` staticmethod is told about the transform that calls it."""

    batch_size: int | None
    randomness: str


def level_outside(levels: list, number: int) -> int:
    """At which level to call a Function on tensors of level `number`; -1 for where it is called.

    That is outside the differentiations that do not concern them, but inside a trace.
    """
    for position, level in enumerate(levels[number:], number + 1):
        if level.traces:
            number = position
    return number if any(level.differentiates for level in levels[number:]) else -1


def made_inside_unless_given(out: Any, args: tuple, levels: list) -> Any:
    """A new tensor as one of the innermost level; an input or a view of one stays as it is."""
    if not isinstance(out, Tensor) or out.view_meta is not None or any(out is a for a in args):
        return out
    return made_inside(out, levels)


def same_or_lifted(below: Any, values: tuple, inputs: tuple, level: Level) -> Any:
    """Results at the level; an input that was changed in place is the input again."""
    if isinstance(below, tuple):
        return tuple([same_or_lifted(item, values, inputs, level) for item in below])
    for value, given in zip(values, inputs, strict=True):
        if below is value:
            return given
    return lifted(below, level) if isinstance(below, Tensor) else below


def lifted_results(output: Any, dims: Any, level: Level) -> Any:
    """Results of a batching rule at the level; one batch dimension for all, or one each."""
    if isinstance(output, tuple):
        each = dims if isinstance(dims, tuple) else (dims,) * len(output)
        return tuple([lifted_results(o, d, level) for o, d in zip(output, each, strict=True)])
    return lifted(output, level, dims) if isinstance(output, Tensor) else output


# Batching ----------------------------------------------------------------------------------------


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


def batching_rule(function: Any) -> Callable:
    """The `vmap` staticmethod of a Function, or the rule that is derived for it."""
    written = function.vmap is not no_vmap
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
    return function.vmap if written else function._derived_vmap()
