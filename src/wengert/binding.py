"""From a Python call to a schema's arguments: defaults, keyword aliases, conversions, errors."""

from __future__ import annotations

import operator as python_operator
from typing import Any

import numpy as np

from .schema import REQUIRED, Argument, Schema
from .tensor import Tensor, wrap

_ALIASES = {"input": "self", "axis": "dim", "keepdims": "keepdim", "x": "self"}
_NUMBERS = (int, float, complex)


def bind_arguments(operator: Any, args: tuple, kwargs: dict[str, Any]) -> tuple:
    """All arguments of `operator` in schema order, checked and converted."""
    schema = operator.schema
    arguments = schema.arguments
    values = [REQUIRED] * len(arguments)
    count = 0
    for index, value in enumerate(args):
        if count >= len(arguments) or arguments[count].keyword_only:
            raise TypeError(
                f"{operator.name}() takes {sum(not a.keyword_only for a in arguments)} positional "
                f"arguments but {len(args)} were given; signature: {schema.text}"
            )
        if arguments[count].type in ("int[]", "int[]?") and _is_int(value):
            rest = args[index:]
            if all(_is_int(v) for v in rest) and len(rest) > 1:
                values[count] = tuple([python_operator.index(v) for v in rest])
                break
        values[count] = value
        count += 1
    for name, value in kwargs.items():
        position = schema.names.get(name)
        if position is None:
            alias = operator.aliases.get(name) or _ALIASES.get(name)
            position = schema.names.get(alias) if alias else None
        if position is None:
            raise TypeError(
                f"{operator.name}() got an unexpected keyword argument '{name}'; signature: "
                f"{schema.text}"
            )
        if values[position] is not REQUIRED:
            raise TypeError(f"{operator.name}() got multiple values for argument '{name}'")
        values[position] = value
    for i, argument in enumerate(arguments):
        if values[i] is REQUIRED:
            if argument.default is REQUIRED:
                raise TypeError(
                    f"{operator.name}() missing required argument '{argument.name}' (position "
                    f"{i + 1}); signature: {schema.text}"
                )
            values[i] = argument.default
        else:
            values[i] = convert(operator, argument, i, values[i])
    return tuple(values)


def convert(operator: Any, argument: Argument, index: int, value: Any) -> Any:
    """One value as its schema type wants it, or a TypeError that names all involved."""
    kind = argument.type
    if kind == "Tensor":
        if isinstance(value, Tensor):
            return value
        if isinstance(value, (*_NUMBERS, np.generic)) and _takes_numbers(operator):
            return value.item() if isinstance(value, np.generic) else value
    elif value is None and kind.endswith("?"):
        return None
    elif kind == "Tensor?":
        if isinstance(value, Tensor):
            return value
        if isinstance(value, _NUMBERS) and _takes_numbers(operator):
            return value
    elif kind in ("int[]", "int[]?"):
        if _is_int(value):
            return (python_operator.index(value),)
        if isinstance(value, (tuple, list)) and all(_is_int(v) for v in value):
            return tuple([python_operator.index(v) for v in value])
    elif kind in ("int", "int?"):
        if _is_int(value):
            return python_operator.index(value)
    elif kind in ("float", "float?"):
        if isinstance(value, (int, float, np.generic)) and not isinstance(value, bool):
            return float(value)
        if isinstance(value, Tensor) and value.array.ndim == 0:
            return float(value.item())
    elif kind in ("Scalar", "Scalar?"):
        if isinstance(value, _NUMBERS):
            return value
        if isinstance(value, np.generic) or (isinstance(value, Tensor) and value.array.ndim == 0):
            return value.item()
    elif kind in ("bool", "bool?"):
        if isinstance(value, (bool, int, np.bool_)):
            return bool(value)
    elif kind in ("str", "str?"):
        if isinstance(value, str):
            return value
    elif kind in ("Tensor[]", "Tensor?[]"):
        if isinstance(value, (tuple, list)):
            for i, item in enumerate(value):
                if not isinstance(item, Tensor) and not (item is None and kind == "Tensor?[]"):
                    raise TypeError(
                        f"{operator.name}(): expected Tensor as element {i} in argument {index}, "
                        f"but got {type(item).__name__}"
                    )
            return list(value)
    elif kind == "dtype?":
        from .dtypes import as_dtype

        return as_dtype(value)
    else:
        return value
    raise TypeError(
        f"{operator.name}(): argument '{_public_name(argument.name)}' (position {index + 1}) must "
        f"be {_type_text(kind)}, not {type(value).__name__}"
    )


def _takes_numbers(operator: Any) -> bool:
    return getattr(operator, "functional", operator).broadcasts


def _public_name(name: str) -> str:
    return "input" if name == "self" else name


def _type_text(kind: str) -> str:
    words = {"int[]": "tuple of ints", "Tensor[]": "tuple of Tensors", "Scalar": "Number"}
    return words.get(kind.rstrip("?"), kind.rstrip("?"))


def _is_int(value: Any) -> bool:
    if type(value) is int:
        return True
    if isinstance(value, (bool, np.bool_)):
        return False
    if isinstance(value, Tensor):
        return value.array.ndim == 0 and value.array.dtype.kind in "iu"
    return isinstance(value, (int, np.integer))


def check_operand(operator: Any, value: Any, other: Any) -> Any:
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
