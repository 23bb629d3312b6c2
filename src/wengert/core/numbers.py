"""Python numbers as elements: the dtype they stand for, and whether another can hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import dtypes
from .errors import c_name

_NUMBER_DTYPES = {bool: dtypes.bool, int: dtypes.int64}


_FITS_ALL = 65504  # the largest finite float16, and so within every floating-point type


def overflow_error(target: dtypes.dtype) -> RuntimeError:
    """For a number that a tensor of type `target` cannot hold."""
    whole = target.category == dtypes.INTEGRAL and target is not dtypes.int32
    name = f"{target.name}_t" if whole else c_name(target)
    return RuntimeError(f"value cannot be converted to type {name} without overflow")


def check_number(value: Any, target: dtypes.dtype) -> Any:
    """`value` if a tensor of type `target` can hold it, as filling a tensor demands."""
    if target.category == dtypes.BOOL:
        return bool(value)
    if isinstance(value, complex) and target.category < dtypes.COMPLEX:
        if value.imag != 0:
            raise overflow_error(target)
        value = value.real
    if target.category == dtypes.INTEGRAL:
        limits = dtypes.iinfo(target)
        wraps = not target.is_signed and isinstance(value, (int, np.integer))
        lowest = -limits.max if wraps else limits.min
        if value != value or not lowest <= value < limits.max + 1:
            raise overflow_error(target)
        whole = int(value)
        return whole if whole >= limits.min else whole + limits.max + 1
    if abs(value) <= _FITS_ALL:
        return value
    largest = dtypes.finfo(target).max
    parts = (value.real, value.imag) if isinstance(value, complex) else (value,)
    if any(abs(part) > largest and abs(part) != np.inf for part in parts):
        raise overflow_error(target)
    return value


def infer_number_dtype(value: Any) -> dtypes.dtype:
    """The type a tensor filled with this Python number has unless told otherwise."""
    for python_type in (bool, int, float, complex):
        if isinstance(value, python_type):
            return _infer({python_type})
    raise TypeError(f"must be Number, not {type(value).__name__}")


def _infer(leaves: set[Any]) -> dtypes.dtype:
    result: dtypes.dtype | None = None
    for leaf in leaves:
        if leaf is float:
            each = dtypes.get_default_dtype()
        elif leaf is complex:
            each = dtypes.get_default_complex_dtype()
        else:
            each = _NUMBER_DTYPES.get(leaf, leaf)
        result = each if result is None else dtypes.promote_types(result, each)
    assert result is not None
    return result
