"""Looking operators up: ``wengert.ops.<namespace>.<name>.<overload>``.

The same objects stand for operators of the library (namespace ``aten``, also under ``wengert``) and
for custom ones. An overload is one operator with one schema; a packet holds all of one name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..core.registry import operators
from ..core.state import overriding, thread_state
from ..dispatch.binding import bind_overload
from ..dispatch.declaration import only_tensors
from ..dispatch.effects import OVERLOADS, Overload
from ..dispatch.torch_function import PLAIN, override_operator
from .builtin import NAMESPACE, builtin_schema, overload_name
from .keys import DispatchKeySet
from .schema import FunctionSchema

OWN_NAMESPACE = "wengert"

# name -> overload -> operator, for each namespace
_custom: dict[str, dict[str, dict[str, Any]]] = {}
# the same for the operators of the library
_own: dict[str, dict[str, Any]] = {}
_own_count = 0
_overloads: dict[Any, OpOverload] = {}
_packets: dict[tuple[str, str], OpOverloadPacket] = {}


class OpOverload:
    """One operator with one schema."""

    def __init__(self, operator: Any, namespace: str, name: str, overload: str) -> None:
        self._op = operator
        self._namespace = namespace
        self._opname = name
        self._overloadname = overload or "default"
        self.__name__ = f"{name}.{self._overloadname}"
        self.__qualname__ = self.__name__
        self.__module__ = f"wengert.ops.{namespace}"

    @property
    def _schema(self) -> FunctionSchema:
        operator = self._op
        return operator._schema if operator.schema.is_custom else builtin_schema(operator)

    @property
    def namespace(self) -> str:
        return self._namespace

    @property
    def op(self) -> Any:
        """What the overload calls."""
        return self._op

    @property
    def tags(self) -> list:
        """What was given with the definition; operators of the library have none."""
        return list(getattr(self._op, "tags", ()))

    @property
    def is_view(self) -> bool:
        """Whether a result shares the memory of an argument that is not written."""
        aliases = [r.alias_info for r in self._schema.returns if r.alias_info is not None]
        return bool(aliases) and not any(alias.is_write for alias in aliases)

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """All overloads of the same name."""
        return find_packet(self._namespace, self._opname)

    def name(self) -> str:
        """The qualified name: ``namespace::name``, and the overload's if it has one."""
        overload = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self._namespace}::{self._opname}{overload}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if overriding.possible:
            out = override_operator(self, args, kwargs)
            if out is not PLAIN:
                return out
        return _call(self._op, args, kwargs)

    def redispatch(self, keyset: DispatchKeySet, /, *args: Any, **kwargs: Any) -> Any:
        """Call the layers in `keyset` only: without Autograd, nothing is recorded."""
        if not isinstance(keyset, DispatchKeySet):
            raise TypeError(
                f"redispatch(): expected a DispatchKeySet, got {type(keyset).__name__}; a kernel "
                "gets one if it is registered with with_keyset=True"
            )
        if "Autograd" in keyset.layers:
            return self(*args, **kwargs)
        state = thread_state()
        enabled, state.grad_enabled = state.grad_enabled, False
        try:
            return _call(self._op, args, kwargs)
        finally:
            state.grad_enabled = enabled

    def __str__(self) -> str:
        return f"{self._namespace}.{self._opname}.{self._overloadname}"

    def __repr__(self) -> str:
        name = f"{self._namespace}.{self._opname}"
        return f"<OpOverload(op='{name}', overload='{self._overloadname}')>"

    def __reduce__(self) -> tuple:
        return (find_overload, (self._namespace, self._opname, self._overloadname))


class OpOverloadPacket:
    """All overloads of one name; called itself, it finds the overload that the arguments fit."""

    def __init__(self, namespace: str, name: str) -> None:
        self._namespace = namespace
        self._qualified_op_name = f"{namespace}::{name}"
        self.__name__ = name
        self.__module__ = f"wengert.ops.{namespace}"

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return [overload or "default" for overload in self._operators()]

    def _operators(self) -> dict[str, Any]:
        return _operators_of(self._namespace, self.__name__)

    def __getattr__(self, name: str) -> Any:
        operators_by_overload = self._operators() if not name.startswith("__") else {}
        operator = operators_by_overload.get("" if name == "default" else name)
        if operator is None:
            raise AttributeError(
                f"The underlying op of '{self}' has no overload name '{name}'; it has "
                f"{', '.join(overload or 'default' for overload in operators_by_overload)}"
            )
        return overload_of(operator)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if overriding.possible:
            out = override_operator(self, args, kwargs)
            if out is not PLAIN:
                return out
        found = list(self._operators().values())
        if len(found) == 1 or isinstance(found[0], Overload):
            return _call(found[0], args, kwargs)
        failures = []
        for operator in found:
            try:
                bound = bind_overload(operator, args, kwargs)
            except (RuntimeError, TypeError) as error:
                failures.append(str(error))
            else:
                return operator.call(bound)
        raise RuntimeError(
            f"{self._qualified_op_name}: the arguments failed to match any schema:\n"
            + "\n".join(failures)
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.overloads())

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *self.overloads()]

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __reduce__(self) -> tuple:
        return (find_packet, (self._namespace, self.__name__))


