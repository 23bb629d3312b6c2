"""Custom operators at the levels of `vmap`, `grad` and `jvp` (`dispatch/levels.py`)."""

from __future__ import annotations

from typing import Any

from ..autograd.function_transforms import VmapInfo
from ..backends.backend import is_array
from ..core.state import call_user, thread_state
from ..core.tensor import Tensor, wrap
from ..core.trees.pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from ..dispatch.levels import Level, lifted, unwrapped


def call_below(operator: Any, args: tuple, level: Level) -> Any:
    """The results of an operator, some of whose arguments are tensors of `level`."""
    if operator.vmap is not None:
        values, dims = _parts(args, level)
        if any(dim is not None for dim in tree_flatten(dims)[0]):
            return _call_batched(operator, values, dims, level)
    return as_tensors(level.call(thread_state(), operator, args))


def as_tensors(out: Any) -> Any:
    """What a layer below returns, with a tensor for each array."""
    if is_array(out):
        return wrap(out)
    if type(out) is tuple or type(out) is list:
        return type(out)([as_tensors(item) for item in out])
    return out


def _parts(args: tuple, level: Level) -> tuple[tuple, tuple]:
    """The arguments below a level, and where their batch dimensions are."""
    values: list = []
    dims: list = []
    for value in args:
        if type(value) is list:
            parts = [_part(item, level) for item in value]
            values.append([v for v, _ in parts])
            has_tensors = any(isinstance(item, Tensor) for item in value)
            dims.append([dim for _, dim in parts] if has_tensors else None)
        else:
            inner, dim = _part(value, level)
            values.append(inner)
            dims.append(dim)
    return tuple(values), tuple(dims)


def _part(value: Any, level: Level) -> tuple[Any, int | None]:
    return unwrapped(value, level) if isinstance(value, Tensor) else (value, None)


def _call_batched(operator: Any, values: tuple, dims: tuple, level: Any) -> Any:
    """The registered batch rule on the values below, its results brought to the level."""
    positional = operator.positional
    info = VmapInfo(level.batch_size, level.randomness)
    with level.below():
        returned = call_user(
            operator.vmap,
            info,
            dims[:positional],
            *values[:positional],
            **operator.keywords_of(values),
        )
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise RuntimeError(
            f"Expected the vmap rule of {operator.name} to have two returns, an output and "
            f"out_dims of a structure compatible with it, but it returned a "
            f"{type(returned).__name__}"
        )
    out, out_dims = returned
    leaves, spec = tree_flatten(out)
    each = _broadcast_to_and_flatten(out_dims, spec)
    if each is None:
        raise RuntimeError(
            f"the vmap rule of {operator.name} returned an incompatible (output, out_dims) tuple: "
            f"expected out_dims={out_dims} to be compatible with the structure of `output`, {spec}"
        )
    return tree_unflatten(
        [
            lifted(leaf, level, dim) if isinstance(leaf, Tensor) else leaf
            for leaf, dim in zip(leaves, each, strict=True)
        ],
        spec,
    )
