"""From a Python call to the arguments of a schema: order, defaults, conversions, errors.

There are two manners. A public function accepts what PyTorch's functions do and raises TypeError;
an overload, ``wengert.ops.ns.name``, takes what its schema says and raises RuntimeError.
"""

from __future__ import annotations

import operator as python_operator
from typing import Any

import numpy as np

from ..core.dtypes import as_dtype
from ..core.loading import load
from ..core.tensor import Tensor, wrap
from . import schema as kinds
from .schema import REQUIRED, Argument, Mismatch, Schema

_ALIASES = {"input": "self", "axis": "dim", "keepdims": "keepdim", "x": "self"}
_NUMBERS = (int, float, complex)
_TENSOR, _TENSORS, _INTS, _INTEGER = kinds.TENSOR, kinds.TENSORS, kinds.INTS, kinds.INTEGER
_FLOAT, _SCALAR, _BOOLEAN = kinds.FLOAT, kinds.SCALAR, kinds.BOOLEAN
_STRING, _DTYPE = kinds.STRING, kinds.DTYPE


class FunctionManner:
    """What a public function raises for arguments that do not fit."""

    def too_many(self, operator: Any, args: tuple) -> Exception:
        schema = operator.schema
        return TypeError(
            f"{_public(operator)}() takes {schema.positional} positional arguments but "
            f"{len(args)} were given; signature: {schema.text}"
        )

    def missing(self, operator: Any, argument: Argument, index: int) -> Exception:
        return TypeError(
            f"{_public(operator)}() missing required argument '{argument.name}' (position "
            f"{index + 1}); signature: {operator.schema.text}"
        )

    def unknown(self, operator: Any, name: str) -> Exception:
        return TypeError(
            f"{_public(operator)}() got an unexpected keyword argument '{name}'; signature: "
            f"{operator.schema.text}"
        )

    def repeated(self, operator: Any, name: str) -> Exception:
        return TypeError(f"{_public(operator)}() got multiple values for argument '{name}'")

    def mismatch(self, operator: Any, argument: Argument, index: int, value: Any) -> Exception:
        return TypeError(
            f"{_public(operator)}(): argument '{_public_name(argument.name)}' (position "
            f"{index + 1}) must be {_type_text(argument.type)}, not {type(value).__name__}"
        )


class OverloadManner:
    """What an overload raises for arguments that do not fit its schema."""

    def too_many(self, operator: Any, args: tuple) -> Exception:
        schema = operator.schema
        if len(args) > len(schema.arguments):
            return RuntimeError(
                f"{_qualified(operator)}() expected at most {len(schema.arguments)} argument(s) "
                f"but received {len(args)} argument(s). Declaration: {schema}"
            )
        return RuntimeError(
            f"{_qualified(operator)}() takes {schema.positional} positional argument(s) but "
            f"{len(args)} was/were given. Declaration: {schema}"
        )

    def missing(self, operator: Any, argument: Argument, index: int) -> Exception:
        return RuntimeError(
            f"{_qualified(operator)}() is missing value for argument '{argument.name}'. "
            f"Declaration: {operator.schema}"
        )

    def unknown(self, operator: Any, name: str) -> Exception:
        return RuntimeError(
            f"Unknown keyword argument '{name}' for operator '{_qualified(operator)}'. Schema: "
            f"{operator.schema}"
        )

    def repeated(self, operator: Any, name: str) -> Exception:
        return RuntimeError(
            f"Argument '{name}' specified both as positional and keyword argument. Schema: "
            f"{operator.schema}"
        )

    def mismatch(self, operator: Any, argument: Argument, index: int, value: Any) -> Exception:
        return RuntimeError(
            f"{_qualified(operator)}() Expected a value of type '{argument.annotation()}' for "
            f"argument '{argument.name}' but instead found type '{type(value).__name__}'. "
            f"Position: {index}. Value: {value!r}. Declaration: {operator.schema}"
        )


FUNCTION = FunctionManner()
OVERLOAD = OverloadManner()


def bind_arguments(operator: Any, args: tuple, kwargs: dict[str, Any]) -> tuple:
    """All arguments of a call of a public function in schema order, checked and converted."""
    return _bind(operator, args, kwargs, FUNCTION)


def bind_overload(operator: Any, args: tuple, kwargs: dict[str, Any]) -> tuple:
    """All arguments of a call of an overload in schema order, checked and converted."""
    return _bind(operator, args, kwargs, OVERLOAD)


