"""Control flow as functions: `cond`, `while_loop`, `scan` and `map`.

Called eagerly they are plain Python, differentiable like any other program. While a function is
traced they become one node with blocks, whatever values decide: the trace is a `ControlFlowLevel`.

Inside `vmap`, where a condition has one value per example, `cond` computes both branches and
selects, and `while_loop` goes on until the last example is done. So do they inside a `vmap` or
`jvp` that is traced itself; there the number of rounds must not depend on values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...core.arrays import LevelArray, is_batched
from ...core.state import thread_state
from ...core.tensor import Tensor
from ...core.trees.pytree import TreeSpec, tree_flatten, tree_leaves, tree_map, tree_unflatten
from ...dispatch.levels import Level
from ...operators.joining import stack
from ...operators.selection import where
from ...transforms.levels import GradLevel

__all__ = ["cond", "map", "scan", "while_loop"]


class ControlFlowLevel(Level):
    """A level at which control flow becomes a node, since no values are known.

    The methods get checked arguments; what is gone through lies along the first dimension.
    """

    __slots__ = ()

    def cond(
        self, pred: Tensor, true_fn: Callable, false_fn: Callable, operands: tuple
    ) -> Any:
        """`cond` as a node."""
        raise NotImplementedError

    def while_loop(self, cond_fn: Callable, body_fn: Callable, carried: tuple) -> tuple:
        """`while_loop` as a node."""
        raise NotImplementedError

    def scan(
        self, combine_fn: Callable, init: Any, leaves: list[Tensor], tree: TreeSpec, reverse: bool
    ) -> tuple[Any, Any]:
        """`scan` as a node; `leaves` and `tree` are those of xs."""
        raise NotImplementedError

    def map(self, f: Callable, leaves: list[Tensor], tree: TreeSpec, args: tuple) -> Any:
        """`map` as a node; `leaves` and `tree` are those of xs."""
        raise NotImplementedError


def _noting_level() -> ControlFlowLevel | None:
    """The innermost trace, if there are no levels inside it but those of gradients, which can
    differentiate a node. A batch or a tangent has to see what the control flow does."""
    for level in reversed(thread_state().levels):
        if isinstance(level, ControlFlowLevel):
            return level
        if not isinstance(level, GradLevel):
            return None
    return None


def cond(
    pred: Any,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: tuple | list = (),
) -> Any:
    """``true_fn(*operands)`` if `pred` holds, else ``false_fn(*operands)``.

    Both return results of the same structure, shapes and dtypes, and change nothing in place. An
    operand or a view of one that they return is copied: results have memory of their own.

    >>> import wengert
    >>> from wengert.compiler import cond
    >>> f = wengert.compile(lambda x: cond(x.sum() > 0, wengert.sin, wengert.cos, (x,)))
    >>> f(wengert.zeros(2)), f(wengert.ones(2))
    (tensor([1., 1.]), tensor([0.8415, 0.8415]))
    """
    if not (callable(true_fn) and callable(false_fn)):
        raise RuntimeError("cond(): Expect both branches to be callable.")
    _check_operands("cond", "operands", operands)
    if not isinstance(pred, Tensor):
        if not isinstance(pred, (bool, int, float)):
            raise RuntimeError(f"cond(): Expected pred to be bool or tensor, but got {pred!r}")
        return _untouched("cond", true_fn if pred else false_fn, operands)
    if pred.numel() != 1:
        raise RuntimeError(
            "cond(): Expected pred to be bool or single-element tensor, but got one of shape "
            f"{tuple(pred.shape)}"
        )
    trace = _noting_level()
    if trace is not None:
        chosen, other = partial(_branch, true_fn), partial(_branch, false_fn)
        return trace.cond(pred, chosen, other, tuple(operands))
    if is_batched(pred) or _is_traced(pred):
        chosen = _untouched("cond", true_fn, operands)
        return _selected("cond", pred, chosen, _untouched("cond", false_fn, operands))
    return _untouched("cond", true_fn if pred else false_fn, operands)


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: tuple | list
) -> tuple:
    """Replace the carried values by ``body_fn(*carried)`` as long as ``cond_fn(*carried)`` holds.

    The body returns a tuple of the structure, shapes and dtypes of what it is given.

    >>> import wengert
    >>> from wengert.compiler import while_loop
    >>> while_loop(lambda x: x < 100, lambda x: (x * 2,), (wengert.tensor(3),))
    (tensor(192),)
    """
    if not (callable(cond_fn) and callable(body_fn)):
        raise RuntimeError("while_loop(): Expect cond_fn and body_fn to be callable.")
    _check_operands("while_loop", "carried_inputs", carried_inputs, only_tensors=True)
    values = tuple(carried_inputs)
    trace = _noting_level()
    if trace is not None:
        return trace.while_loop(cond_fn, body_fn, values)
    running: Any = None
    while True:
        holds = _untouched("while_loop", cond_fn, values)
        _check_condition(holds)
        if isinstance(holds, Tensor) and (is_batched(holds) or running is not None):
            running = holds if running is None else running & holds
            if not _any_example(running):
                return values
        elif not holds:
            return values
        fresh = _untouched("while_loop", body_fn, values)
        check_carried("while_loop", "body_fn", values, fresh)
        values = fresh if running is None else _selected("while_loop", running, fresh, values)


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    *,
    dim: int = 0,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Go through the slices of `xs` along `dim`: ``carry, y = combine_fn(carry, x)`` for each.

    Returns the last carry and the ys, stacked along `dim` in the order of the slices. `init` and
    `xs` are trees of tensors; with `reverse` the last slice comes first.

    >>> import wengert
    >>> from wengert.compiler import scan
    >>> scan(lambda total, x: (total + x, total * 1), wengert.tensor(0.0), wengert.arange(4.0))
    (tensor(6.), tensor([0., 0., 1., 3.]))
    """
    if not callable(combine_fn):
        raise RuntimeError(f"scan(): combine_fn must be a callable, but got {combine_fn!r}")
    leaves, tree = tree_flatten(xs)
    if not tree_leaves(init):
        raise RuntimeError("scan() operator requires init leaves.")
    _check_tensors("scan", "init", init)
    _check_tensors("scan", "xs", xs)
    if not leaves:
        raise RuntimeError("scan() needs xs to go through: at least one tensor")
    if dim:
        leaves = [x.movedim(dim, 0) if x.dim() else x for x in leaves]
    _length("scan", leaves, f"dimension {dim}")
    trace = _noting_level()
    if trace is not None:
        carry, ys = trace.scan(combine_fn, init, leaves, tree, reverse)
    else:
        carry, ys = _scanned(combine_fn, init, leaves, tree, reverse)
    if dim:
        ys = tree_map(lambda y: y.movedim(0, dim) if isinstance(y, Tensor) else y, ys)
    return carry, ys


