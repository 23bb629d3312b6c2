"""`Library` and the functions that define operators and complete them by name."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..core.devices import device
from ..dispatch.torch_dispatch import register_rule
from .custom_ops import CustomOpDef, set_autograd
from .keys import full_keyset
from .operator import ANY_DEVICE, CustomOperator
from .overloads import (
    NAMESPACE,
    OWN_NAMESPACE,
    OpOverload,
    OpOverloadPacket,
    add_custom,
    find_custom,
    find_overload,
    remove_custom,
    split_qualname,
)
from .schema import parse_schema
from .tags import Tags, tag_tuple

_RESERVED = ("prim",)
_KINDS = ("DEF", "IMPL", "FRAGMENT")
_DEVICE_KEYS = {
    "CPU": "cpu",
    "CUDA": "cuda",
    "Meta": "meta",
    "CompositeExplicitAutograd": ANY_DEVICE,
}
_COMPOSITE = "CompositeImplicitAutograd"
_AUTOGRAD = ("Autograd", "AutogradCPU", "AutogradCUDA")
_KEYS = (*_DEVICE_KEYS, _COMPOSITE, *_AUTOGRAD)
_defined_namespaces: set[str] = {NAMESPACE, OWN_NAMESPACE}

Op = str | OpOverload | OpOverloadPacket | CustomOpDef


def fallthrough_kernel(*args: Any, **kwargs: Any) -> Any:
    """As a kernel for a key it stands for none: the call passes on to what comes next."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Library:
    """Definitions and kernels of operators of one namespace, which live as long as this object.

    `kind` is ``DEF`` for the one library that owns a namespace, ``FRAGMENT`` for further
    definitions, ``IMPL`` for kernels alone, with `dispatch_key` the default key of `impl`.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in _KINDS:
            raise ValueError(f"Unsupported kind: {kind}; the kinds are {', '.join(_KINDS)}")
        if not ns.isidentifier():
            raise ValueError(f"a namespace is an identifier, and {ns!r} is none")
        if ns in _RESERVED:
            raise ValueError(f"{ns} is a reserved namespace; choose another name")
        if kind == "DEF":
            if ns in _defined_namespaces:
                raise RuntimeError(
                    f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}: a "
                    "library of kind DEF exists. Use the kind FRAGMENT for further definitions"
                )
            _defined_namespaces.add(ns)
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._undo: list[Callable[[], None]] = []
        self._finalizer = weakref.finalize(self, _release, ns, kind, self._undo)

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Tags = ()) -> str:
        """Define an operator by its schema, ``name(Tensor x) -> Tensor``; returns its name."""
        if alias_analysis not in ("", "FROM_SCHEMA"):
            raise RuntimeError(
                f"Invalid alias_analysis type {alias_analysis}: aliases are those of the schema, "
                "FROM_SCHEMA"
            )
        if self.kind == "IMPL":
            raise RuntimeError(
                f'def("{schema}"): Cannot define an operator inside of a library of kind IMPL'
            )
        namespace, separator, _ = schema.partition("(")[0].partition("::")
        if separator and namespace.strip() != self.ns:
            raise RuntimeError(
                f"Explicitly provided namespace ({namespace.strip()}) in schema string does not "
                f"match the namespace of the library ({self.ns})"
            )
        operator = CustomOperator(
            parse_schema(schema if separator else f"{self.ns}::{schema.lstrip()}"),
            tag_tuple(tags),
        )
        add_custom(operator)
        self._undo.append(lambda: remove_custom(operator))
        return operator.base_name

    def impl(
        self,
        op_name: str | OpOverload,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Give an operator of the namespace a kernel.

        `dispatch_key` says for what: a device (``CPU``, ``CUDA``, ``Meta``), all devices
        (``CompositeExplicitAutograd``), all devices and autograd (``CompositeImplicitAutograd``,
        the default), or autograd (``Autograd``).
        """
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        name = op_name.name() if isinstance(op_name, OpOverload) else op_name
        if "::" not in name:
            name = f"{self.ns}::{name}"
        elif split_qualname(name)[0] != self.ns:
            raise RuntimeError(f"impl(): {name} is not an operator of the namespace {self.ns}")
        undo = set_kernel(
            find_custom(name), dispatch_key or self.dispatch_key or _COMPOSITE, fn,
            with_keyset, allow_override,
        )  # fmt: skip
        self._undo.append(undo)

    def fallback(self, *args: Any, **kwargs: Any) -> None:
        """Not supported: kernels for all operators of a key at once."""
        raise NotImplementedError("Library.fallback() is not supported")

    def _destroy(self) -> None:
        """Take back all definitions and kernels of this library."""
        self._finalizer()


