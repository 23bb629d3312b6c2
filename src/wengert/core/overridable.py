"""The interface of the compiled `overridable` module without C.

`overridable.pyx` beside this file is the compiled form; an extension module wins at import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any

from .native import native

_HEAPTYPE = 1 << 9
_override_call: Any = None
_plain_types: frozenset[type] = frozenset()


def bind_overrides(call: Callable[..., Any], plain_types: tuple[type, ...]) -> None:
    """Say what a call goes through that may be overridden, and which types never override."""
    global _override_call, _plain_types
    _override_call = call
    _plain_types = frozenset((*plain_types, int, float, bool, str, type(None)))


def _may_override(values: Iterable[Any]) -> bool:
    """Whether a class statement made the type of a value, or of an item in it, and none of ours."""
    plain = _plain_types
    for value in values:
        kind = type(value)
        if kind in plain:
            continue
        if kind is tuple or kind is list:
            if any(type(item) not in plain and type(item).__flags__ & _HEAPTYPE for item in value):
                return True
        elif kind.__flags__ & _HEAPTYPE:
            return True
    return False


class Overridable:
    """A public function. Overrides are told of `public`; without any, `function` is called."""

    def __init__(
        self,
        function: Callable[..., Any],
        public: Any = None,
        module: str = "wengert",
        name: str = "",
    ) -> None:
        self.function = function
        self.public = self if public is None else public
        self.__wrapped__ = function
        self.__module__ = module
        self.__qualname__ = name or function.__name__
        self.__name__ = self.__qualname__.rpartition(".")[2]
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if native.watching or _may_override(args) or (kwargs and _may_override(kwargs.values())):
            return _override_call(self.public, self.function, args, kwargs)
        try:
            return self.function(*args, **kwargs)
        except AttributeError as error:
            from .errors import argument_error, name_and_parameters

            name, parameters = name_and_parameters(self.function)
            raise argument_error(error, name, parameters, args, kwargs) from None

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<function {self.__qualname__}>"

    def __reduce__(self) -> str:
        return self.__qualname__


class OverridableProperty:
    """A property; overrides are told of its `__get__`, `__set__` and `__delete__`."""

    def __init__(self, source: property, name: str) -> None:
        self.fget: Any = source.fget
        self.fset: Any = source.fset
        self.fdel: Any = source.fdel
        self.__name__ = name
        self.__doc__ = source.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        if native.watching or _may_override((instance,)):
            return _override_call(self.__get__, self.fget, (instance,), {})
        return self.fget(instance)

    def __set__(self, instance: Any, value: Any) -> None:
        if self.fset is None:
            raise AttributeError(f"attribute '{self.__name__}' of Tensor objects is not writable")
        if native.watching or _may_override((instance, value)):
            _override_call(self.__set__, self.fset, (instance, value), {})
        else:
            self.fset(instance, value)

    def __delete__(self, instance: Any) -> None:
        if self.fdel is None:
            raise AttributeError(f"attribute '{self.__name__}' of Tensor objects cannot be deleted")
        if native.watching or _may_override((instance,)):
            _override_call(self.__delete__, self.fdel, (instance,), {})
        else:
            self.fdel(instance)

    def __repr__(self) -> str:
        return f"<attribute '{self.__name__}' of 'wengert.Tensor' objects>"
