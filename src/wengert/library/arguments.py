"""From the arguments of a call, and from what a kernel returns, to the values a schema describes.

A converter takes a value and returns it as its schema type, or raises `Mismatch`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.devices import device
from ..core.dtypes import dtype
from ..core.layouts import layout, memory_format
from ..core.tensor import Tensor
from .schema import FunctionSchema, ListType, OptionalType, SchemaType

Converter = Callable[[Any], Any]


class Mismatch(Exception):
    """A value is not of its schema type."""


def converter_for(kind: SchemaType, size: int | None) -> Converter:
    """The converter of a type; a list of fixed size may be given as one element."""
    if isinstance(kind, OptionalType):
        inner = converter_for(kind.element, size)
        return lambda value: None if value is None else inner(value)
    if isinstance(kind, ListType):
        return _list_converter(kind.element, size)
    return _CONVERTERS[kind.base]


def _list_converter(element: SchemaType, size: int | None) -> Converter:
    convert = converter_for(element, None)

    def convert_list(value: Any) -> list:
        if isinstance(value, (list, tuple)) or (
            isinstance(value, np.ndarray) and value.ndim == 1 and element.base != "Tensor"
        ):
            return [convert(item) for item in value]
        if size is None or element.base not in ("int", "SymInt", "float", "bool"):
            raise Mismatch
        return [convert(value)] * size

    return convert_list


def _tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    raise Mismatch


def _single_element(value: Any, kinds: str) -> Any:
    """The number in a tensor of one element or a NumPy scalar of the given kinds of dtypes."""
    array = value.array if isinstance(value, Tensor) else value
    if not isinstance(array, (np.ndarray, np.generic)):
        raise Mismatch
    if array.size != 1 or array.dtype.kind not in kinds:
        raise Mismatch
    return array.item()


def _int(value: Any) -> int:
    return int(value if isinstance(value, int) else _single_element(value, "biu"))


def _float(value: Any) -> float:
    return float(value if isinstance(value, (int, float)) else _single_element(value, "biuf"))


def _bool(value: Any) -> bool:
    return bool(value if isinstance(value, int) else _single_element(value, "biu"))


def _complex(value: Any) -> complex:
    is_number = isinstance(value, (int, float, complex))
    return complex(value if is_number else _single_element(value, "biufc"))


def _number(value: Any) -> Any:
    return value if isinstance(value, (int, float, complex)) else _single_element(value, "biufc")


def _device(value: Any) -> device:
    if isinstance(value, (device, str)):
        return device(value)
    raise Mismatch


def _instance(cls: type) -> Converter:
    def convert(value: Any) -> Any:
        if isinstance(value, cls):
            return value
        raise Mismatch

    return convert


def _generator(value: Any) -> Any:
    from ..creation.generator import Generator

    return _instance(Generator)(value)


_CONVERTERS: dict[str, Converter] = {
    "Tensor": _tensor,
    "Scalar": _number,
    "int": _int,
    "SymInt": _int,
    "float": _float,
    "bool": _bool,
    "complex": _complex,
    "str": _instance(str),
    "ScalarType": _instance(dtype),
    "Device": _device,
    "Layout": _instance(layout),
    "MemoryFormat": _instance(memory_format),
    "Generator": _generator,
}


class Binder:
    """Arranges the arguments of a call in the order of a schema, converted, defaults filled in."""

    def __init__(self, schema: FunctionSchema) -> None:
        self.schema = schema
        arguments = schema.arguments
        self.total = len(arguments)
        self.positional = sum(not argument.kwarg_only for argument in arguments)
        self.converters = [converter_for(a.type, a.N) for a in arguments]
        self.names = {a.name: i for i, a in enumerate(arguments)}
        self.only_tensors = all(a.type.text("", None) == "Tensor" for a in arguments)

    def bind(self, args: tuple, kwargs: dict[str, Any]) -> tuple:
        """All arguments in schema order."""
        given = len(args)
        if given > self.positional:
            raise RuntimeError(
                f"{self.schema.name}() takes {self.positional} positional argument(s) but {given} "
                f"was/were given. Declaration: {self.schema}"
            )
        values = [self.convert(i, value) for i, value in enumerate(args)]
        if given == self.total and not kwargs:
            return tuple(values)
        for argument in self.schema.arguments[given:]:
            if argument.name in kwargs:
                values.append(self.convert(len(values), kwargs[argument.name]))
            elif argument.has_default_value():
                values.append(argument.default_value)
            else:
                raise RuntimeError(
                    f"{self.schema.name}() is missing value for argument '{argument.name}'. "
                    f"Declaration: {self.schema}"
                )
        for name in kwargs:
            self._check_keyword(name, given)
        return tuple(values)

    def convert(self, index: int, value: Any) -> Any:
        try:
            return self.converters[index](value)
        except Mismatch:
            argument = self.schema.arguments[index]
            if value is None and argument.has_default_value() and argument.default_value is None:
                return None
            raise RuntimeError(
                f"{self.schema.name}() Expected a value of type '{argument.type}' for argument "
                f"'{argument.name}' but instead found type '{type(value).__name__}'. Position: "
                f"{index}. Value: {value!r}. Declaration: {self.schema}"
            ) from None

    def _check_keyword(self, name: str, given: int) -> None:
        index = self.names.get(name)
        if index is None:
            raise RuntimeError(
                f"Unknown keyword argument '{name}' for operator '{self.schema.name}'. Schema: "
                f"{self.schema}"
            )
        if index < given:
            raise RuntimeError(
                f"Argument '{name}' specified both as positional and keyword argument. Schema: "
                f"{self.schema}"
            )


class Results:
    """Checks and converts what a kernel returns; None may stand for a tensor."""

    def __init__(self, schema: FunctionSchema) -> None:
        self.schema = schema
        self.converters = [converter_for(r.type, r.N) for r in schema.returns]

    def convert(self, value: Any) -> Any:
        """The results of an operator: one value, a tuple of several, or None."""
        count = len(self.converters)
        if count == 1:
            return self._one(0, value)
        if count == 0:
            if value is not None:
                raise RuntimeError(
                    f"Expected the kernel of {self.schema.name} to return None but it returned a "
                    f"value of type {type(value).__name__}: its schema is {self.schema}"
                )
            return None
        if not isinstance(value, (tuple, list)):
            raise TypeError(
                f"the kernel of {self.schema.name} returned a {type(value).__name__} where its "
                f"schema wants a tuple of {count}: {self.schema}"
            )
        if len(value) != count:
            raise RuntimeError(
                f"the kernel of {self.schema.name} returned {len(value)} values where its schema "
                f"wants {count}: {self.schema}"
            )
        return tuple([self._one(i, item) for i, item in enumerate(value)])

    def _one(self, index: int, value: Any) -> Any:
        kind = self.schema.returns[index].type
        if value is None and kind.base == "Tensor":
            return None
        try:
            return self.converters[index](value)
        except Mismatch:
            raise RuntimeError(
                f"Unable to cast {value!r} to {kind}: return value {index} of the kernel of "
                f"{self.schema.name}, whose schema is {self.schema}"
            ) from None
