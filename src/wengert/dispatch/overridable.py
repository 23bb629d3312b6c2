"""The interface of the compiled `overridable` module without C.

`overridable.pyx` beside this file is the compiled form; an extension module wins at import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any

from ..core.classes import classes
from ..core.errors import DimensionError, argument_error, name_and_parameters
from ..core.state import overriding
from ..core.tensor import Tensor
from .presentation import Documentation, public_documentation, public_signature
from .torch_function import call_overridable, takes_part

_HEAPTYPE = 1 << 9
_PLAIN = frozenset((Tensor, int, float, bool, str, type(None)))


def _may_override(values: Iterable[Any]) -> bool:
    """Whether the class of a value, or of an item in it, takes part in overriding."""
    for value in values:
        kind = type(value)
        if kind in _PLAIN:
            continue
        if kind is tuple or kind is list:
            if any(_is_open(type(item)) for item in value):
                return True
        elif _is_open(kind):
            return True
    return False


def _is_open(kind: type) -> bool:
    return kind not in _PLAIN and bool(kind.__flags__ & _HEAPTYPE) and takes_part(kind)


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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if overriding.modes or _may_override(args) or (kwargs and _may_override(kwargs.values())):
            return call_overridable(self.public, self.function, args, kwargs)
        try:
            return self.function(*args, **kwargs)
        except (AttributeError, DimensionError) as error:
            name, parameters = name_and_parameters(self.function)
            raise argument_error(error, name, parameters, args, kwargs) from None

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    @property
    def __signature__(self) -> Any:
        return public_signature(self.function)

    def __repr__(self) -> str:
        return f"<function {self.__qualname__}>"

    def __reduce__(self) -> str:
        return self.__qualname__


classes.attach(
    Overridable,
    "__doc__",
    Documentation(
        Overridable.__doc__, lambda each: public_documentation(each.__name__, each.function)
    ),
)


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
        if overriding.modes or _may_override((instance,)):
            return call_overridable(self.__get__, self.fget, (instance,), {})
        return self.fget(instance)

    def __set__(self, instance: Any, value: Any) -> None:
        if self.fset is None:
            raise AttributeError(f"attribute '{self.__name__}' of Tensor objects is not writable")
        if overriding.modes or _may_override((instance, value)):
            call_overridable(self.__set__, self.fset, (instance, value), {})
        else:
            self.fset(instance, value)

    def __delete__(self, instance: Any) -> None:
        if self.fdel is None:
            raise AttributeError(f"attribute '{self.__name__}' of Tensor objects cannot be deleted")
        if overriding.modes or _may_override((instance,)):
            call_overridable(self.__delete__, self.fdel, (instance,), {})
        else:
            self.fdel(instance)

    def __repr__(self) -> str:
        return f"<attribute '{self.__name__}' of 'wengert.Tensor' objects>"
