"""Random numbers in arrays: each function fills an array in place.

Numbers are drawn on the host by NumPy and then moved; shape-only arrays are checked and left.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backends.backend import has_elements
from ..backends.placement import of_array, transfer
from ..core import dtypes
from ..core.devices import CPU
from .generator import Generator, source_of

if TYPE_CHECKING:
    from numpy.random import Generator as Source

_DIGITS = {dtypes.bfloat16: 8, dtypes.float16: 11, dtypes.float32: 24, dtypes.float64: 53}
# Below this a single-precision draw in [0, 1) is too coarse to be compared with a probability.
_FINE_PROBABILITY = 1e-3


def fill_uniform(
    array: Any, low: float = 0.0, to: float = 1.0, generator: Generator | None = None
) -> None:
    """Draw from [low, to); both parts of complex numbers are drawn."""
    kind = dtypes.from_numpy(array.dtype)
    _require_floating("uniform_", kind)
    _check_range(low, to, kind.to_real())
    source = source_of(generator)
    if _has_no_values(array):
        return
    values = _standard_uniform(array, kind, source)
    if low != 0 or to != 1:
        values *= to - low
        values += low
    _deposit(array, values)


def fill_normal(
    array: Any, mean: Any = 0.0, std: Any = 1.0, generator: Generator | None = None
) -> None:
    """Draw from normal distributions; `mean` and `std` are numbers or arrays that broadcast.

    A complex number has the variance std**2 in all, half of it in each part.
    """
    kind = dtypes.from_numpy(array.dtype)
    _require_floating("normal_", kind)
    mean, std = _on_cpu(mean), _on_cpu(std)
    _check_std(std)
    source = source_of(generator)
    if _has_no_values(array):
        return
    values = _standard("standard_normal", array, kind, source)
    if kind.is_complex:
        values *= math.sqrt(0.5)
        if isinstance(mean, np.ndarray) or isinstance(std, np.ndarray):
            values = _complex_view(values)
    for function, operand in ((np.multiply, std), (np.add, mean)):
        if isinstance(operand, np.ndarray) and operand.dtype != values.dtype:
            operand = operand.astype(values.dtype)
        function(values, operand, out=values)
    _deposit(array, values)


def fill_range(
    array: Any, low: int = 0, high: int | None = None, generator: Generator | None = None
) -> None:
    """Draw whole numbers from [low, high); without `high`, up to the last that is exact."""
    kind = dtypes.from_numpy(array.dtype)
    if kind.is_complex:
        raise NotImplementedError(f"\"random_\" not implemented for '{kind.scalar_name}'")
    lowest, highest, last_exact = _whole_numbers(kind)
    if high is None:
        high = last_exact + 1
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    if not lowest <= low <= highest:
        raise RuntimeError(f"from is out of bounds for {kind.name}")
    if not lowest <= high - 1 <= highest:
        raise RuntimeError(f"to - 1 is out of bounds for {kind.name}")
    source = source_of(generator)
    if _has_no_values(array):
        return
    drawn_as: Any = array.dtype if kind.category <= dtypes.INTEGRAL else np.int64
    _deposit(array, np.asarray(source.integers(low, high, array.shape, drawn_as)))


def fill_integers(
    array: Any, *bounds: Any, to: Any = None, generator: Generator | None = None
) -> None:
    """Draw whole numbers with the bounds of `random_`: none, `to`, or `from` and `to`."""
    if len(bounds) + (to is not None) > 2:
        raise TypeError(f"random_() takes at most 2 bounds but {len(bounds)} were given")
    given = bounds if to is None else (*bounds, to)
    for bound in given:
        if isinstance(bound, (bool, float, complex)):
            raise TypeError(f"random_(): bounds must be int, not {type(bound).__name__}")
    first, last = given if len(given) == 2 else (0, given[0] if given else None)
    fill_range(
        array, operator.index(first), None if last is None else operator.index(last), generator
    )


def fill_bernoulli(array: Any, p: Any = 0.5, generator: Generator | None = None) -> None:
    """Draw ones with probability `p`, a number or what broadcasts to the array, else zeros."""
    p = _on_cpu(getattr(p, "array", p))
    kind = dtypes.from_numpy(array.dtype)
    if kind.is_complex:
        raise NotImplementedError(f"\"bernoulli_\" not implemented for '{kind.scalar_name}'")
    source = source_of(generator)
    if isinstance(p, np.ndarray):
        if dtypes.category_of(p.dtype) != dtypes.FLOATING:
            name = dtypes.from_numpy(p.dtype).scalar_name
            raise NotImplementedError(f"\"bernoulli\" not implemented for probabilities '{name}'")
        if _has_no_values(array) or _has_no_values(p):
            return
        if not _expands_to(p.shape, array.shape):
            raise RuntimeError(
                f"probabilities of shape {list(p.shape)} do not expand to {list(array.shape)}"
            )
        if not np.all((p >= 0) & (p <= 1)):
            raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true for all probabilities")
        fine = True
    else:
        if not 0 <= p <= 1:
            raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
        if _has_no_values(array):
            return
        fine = p < _FINE_PROBABILITY
    drawn = source.random(array.shape, np.float64 if fine else np.float32)
    _deposit(array, np.asarray(drawn < p))


def fill_exponential(array: Any, lambd: float = 1.0, generator: Generator | None = None) -> None:
    """Draw from the exponential distribution; never 0, so that dividing by the result is safe."""
    kind = dtypes.from_numpy(array.dtype)
    if kind.category != dtypes.FLOATING:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {kind.scalar_name}"
        )
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    source = source_of(generator)
    if _has_no_values(array):
        return
    values = _standard("standard_exponential", array, kind, source)
    if lambd != 1:
        values /= lambd
    np.maximum(values, dtypes.finfo(kind).tiny, out=values)
    _deposit(array, values)


def draw_permutation(n: int, generator: Generator | None = None) -> Any:
    """The numbers below `n` in random order, as int64."""
    return source_of(generator).permutation(n).astype(np.int64, copy=False)


def draw_multinomial(
    weights: Any, num_samples: int, replacement: bool, generator: Generator | None = None
) -> Any:
    """For each row of `weights`, indices drawn in proportion to it, as int64."""
    source = source_of(generator)
    rows = np.asarray(weights, np.float64)
    if not np.all(np.isfinite(rows) & (rows >= 0)):
        raise RuntimeError(
            "invalid multinomial distribution: probability tensor contains either `inf`, `nan` "
            "or element < 0"
        )
    if not np.all(rows.sum(-1) > 0):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if num_samples == 1 or not replacement:
        return _race(rows, num_samples, source)
    drawn = np.empty((len(rows), num_samples), np.int64)
    for row, chosen in zip(rows, drawn, strict=True):
        cumulative = np.cumsum(row)
        points = source.random(num_samples) * cumulative[-1]
        last = np.flatnonzero(row)[-1]
        np.minimum(np.searchsorted(cumulative, points, "right"), last, out=chosen)
    return drawn


def _race(rows: Any, num_samples: int, source: Source) -> Any:
    """Exponential arrival times at the given rates: the first to arrive are the ones drawn."""
    with np.errstate(divide="ignore"):
        times = source.standard_exponential(rows.shape) / rows
    # Columns of weight 0 come last, in random order among themselves only by position.
    if num_samples == 1:
        return times.argmin(-1, keepdims=True).astype(np.int64, copy=False)
    if num_samples < rows.shape[1]:
        first = np.argpartition(times, num_samples - 1, -1)[:, :num_samples]
        order = np.argsort(np.take_along_axis(times, first, -1), -1)
        return np.take_along_axis(first, order, -1).astype(np.int64, copy=False)
    return np.argsort(times, -1).astype(np.int64, copy=False)


# How draws become values.


def _standard(method: str, array: Any, kind: dtypes.dtype, source: Source) -> Any:
    """Standard draws: in `array` itself where NumPy can, else beside it for `_deposit`."""
    draw = getattr(source, method)
    if type(array) is np.ndarray and array.dtype.char in "fd" and array.flags.c_contiguous:
        draw(out=array, dtype=array.dtype)
        return array
    shape = (*array.shape, 2) if kind.is_complex else array.shape
    precision = np.float64 if kind.to_real() is dtypes.float64 else np.float32
    return np.asarray(draw(shape, precision))


def _standard_uniform(array: Any, kind: dtypes.dtype, source: Source) -> Any:
    if kind.itemsize == 2:
        # Rounding a finer draw to 16 bits could give 1, so only numbers that are exact are drawn.
        steps = 2 ** _DIGITS[kind]
        return np.asarray(source.integers(0, steps, array.shape, np.uint16) / np.float32(steps))
    return _standard("random", array, kind, source)


def _complex_view(parts: Any) -> Any:
    return parts.view(np.complex64 if parts.dtype == np.float32 else np.complex128)[..., 0]


def _deposit(array: Any, values: Any) -> None:
    if values is array:
        return
    if values.ndim > array.ndim:
        values = _complex_view(values)
    array[...] = transfer(values, of_array(array))


def _on_cpu(parameter: Any) -> Any:
    """A number, or an array of parameters where the generators are."""
    return transfer(parameter, CPU) if has_elements(parameter) else parameter


def _has_no_values(array: Any) -> bool:
    return of_array(array).type == "meta"


# Checks.


def _expands_to(shape: tuple[int, ...], larger: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(larger), strict=False)
    return len(shape) <= len(larger) and all(one in (1, other) for one, other in pairs)


def _require_floating(function: str, kind: dtypes.dtype) -> None:
    if kind.category < dtypes.FLOATING:
        raise NotImplementedError(f"\"{function}\" not implemented for '{kind.scalar_name}'")


def _check_range(low: float, high: float, real: dtypes.dtype) -> None:
    largest = dtypes.finfo(real).max if (low, high) != (0, 1) else math.inf
    for name, bound in (("from", low), ("to", high)):
        if not -largest <= bound <= largest:
            raise RuntimeError(f"{name} is out of bounds for {real.name}")
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    if high - low > largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= {largest:g}, but found to={high:g} and from={low:g}"
        )


def _check_std(std: Any) -> None:
    if not isinstance(std, np.ndarray):
        if not std >= 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    elif dtypes.category_of(std.dtype) == dtypes.COMPLEX:
        raise RuntimeError("normal expects standard deviation to be non-complex")
    elif not _has_no_values(std) and not np.all(std >= 0):
        raise RuntimeError("normal expects all elements of std >= 0.0")


def _whole_numbers(kind: dtypes.dtype) -> tuple[int, int, int]:
    """The least and greatest whole number of a type, and the last of those without gaps."""
    if kind.category == dtypes.BOOL:
        return 0, 1, 1
    if kind.category == dtypes.INTEGRAL:
        limits = dtypes.iinfo(kind)
        return limits.min, limits.max, limits.max
    largest = min(int(dtypes.finfo(kind).max), 2**63 - 1)
    return -largest, largest, 2 ** _DIGITS[kind]