def _bind(operator: Any, args: tuple, kwargs: dict[str, Any], manner: Any) -> tuple:
    schema = operator.schema
    arguments = schema.arguments
    given = len(args)
    if given > schema.positional:
        args = _with_integers_joined(operator, schema, args, manner)
        given = len(args)
    places = _places(operator, schema, given, kwargs, manner) if kwargs else None
    declared = schema.is_custom
    values: list[Any] = []
    for i in range(len(arguments)):
        argument = arguments[i]
        if i < given:
            value = args[i]
        elif places is not None and i in places:
            value = kwargs[places[i]]
        else:
            if argument.default is REQUIRED:
                if manner is FUNCTION and places is not None and len(places) < len(kwargs):
                    raise _superfluous(operator, schema, given, kwargs, manner)
                raise manner.missing(operator, argument, i)
            values.append(argument.fresh_default() if declared else argument.default)
            continue
        if argument.code == _TENSOR and isinstance(value, Tensor):
            values.append(value)
        elif declared:
            values.append(convert_declared(operator, argument, i, value, manner))
        else:
            values.append(convert(operator, argument, i, value, manner))
    if places is not None and len(places) < len(kwargs):
        raise _superfluous(operator, schema, given, kwargs, manner)
    return tuple(values)


def _with_integers_joined(operator: Any, schema: Schema, args: tuple, manner: Any) -> tuple:
    """Too many arguments, of which the last may be integers for one list: ``x.view(2, 3)``."""
    last = schema.positional - 1
    if (
        manner is FUNCTION
        and last >= 0
        and schema.arguments[last].code == _INTS
        and _all_ints(args[last:])
    ):
        return (*args[:last], args[last:])
    raise manner.too_many(operator, args)


def _places(
    operator: Any, schema: Schema, given: int, kwargs: dict[str, Any], manner: Any
) -> dict[int, str]:
    """The keywords by the position of the argument that each means; those that fit none lack."""
    places: dict[int, str] = {}
    for name in kwargs:
        position = _position(operator, schema, name, manner)
        if position >= given and position not in places:
            places[position] = name
    return places


def _position(operator: Any, schema: Schema, name: str, manner: Any) -> int:
    """Which argument a keyword means, by its own name or for a function by an alias; -1: none."""
    position = schema.names.get(name, -1)
    if position < 0 and manner is FUNCTION:
        position = schema.names.get(operator.aliases.get(name) or _ALIASES.get(name, ""), -1)
    return position


def _superfluous(
    operator: Any, schema: Schema, given: int, kwargs: dict[str, Any], manner: Any
) -> Exception:
    """What is wrong with the first keyword that is unknown or given twice."""
    seen = set(range(given))
    for name in kwargs:
        position = _position(operator, schema, name, manner)
        if position < 0:
            return manner.unknown(operator, name)
        if position in seen:
            break
        seen.add(position)
    return manner.repeated(operator, name)


def convert_declared(
    operator: Any, argument: Argument, index: int, value: Any, manner: Any
) -> Any:
    """One value for an operator of a program, whose kernels get what the schema says."""
    if argument.converter is None:
        argument.converter = load("dispatch.schema_values").converter_of(argument)
    try:
        return argument.converter(value)
    except Mismatch:
        if value is None and argument.default is None:
            return None
        raise manner.mismatch(operator, argument, index, value) from None


def convert(operator: Any, argument: Argument, index: int, value: Any, manner: Any) -> Any:
    """One value as its schema type wants it, or an error that names all involved."""
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
    raise manner.mismatch(operator, argument, index, value)


#: Operands that choose elements and are no values.
_CHOICES = ("condition", "index", "mask")


def _takes_numbers(operator: Any, argument: Argument) -> bool:
    """Whether a number stands for a tensor: for one of several operands that broadcast."""
    functional = operator.functional
    return functional.broadcasts and functional.operands > 1 and argument.name not in _CHOICES


def _public(operator: Any) -> str:
    """An operator's name without that of its overload."""
    return operator.name.partition(".")[0]


def _qualified(operator: Any) -> str:
    """The name of an operator with its namespace, without that of its overload."""
    name = _public(operator)
    return name if "::" in name else f"aten::{name}"


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
    for value in values:  # noqa: SIM110 - a generator would be made for every call
        if not is_int(value):
            return False
    return True


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
