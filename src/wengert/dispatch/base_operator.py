"""What operators of every kind have in common: declared ones, in-place forms, those of programs.

A kind says how one call with all arguments runs (`call`), and how it is recorded when a layer
computes the results: afterwards (`finish`), or around that (`call_recorded`). Binding, overriding
and how an operator looks to Python are the same for all.
"""

from __future__ import annotations

from typing import Any

from ..core.classes import classes
from ..core.errors import DimensionError, argument_error
from ..core.registry import operator_named
from ..core.state import ThreadState, overriding
from ..core.tensor import AbstractOperator
from .binding import bind_arguments, signature_text
from .presentation import Documentation, ModuleName, operator_documentation, operator_signature
from .torch_function import PLAIN, override_operator

_classes = classes
_overriding = overriding


class BaseOperator(AbstractOperator):
    """An operator: its name and schema, whether it `mutates` an argument, and how it is called.

    A kind that `finishes` records a call afterwards, from its arguments and results alone.
    `facts` is what its declaration says beside (see `operators/declare.py`), `aliases` are other
    words for its arguments. Kinds add `functional`, the operator that computes what this one
    returns or writes.
    """

    def __init__(self, name: str, schema: Any) -> None:
        self.name = name
        self.schema = schema
        self.mutates = False
        self.finishes = False
        self.doc = ""
        self.facts: dict[str, Any] = {}
        self.aliases: dict[str, str] = {}

    def call_recorded(self, state: ThreadState, args: tuple, below: Any) -> Any:
        """Record a call whose results are computed by `below(state, operator, args)`."""
        raise NotImplementedError

    def bind(self, args: tuple, kwargs: dict[str, Any]) -> tuple:
        """The arguments of a call in schema order, checked and converted."""
        return bind_arguments(self, args, kwargs)

    def seen_by_overrides(self) -> Any:
        """What classes and modes are told that is called."""
        return self

    def call_bound(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call as Python makes it: overrides first, then binding, then the call itself."""
        if _overriding.possible:
            result = override_operator(self.seen_by_overrides(), args, kwargs)
            if result is not PLAIN:
                return result
        try:
            bound = self.bind(args, kwargs)
        except (TypeError, RuntimeError):
            result = override_operator(self.seen_by_overrides(), args, kwargs)
            if result is not PLAIN:
                return result
            raise
        try:
            return self.call(bound)
        except (AttributeError, DimensionError) as error:
            if self.schema.is_custom:  # it is an error of the program's own kernel
                raise
            parameters = tuple(["input" if n == "self" else n for n in self.schema.names])
            raise argument_error(error, self.name, parameters, bound, {}) from None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call_bound(args, kwargs)

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else _classes.method(self, instance)

    def __repr__(self) -> str:
        return f"<operator {self.name}{signature_text(self.schema)}>"

    def __reduce__(self) -> tuple:
        return (operator_named, (self.name,))


def function_attribute(operator: Any, name: str) -> Any:
    """What `inspect` and `functools` look for on a function."""
    if name in ("__name__", "__qualname__"):
        return operator.name
    if name == "__signature__":
        return operator_signature(operator)
    if name == "_schema":
        from ..library.builtin import builtin_schema

        return builtin_schema(operator)
    raise AttributeError(f"operator '{operator.name}' has no attribute '{name}'")


class FunctionAttribute:
    """What `function_attribute` finds, as a descriptor; on the class there is none."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, operator: Any, owner: Any) -> Any:
        if operator is None:
            raise AttributeError(self.name)
        return function_attribute(operator, self.name)


def present(cls: Any) -> None:
    """Let operators of a class say to Python what they do, and that they are of the package."""
    _classes.attach(cls, "__doc__", Documentation(cls.__doc__, operator_documentation))
    _classes.attach(cls, "__module__", ModuleName(cls.__module__))


def without_getattr(cls: Any) -> None:
    """Rid an uncompiled class of operators of __getattr__, which would slow all its fields down.

    The names are fields: no class can have them in its body.
    """
    del cls.__getattr__
    for name in ("__signature__", "_schema"):
        setattr(cls, name, FunctionAttribute(name))