def _scanned(
    combine_fn: Callable, init: Any, leaves: list[Tensor], tree: TreeSpec, reverse: bool
) -> tuple[Any, Any]:
    """`scan` along the first dimension, in Python."""
    length = leaves[0].shape[0]
    carry = init
    found: list[Any] = []
    for i in range(length - 1, -1, -1) if reverse else range(length):
        x = tree_unflatten([part.select(0, i) for part in leaves], tree)
        result = _untouched("scan", combine_fn, (carry, x))
        check_pair(result)
        check_carried("scan", "combine_fn", carry, result[0])
        carry = result[0]
        found.append(result[1])
    return carry, _stacked("scan", found[::-1] if reverse else found)


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """``f(x, *args)`` for each slice x of `xs` along the first dimension; the results, stacked.

    >>> import wengert
    >>> from wengert.compiler import map
    >>> map(lambda x, y: x * y, wengert.arange(3.0), wengert.tensor(2.0))
    tensor([0., 2., 4.])
    """
    if not callable(f):
        raise RuntimeError(f"map(): f must be a callable, but got {f!r}")
    leaves, tree = tree_flatten(xs)
    _check_tensors("map", "xs", xs)
    if not leaves:
        raise RuntimeError("map() needs xs to go through: at least one tensor")
    length = _length("map", leaves, "the leading dimension")
    trace = _noting_level()
    if trace is not None:
        return trace.map(f, leaves, tree, args)
    found = []
    for i in range(length):
        x = tree_unflatten([part.select(0, i) for part in leaves], tree)
        found.append(_untouched("map", f, (x, *args)))
    return _stacked("map", found)


# Checks -------------------------------------------------------------------------------------------


def _check_operands(name: str, what: str, operands: Any, only_tensors: bool = False) -> None:
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(
            f"{name}(): Expect {what} to be a tuple of possibly nested dict/list/tuple of tensors, "
            f"but got {type(operands).__name__}"
        )
    if only_tensors:
        _check_tensors(name, what, operands)


def _check_tensors(name: str, what: str, tree: Any) -> None:
    for leaf in tree_leaves(tree):
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{name}(): all leaves of {what} must be a Tensor but got {leaf!r}")


def _check_condition(value: Any) -> None:
    if isinstance(value, Tensor) and value.numel() == 1 and not value.dtype.is_floating_point:
        return
    if not isinstance(value, bool):
        raise RuntimeError(
            "while_loop(): cond_fn must return a boolean scalar tensor or a boolean but got "
            f"{value!r}"
        )


def check_pair(result: Any) -> None:
    """Refuse what a combine_fn must not return."""
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            "scan(): combine_fn must return a pair, the next carry and an output, but returned "
            f"{type(result).__name__}"
        )


