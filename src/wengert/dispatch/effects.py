"""Making tensors, drawing random numbers and reading an element: operators without operands.

They have schemas, and `wengert.ops` knows them. Where a mode is active, or a tensor's class handles
operators, they are handed over like all others. What they do otherwise, alone and inside
transforms, is said where they are declared (`creation/declare.py`).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ..core.size import parse_size
from ..core.state import thread_state
from ..core.tensor import AbstractOperator, Tensor
from .presentation import signature_of
from .schema import Schema
from .schema_parser import parse
from .torch_dispatch import override_function

#: The overloads of all effects, by the names in their schemas.
OVERLOADS: dict[str, Overload] = {}


class Effect(AbstractOperator):
    """A function that makes, draws or reads, declared by the schemas of its overloads."""

    #: What Python callers can give that schemas do not name, and the defaults.
    extras: dict[str, Any] = {}
    #: Where a shape begins that may be given as several ints; -1 if it may not.
    sizes_from = -1

    def __init__(self, name: str, schemas: tuple[str, ...], doc: str | None = None) -> None:
        self.name = self.__name__ = self.__qualname__ = name
        self.__doc__ = doc
        self.overloads = tuple([Overload(self, text) for text in schemas])
        OVERLOADS.update((each.name, each) for each in self.overloads)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function does for plain tensors and inside transforms."""
        raise NotImplementedError

    def handled(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What a mode or a class makes of a public call; NotImplemented if none is asked.

        Inside a transform, where new tensors belong to a level, no mode is asked.
        """
        if thread_state().levels or kwargs.get("out") is not None or not self.overloads:
            return NotImplemented
        options = {key: value for key, value in kwargs.items() if value is not None}
        requires_grad = options.pop("requires_grad", False)
        begin = self.sizes_from
        if begin >= 0 and len(args) >= begin:
            size = parse_size(self.name, args[begin:], options.pop("size", None))
            args = (*args[:begin], list(size))
        out = override_function(self.overload_for(len(args)), args, options)
        if out is NotImplemented or not requires_grad:
            return out
        return out.requires_grad_(requires_grad)

    def handled_by_class(self, like: Tensor, *args: Any, **options: Any) -> Any:
        """What the class of `like` makes of a call from inside the library; else NotImplemented."""
        if type(like) is Tensor or not self.overloads:
            return NotImplemented
        given = {key: value for key, value in options.items() if value is not None}
        args = (like, *args)
        return override_function(self.overload_for(len(args)), args, given)

    def overload_for(self, count: int) -> Overload:
        """The overload for so many arguments by position, where that tells them apart."""
        for overload in self.overloads[1:]:
            if overload.positional == count:
                return overload
        return self.overloads[0]

    @property
    def schema(self) -> Schema:
        """The schema of the first overload."""
        return self.overloads[0].schema

    @cached_property
    def __signature__(self) -> Any:
        if not self.overloads:
            raise AttributeError("__signature__")
        from inspect import Parameter

        signature = signature_of(self.schema)
        more = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=default)
            for name, default in self.extras.items()
        ]
        return signature.replace(parameters=[*signature.parameters.values(), *more])

    def __repr__(self) -> str:
        return f"<function {self.name}>"


class Overload(AbstractOperator):
    """One schema of an effect, called by a handler or through `wengert.ops`."""

    family = "effect"
    facts: dict[str, Any] = {}

    def __init__(self, effect: Effect, text: str) -> None:
        self.name = text[: text.index("(")]
        self.effect = effect
        self.text = text

    @cached_property
    def schema(self) -> Schema:
        """The schema, read when somebody looks at it."""
        return parse(self.text)

    @cached_property
    def positional(self) -> int:
        """How many arguments can be given by position."""
        return sum([not argument.keyword_only for argument in self.schema.arguments])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out = self.effect.handled(args, kwargs)
        return self.effect(*args, **kwargs) if out is NotImplemented else out

    def __repr__(self) -> str:
        return f"<function {self.text}>"