class OpNamespace:
    """The operators of one namespace, as attributes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        return find_packet(self.name, name)

    def __dir__(self) -> list[str]:
        names = set(_custom.get(self.name, ()))
        if self.name in (NAMESPACE, OWN_NAMESPACE):
            own = (*operators().values(), *OVERLOADS.values())
            names.update(overload_name(each)[0] for each in own)
        return sorted(names)

    def __repr__(self) -> str:
        return f"<namespace 'wengert.ops.{self.name}'>"


def _call(operator: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if isinstance(operator, Overload) or "out" in kwargs:
        return operator(*args, **kwargs)
    if not kwargs and not operator.schema.is_custom:
        functional = operator.functional
        if functional.tail_has_defaults and only_tensors(args, functional.operands):
            return operator(*args)  # the short way, which needs no binding
    return operator.call(bind_overload(operator, args, kwargs))


def _operators_of(namespace: str, name: str) -> dict[str, Any]:
    """The operators of one name by overload, empty if there is none."""
    found: dict[str, Any] = dict(_custom.get(namespace, {}).get(name, {}))
    if namespace in (NAMESPACE, OWN_NAMESPACE):
        for overload, operator in _own_operators().get(name, {}).items():
            found.setdefault(overload, operator)
    return found


def _own_operators() -> dict[str, dict[str, Any]]:
    """The operators of the library by name and overload; they become more as modules are loaded."""
    global _own, _own_count
    declared = operators()
    if len(declared) != _own_count:
        count = len(declared)
        found: dict[str, dict[str, Any]] = {}
        for operator in (*declared.values(), *OVERLOADS.values()):
            name, overload = overload_name(operator)
            found.setdefault(name, {}).setdefault(overload, operator)
        _own, _own_count = found, count
    return _own


def find_packet(namespace: str, name: str) -> OpOverloadPacket:
    """The packet of one name; AttributeError if there is no such operator."""
    if name.startswith("__") or not _operators_of(namespace, name):
        raise AttributeError(f"'_OpNamespace' '{namespace}' object has no attribute '{name}'")
    if namespace == OWN_NAMESPACE and name not in _custom.get(namespace, {}):
        namespace = NAMESPACE
    key = (namespace, name)
    return _packets.get(key) or _packets.setdefault(key, OpOverloadPacket(namespace, name))


def find_overload(namespace: str, name: str, overload: str) -> OpOverload:
    """One overload by name."""
    return getattr(find_packet(namespace, name), overload)


def overload_of(operator: Any) -> OpOverload:
    """The overload that stands for an operator, always the same object."""
    known = _overloads.get(operator)
    if known is None:
        if operator.schema.is_custom:
            known = OpOverload(
                operator, operator.namespace, operator.base_name, operator.overload
            )
        else:
            known = OpOverload(operator, NAMESPACE, *overload_name(operator))
        _overloads[operator] = known
    return known


# Registration ------------------------------------------------------------------------------------


def add_custom(operator: Any, *, replace: bool = False) -> None:
    """Make a custom operator known by its name."""
    overloads = _custom.setdefault(operator.namespace, {}).setdefault(operator.base_name, {})
    known = operator.overload in overloads
    if operator.namespace in (NAMESPACE, OWN_NAMESPACE):
        known = known or operator.overload in _operators_of(operator.namespace, operator.base_name)
    if known and not (replace and operator.overload in overloads):
        raise RuntimeError(
            f"Tried to register an operator ({operator._schema}) with the same name and overload "
            "name multiple times; each overload is defined once"
        )
    overloads[operator.overload] = operator


def remove_custom(operator: Any) -> None:
    """Forget a custom operator, unless another one has taken its name."""
    names = _custom.get(operator.namespace, {})
    overloads = names.get(operator.base_name, {})
    if overloads.get(operator.overload) == operator:
        del overloads[operator.overload]
        if not overloads:
            del names[operator.base_name]
    _overloads.pop(operator, None)


def find_custom(qualname: str) -> Any:
    """The custom operator of a qualified name, ``namespace::name`` or with ``.overload``."""
    namespace, name = split_qualname(qualname)
    name, _, overload = name.partition(".")
    found = _custom.get(namespace, {}).get(name, {})
    operator = found.get("" if overload == "default" else overload)
    if operator is None:
        if _operators_of(namespace, name):
            raise NotImplementedError(
                f"{qualname} is an operator of the library itself, whose kernels and formulas "
                "cannot be registered"
            )
        raise AttributeError(
            f"'_OpNamespace' '{namespace}' object has no attribute '{name}': the operator "
            f"{qualname} is not defined"
        )
    return operator


def split_qualname(qualname: str) -> tuple[str, str]:
    """Namespace and name of ``namespace::name``."""
    parts = qualname.split("::")
    if len(parts) != 2 or not all(parts):
        raise ValueError(
            f"Expected `qualname` to be of the form \"namespace::name\", but got {qualname}"
        )
    return parts[0], parts[1]