def _release(ns: str, kind: str, undo: list[Callable[[], None]]) -> None:
    while undo:
        undo.pop()()
    if kind == "DEF":
        _defined_namespaces.discard(ns)


@contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A library that lives for a ``with`` block."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


def set_kernel(
    operator: CustomOperator,
    key: str,
    fn: Callable[..., Any],
    with_keyset: bool = False,
    allow_override: bool = True,
) -> Callable[[], None]:
    """Register a kernel under one of PyTorch's keys; returns how to take it back."""
    if key not in _KEYS:
        raise RuntimeError(f"could not parse dispatch key: {key}; the keys are {', '.join(_KEYS)}")
    kernel: Callable[..., Any] | None = _with_keyset(fn) if with_keyset else fn
    if fn is fallthrough_kernel:
        kernel = None
    previous = get_known_kernel(operator, key)
    if previous is not None and not allow_override:
        raise RuntimeError(
            f"This is not allowed since there's already a kernel registered for {operator.name} "
            f"and {key}, and allow_override is False"
        )
    passed_autograd = operator.passes_autograd
    _store_kernel(operator, key, kernel)
    if key in _AUTOGRAD:
        operator.passes_autograd = kernel is None

    def undo() -> None:
        if get_known_kernel(operator, key) is kernel:
            _store_kernel(operator, key, previous)
            operator.passes_autograd = passed_autograd

    return undo


def get_known_kernel(operator: CustomOperator, key: str) -> Callable[..., Any] | None:
    if key == _COMPOSITE:
        return operator.composite
    if key in _AUTOGRAD:
        return operator.autograd_kernel
    return operator.kernels.get(_DEVICE_KEYS[key])


def _store_kernel(
    operator: CustomOperator, key: str, kernel: Callable[..., Any] | None
) -> None:
    if key == _COMPOSITE:
        operator.composite = kernel
    elif key in _AUTOGRAD:
        operator.autograd_kernel = kernel
    elif kernel is None:
        operator.kernels.pop(_DEVICE_KEYS[key], None)
    else:
        operator.kernels[_DEVICE_KEYS[key]] = kernel


