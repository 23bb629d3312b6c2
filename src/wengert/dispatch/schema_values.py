"""Values of the types that schemas name.

A converter takes a value and returns it as its schema type, or raises `Mismatch`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..core.devices import device
from ..core.dtypes import dtype
from ..core.layouts import layout, memory_format
from ..core.registry import SCHEMA_CLASSES
from ..core.tensor import Tensor
from .schema import Argument, Mismatch

Converter = Callable[[Any], Any]


def converter_of(argument: Argument) -> Converter:
    """The converter of an argument's type; a list of fixed size may be given as one element."""
    return _converter(argument.base, argument.suffixes, argument.size)


@cache
def _converter(base: str, suffixes: tuple[str, ...], size: int | None) -> Converter:
    if not suffixes:
        return _CONVERTERS.get(base) or _instance(SCHEMA_CLASSES[base])
    inner, last = suffixes[:-1], suffixes[-1]
    if last == "?":
        convert = _converter(base, inner, size)
        return lambda value: None if value is None else convert(value)
    return _list_converter(base, _converter(base, inner, None), size)


def _list_converter(base: str, convert: Converter, size: int | None) -> Converter:
    def convert_list(value: Any) -> list:
        if isinstance(value, (list, tuple)) or (
            isinstance(value, np.ndarray) and value.ndim == 1 and base != "Tensor"
        ):
            return [convert(item) for item in value]
        if size is None or base not in ("int", "SymInt", "float", "bool"):
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
    "Layout": _instance(layout),
    "MemoryFormat": _instance(memory_format),
    "Device": _device,
}
