"""From a Python call to a schema's arguments: defaults, keyword aliases, conversions, errors."""

from __future__ import annotations

import operator as python_operator
from typing import Any

import numpy as np

from ..core.dtypes import as_dtype
from ..core.tensor import Tensor, wrap
from . import schema as kinds
from .schema import REQUIRED, Argument, Schema

_ALIASES = {"input": "self", "axis": "dim", "keepdims": "keepdim", "x": "self"}
_NUMBERS = (int, float, complex)
_TENSOR, _TENSORS, _INTS, _INTEGER = kinds.TENSOR, kinds.TENSORS, kinds.INTS, kinds.INTEGER
_FLOAT, _SCALAR, _BOOLEAN = kinds.FLOAT, kinds.SCALAR, kinds.BOOLEAN
_STRING, _DTYPE = kinds.STRING, kinds.DTYPE


def bind_arguments(operator: Any, args: tuple, kwargs: dict[str, Any]) -> tuple:
    """All arguments of `operator` in schema order, checked and converted."""
    schema = operator.schema
    arguments = schema.arguments
    total = len(arguments)
    values: list[Any] = [REQUIRED] * total
    for index, value in enumerate(args):
        argument = arguments[index] if index < total else None
        if argument is None or argument.keyword_only:
            raise _too_many(operator, args)
        if (
            argument.code == _INTS
            and len(args) > index + 1
            and (index + 1 == total or arguments[index + 1].keyword_only)
            and is_int(value)
        ):
            rest = args[index:]
            if _all_ints(rest):
                values[index] = tuple([python_operator.index(v) for v in rest])
                break
        values[index] = value
    if kwargs:
        for name, value in kwargs.items():
            position = _position(operator, schema, name)
            if values[position] is not REQUIRED:
                raise TypeError(f"{_public(operator)}() got multiple values for argument '{name}'")
            values[position] = value
    for i in range(total):
        argument = arguments[i]
        if values[i] is REQUIRED:
            if argument.default is REQUIRED:
                raise TypeError(
                    f"{_public(operator)}() missing required argument '{argument.name}' (position "
                    f"{i + 1}); signature: {schema.text}"
                )
            values[i] = argument.default
        else:
            values[i] = convert(operator, argument, i, values[i])
    return tuple(values)


def _too_many(operator: Any, args: tuple) -> TypeError:
    schema = operator.schema
    allowed = sum([not a.keyword_only for a in schema.arguments])
    return TypeError(
        f"{_public(operator)}() takes {allowed} positional arguments but {len(args)} were given; "
        f"signature: {schema.text}"
    )


def _position(operator: Any, schema: Schema, name: str) -> int:
    """Which argument a keyword means, by its own name or an alias."""
    position = schema.names.get(name)
    if position is None:
        position = schema.names.get(operator.aliases.get(name) or _ALIASES.get(name, ""))
    if position is None:
        raise TypeError(
            f"{_public(operator)}() got an unexpected keyword argument '{name}'; signature: "
            f"{schema.text}"
        )
    return position


def convert(operator: Any, argument: Argument, index: int, value: Any) -> Any:
    """One value as its schema type wants it, or a TypeError that names all involved."""
    code = argument.code
    if code == _TENSOR:
        if isinstance(value, Tensor) or (value is None and argument.optional):
            return value
        if isinstance(value, (*_NUMBERS, np.generic)) and _takes_numbers(operator, argument):
            return value.item() if isinstance(value, np.generic) else value
    elif value is None and argument.optional:
        return None
    elif code == _INTS:
        if is_int(value):
            return (python_operator.index(value),)
        if isinstance(value, (tuple, list)) and _all_ints(value):
            return tuple([python_operator.index(v) for v in value])
    elif code == _INTEGER:
        if is_int(value):
            return python_operator.index(value)
    elif code == _FLOAT:
        if isinstance(value, (int, float, np.generic)) and not isinstance(value, bool):
            return float(value)
        if isinstance(value, Tensor) and value.array.ndim == 0:
            return float(value.item())
    elif code == _SCALAR:
        if isinstance(value, _NUMBERS):
            return value
        if isinstance(value, np.generic) or (isinstance(value, Tensor) and value.array.ndim == 0):
            return value.item()
    elif code == _BOOLEAN:
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
    elif code == _STRING:
        if isinstance(value, str):
            return value
    elif code == _TENSORS:
        if isinstance(value, (tuple, list)):
            for i, item in enumerate(value):
                if not isinstance(item, Tensor) and not (item is None and argument.optional):
                    raise TypeError(
                        f"{_public(operator)}(): expected Tensor as element {i} in argument "
                        f"{index}, but got {type(item).__name__}"
                    )
            return list(value)
    elif code == _DTYPE:
        return as_dtype(value)
    else:
        return value
    raise TypeError(
        f"{_public(operator)}(): argument '{_public_name(argument.name)}' (position {index + 1}) "
        f"must be {_type_text(argument.type)}, not {type(value).__name__}"
    )


#: Operands that choose elements and are no values.
_CHOICES = ("condition", "index", "mask")


def _takes_numbers(operator: Any, argument: Argument) -> bool:
    """Whether a number stands for a tensor: for one of several operands that broadcast."""
    functional = getattr(operator, "functional", operator)
    return functional.broadcasts and functional.operands > 1 and argument.name not in _CHOICES


def _public(operator: Any) -> str:
    """An operator's name without that of its overload."""
    return operator.name.partition(".")[0]


def _public_name(name: str) -> str:
    return "input" if name == "self" else name


def _type_text(kind: str) -> str:
    words = {"int[]": "tuple of ints", "Tensor[]": "tuple of Tensors", "Scalar": "Number"}
    return words.get(kind.rstrip("?"), kind.rstrip("?"))


def is_int(value: Any) -> bool:
    """Whether `value` is an integer or a 0-d integer tensor, and not a bool."""
    if type(value) is int:
        return True
    if isinstance(value, (bool, np.bool_)):
        return False
    if isinstance(value, Tensor):
        return value.array.ndim == 0 and value.array.dtype.kind in "iu"
    return isinstance(value, (int, np.integer))


def _all_ints(values: Any) -> bool:
    return all(is_int(v) for v in values)


def check_operand(value: Any) -> Any:
    """A binary operator's operand as a tensor or a Python number, or NotImplemented."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, _NUMBERS):
        return value
    if isinstance(value, np.ndarray):
        return wrap(value)
    return NotImplemented


def signature_text(schema: Schema) -> str:
    return schema.text[len(schema.name) :]


def signature_of(schema: Schema) -> Any:
    """The schema as an `inspect.Signature`."""
    from inspect import Parameter, Signature

    parameters = []
    for argument in schema.arguments:
        kind = Parameter.KEYWORD_ONLY if argument.keyword_only else Parameter.POSITIONAL_OR_KEYWORD
        default = Parameter.empty if argument.default is REQUIRED else argument.default
        parameters.append(Parameter(_public_name(argument.name), kind, default=default))
    return Signature(parameters)
