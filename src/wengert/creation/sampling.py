"""Random numbers in arrays: each function fills an array in place.

The numbers are those that PyTorch draws on the CPU from the same state of a generator: each
function says how many words of the stream an element takes. Elements are filled in the order of
their places in memory. Numbers are drawn on the host and then moved; shape-only arrays are checked
and left.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ..backends.backend import has_elements, is_array
from ..backends.layout import empty_in_order
from ..backends.placement import of_array, transfer
from ..core import dtypes
from ..core.devices import CPU
from . import rejection
from .generator import Generator, default_generator, source_of
from .mersenne import Mersenne
from .rounding import fused

_DIGITS = {dtypes.bfloat16: 8, dtypes.float16: 11, dtypes.float32: 24, dtypes.float64: 53}
_INT64 = np.dtype(np.int64).char
# From here on normal numbers are made in blocks of this size.
_BLOCK = 16
# Ranges from here on take two words for an element.
_WIDE_RANGE = 2**28


def fill_plain_uniform(array: Any) -> None:
    """Draw from [0, 1) into a new array of float32 or float64."""
    (default_generator._source or default_generator.source).uniform(array, 0.0, 1.0)


def fill_plain_normal(array: Any) -> None:
    """Draw standard normal numbers into a new array of float32 or float64."""
    source = default_generator._source or default_generator.source
    if array.size < _BLOCK:
        array[...] = source.normals_in_pairs(array.size, 0.0, 1.0).reshape(array.shape)
    else:
        source.normal(array, 0.0, 1.0)


def fill_uniform(
    array: Any, low: float = 0.0, to: float = 1.0, generator: Generator | None = None
) -> None:
    """Draw from [low, to); both parts of complex numbers are drawn."""
    kind = dtypes.from_numpy(array.dtype)
    _require_floating("uniform_", kind)
    real = kind.to_real()
    _check_range(low, to, real)
    source = source_of(generator)
    if _has_no_values(array):
        return
    if _is_row(array, "fd"):
        source.uniform(array, low, to)
        return
    values = np.empty(_parts(array, kind), _drawn_as(real))
    source.uniform(values, low, to)
    if kind.itemsize == 2:
        values = values.astype(array.dtype)
        values[values == values.dtype.type(to)] = low
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
    if has_elements(mean) or has_elements(std):
        values = np.empty(array.shape, array.dtype)
        varied = has_elements(std)
        _fill_scaled_normal(values, kind, source, 0.0, 1.0 if varied else std)
        if varied:
            values = _typed(np.multiply, values, std)
        array[...] = transfer(_typed(np.add, values, mean), of_array(array))
        return
    _fill_scaled_normal(array, kind, source, mean, std)


def _fill_scaled_normal(
    array: Any, kind: dtypes.dtype, source: Mersenne, mean: float, std: float
) -> None:
    """Draw in blocks where PyTorch does: from 16 elements on that lie in rows."""
    if kind.is_complex:
        std = std / math.sqrt(2)
    count = _parts(array, kind)
    if count < _BLOCK or not array.flags.c_contiguous:
        _deposit(array, source.normals_in_pairs(count, mean, std))
    elif _is_row(array, "fd"):
        source.normal(array, mean, std)
    elif kind.itemsize == 2:
        # Block by block, the last of which overlaps the one before it.
        blocks = np.empty(-(-count // _BLOCK) * _BLOCK, np.float32)
        source.normal(blocks, mean, std)
        _deposit(array, np.concatenate([blocks[: count - _BLOCK], blocks[-_BLOCK:]]))
    else:
        values = np.empty(count, _drawn_as(kind.to_real()))
        source.normal(values, mean, std)
        _deposit(array, values)


def _typed(function: Any, values: Any, operand: Any) -> Any:
    """What a ufunc gives in the common type, in the type of the values."""
    if not has_elements(operand):
        operand = values.dtype.type(operand)
    common = np.float32 if values.dtype.itemsize == 2 else np.result_type(values, operand)
    found = np.asarray(function(values, operand, dtype=common))
    return found.astype(values.dtype, copy=False)


def fill_log_normal(
    array: Any, mean: float = 1.0, std: float = 2.0, generator: Generator | None = None
) -> None:
    """Draw numbers whose logarithms have a normal distribution."""
    kind = dtypes.from_numpy(array.dtype)
    if kind.category != dtypes.FLOATING:
        raise NotImplementedError(f"\"log_normal_cpu\" not implemented for '{kind.scalar_name}'")
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    source = source_of(generator)
    if _has_no_values(array):
        return
    with np.errstate(over="ignore"):
        _deposit(array, np.exp(source.normals_in_pairs(array.size, mean, std)))


def fill_cauchy(
    array: Any, median: float = 0.0, sigma: float = 1.0, generator: Generator | None = None
) -> None:
    """Draw from the Cauchy distribution."""
    kind = dtypes.from_numpy(array.dtype)
    _require_continuous("Cauchy", kind)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    source = source_of(generator)
    if _has_no_values(array):
        return
    units = np.empty(array.size)
    source.uniform(units, 0.0, 1.0)
    _deposit(array, fused(np.tan(math.pi * (units - 0.5)), sigma, median))


def fill_geometric(array: Any, p: float, generator: Generator | None = None) -> None:
    """Draw the number of tries until one succeeds that succeeds with probability `p`."""
    kind = dtypes.from_numpy(array.dtype)
    if kind.is_complex or kind.category == dtypes.BOOL:
        raise NotImplementedError(f"\"geometric_cpu\" not implemented for '{kind.scalar_name}'")
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    source = source_of(generator)
    if _has_no_values(array):
        return
    units = np.empty(array.size)
    source.uniform(units, 0.0, 1.0)
    with np.errstate(all="ignore"):
        tries = np.ceil(np.log(units) / math.log(1 - p))
        _deposit(array, tries.astype(np.int64) if kind.category == dtypes.INTEGRAL else tries)


def fill_range(
    array: Any, low: int = 0, high: int | None = None, generator: Generator | None = None
) -> None:
    """Draw whole numbers from [low, high); without `high`, up to the last that is exact."""
    kind = dtypes.from_numpy(array.dtype)
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
    if kind.category == dtypes.FLOATING:
        low, high = _distinct_bounds(low, high, kind)
    span = high - low
    base = low if span < 2**64 else 0  # all 64 bits: the words as they are
    _fill_whole(array, base, span, span >= _WIDE_RANGE, generator)


def _fill_whole(
    array: Any, low: int, span: int, wide: bool, generator: Generator | None
) -> None:
    source = source_of(generator)
    if _has_no_values(array):
        return
    in_place = _is_row(array, _INT64)
    drawn = array if in_place else np.empty(array.size, np.int64)
    source.integers(drawn, span % 2**64, low, wide)
    if not in_place:
        _deposit(array, drawn)


def _distinct_bounds(low: int, high: int, kind: dtypes.dtype) -> tuple[int, int]:
    """Bounds moved inwards, where they are so large that the type skips whole numbers."""
    digits = _DIGITS[kind]

    def rounded(number: int) -> int:
        return int(float(np.asarray(number, np.float64).astype(kind.numpy)))

    if rounded(low + 1) < low:
        low = rounded(low + 1) + 2 ** max(abs(low + 1).bit_length() - digits, 0)
    if rounded(high - 1) >= high:
        high -= 2 ** max((high - 1).bit_length() - digits, 0)
    return low, high


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
    if not given:
        kind = dtypes.from_numpy(array.dtype)
        span = _whole_numbers(kind)[2] + 1
        _fill_whole(array, 0, span, kind.itemsize == 8, generator)
        return
    first, last = given if len(given) == 2 else (0, given[0])
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
    if not is_array(p):
        if not 0 <= p <= 1:
            raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
        if not _has_no_values(array):
            _deposit(array, source.flags(array.size, p))
        return
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
    units = np.empty(array.size, np.float64 if p.dtype == np.float64 else np.float32)
    source.uniform(units, 0.0, 1.0)
    ordered = np.broadcast_to(p, array.shape).transpose(memory_order(array))
    _deposit(array, units < ordered.reshape(-1))


def fill_exponential(array: Any, lambd: float = 1.0, generator: Generator | None = None) -> None:
    """Draw from the exponential distribution."""
    kind = dtypes.from_numpy(array.dtype)
    _require_continuous("Exponential", kind)
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    source = source_of(generator)
    if _has_no_values(array):
        return
    _deposit(array, source.exponential(array.size, -1 / lambd))


def fill_poisson(array: Any, rates: Any, generator: Generator | None = None) -> None:
    """Draw numbers of events, from an array that says how many are expected at each place."""
    rates = _on_cpu(rates)
    source = source_of(generator)
    if _has_no_values(array):
        return
    if not np.all(rates >= 0):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    unit = source.unit
    drawn = [rejection.poisson(rate, unit) for rate in _in_memory_order(rates, array)]
    _deposit(array, np.array(drawn))


def fill_binomial(
    array: Any, counts: Any, probabilities: Any, generator: Generator | None = None
) -> None:
    """Draw numbers of successes, from arrays of numbers of tries and probabilities."""
    counts, probabilities = _on_cpu(counts), _on_cpu(probabilities)
    source = source_of(generator)
    if _has_no_values(array):
        return
    unit = source.unit
    given = zip(
        _in_memory_order(counts, array), _in_memory_order(probabilities, array), strict=True
    )
    _deposit(array, np.array([rejection.binomial(*each, unit) for each in given]))


def fill_gamma(array: Any, concentrations: Any, generator: Generator | None = None) -> None:
    """Draw from gamma distributions with rate one, from an array of their concentrations."""
    concentrations = _on_cpu(concentrations)
    source = source_of(generator)
    if _has_no_values(array):
        return

    def normal() -> float:
        return float(source.normals_in_pairs(1, 0.0, 1.0)[0])

    given = _in_memory_order(concentrations, array)
    _deposit(array, np.array([rejection.gamma(each, source.unit, normal) for each in given]))


def fill_slopes(
    array: Any, values: Any, low: float, high: float, generator: Generator | None = None
) -> None:
    """Draw from [low, high) where `values` are not positive, and write ones elsewhere."""
    values = _on_cpu(values)
    source = source_of(generator)
    if _has_no_values(array):
        return
    slopes = np.ones(array.shape)
    drawn = values <= 0
    numbers = np.empty(np.count_nonzero(drawn))
    if array.dtype != np.float64:
        low, high = float(np.float32(low)), float(np.float32(high))  # as PyTorch takes them
    source.uniform(numbers, 0, 1)
    slopes[drawn] = numbers * (high - low) + low
    _deposit(array, slopes.reshape(-1))


def draw_permutation(n: int, generator: Generator | None = None) -> Any:
    """The numbers below `n` in random order, as int64."""
    return source_of(generator).permutation(n)


def draw_multinomial(
    weights: Any, num_samples: int, replacement: bool, generator: Generator | None = None
) -> Any:
    """For each row of `weights`, indices drawn in proportion to it, as int64."""
    source = source_of(generator)
    if not np.all(np.isfinite(weights) & (weights >= 0)):
        raise RuntimeError(
            "invalid multinomial distribution: probability tensor contains either `inf`, `nan` "
            "or element < 0"
        )
    if not np.all(weights.sum(-1) > 0):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if num_samples == 1 or not replacement:
        return _race(weights, num_samples, source)
    drawn = np.empty((len(weights), num_samples), np.int64)
    points = np.empty(num_samples)
    for row, chosen in zip(weights, drawn, strict=True):
        cumulative = np.cumsum(row, dtype=_drawn_as(dtypes.from_numpy(row.dtype)))
        cumulative = (cumulative / cumulative[-1]).astype(np.float64)
        cumulative[-1] = 1
        source.uniform(points, 0.0, 1.0)
        chosen[...] = np.searchsorted(cumulative, points, "left")
    return drawn


def _race(rows: Any, num_samples: int, source: Mersenne) -> Any:
    """Exponential arrival times at the given rates: the first to arrive are the ones drawn."""
    times = empty_in_order(rows, rows.dtype)
    _deposit(times, source.exponential(rows.size, -1.0))
    with np.errstate(all="ignore"):
        speeds = rows / times
    if num_samples == 1:
        return speeds.argmax(-1, keepdims=True).astype(np.int64, copy=False)
    # Columns of weight 0 come last.
    if num_samples < rows.shape[1]:
        first = np.argpartition(-speeds, num_samples - 1, -1)[:, :num_samples]
        order = np.argsort(-np.take_along_axis(speeds, first, -1), -1)
        return np.take_along_axis(first, order, -1).astype(np.int64, copy=False)
    return np.argsort(-speeds, -1).astype(np.int64, copy=False)


# How draws become values.


def _is_row(array: Any, characters: str) -> bool:
    """Whether draws can be written straight into an array of these types."""
    return (
        type(array) is np.ndarray
        and array.dtype.char in characters
        and array.flags.c_contiguous
        and array.flags.aligned
    )


def _parts(array: Any, kind: dtypes.dtype) -> int:
    """How many real numbers an array holds."""
    return 2 * array.size if kind.is_complex else array.size


def _drawn_as(real: dtypes.dtype) -> type[np.floating]:
    return np.float64 if real is dtypes.float64 else np.float32


def memory_order(array: Any) -> list[int]:
    """The axes of an array, those with the longest steps in memory first."""
    strides = array.strides
    return sorted(range(array.ndim), key=lambda axis: -abs(strides[axis]))


def _in_memory_order(values: Any, array: Any) -> list[float]:
    """Values that expand to an array, in the order of their places in its memory."""
    expanded = np.broadcast_to(values, array.shape).astype(np.float64)
    return expanded.transpose(memory_order(array)).reshape(-1).tolist()


def _deposit(array: Any, values: Any) -> None:
    """Write numbers in a row to the places of an array, in the order that these have in memory."""
    if dtypes.category_of(array.dtype) == dtypes.COMPLEX:
        values = values.astype(np.float32 if array.dtype == np.complex64 else np.float64)
        values = values.view(array.dtype)
    ordered = array
    if array.ndim > 1 and not array.flags.c_contiguous:
        ordered = array.transpose(memory_order(array))
    ordered[...] = transfer(values.reshape(ordered.shape), of_array(array))


def _on_cpu(parameter: Any) -> Any:
    """A number, or an array of parameters where the generators are."""
    return transfer(parameter, CPU) if has_elements(parameter) else parameter


def _has_no_values(array: Any) -> bool:
    return of_array(array).type == "meta"


# Checks.


def _expands_to(shape: tuple[int, ...], larger: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(larger), strict=False)
    return len(shape) <= len(larger) and all(one in (1, other) for one, other in pairs)


def _require_continuous(name: str, kind: dtypes.dtype) -> None:
    if kind.category != dtypes.FLOATING:
        raise RuntimeError(
            f"{name} distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {kind.scalar_name}"
        )


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
    if kind.is_complex:
        raise NotImplementedError(f"\"random_\" not implemented for '{kind.scalar_name}'")
    if kind.category == dtypes.BOOL:
        return 0, 1, 1
    if kind.category == dtypes.INTEGRAL:
        limits = dtypes.iinfo(kind)
        return limits.min, limits.max, limits.max
    largest = min(int(dtypes.finfo(kind).max), 2**63 - 1)
    return -largest, largest, 2 ** _DIGITS[kind]
