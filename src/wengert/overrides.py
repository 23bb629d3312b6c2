"""Overriding the functions of this library: `__torch_function__` on classes, and function modes.

A class with a ``__torch_function__(cls, func, types, args, kwargs)`` gets every call of a public
function, method or property that has one of its instances among the arguments. A function mode gets
all calls within a ``with`` block.

>>> import wengert
>>> class Distance(wengert.Tensor):
...     pass
>>> wengert.ones(2).as_subclass(Distance) * 3
Distance([3., 3.])
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from .core.scopes import FunctionModeScope
from .core.scopes import InnermostFunctionModeAside as _pop_mode_temporarily  # noqa: F401
from .core.scopes import pop_function_mode as _pop_mode  # noqa: F401
from .core.scopes import push_function_mode as _push_mode  # noqa: F401
from .core.state import thread_state
from .core.tensor import AbstractOperator, Tensor
from .dispatch import torch_function as mechanism
from .dispatch.overridable import Overridable, OverridableProperty
from .library.overloads import OpOverload, OpOverloadPacket

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


# Modes -------------------------------------------------------------------------------------------


class TorchFunctionMode(FunctionModeScope):
    """Base of modes; a subclass overrides `__torch_function__` and is used in a `with` block.

    Inside the handler the mode itself is put aside, so calling `func` goes to the modes that were
    entered before. What the handler returns is what the program sees.

    >>> import wengert
    >>> from wengert.overrides import TorchFunctionMode
    >>> class Count(TorchFunctionMode):
    ...     calls = 0
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         self.calls += 1
    ...         return func(*args, **(kwargs or {}))
    >>> with Count() as count:
    ...     _ = wengert.einsum("i,i->", wengert.ones(2), wengert.ones(2))
    >>> count.calls
    3
    """

    def __torch_function__(
        self, func: Any, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} is a function mode without a __torch_function__ method"
        )

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchFunctionMode:
        """An instance; the `with` statement enters it."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(
        self, func: Any, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _len_torch_function_stack() -> int:
    return len(thread_state().function_modes)


def _get_current_function_mode() -> TorchFunctionMode | None:
    """The innermost mode."""
    modes = thread_state().function_modes
    return modes[-1] if modes else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """All active modes, outermost first."""
    return list(thread_state().function_modes)


# For functions that want to be overridable -------------------------------------------------------


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a mode is active or one of the arguments overrides functions."""
    state = thread_state()
    if state.inside or state.function_disabled >= mechanism.ALL:
        return False
    values = tuple(relevant_args)
    if state.function_modes and values:
        return True
    return not state.function_disabled and bool(mechanism.overloaded_arguments(values))


def has_torch_function_unary(relevant_arg: Any) -> bool:
    """Whether a mode is active or the one argument overrides functions."""
    return has_torch_function((relevant_arg,))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """Whether a mode is active or one of the arguments, given one by one, overrides functions."""
    return has_torch_function(relevant_args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What overrides make of ``public_api(*args, **kwargs)``, where `has_torch_function` holds."""
    out = mechanism.override(
        thread_state(), public_api, args, kwargs, relevant=tuple(relevant_args)
    )
    if out is mechanism.PLAIN:
        raise TypeError(
            f"handle_torch_function(): no argument of {resolve_name(public_api) or public_api} "
            "implements __torch_function__"
        )
    return out


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """Make a function overridable; `dispatcher` returns those of its arguments that may override.

    >>> import wengert
    >>> @wengert.overrides.wrap_torch_function(lambda x: (x,))
    ... def twice(x):
    ...     return x * 2
    >>> twice(wengert.ones(1))
    tensor([2.])
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether a value is a tensor or an instance of a class that overrides functions."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


# What can be overridden --------------------------------------------------------------------------


@functools.cache
def _overridable() -> tuple[dict[Any, list[Callable[..., Any]]], dict[Any, str]]:
    """The overridable functions by where they are found, and their names."""
    import wengert

    from .nn import functional

    found: dict[Any, list[Callable[..., Any]]] = {}
    names: dict[Any, str] = {}
    homes: tuple[tuple[Any, str], ...] = (
        (wengert, "wengert"),
        (functional, "wengert.nn.functional"),
        (Tensor, "wengert.Tensor"),
    )
    for home, prefix in homes:
        for name in dir(home):
            value = getattr(home, name)
            if isinstance(value, OverridableProperty):
                getter = value.__get__
                found.setdefault(value, []).append(getter)
                names[getter] = f"{prefix}.{name}.__get__"
                if value.fset is not None:
                    names[value.__set__] = f"{prefix}.{name}.__set__"
            elif _is_overridable(value, name):
                found.setdefault(home, []).append(value)
                if value not in names or name == value.__name__ and prefix in names[value]:
                    names[value] = f"{prefix}.{name}"
    return found, names


_PROTOCOLS = {
    "__bool__", "__complex__", "__contains__", "__float__", "__format__", "__getitem__",
    "__index__", "__int__", "__len__", "__repr__", "__reversed__", "__setitem__",
    "__rfloordiv__", "__rlshift__", "__rmod__", "__rpow__", "__rrshift__", "__rsub__",
    "__rtruediv__",
}  # fmt: skip


def _is_overridable(value: Any, name: str) -> bool:
    return isinstance(value, (AbstractOperator, Overridable)) or name in _PROTOCOLS


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that can be overridden, by the module or class that has them.

    A property has an entry of its own, with its getter.
    """
    return {home: list(functions) for home, functions in _overridable()[0].items()}


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Public functions that cannot be overridden."""
    import wengert

    from .tensor.registration import NOT_OVERRIDABLE

    ignored = {getattr(wengert, name) for name in NOT_OVERRIDABLE if hasattr(wengert, name)}
    ignored.update((wengert.is_tensor, wengert.is_inference))
    return {function for function in ignored if callable(function)}


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each overridable function one of the same signature that returns -1."""
    return {f: _stand_in(f) for functions in _overridable()[0].values() for f in functions}


def _stand_in(function: Callable[..., Any]) -> Callable[..., Any]:
    import inspect

    def stand_in(*args: Any, **kwargs: Any) -> int:
        return -1

    try:
        stand_in.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    except ValueError:
        pass
    return stand_in


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """The functions whose results the default `__torch_function__` returns as they are."""
    return set(mechanism.unwrapped_functions())


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The name under which a function is found, ``wengert.add`` or ``wengert.Tensor.add_``."""
    if isinstance(f, (OpOverload, OpOverloadPacket)):
        return str(f)
    return _overridable()[1].get(f)


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is an attribute of Tensor and not, or not only, one of a module."""
    name = resolve_name(func)
    return name is not None and (
        name.startswith("wengert.Tensor.") or getattr(Tensor, name.rpartition(".")[2], None) is func
    )