def check_carried(name: str, function: str, before: Any, after: Any) -> None:
    """Refuse values to carry on that differ in kind from those before."""
    old, old_tree = tree_flatten(before)
    new, new_tree = tree_flatten(after)
    if old_tree != new_tree:
        raise RuntimeError(
            f"{name}(): {function} must return what it carries in the same pytree structure, but "
            f"was given {old_tree} and returned {new_tree}"
        )
    for i, (a, b) in enumerate(zip(old, new, strict=True)):
        if kind_of(a) != kind_of(b):
            raise RuntimeError(
                f"{name}(): Expected the carried values to have the same metadata before and after "
                f"{function}, but number {i} was {kind_of(a)} and is {kind_of(b)}"
            )


def kind_of(value: Any) -> str:
    """Dtype and shape of a tensor, in words; another value as it is written."""
    if isinstance(value, Tensor):
        return f"a tensor of {value.dtype} {list(value.shape)}"
    return repr(value)


def _length(name: str, leaves: list[Tensor], where: str) -> int:
    lengths = [x.shape[0] if x.dim() else 0 for x in leaves]
    if 0 in lengths:
        raise RuntimeError(
            f"{name}(): all xs leaves must have {where} of a length that is not 0, but the shapes "
            f"are {[tuple(x.shape) for x in leaves]}"
        )
    if len(set(lengths)) > 1:
        raise RuntimeError(
            f"{name}(): the lengths of xs along {where} must be consistent, but are {lengths}"
        )
    return lengths[0]


# Eager execution ----------------------------------------------------------------------------------


def _is_traced(t: Tensor) -> bool:
    """Whether the value of a tensor is known only when a graph runs."""
    while type(t.array) is LevelArray:
        if isinstance(t.array.level, ControlFlowLevel):
            return True
        t = t.array.value
    return False


def _untouched(name: str, function: Callable, operands: Any) -> Any:
    """Call a function that must not change its operands, and copy what it returns of them.

    A graph has no other way: there, results of blocks are new.
    """
    tensors = [t for t in tree_leaves(tuple(operands)) if isinstance(t, Tensor)]
    versions = [t._version if not t.is_inference() else 0 for t in tensors]
    result = function(*operands)
    for i, (t, version) in enumerate(zip(tensors, versions, strict=True)):
        if not t.is_inference() and t._version != version:
            raise RuntimeError(
                f"{name}(): operand {i} was changed in place, which is not supported: inside a "
                "graph the change could not be seen. Work on a clone() and return it"
            )
    return _copied(result, tensors)


def _branch(function: Callable, *operands: Any) -> Any:
    """Call a branch that is being traced; its results have memory of their own."""
    tensors = [t for t in tree_leaves(operands) if isinstance(t, Tensor)]
    return _copied(function(*operands), tensors)


def _copied(result: Any, operands: Sequence[Tensor]) -> Any:
    """A result with copies of those tensors in it that are operands or views of their memory."""
    owners = {id(_owner(t)) for t in operands}
    leaves, tree = tree_flatten(result)
    shared = [isinstance(leaf, Tensor) and id(_owner(leaf)) in owners for leaf in leaves]
    if not any(shared):
        return result
    copies = [leaf.clone() if flag else leaf for leaf, flag in zip(leaves, shared, strict=True)]
    return tree_unflatten(copies, tree)


def _owner(t: Tensor) -> Tensor:
    base = t._base
    return t if base is None else base


def _selected(name: str, pred: Tensor, chosen: Any, other: Any) -> Any:
    """Tensor by tensor the one or the other result."""
    left, tree = tree_flatten(chosen)
    right, other_tree = tree_flatten(other)
    check_alike(name, left, tree, right, other_tree)
    flag = pred.reshape(()) != 0
    leaves = [
        where(flag, a, b) if isinstance(a, Tensor) else a for a, b in zip(left, right, strict=True)
    ]
    return tree_unflatten(leaves, tree)


def check_alike(name: str, left: list, tree: Any, right: list, other_tree: Any) -> None:
    """Refuse two results that are not of one kind."""
    if tree != other_tree:
        raise RuntimeError(
            f"{name}(): Unmatched output spec from the branches: the one returns {tree}, the other "
            f"{other_tree}"
        )
    for i, (a, b) in enumerate(zip(left, right, strict=True)):
        if kind_of(a) != kind_of(b):
            raise RuntimeError(
                f"{name}(): expected both branches to return the same metadata, but result {i} is "
                f"{kind_of(a)} in the one and {kind_of(b)} in the other"
            )


def _any_example(running: Tensor) -> bool:
    """Whether a condition holds for any of the examples of a vmap."""
    while type(running.array) is LevelArray:
        running = running.array.value
    return bool(running.any())


def _stacked(name: str, found: list) -> Any:
    """Trees of tensors as one tree of tensors with one dimension more."""
    first, tree = tree_flatten(found[0])
    columns: list[list] = [[] for _ in first]
    for item in found:
        leaves, its = tree_flatten(item)
        check_alike(name, first, tree, leaves, its)
        for column, leaf in zip(columns, leaves, strict=True):
            column.append(leaf)
    leaves = [stack(c, 0) if isinstance(c[0], Tensor) else c[0] for c in columns]
    return tree_unflatten(leaves, tree)
