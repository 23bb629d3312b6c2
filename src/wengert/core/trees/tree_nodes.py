"""Which classes are inner nodes of a tree: how each is taken apart and put together again."""

from __future__ import annotations

import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ... import return_types
from ..size import Size


class KeyEntry:
    """One step of the way from the root of a tree to a leaf."""

    __slots__ = ("_value",)
    _field = ""

    def __init__(self, value: Any) -> None:
        self._value = value

    def get(self, parent: Any) -> Any:
        """What `parent` has in this place."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._value == self._value

    def __hash__(self) -> int:
        return hash((type(self), self._value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._field}={self._value!r})"


class SequenceKey(KeyEntry):
    """A position in a list, tuple or deque."""

    __slots__ = ()
    _field = "idx"

    @property
    def idx(self) -> int:
        """The position."""
        return self._value

    def get(self, parent: Any) -> Any:
        return parent[self._value]

    def __str__(self) -> str:
        return f"[{self._value!r}]"


class MappingKey(SequenceKey):
    """A key of a dictionary."""

    __slots__ = ()
    _field = "key"

    @property
    def key(self) -> Any:
        """The key."""
        return self._value


class GetAttrKey(KeyEntry):
    """An attribute of a named tuple, a dataclass or a registered class."""

    __slots__ = ()
    _field = "name"

    @property
    def name(self) -> str:
        """The name of the attribute."""
        return self._value

    def get(self, parent: Any) -> Any:
        return getattr(parent, self._value)

    def __str__(self) -> str:
        return f".{self._value}"


class ConstantNode(NamedTuple):
    """The context of a registered constant: the constant itself."""

    value: Any


class NodeKind:
    """How one class of inner nodes is flattened, built again, keyed and written down."""

    __slots__ = (
        "type", "flatten", "unflatten", "flatten_with_keys", "serialized_name", "dump_context",
        "load_context",
    )  # fmt: skip

    def __init__(
        self,
        type: Any,
        flatten: Callable[[Any], tuple[Iterable[Any], Any]],
        unflatten: Callable[[Iterable[Any], Any], Any],
        flatten_with_keys: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
        serialized_name: str | None = None,
        dump_context: Callable[[Any], Any] | None = None,
        load_context: Callable[[Any], Any] | None = None,
    ) -> None:
        self.type = type
        self.flatten = flatten
        self.unflatten = unflatten
        self.flatten_with_keys = flatten_with_keys
        self.serialized_name = serialized_name
        self.dump_context = dump_context
        self.load_context = load_context


# The classes that are inner nodes, and how; named tuples are all one class.
SUPPORTED_NODES: dict[Any, NodeKind] = {}
_constant_classes: set[type] = set()
DICTIONARIES = (dict, OrderedDict, defaultdict)


def kind_of(tree: Any) -> NodeKind | None:
    """The kind of node that `tree` is, or None for a leaf."""
    cls = type(tree)
    kind = SUPPORTED_NODES.get(cls)
    if kind is None and issubclass(cls, tuple):
        if issubclass(cls, return_types.NamedResult):
            return _register_sequence(cls, cls, f"wengert.return_types.{cls.__name__}")
        if is_namedtuple_class(cls):
            return SUPPORTED_NODES[namedtuple]
    return kind


def kind_of_type(type: Any) -> NodeKind:
    """The kind of a spec's type."""
    return SUPPORTED_NODES[type]


def kind_by_serialized_name(name: str) -> NodeKind:
    for kind in SUPPORTED_NODES.values():
        if kind.serialized_name == name:
            return kind
    raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")


def is_namedtuple_class(cls: Any) -> bool:
    """Whether `cls` is a class of named tuples."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(getattr(cls, "_fields", None), tuple)
        and all(isinstance(field, str) for field in cls._fields)  # type: ignore[attr-defined]
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_namedtuple_instance(obj: object) -> bool:
    """Whether the class of `obj` is a named tuple's."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Whether `obj` is a named tuple or the class of one."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


# Registration ------------------------------------------------------------------------------------


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Make `cls` an inner node of trees.

    `flatten_fn` returns the children and a context, from which `unflatten_fn` makes the object.
    `flatten_with_keys_fn` returns pairs (key entry, child) in place of the children.
    """
    if not isinstance(cls, type):
        raise TypeError(f"register_pytree_node(): expected a class, but got {cls!r}")
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or "
            "registered."
        )
    SUPPORTED_NODES[cls] = NodeKind(
        cls,
        flatten_fn,
        unflatten_fn,
        flatten_with_keys_fn,
        serialized_type_name,
        to_dumpable_context,
        from_dumpable_context,
    )


def _deregister_pytree_node(cls: type) -> None:
    """Make instances of a registered class leaves again."""
    del SUPPORTED_NODES[cls]
    _constant_classes.discard(cls)


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Make a dataclass an inner node, its fields the children; fields that are None are left out.

    `drop_field_names` are left out too and must have defaults. A class that is no dataclass needs
    `field_names`, all of them parameters of its constructor.
    """
    names = _field_names(cls, field_names, drop_field_names)

    def flatten(obj: Any) -> tuple[list, list]:
        values = [(name, getattr(obj, name)) for name in names]
        present = [(name, value) for name, value in values if value is not None]
        context = [[name for name, _ in present], [name for name, v in values if v is None]]
        return [value for _, value in present], context

    def flatten_with_keys(obj: Any) -> tuple[list, list]:
        children, context = flatten(obj)
        return list(zip(map(GetAttrKey, context[0]), children, strict=True)), context

    def unflatten(values: Iterable[Any], context: Any) -> Any:
        present, absent = context
        return cls(**dict(zip(present, values, strict=True)), **dict.fromkeys(absent))

    if cls in SUPPORTED_NODES:
        warnings.warn(
            f"{cls} is already registered as pytree node. The new registration replaces it.",
            stacklevel=2,
        )
        del SUPPORTED_NODES[cls]
    register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )


