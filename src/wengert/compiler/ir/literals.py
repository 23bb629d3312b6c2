"""Literals: the arguments of nodes that are no values, their text, and keys to compare them by.

Where an input of the node goes among its literals, there is a `HOLE`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...backends.placement import of_array, transfer
from ...core import dtypes, layouts
from ...core.devices import CPU, device
from ...core.tensor import Tensor
from .types import TensorType, Type, type_of

#: Constants of more elements are not written out.
MOST_ELEMENTS = 64


class _Hole:
    """Stands in a node's arguments for its next input."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "HOLE"

    def __reduce__(self) -> str:
        return "HOLE"


HOLE = _Hole()


def fill(arguments: tuple, inputs: Sequence[Any]) -> tuple:
    """`arguments` with the inputs in place of the holes."""
    supply = iter(inputs)
    return tuple([_filled(item, supply) for item in arguments])


def _filled(item: Any, supply: Iterator[Any]) -> Any:
    if item is HOLE:
        return next(supply)
    return tuple([_filled(part, supply) for part in item]) if type(item) is tuple else item


def literal_text(value: Any, large: Iterable[Tensor] = ()) -> str:
    """The text of a literal."""
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(literal_text(item, large) for item in value)}]"
    if isinstance(value, dtypes.dtype | layouts.layout | layouts.memory_format):
        return value.name
    if isinstance(value, device):
        return f'device("{value}")'
    if isinstance(value, Type):
        return f"type({value})"
    if isinstance(value, Tensor):
        return _tensor_text(value, large)
    if isinstance(value, complex):
        return f"complex({value.real!r}, {value.imag!r})"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _tensor_text(value: Tensor, large: Iterable[Tensor]) -> str:
    kind = TensorType(value.dtype, value.array.shape)
    for i, each in enumerate(large):
        if each is value:
            return f"tensor({kind}, @{i})"
    if value.array.size > MOST_ELEMENTS:
        return f"tensor({kind}, ...)"
    items = value.detach().reshape(-1).tolist()
    return f"tensor({kind}, {literal_text(items)})"


def literal_key(value: Any) -> Any:
    """A key that tells apart all literals that differ: 1, 1.0 and True, 0.0 and -0.0, tensors of
    the same elements that lie otherwise in memory."""
    if isinstance(value, Tensor):
        place, array = of_array(value.array), transfer(value.array, CPU)
        # Strides lead from one element to the next, where there is a next one.
        steps = [s for n, s in zip(array.shape, array.strides, strict=True) if n > 1 and array.size]
        return ("tensor", str(place), str(array.dtype), array.shape, *steps, array.tobytes())
    if isinstance(value, (tuple, list)):
        return tuple([literal_key(item) for item in value])
    return (type(value), repr(value))


def is_printable(value: Any) -> bool:
    """Whether a literal can be read back from its text."""
    if isinstance(value, (tuple, list)):
        return all(map(is_printable, value))
    return (
        isinstance(value, Tensor | Type | layouts.layout | layouts.memory_format)
        or str(type_of(value)) != "Any"
    )

