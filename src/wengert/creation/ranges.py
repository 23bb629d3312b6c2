"""Tensors whose values follow their indices: arange, linspace, eye, triangle indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..backends.casting import retype
from ..core import dtypes
from ..core.numbers import check_number
from ..core.size import whole
from ..core.tensor import Tensor
from .arguments import number
from .declare import OPTIONS, Blank, maker


def refuse(function: str, kind: dtypes.dtype, *categories: int) -> None:
    if kind.category in categories:
        raise NotImplementedError(f"\"{function}\" not implemented for '{kind.scalar_name}'")


@maker(
    f"arange(Scalar end, *, {OPTIONS}) -> Tensor",
    f"arange.start(Scalar start, Scalar end, *, {OPTIONS}) -> Tensor",
    f"arange.start_step(Scalar start, Scalar end, Scalar step=1, *, {OPTIONS}) -> Tensor",
    # A caller may have counted the numbers himself, and wrongly because of rounding.
    warns_of_resizing=True,
)
def arange(blank: Blank, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    """The numbers from `start` (0) up to but without `end`, `step` apart.

    All ints give int64, anything else the default dtype.
    """
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
    kind = blank.dtype(default)
    if not (apart > 0 or apart < 0):
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(first) and math.isfinite(last)):
        raise RuntimeError(f"unsupported range: {first} -> {last}")
    if (apart > 0 and last < first) or (apart < 0 and last > first):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    refuse("arange", kind, dtypes.BOOL, dtypes.COMPLEX)
    return blank.moved(_counted(first, last, apart, kind))


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


@maker(f"linspace(Scalar start, Scalar end, int steps, *, {OPTIONS}) -> Tensor")
def linspace(blank: Blank, start: Any, end: Any, steps: int) -> Any:
    """`steps` evenly spaced numbers from `start` to `end`, both included."""
    first, last, count, kind = _ends(blank, start, end, steps)
    refuse("linspace", kind, dtypes.BOOL)
    if kind.category == dtypes.INTEGRAL:
        first, last = check_number(first, kind), check_number(last, kind)
    return blank.moved(retype(_spaced(first, last, count), kind))


@maker(
    f"logspace(Scalar start, Scalar end, int steps, float base=10., *, {OPTIONS}) -> Tensor"
)
def logspace(blank: Blank, start: Any, end: Any, steps: int, base: float = 10.0) -> Any:
    """`base` raised to `steps` evenly spaced exponents from `start` to `end`."""
    first, last, count, kind = _ends(blank, start, end, steps)
    refuse("logspace", kind, dtypes.BOOL)
    if kind.category == dtypes.INTEGRAL and count != 1:
        first, last = check_number(first, kind), check_number(last, kind)
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.power(base, _spaced(first, last, count))
    return blank.moved(retype(values, kind))


def _ends(
    blank: Blank, start: Any, end: Any, steps: Any
) -> tuple[Any, Any, int, dtypes.dtype]:
    """Both ends as numbers, the count, and the type of the result."""
    function = blank.function
    for each in (start, end):
        if isinstance(each, Tensor) and each.array.ndim:
            raise RuntimeError(
                f"{function} only supports 0-dimensional start and end tensors, "
                f"but got one with {each.array.ndim} dimension(s)"
            )
    first, last = number(function, "start", start), number(function, "end", end)
    if isinstance(steps, float):
        kinds = ", ".join(type(each).__name__ for each in (start, end, steps))
        raise TypeError(
            f"{function}() received an invalid combination of arguments - got ({kinds}), but "
            "'steps' must be int"
        )
    count = whole(function, "steps", steps)
    if count < 0:
        raise RuntimeError("number of steps must be non-negative")
    default = dtypes.get_default_dtype()
    if isinstance(first, complex) or isinstance(last, complex):
        default = default.to_complex()
    kind = blank.dtype(default)
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


@maker(
    f"eye(SymInt n, *, {OPTIONS}) -> Tensor", f"eye.m(SymInt n, SymInt m, *, {OPTIONS}) -> Tensor"
)
def eye(blank: Blank, n: int, m: int | None = None) -> Any:
    """The `n` by `m` matrix with ones on the diagonal."""
    rows = whole("eye", "n", n)
    columns = rows if m is None else whole("eye", "m", m)
    for name, extent in (("n", rows), ("m", columns)):
        if extent < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {extent}")
    kind = blank.dtype()
    return blank.moved(np.eye(rows, columns, dtype=kind.numpy))


@maker(
    f"tril_indices(int row, int col, int offset=0, *, {OPTIONS}) -> Tensor",
    without=("out", "requires_grad"),
)
def tril_indices(blank: Blank, row: int, col: int, offset: int = 0) -> Any:
    """Row and column indices, one row each, of a matrix' entries on and below a diagonal."""
    return _triangle(blank, np.tril_indices, row, col, offset)


@maker(
    f"triu_indices(int row, int col, int offset=0, *, {OPTIONS}) -> Tensor",
    without=("out", "requires_grad"),
)
def triu_indices(blank: Blank, row: int, col: int, offset: int = 0) -> Any:
    """Row and column indices, one row each, of a matrix' entries on and above a diagonal."""
    return _triangle(blank, np.triu_indices, row, col, offset)


def _triangle(blank: Blank, indices: Any, row: Any, col: Any, offset: Any) -> Any:
    function = blank.function
    rows, columns = whole(function, "row", row), whole(function, "col", col)
    for name, extent in (("row", rows), ("col", columns)):
        if extent < 0:
            raise RuntimeError(f"{name} must be non-negative, got {extent}")
    kind = blank.dtype(dtypes.int64)
    refuse(function, kind, dtypes.BOOL, dtypes.FLOATING, dtypes.COMPLEX)
    pairs = np.stack(indices(rows, whole(function, "offset", offset), columns))
    return blank.moved(retype(pairs, kind))