def _field_names(
    cls: type, field_names: list[str] | None, drop_field_names: list[str] | None
) -> list[str]:
    import dataclasses

    if not dataclasses.is_dataclass(cls):
        if field_names is None:
            raise ValueError(
                f"field_names must be specified for {cls}, which is not a dataclass: all "
                "parameters of its constructor"
            )
        return list(field_names)
    dropped = set(drop_field_names or ())
    declared = [f.name for f in dataclasses.fields(cls) if f.init and f.name not in dropped]
    if field_names is None:
        return declared
    missing = [name for name in declared if name not in field_names]
    unexpected = [name for name in field_names if name not in declared]
    if missing or unexpected:
        raise ValueError(
            f"field_names does not include all dataclass fields of {cls}, or others: missing "
            f"{missing}, unexpected {unexpected}. Fields that shall not be children go into "
            "drop_field_names"
        )
    return list(field_names)


def register_constant(cls: type) -> None:
    """Make instances of `cls` part of the structure: nodes without children, compared by value."""
    for method in ("__eq__", "__hash__"):
        if getattr(cls, method) in (None, getattr(object, method)):
            raise TypeError(
                f"register_constant(cls) expects `cls` to have a non-default `{method}` "
                f"implementation: trees are compared by it, and {cls} has none"
            )
    register_pytree_node(
        cls,
        lambda constant: ((), ConstantNode(constant)),
        lambda values, context: context.value,
        flatten_with_keys_fn=lambda constant: ((), ConstantNode(constant)),
    )
    _constant_classes.add(cls)


def is_constant_class(cls: type) -> bool:
    """Whether `cls` was registered by `register_constant`."""
    return cls in _constant_classes


_named_tuple_names: dict[type, str] = {}


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Give a named tuple class the name under which `treespec_dumps` writes it."""
    _named_tuple_names[cls] = serialized_type_name


# The kinds that exist from the start -------------------------------------------------------------


def _indexed(values: Iterable[Any]) -> list:
    return [(SequenceKey(i), value) for i, value in enumerate(values)]


def _register_sequence(cls: Any, build: Callable[[Iterable], Any], name: str) -> NodeKind:
    SUPPORTED_NODES[cls] = NodeKind(
        cls,
        lambda values: (values, None),
        lambda values, context: build(values),
        lambda values: (_indexed(values), None),
        name,
    )
    return SUPPORTED_NODES[cls]


def _dict_flatten(d: Any) -> tuple[list, list]:
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: Any) -> tuple[list, list]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _defaultdict_flatten(d: Any) -> tuple[list, list]:
    return list(d.values()), [d.default_factory, list(d)]


def _defaultdict_flatten_with_keys(d: Any) -> tuple[list, list]:
    return _dict_flatten_with_keys(d)[0], [d.default_factory, list(d)]


def _defaultdict_unflatten(values: Iterable, context: Any) -> defaultdict:
    factory, keys = context
    return defaultdict(factory, zip(keys, values, strict=True))


def _defaultdict_dump(context: Any) -> dict:
    factory, keys = context
    return {
        "default_factory_module": getattr(factory, "__module__", None),
        "default_factory_name": getattr(factory, "__qualname__", None),
        "dict_context": keys,
    }


def _defaultdict_load(dumped: Any) -> list:
    from importlib import import_module

    module, name = dumped["default_factory_module"], dumped["default_factory_name"]
    factory = None if module is None else getattr(import_module(module), name)
    return [factory, dumped["dict_context"]]


def _namedtuple_flatten_with_keys(value: Any) -> tuple[list, type]:
    return list(zip(map(GetAttrKey, value._fields), value, strict=True)), type(value)


def _namedtuple_dump(cls: Any) -> str:
    if cls not in _named_tuple_names:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {cls}: give it a name by "
            "`_register_namedtuple`"
        )
    return _named_tuple_names[cls]


def _namedtuple_load(name: str) -> type:
    for cls, known in _named_tuple_names.items():
        if known == name:
            return cls
    raise NotImplementedError(f"no namedtuple class is registered as {name}")


_register_sequence(tuple, tuple, "builtins.tuple")
_register_sequence(list, list, "builtins.list")
_register_sequence(Size, tuple, "wengert.Size")
SUPPORTED_NODES[dict] = NodeKind(
    dict,
    _dict_flatten,
    lambda values, keys: dict(zip(keys, values, strict=True)),
    _dict_flatten_with_keys,
    "builtins.dict",
)
SUPPORTED_NODES[OrderedDict] = NodeKind(
    OrderedDict,
    _dict_flatten,
    lambda values, keys: OrderedDict(zip(keys, values, strict=True)),
    _dict_flatten_with_keys,
    "collections.OrderedDict",
)
SUPPORTED_NODES[defaultdict] = NodeKind(
    defaultdict,
    _defaultdict_flatten,
    _defaultdict_unflatten,
    _defaultdict_flatten_with_keys,
    "collections.defaultdict",
    _defaultdict_dump,
    _defaultdict_load,
)
SUPPORTED_NODES[deque] = NodeKind(
    deque,
    lambda values: (values, values.maxlen),
    lambda values, maxlen: deque(values, maxlen),
    lambda values: (_indexed(values), values.maxlen),
    "collections.deque",
)
SUPPORTED_NODES[namedtuple] = NodeKind(
    namedtuple,
    lambda value: (value, type(value)),
    lambda values, cls: cls(*values),
    _namedtuple_flatten_with_keys,
    "collections.namedtuple",
    _namedtuple_dump,
    _namedtuple_load,
)
