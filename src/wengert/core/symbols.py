"""Arithmetic that PyTorch also does with symbolic sizes; sizes here are plain numbers."""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterable
from typing import Any


def sym_int(a: Any) -> int:
    """The number without its fraction, as an int."""
    return math.trunc(a)


def sym_float(a: Any) -> float:
    """The number as a float."""
    return float(a)


def sym_not(a: Any) -> bool:
    """Whether the condition does not hold."""
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers; a float if one of them is."""
    return _both(builtins.max, a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers; a float if one of them is."""
    return _both(builtins.min, a, b)


def _both(choose: Any, a: Any, b: Any) -> Any:
    chosen = choose(a, b)
    return float(chosen) if float in (type(a), type(b)) else chosen


def sym_sum(args: Iterable[Any]) -> Any:
    """The sum of numbers."""
    return builtins.sum(args)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """The second argument if the first holds, else the third."""
    return t if b else f


def sym_sqrt(a: Any) -> float:
    """The square root of a number."""
    return math.sqrt(a)


def typename(obj: Any, /) -> str:
    """The name of an object's type with its module; of a tensor as `Tensor.type` has it."""
    from .tensor import Tensor

    if isinstance(obj, Tensor):
        return obj.type()  # type: ignore[no-any-return]
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None) or ""
    name = named.__qualname__
    return name if module in ("", "builtins") else f"{module}.{name}"
