"""Tensors whose values follow their indices: arange, linspace, eye, triangle indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..backends.casting import retype
from ..backends.placement import of_array, transfer
from ..core import dtypes
from ..core.devices import as_device
from ..core.layouts import check_options
from ..core.numbers import check_number
from ..core.size import whole
from ..core.tensor import Tensor
from .arguments import choose_dtype, finish, number


def _place(
    function: str, array: Any, out: Tensor | None, device: Any, requires_grad: bool
) -> Tensor:
    place = as_device(device) if out is None else of_array(out.array)
    if out is not None and array.ndim == 1 and array.size == out.array.size:
        array = array.reshape(out.array.shape)  # numbers of a range fill what has room for them
    # A caller may have counted the numbers of a range himself, and wrongly because of rounding.
    warn = function == "arange"
    return finish(function, transfer(array, place), out, requires_grad, warn)


def _refuse(function: str, kind: dtypes.dtype, *categories: int) -> None:
    if kind.category in categories:
        raise NotImplementedError(f"\"{function}\" not implemented for '{kind.scalar_name}'")


def arange(
    start: Any = None,
    end: Any = None,
    step: Any = 1,
    *,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """The numbers from `start` (0) up to but without `end`, `step` apart.

    All ints give int64, anything else the default dtype.
    """
    check_options(layout, pin_memory)
    if end is None:
        start, end = (0, start) if start is not None else (start, end)
    if start is None:
        start = 0
    if end is None:
        raise TypeError("arange() missing required argument: 'end'")
    first, last, apart = (
        number("arange", name, value)
        for name, value in (("start", start), ("end", end), ("step", step))
    )
    if any(isinstance(each, complex) for each in (first, last, apart)):
        raise RuntimeError("arange(): value cannot be converted to a real type without overflow")
    all_whole = all(isinstance(each, int) for each in (first, last, apart))
    default = dtypes.int64 if all_whole else dtypes.get_default_dtype()
    kind = choose_dtype(dtype, out, default)
    if not (apart > 0 or apart < 0):
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(first) and math.isfinite(last)):
        raise RuntimeError(f"unsupported range: {first} -> {last}")
    if (apart > 0 and last < first) or (apart < 0 and last > first):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    _refuse("arange", kind, dtypes.BOOL, dtypes.COMPLEX)
    array = _counted(first, last, apart, kind)
    return _place("arange", array, out, device, requires_grad)


def _counted(first: Any, last: Any, apart: Any, kind: dtypes.dtype) -> Any:
    if kind.category == dtypes.INTEGRAL:
        if kind is dtypes.int64:
            if int(apart) == 0:
                raise ValueError("step must be nonzero")
            return np.arange(int(first), int(last), int(apart), dtype=np.int64)
        count = math.ceil((last - first) / apart)
        return retype(int(first) + int(apart) * np.arange(count, dtype=np.int64), kind)
    values: Any = np.arange(math.ceil((last - first) / apart), dtype=np.float64)
    values *= apart
    values += first
    return retype(values, kind)


def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """`steps` evenly spaced numbers from `start` to `end`, both included."""
    check_options(layout, pin_memory)
    first, last, count, kind = _ends("linspace", start, end, steps, dtype, out)
    _refuse("linspace", kind, dtypes.BOOL)
    if kind.category == dtypes.INTEGRAL:
        first, last = check_number(first, kind), check_number(last, kind)
    array = retype(_spaced(first, last, count), kind)
    return _place("linspace", array, out, device, requires_grad)


def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """`base` raised to `steps` evenly spaced exponents from `start` to `end`."""
    check_options(layout, pin_memory)
    first, last, count, kind = _ends("logspace", start, end, steps, dtype, out)
    _refuse("logspace", kind, dtypes.BOOL)
    if kind.category == dtypes.INTEGRAL and count != 1:
        first, last = check_number(first, kind), check_number(last, kind)
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.power(base, _spaced(first, last, count))
    array = retype(values, kind)
    return _place("logspace", array, out, device, requires_grad)


def _ends(
    function: str, start: Any, end: Any, steps: Any, dtype: Any, out: Tensor | None
) -> tuple[Any, Any, int, dtypes.dtype]:
    """Both ends as numbers, the count, and the type of the result."""
    for each in (start, end):
        if isinstance(each, Tensor) and each.array.ndim:
            raise RuntimeError(
                f"{function} only supports 0-dimensional start and end tensors, "
                f"but got one with {each.array.ndim} dimension(s)"
            )
    first, last = number(function, "start", start), number(function, "end", end)
    count = whole(function, "steps", steps)
    if count < 0:
        raise RuntimeError("number of steps must be non-negative")
    default = dtypes.get_default_dtype()
    if isinstance(first, complex) or isinstance(last, complex):
        default = default.to_complex()
    kind = choose_dtype(dtype, out, default)
    if default.is_complex and not kind.is_complex:
        raise RuntimeError(
            f"wengert.{function}(): inferred dtype {default.name} can't be safely cast to passed "
            f"dtype {kind.name}"
        )
    return first, last, count, kind


def _spaced(first: Any, last: Any, count: int) -> Any:
    """Evenly spaced doubles; each half is counted from its own end, so that both are exact."""
    is_complex = isinstance(first, complex) or isinstance(last, complex)
    wide: Any = np.complex128 if is_complex else np.float64
    if count == 1:
        return np.array([first], wide)
    apart = (last - first) / (count - 1) if count else 0
    index = np.arange(count)
    half = count // 2
    values = np.empty(count, wide)
    values[:half] = first + apart * index[:half]
    values[half:] = last - apart * index[: count - half][::-1]
    return values


def eye(
    n: int,
    m: int | None = None,
    *,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """The `n` by `m` matrix with ones on the diagonal."""
    check_options(layout, pin_memory)
    rows = whole("eye", "n", n)
    columns = rows if m is None else whole("eye", "m", m)
    for name, extent in (("n", rows), ("m", columns)):
        if extent < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {extent}")
    kind = choose_dtype(dtype, out)
    return _place("eye", np.eye(rows, columns, dtype=kind.numpy), out, device, requires_grad)


def tril_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: dtypes.dtype | None = None,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Row and column indices, one row each, of a matrix' entries on and below a diagonal."""
    check_options(layout, pin_memory)
    return _triangle("tril_indices", np.tril_indices, row, col, offset, dtype, device)


def triu_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: dtypes.dtype | None = None,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Row and column indices, one row each, of a matrix' entries on and above a diagonal."""
    check_options(layout, pin_memory)
    return _triangle("triu_indices", np.triu_indices, row, col, offset, dtype, device)


def _triangle(
    function: str, indices: Any, row: Any, col: Any, offset: Any, dtype: Any, device: Any
) -> Tensor:
    rows, columns = whole(function, "row", row), whole(function, "col", col)
    for name, extent in (("row", rows), ("col", columns)):
        if extent < 0:
            raise RuntimeError(f"{name} must be non-negative, got {extent}")
    kind = choose_dtype(dtype, None, dtypes.int64)
    _refuse(function, kind, dtypes.BOOL, dtypes.FLOATING, dtypes.COMPLEX)
    pairs = np.stack(indices(rows, whole(function, "offset", offset), columns))
    return _place(function, retype(pairs, kind), None, device, False)
