"""Trees of Python containers: taken apart into leaves and structure, put together, mapped.

Tuples, lists, dictionaries (in the order of insertion), ordered and default dictionaries, deques,
named tuples, `Size` and the named results of operators are inner nodes; other classes become so by
`register_pytree_node`, `register_dataclass` or `register_constant`. All else, None included, is a
leaf, and so is whatever the function `is_leaf` holds for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import UnionType
from typing import Any

from ..tensor import Tensor
from .tree_nodes import (
    SUPPORTED_NODES,
    ConstantNode,
    GetAttrKey,
    KeyEntry,
    MappingKey,
    SequenceKey,
    _deregister_pytree_node,
    _register_namedtuple,
    is_constant_class,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    kind_of,
    register_constant,
    register_dataclass,
    register_pytree_node,
)
from .treespec import (
    LEAF,
    LeafSpec,
    TreeSpec,
    check_spec,
    matching_children,
    treespec_dict,
    treespec_dumps,
    treespec_leaf,
    treespec_loads,
    treespec_pprint,
    treespec_tuple,
)

__all__ = [
    "ConstantNode", "Context", "GetAttrKey", "KeyEntry", "KeyPath", "LeafSpec", "MappingKey",
    "PyTree", "SUPPORTED_NODES", "SequenceKey", "TreeSpec", "_broadcast_to_and_flatten",
    "_deregister_pytree_node", "_register_namedtuple",
    "arg_tree_leaves", "is_constant_class", "is_namedtuple", "is_namedtuple_class",
    "is_namedtuple_instance", "key_get", "keystr", "map_only", "register_constant",
    "register_dataclass", "register_pytree_node", "tree_all", "tree_all_only", "tree_any",
    "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter",
    "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only",
    "tree_map_only_", "tree_map_with_path", "tree_structure", "tree_unflatten", "treespec_dict",
    "treespec_dumps", "treespec_leaf", "treespec_loads", "treespec_pprint", "treespec_tuple",
]  # fmt: skip

PyTree = Any
Context = Any
KeyPath = tuple[KeyEntry, ...]
IsLeaf = Callable[[Any], bool] | None
Types = type | tuple[type, ...] | UnionType

# The specs of short tuples and lists of nothing but leaves, which most calls of functions are.
_FLAT = {
    cls: [TreeSpec(cls, None, [LEAF] * length) for length in range(9)] for cls in (tuple, list)
}


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list, TreeSpec]:
    """The leaves of a tree, and its structure.

    >>> from wengert.utils.pytree import tree_flatten, tree_unflatten
    >>> leaves, spec = tree_flatten((1, {"a": [2, 3]}))
    >>> leaves
    [1, 2, 3]
    >>> tree_unflatten([4, 5, 6], spec)
    (4, {'a': [5, 6]})
    """
    leaves: list = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list, is_leaf: IsLeaf) -> TreeSpec:
    """Append the leaves of `tree` and return its structure."""
    cls = type(tree)
    if (is_leaf is not None and is_leaf(tree)) or cls is Tensor:
        leaves.append(tree)
        return LEAF
    context: Any = None
    if cls is tuple or cls is list:
        children = tree
    else:
        kind = kind_of(tree)
        if kind is None:
            leaves.append(tree)
            return LEAF
        children, context = kind.flatten(tree)
        cls = kind.type
    specs = [_flatten(child, leaves, is_leaf) for child in children]
    if (cls is tuple or cls is list) and len(specs) < 9:
        for spec in specs:
            if spec is not LEAF:
                break
        else:
            return _FLAT[cls][len(specs)]
    return TreeSpec(cls, context, specs)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of the given structure and leaves."""
    check_spec(treespec)
    return treespec.unflatten(leaves)


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The structure of a tree."""
    return _flatten(tree, [], is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list:
    """The leaves of a tree."""
    leaves: list = []
    _collect(tree, leaves, is_leaf)
    return leaves


def _collect(tree: Any, leaves: list, is_leaf: IsLeaf) -> None:
    if is_leaf is not None and is_leaf(tree):
        leaves.append(tree)
        return
    kind = kind_of(tree)
    if kind is None:
        leaves.append(tree)
    else:
        for child in kind.flatten(tree)[0]:
            _collect(child, leaves, is_leaf)


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """The leaves of a tree, one at a time."""
    kind = None if is_leaf is not None and is_leaf(tree) else kind_of(tree)
    if kind is None:
        yield tree
    else:
        for child in kind.flatten(tree)[0]:
            yield from tree_iter(child, is_leaf)


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list:
    """The leaves of the arguments of a call."""
    return tree_leaves((args, kwargs))


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether `tree` is a leaf itself."""
    return (is_leaf is not None and is_leaf(tree)) or kind_of(tree) is None


