"""What the transforms share: choosing arguments, lifting and unwrapping trees of tensors."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..core.trees.pytree import tree_flatten, tree_map
from ..dispatch.levels import Level, lifted, unwrapped

Argnums = int | tuple[int, ...]


def chosen_argnums(argnums: Argnums, count: int) -> Argnums:
    """`argnums` counted from the front, checked against the number of positional arguments."""
    if isinstance(argnums, bool) or not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if isinstance(argnums, int):
        return _argnum(argnums, count)
    if not argnums:
        raise RuntimeError("argnums must be non-empty")
    chosen = tuple([_argnum(each, count) for each in argnums])
    if len(set(chosen)) != len(chosen):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return chosen


def _argnum(argnum: Any, count: int) -> int:
    if not isinstance(argnum, int) or isinstance(argnum, bool):
        raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
    if not -count <= argnum < count:
        raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    return argnum % count


def selected(args: tuple, argnums: Argnums) -> Any:
    """The chosen argument, or a tuple of the chosen ones."""
    return args[argnums] if isinstance(argnums, int) else tuple([args[i] for i in argnums])


def replaced(args: tuple, argnums: Argnums, values: Any) -> tuple:
    """The arguments with the chosen ones replaced."""
    new = list(args)
    positions, given = ((argnums,), (values,)) if isinstance(argnums, int) else (argnums, values)
    for position, value in zip(positions, given, strict=True):
        new[position] = value
    return tuple(new)


def at(level: Level, tree: Any) -> Any:
    """A tree with every tensor as one of `level`."""
    if not tree:
        return tree
    if type(tree) is tuple and all(type(leaf) is Tensor for leaf in tree):
        return tuple([lifted(leaf, level) for leaf in tree])
    return tree_map(lambda leaf: lifted(leaf, level) if isinstance(leaf, Tensor) else leaf, tree)


def outside(level: Level, tree: Any) -> Any:
    """A tree with every tensor as the value it has below `level`."""
    return tree_map(
        lambda leaf: unwrapped(leaf, level)[0] if isinstance(leaf, Tensor) else leaf, tree
    )


def split_aux(api: str, output: Any, has_aux: bool) -> tuple[Any, Any]:
    """The output of a function and what comes along with it, None without `has_aux`."""
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(
            f"{api}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    for leaf in tree_flatten(output[1])[0]:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{api}: Expected tensors, got unsupported type {type(leaf)} in aux, which is what "
                "f returns beside its output: other values can leave f by a side effect"
            )
    return output
