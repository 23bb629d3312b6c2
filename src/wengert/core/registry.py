"""Where lower rooms find what upper rooms make: operators by name, and aliases of tensors.

An operator that nobody has used yet is declared when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .tensor import AbstractOperator, Tensor

_OPERATORS: dict[str, AbstractOperator] = {}


def register(operator: Any) -> None:
    """Make an operator known by its name.

    A declaration may be run again: the import of its module may have been interrupted.
    """
    known = _OPERATORS.get(operator.name)
    if known is not None and _origin(known) != _origin(operator):
        raise ValueError(f"operator {operator.name} is declared twice")
    _OPERATORS[operator.name] = operator


def _origin(operator: Any) -> tuple:
    """What tells the declaration of an operator from others of the name."""
    return operator.schema.text, getattr(operator.functional.kernel, "__code__", None)


def replace(operator: Any) -> None:
    """Put an operator in the place of the one with its name."""
    _OPERATORS[operator.name] = operator


def operator_named(name: str) -> Any:
    """The operator of that name, declared now if it was not yet needed."""
    if name not in _OPERATORS:
        from ..operators.catalogue import declare

        declare(name)
    return _OPERATORS[name]


def apply(name: str, *args: Any) -> Any:
    """Call an operator by its name, with all its arguments."""
    return operator_named(name).call(args)


def declared_operators() -> dict[str, AbstractOperator]:
    """The operators that are declared so far, by name, in-place variants included."""
    return _OPERATORS


def operators() -> dict[str, AbstractOperator]:
    """All operators by name, in-place variants included."""
    from ..operators.catalogue import declare_all

    declare_all()
    return _OPERATORS


#: Classes whose instances are values of types that schemas name, added by the rooms that have them.
SCHEMA_CLASSES: dict[str, type] = {}


class Makers:
    """What lower rooms call and upper rooms have, each set by the room that has it."""

    #: The same memory as a new tensor without history, whatever the class of the tensor is.
    alias: Callable[[Tensor], Tensor]
    #: A gradient in the shape and dtype of the value that it belongs to.
    reduce_gradient: Callable[..., Tensor]


makers = Makers()
