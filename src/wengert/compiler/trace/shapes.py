"""Shapes of results while a function is traced: calls that are alike give results that are alike.

A loop makes the same calls again and again, and so does a reverse; the kernels are asked once.
"""

from __future__ import annotations

from typing import Any

from ...backends.meta import MetaArray, of_strides
from ...core.dtypes import dtype as Dtype
from ...core.dtypes import get_default_dtype
from ...core.tensor import Tensor, wrap
from ...dispatch.levels import OutsideAllLevels

_LITERALS = {int, float, bool, str, type(None), complex, Dtype}


class KnownShapes:
    """The results of calls on shapes, as far as these stand for plain arrays."""

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known: dict[tuple, tuple] = {}

    def call(self, operator: Any, args: tuple) -> Any:
        """What an operator returns for shapes; nothing that is returned shares memory."""
        key = _key(operator, args)
        if key is None:
            with OutsideAllLevels():
                return operator.call(args)
        found = self.known.get(key)
        if found is None:
            with OutsideAllLevels():
                out = operator.call(args)
            found = self.known[key] = _noted(out)
            return out
        kind, results = found
        if kind is None:  # a result of another kind
            with OutsideAllLevels():
                return operator.call(args)
        made = [_made(*result) for result in results]
        return made[0] if kind is Tensor else kind(made)


def _key(operator: Any, args: tuple) -> tuple | None:
    """What the result depends on; None where that is not known."""
    if operator.family == "custom" or operator.is_view:
        return None
    parts: list[Any] = [operator, get_default_dtype()]
    for value in args:
        part = _part(value)
        if part is None:
            return None
        parts.append(part)
    return tuple(parts)


def _part(value: Any) -> Any:
    if isinstance(value, Tensor):
        array = value.array
        if type(array) is not MetaArray:
            return None
        return (array.dtype, array.shape, array.strides, array.stands_for)
    kind = type(value)
    if kind in _LITERALS:
        return (kind, value)
    if kind is tuple or kind is list:
        parts = []
        for item in value:
            part = _part(item)
            if part is None:
                return None
            parts.append(part)
        return (kind, tuple(parts))
    return None


def _noted(out: Any) -> tuple:
    outs = out if isinstance(out, (tuple, list)) else (out,)
    if not all(isinstance(t, Tensor) and type(t.array) is MetaArray for t in outs):
        return None, ()
    headers = [
        (t.array.shape, t.array.strides, t.array.dtype, t.array.stands_for) for t in outs
    ]
    return (Tensor if isinstance(out, Tensor) else type(out)), headers


def _made(shape: tuple, strides: tuple, dtype: Any, place: Any) -> Tensor:
    array = of_strides(shape, strides, dtype)
    array.stands_for = place
    return wrap(array)