# Mapping -----------------------------------------------------------------------------------------


def tree_map(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """The tree of ``func(leaf, *other)``, the others from the same places of `rests`.

    >>> from wengert.utils.pytree import tree_map
    >>> tree_map(lambda a, b: a + b, (1, [2]), (10, [20]))
    (11, [22])
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(list(map(func, leaves, *others)))


def tree_map_(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """Call `func` as `tree_map` does, for what it does to the leaves; returns `tree`."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    deque(map(func, leaves, *others), maxlen=0)
    return tree


def map_only(
    type_or_types_or_pred: Types | Callable[[Any], bool], /
) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: the function for values of these types, others are returned as they are."""
    applies = _predicate(type_or_types_or_pred)

    def decorate(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda value: func(value) if applies(value) else value

    return decorate


def _predicate(selection: Any) -> Callable[[Any], bool]:
    if isinstance(selection, (type, tuple, UnionType)):
        return lambda value: isinstance(value, selection)
    if callable(selection):
        return selection
    raise TypeError(
        "Argument must be a type, a tuple of types, or a callable that says for a value whether it "
        f"is meant, not {selection!r}"
    )


def tree_map_only(
    type_or_types_or_pred: Types | Callable[[Any], bool],
    /,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: IsLeaf = None,
) -> PyTree:
    """`tree_map` for the leaves of some types; the others stay."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Types | Callable[[Any], bool],
    /,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: IsLeaf = None,
) -> PyTree:
    """`tree_map_` for the leaves of some types."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether `pred` holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether `pred` holds for some leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    type_or_types: Types, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None
) -> bool:
    """Whether `pred` holds for all leaves of the given types."""
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(
    type_or_types: Types, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None
) -> bool:
    """Whether `pred` holds for some leaf of the given types."""
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


# Paths -------------------------------------------------------------------------------------------


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[tuple, Any]]:
    """Pairs (way from the root, leaf)."""
    found: list = []
    _collect_with_path((), tree, found, is_leaf)
    return found


def _collect_with_path(path: tuple, tree: Any, found: list, is_leaf: IsLeaf) -> None:
    kind = None if is_leaf is not None and is_leaf(tree) else kind_of(tree)
    if kind is None:
        found.append((path, tree))
        return
    if kind.flatten_with_keys is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind.type}. Register the class with "
            "one."
        )
    for key, child in kind.flatten_with_keys(tree)[0]:
        _collect_with_path((*path, key), child, found, is_leaf)


def tree_flatten_with_path(
    tree: PyTree, is_leaf: IsLeaf = None
) -> tuple[list[tuple[tuple, Any]], TreeSpec]:
    """Pairs (way from the root, leaf), and the structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """`tree_map` of a function that is also given the way to the leaf, as its first argument."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(
        [func(path, leaf, *rest) for (path, leaf), *rest in zip(found, *others, strict=True)]
    )


def keystr(kp: tuple[KeyEntry, ...]) -> str:
    """A way from the root as it would be written in Python.

    >>> from wengert.utils.pytree import keystr, tree_leaves_with_path
    >>> [keystr(path) for path, _ in tree_leaves_with_path({"a": (1, 2)})]
    ["['a'][0]", "['a'][1]"]
    """
    return "".join([str(key) for key in kp])


def key_get(obj: Any, kp: tuple[KeyEntry, ...]) -> Any:
    """What lies at the end of a way from the root."""
    for key in kp:
        obj = key.get(obj)
    return obj


def _broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None
) -> list | None:
    """The leaves of `tree`, each repeated for all leaves of `treespec` below its place.

    None if `tree` is not the upper part of a tree of that structure.
    """
    check_spec(treespec)
    repeated: list = []
    return repeated if _broadcast(tree, treespec, is_leaf, repeated) else None


def _broadcast(tree: Any, spec: TreeSpec, is_leaf: IsLeaf, repeated: list) -> bool:
    kind = None if is_leaf is not None and is_leaf(tree) else kind_of(tree)
    if kind is None:
        repeated.extend([tree] * spec.num_leaves)
        return True
    if spec.is_leaf():
        return False
    try:
        children = matching_children(spec, tree)
    except ValueError:
        return False
    return all(
        _broadcast(child, below, is_leaf, repeated)
        for child, below in zip(children, spec.children(), strict=True)
    )