def _with_keyset(fn: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        return fn(full_keyset, *args, **kwargs)

    return kernel


# By name -----------------------------------------------------------------------------------------


def define(
    qualname: str | Library,
    schema: str,
    alias_analysis: str = "",
    *,
    lib: Library | None = None,
    tags: Tags = (),
) -> Any:
    """Define the operator ``namespace::name`` with a schema ``(Tensor x) -> Tensor``.

    With a library in place of the name and ``name(Tensor x) -> Tensor``, the operator belongs to
    the library, and what is returned is a decorator for its composite kernel.
    """
    if isinstance(qualname, Library):
        return _define_in(qualname, schema, alias_analysis)
    if alias_analysis:
        raise TypeError("define(): alias_analysis is for definitions in a Library")
    if not isinstance(qualname, str):
        raise ValueError(
            "define(qualname, schema): expected qualname to be instance of str, got "
            f"{type(qualname)}"
        )
    namespace, name = split_qualname(qualname)
    if not schema.lstrip().startswith("("):
        raise ValueError(
            'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> '
            f'Tensor" but got "{schema}"'
        )
    if lib is not None:
        lib.define(name + schema, tags=tags)
    else:
        parsed = parse_schema(f"{namespace}::{name}{schema}")
        add_custom(CustomOperator(parsed, tag_tuple(tags)))


def _define_in(library: Library, schema: str, alias_analysis: str) -> Callable[..., Any]:
    name = library.define(schema, alias_analysis)
    overload = schema.partition("(")[0].partition(".")[2].strip()

    def implement(function: Callable[..., Any]) -> Callable[..., Any]:
        library.impl(f"{name}.{overload}" if overload else name, function)
        return function

    return implement


def impl(
    qualname: str | Library,
    types: str | Sequence[str],
    func: Any = None,
    *,
    lib: Library | None = None,
) -> Any:
    """Give an operator a kernel for types of devices, ``default`` meaning all; also a decorator.

    ``impl(library, name, dispatch_key)`` is the decorator for `Library.impl`.
    """
    if isinstance(qualname, Library):
        return _impl_in(qualname, types, func or "")
    names = [types] if isinstance(types, str) else list(types)
    keys = [_key_of(name) for name in names]

    def register(function: Callable[..., Any]) -> None:
        operator = find_custom(qualname)
        for key in keys:
            undo = set_kernel(operator, key, function)
            if lib is not None:
                lib._undo.append(undo)

    return register if func is None else register(func)


def _impl_in(library: Library, name: Any, dispatch_key: str) -> Callable[..., Any]:
    def implement(function: Callable[..., Any]) -> Callable[..., Any]:
        library.impl(name, function, dispatch_key)
        return function

    return implement


def _key_of(name: str) -> str:
    if name == "default":
        return "CompositeExplicitAutograd"
    if name in _KEYS:
        return name
    kind = device(name).type
    return next(key for key, known in _DEVICE_KEYS.items() if known == kind)


def _custom_of(op: Op, what: str) -> CustomOperator:
    if isinstance(op, CustomOpDef):
        return op._operator
    if isinstance(op, OpOverloadPacket):
        return find_custom(op._qualified_op_name)
    if isinstance(op, OpOverload):
        return find_custom(op.name())
    if isinstance(op, str):
        return find_custom(op)
    raise ValueError(f"{what}({op!r}): got unexpected type for op: {type(op)}")


def register_kernel(
    op: Op,
    device_types: str | Sequence[str] | None,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Give an operator a kernel for types of devices, None meaning all; also a decorator."""
    if isinstance(op, CustomOpDef):
        return op.register_kernel(device_types, func)
    operator = _custom_of(op, "register_kernel")
    return impl(operator.name, device_types or "default", func, lib=lib)


def register_fake(
    op: Op,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
    allow_override: bool = True,
) -> Any:
    """Say what an operator returns for meta tensors; also a decorator."""
    operator = _custom_of(op, "register_fake")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        undo = set_kernel(operator, "Meta", function, allow_override=allow_override)
        if lib is not None:
            lib._undo.append(undo)
        return function

    return register if func is None else register(func)


def register_autograd(
    op: Op,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """Give an operator a derivative, see `CustomOpDef.register_autograd`."""
    operator = _custom_of(op, "register_autograd")
    before = (operator.records, operator.backward, operator.setup_context)
    set_autograd(operator, operator.overload_text(), backward, setup_context)

    def undo() -> None:
        if operator.backward is backward:
            operator.records, operator.backward, operator.setup_context = before

    if lib is not None:
        lib._undo.append(undo)


def register_vmap(
    op: Op, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """Say what an operator does to batched tensors, see `CustomOpDef.register_vmap`."""
    operator = _custom_of(op, "register_vmap")

    def register(function: Callable[..., Any]) -> None:
        before, operator.vmap = operator.vmap, function

        def undo() -> None:
            if operator.vmap is function:
                operator.vmap = before

        if lib is not None:
            lib._undo.append(undo)

    return register if func is None else register(func)


def register_torch_dispatch(
    op: Op,
    torch_dispatch_class: type,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Say what a dispatch mode or a subclass of Tensor makes of an operator; also a decorator.

    The operator may be one of the library itself. See `CustomOpDef.register_torch_dispatch`.
    """
    if isinstance(op, CustomOpDef):
        return op.register_torch_dispatch(torch_dispatch_class, func)
    if isinstance(op, OpOverload):
        operator = op.op
    elif isinstance(op, str) and split_qualname(op)[0] in (NAMESPACE, OWN_NAMESPACE):
        namespace, name = split_qualname(op)
        name, _, overload = name.partition(".")
        operator = find_overload(namespace, name, overload or "default").op
    else:
        operator = _custom_of(op, "register_torch_dispatch")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        replace = getattr(operator, "checks_aliases", False)  # made by `custom_op`
        undo = register_rule(operator, torch_dispatch_class, function, replace=replace)
        if lib is not None:
            lib._undo.append(undo)
        return function

    return register if func is None else register(func)
