"""TreeSpec: the structure of a tree without its leaves."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any

from .tree_nodes import (
    DICTIONARIES,
    NodeKind,
    kind_by_serialized_name,
    kind_of,
    kind_of_type,
)

PROTOCOL = 1


class TreeSpec:
    """An inner node: its type, what else is needed to make it again, and the specs below."""

    __slots__ = ("type", "context", "_children", "num_nodes", "num_leaves", "num_children")

    def __init__(self, type: Any, context: Any, children_specs: Iterable[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self._children = tuple(children_specs)
        self.num_children = len(self._children)
        nodes, leaves = 1, 0
        for child in self._children:
            nodes += child.num_nodes
            leaves += child.num_leaves
        self.num_nodes: int = nodes
        self.num_leaves: int = leaves

    def is_leaf(self) -> bool:
        """Whether the spec is that of a leaf."""
        return False

    def children(self) -> list[TreeSpec]:
        """The specs below, in order."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """The spec of one child."""
        return self._children[index]

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The structures of the children."""
        return self.children()

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree of this structure that has the given leaves."""
        if type(leaves) is not list and type(leaves) is not tuple:
            leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec "
                f"refers to a pytree that holds {self.num_leaves} items ({self})."
            )
        return _build(self, leaves, 0)

    def flatten_up_to(self, tree: Any) -> list:
        """The subtrees of `tree` in the places of this structure's leaves."""
        subtrees: list = []
        _collect_up_to(self, tree, subtrees)
        return subtrees

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, TreeSpec)
            and self.num_nodes == other.num_nodes
            and self.type == other.type
            and self.context == other.context
            and self._children == other._children
        )

    def __hash__(self) -> int:
        return hash((self.type, _hashable(self.context), self._children))

    def __repr__(self) -> str:
        return _spec_text(self, 0)

    def __reduce__(self) -> tuple:
        return (TreeSpec, (self.type, self.context, self._children))


class LeafSpec(TreeSpec):
    """The spec of a leaf; all are equal."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, ())
        self.num_leaves = 1

    def is_leaf(self) -> bool:
        return True

    def __reduce__(self) -> tuple:
        return (LeafSpec, ())


LEAF = LeafSpec()


def _hashable(context: Any) -> Any:
    """A stand-in for a context in a hash: lists as tuples, nothing for what has no hash."""
    if isinstance(context, list):
        return tuple(_hashable(item) for item in context)
    try:
        hash(context)
    except TypeError:
        return None
    return context


def _spec_text(spec: TreeSpec, indent: int) -> str:
    if spec.is_leaf():
        return "*"
    indent += 2
    children = f",\n{' ' * indent}".join([_spec_text(child, indent) for child in spec._children])
    name = getattr(spec.type, "__name__", spec.type)
    return f"TreeSpec({name}, {spec.context}, [{children}])"


def _build(spec: TreeSpec, leaves: Any, start: int) -> Any:
    if spec.is_leaf():
        return leaves[start]
    if spec.num_leaves == spec.num_children and spec.num_nodes == spec.num_leaves + 1:
        children = leaves[start : start + spec.num_leaves]
    else:
        children = []
        for child in spec._children:
            children.append(_build(child, leaves, start))
            start += child.num_leaves
    if spec.type is tuple:
        return tuple(children)
    return kind_of_type(spec.type).unflatten(children, spec.context)


def _collect_up_to(spec: TreeSpec, tree: Any, subtrees: list) -> None:
    if spec.is_leaf():
        subtrees.append(tree)
        return
    for child, subtree in zip(spec._children, matching_children(spec, tree), strict=True):
        _collect_up_to(child, subtree, subtrees)


def matching_children(spec: TreeSpec, tree: Any) -> list:
    """The children of `tree` in the order of the spec's; ValueError if the two do not match."""
    kind = kind_of(tree)
    found = type(tree) if kind is None else kind.type
    if kind is None or not (
        found == spec.type or (found in DICTIONARIES and spec.type in DICTIONARIES)
    ):
        raise ValueError(f"Node type mismatch; expected {spec.type!r}, but got {found!r}.")
    children, context = kind.flatten(tree)
    children = list(children)
    if len(children) != spec.num_children:
        raise ValueError(
            f"Node arity mismatch; expected {spec.num_children}, but got {len(children)}."
        )
    if found in DICTIONARIES:
        return _values_in_order(spec, tree)
    # PyTorch's rule: the lengths of two deques count, their limits do not.
    if found is not deque and context != spec.context:
        raise ValueError(
            f"Node context mismatch for node type {found!r}; expected {spec.context!r}, but got "
            f"{context!r}."
        )
    return children


def _values_in_order(spec: TreeSpec, mapping: Any) -> list:
    expected = spec.context[1] if spec.type is defaultdict else spec.context
    missing = [key for key in expected if key not in mapping]
    if missing:
        extra = [key for key in mapping if key not in expected]
        raise ValueError(f"Node keys mismatch; missing key(s): {missing}; extra key(s): {extra}.")
    return [mapping[key] for key in expected]


# Printing and dumping ----------------------------------------------------------------------------


class _Star:
    """Stands for a leaf where a tree is printed."""

    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """The tree with stars for leaves."""
    return repr(treespec.unflatten([_Star()] * treespec.num_leaves))


def treespec_leaf() -> LeafSpec:
    """The spec of a leaf."""
    return LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The spec of a tuple with children of the given specs."""
    return TreeSpec(tuple, None, _specs(iterable))


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The spec of a dictionary with values of the given specs."""
    children = dict(mapping, **kwargs)
    return TreeSpec(dict, list(children), _specs(children.values()))


def _specs(values: Iterable[TreeSpec]) -> list[TreeSpec]:
    specs = list(values)
    for spec in specs:
        check_spec(spec)
    return specs


def check_spec(treespec: Any) -> None:
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"Expected `treespec` to be an instance of PyTreeSpec but got item of type "
            f"{type(treespec)}."
        )


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """The spec as JSON; `treespec_loads` reads it."""
    import json

    check_spec(treespec)
    _check_protocol(PROTOCOL if protocol is None else protocol)
    return json.dumps([PROTOCOL, _to_json(treespec)])


def treespec_loads(serialized: str) -> TreeSpec:
    """The spec that `treespec_dumps` wrote."""
    import json

    protocol, description = json.loads(serialized)
    _check_protocol(protocol)
    return _from_json(description)


def _check_protocol(protocol: int) -> None:
    if protocol != PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{PROTOCOL}]")


def _to_json(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    kind = kind_of_type(spec.type)
    if kind.serialized_name is None:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found: register it with a "
            "`serialized_type_name`"
        )
    return {
        "type": kind.serialized_name,
        "context": _dump_context(kind, spec.context),
        "children_spec": [_to_json(child) for child in spec._children],
    }


def _dump_context(kind: NodeKind, context: Any) -> Any:
    import json

    if kind.dump_context is not None:
        return kind.dump_context(context)
    try:
        return json.dumps(context)
    except TypeError as error:
        raise TypeError(
            f"the context of {kind.type} cannot be written as JSON: {error}. Register the class "
            "with to_dumpable_context and from_dumpable_context"
        ) from error


def _from_json(description: dict[str, Any]) -> TreeSpec:
    import json

    if description["type"] is None:
        return LEAF
    kind = kind_by_serialized_name(description["type"])
    context = description["context"]
    context = json.loads(context) if kind.load_context is None else kind.load_context(context)
    return TreeSpec(kind.type, context, [_from_json(c) for c in description["children_spec"]])
