"""What a compiled call depends on besides its tensors' values, and how two such states differ."""

from __future__ import annotations

from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from ..devices import of_array
from ..dtypes import get_default_dtype
from ..state import thread_state
from ..tensor import Tensor, requires_of

_PLAIN = (int, float, complex, bool, str, bytes, type(None))
_OPAQUE = (type, ModuleType, FunctionType, MethodType, BuiltinFunctionType)


class ByIdentity:
    """A key for an object that is the same only if it is that very object."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return f"<{type(self.value).__name__} at {id(self.value):#x}>"


def tensor_key(t: Tensor) -> tuple:
    """Shape, dtype, strides, device and whether gradients are required."""
    array = t.array
    strides = "contiguous" if array.flags.c_contiguous else array.strides
    needs = requires_of(t)
    return ("tensor", array.shape, array.dtype.str, strides, str(of_array(array)), needs)


def value_key(value: Any) -> Any:
    """A key for any argument: numbers and strings by value, other objects by identity."""
    if isinstance(value, Tensor):
        return tensor_key(value)
    if isinstance(value, _PLAIN):
        return (type(value), value)
    try:
        hash(value)
    except TypeError:
        return ByIdentity(value)
    return ByIdentity(value) if type(value).__hash__ is object.__hash__ else (type(value), value)


def mode_key() -> tuple:
    """The modes that decide what a call records and computes."""
    state = thread_state()
    return ("modes", state.grad_enabled, state.inference, get_default_dtype())


def environment_key(function: Callable) -> tuple:
    """What a function reads from outside: closure, globals that it names, and the object it is
    bound to. Tensors are kept by identity, numbers by value, the attributes of plain objects too.
    """
    found: list[tuple[str, Any]] = []
    bound = getattr(function, "__self__", None)
    if bound is not None:
        _add("self", bound, found, 2)
    inner = getattr(function, "__func__", function)
    code = getattr(inner, "__code__", None)
    if code is None:
        if not isinstance(function, _OPAQUE):
            _add("self", function, found, 2)
        return tuple(found)
    for name, cell in zip(code.co_freevars, inner.__closure__ or (), strict=True):
        try:
            _add(name, cell.cell_contents, found, 2)
        except ValueError:
            found.append((name, "empty"))
    for name in sorted(_global_names(code)):
        if name in inner.__globals__:
            _add(name, inner.__globals__[name], found, 2)
    return tuple(found)


def _global_names(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _global_names(constant)
    return names


def _add(name: str, value: Any, found: list[tuple[str, Any]], depth: int) -> None:
    if isinstance(value, Tensor):
        found.append((name, (ByIdentity(value), tensor_key(value))))
    elif isinstance(value, _PLAIN):
        found.append((name, (type(value), value)))
    elif isinstance(value, _OPAQUE) or depth == 0:
        found.append((name, ByIdentity(value)))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            _add(f"{name}[{i}]", item, found, depth - 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            _add(f"{name}[{key!r}]", item, found, depth - 1)
    else:
        found.append((name, ByIdentity(value)))
        for key, item in getattr(value, "__dict__", {}).items():
            if isinstance(item, (Tensor, list, tuple, dict, *_PLAIN)):
                _add(f"{name}.{key}", item, found, depth - 1)


_PARTS = ("shape", "dtype", "strides", "device", "requires_grad")


def difference(old: tuple, new: tuple) -> str:
    """The first thing in which a call differs from one that was compiled."""
    (old_tree, old_leaves, old_modes, old_environment) = old
    (new_tree, new_leaves, new_modes, new_environment) = new
    if old_tree != new_tree:
        return f"the arguments have another structure: {new_tree} instead of {old_tree}"
    for i, (a, b) in enumerate(zip(old_leaves, new_leaves, strict=True)):
        if a != b:
            return f"argument {i}: {_leaf_difference(a, b)}"
    if old_modes != new_modes:
        names = ("grad mode", "inference mode", "default dtype")
        for name, a, b in zip(names, old_modes[1:], new_modes[1:], strict=True):
            if a != b:
                return f"{name} is {b} instead of {a}"
    before, now = dict(old_environment), dict(new_environment)
    for name in {**before, **now}:
        if before.get(name) != now.get(name):
            return f"`{name}`, which the function reads, is another one than when it was compiled"
    return "nothing that is known"


def _leaf_difference(old: Any, new: Any) -> str:
    both = isinstance(old, tuple) and isinstance(new, tuple)
    if both and old[0] == new[0] == "tensor":
        for name, a, b in zip(_PARTS, old[1:], new[1:], strict=True):
            if a != b:
                return f"{name} {b} instead of {a}"
    return f"{_shown(new)} instead of {_shown(old)}"


def _shown(key: Any) -> str:
    if isinstance(key, tuple):
        return "a tensor" if key[0] == "tensor" else repr(key[1])
    return repr(key)
