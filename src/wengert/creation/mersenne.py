"""The Mersenne Twister behind generators, and the numbers that PyTorch makes of its words.

A word has 32 bits. A float32 in [0, 1) is the low 24 bits of one, a float64 the low 53 bits of two.
`mersenne.pyx` beside this file is the compiled form, which gives the same numbers (float64 results
of logarithms, sines and cosines to one rounding); an extension module wins at import.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .rounding import fused

_WORDS = 624
_LOGARITHM = (
    -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip


class Mersenne:
    """The words of MT19937 from a 32-bit seed, and the numbers that they become."""

    def __init__(self, seed: int) -> None:
        # Importing numpy.random takes as long as a third of numpy itself.
        from numpy.random import MT19937

        self._words: Any = MT19937()
        self._words._legacy_seeding(seed)
        self._fresh = True
        self._normal: float | None = None

    def state(self) -> tuple[bytes, int, float | None]:
        """The key, the place of the next word in it (0 before the first), a waiting normal."""
        state = self._words.state["state"]
        key = state["key"].astype(np.uint32).tobytes()
        return key, 0 if self._fresh else int(state["pos"]), self._normal

    def restore(self, key: bytes, next: int, normal: float | None) -> None:
        """Return to what `state` gave."""
        if len(key) != 4 * _WORDS or not 0 <= next <= _WORDS:
            raise ValueError("not a state of the Mersenne Twister")
        words = np.frombuffer(key, np.uint32)
        state = {"key": words, "pos": next or _WORDS}
        self._words.state = {"bit_generator": "MT19937", "state": state}
        self._fresh = next == 0
        self._normal = normal

    def words(self, count: int) -> Any:
        """The next words, as uint32."""
        self._fresh = self._fresh and count == 0
        return self._words.random_raw(count).astype(np.uint32)

    def unit(self) -> float:
        """The next float64 in [0, 1)."""
        return float(self._units(1)[0])

    def uniform(self, out: Any, low: float, high: float) -> None:
        """Fill a contiguous array of float32 or float64 from [low, high)."""
        flat = out.reshape(-1)
        flat[...] = self._units(flat.size, flat.dtype)
        if low != 0 or high != 1:
            begin, end = flat.dtype.type(low), flat.dtype.type(high)
            flat[...] = fused(flat, end - begin, begin)
            flat[flat == end] = begin

    def normal(self, out: Any, mean: float, std: float) -> None:
        """Fill a contiguous array of float32 or float64 with at least 16 elements."""
        flat = out.reshape(-1)
        whole = flat.size // 16 * 16
        units = self._units(flat.size, flat.dtype)
        make = _blocks_of_floats if flat.dtype == np.float32 else _blocks_of_doubles
        flat[:whole] = make(units[:whole], mean, std)
        if whole < flat.size:
            flat[-16:] = make(self._units(16, flat.dtype), mean, std)

    def normals_in_pairs(self, count: int, mean: float, std: float) -> Any:
        """So many float64, made in pairs; what is left of the last waits for the next call."""
        before = [] if self._normal is None or not count else [self._normal]
        if before:
            self._normal = None
        units = self._units((count - len(before) + 1) // 2 * 2)
        angles = 2 * math.pi * units[0::2]
        radii = np.sqrt(-2 * np.log1p(-units[1::2]))
        pairs = np.stack([radii * np.cos(angles), radii * np.sin(angles)], 1).reshape(-1)
        values = np.concatenate([before, pairs])
        if values.size > count:
            self._normal = float(values[-1])
        return fused(values[:count], std, mean)

    def flags(self, count: int, p: float) -> Any:
        """So many bools, each true with probability `p`."""
        return self._units(count) < p

    def integers(self, out: Any, span: int, base: int, wide: bool) -> None:
        """Fill a contiguous array of int64 from [base, base + span); a span of 0 means 2**64.

        An element takes two words if `wide`.
        """
        words = self._wide(out.size) if wide else self.words(out.size).astype(np.uint64)
        if span:
            words %= np.uint64(span)
        out.reshape(-1)[...] = (words + np.uint64(base % 2**64)).view(np.int64)

    def permutation(self, count: int) -> Any:
        """The numbers below `count` in random order, as int64."""
        order = list(range(count))
        if count > 1:
            left = np.arange(count, 1, -1, dtype=np.uint64)
            words = self._wide(count - 1) if count >= 2**32 else self.words(count - 1)
            for place, step in enumerate((words % left).tolist()):
                other = place + step
                order[place], order[other] = order[other], order[place]
        return np.array(order, np.int64)

    def exponential(self, count: int, factor: float) -> Any:
        """So many float64: `factor` times the logarithm of a uniform number."""
        return factor * np.log1p(-self._units(count))

    def _wide(self, count: int) -> Any:
        """So many numbers of two words."""
        words = self.words(2 * count).astype(np.uint64)
        return (words[0::2] << np.uint64(32)) | words[1::2]

    def _units(self, count: int, dtype: Any = np.float64) -> Any:
        """So many numbers in [0, 1)."""
        if dtype == np.float32:
            return (self.words(count) & np.uint32(2**24 - 1)).astype(np.float32) * np.float32(
                2.0**-24
            )
        return (self._wide(count) & np.uint64(2**53 - 1)) * 2.0**-53


def _blocks_of_doubles(units: Any, mean: float, std: float) -> Any:
    """Normal numbers of uniform ones, in blocks of 16."""
    first, second = np.moveaxis(units.reshape(-1, 2, 8), 1, 0)
    radii, angles = np.sqrt(-2 * np.log(1 - first)), 2 * math.pi * second
    pairs = np.stack([radii * np.cos(angles), radii * np.sin(angles)], 1)
    return fused(pairs.reshape(-1), std, mean)


def _blocks_of_floats(units: Any, mean: float, std: float) -> Any:
    """Normal float32 of uniform ones, in blocks of 16."""
    first, second = np.moveaxis(units.reshape(-1, 2, 8), 1, 0)
    real = np.float32
    radii = np.sqrt(real(-2) * _logarithm(real(1) - first))
    sines, cosines = _sine_and_cosine(real(2 * math.pi) * second)
    pairs = np.stack([radii * cosines, radii * sines], 1)
    return fused(pairs.reshape(-1), real(std), real(mean))


def _logarithm(x: Any) -> Any:
    """The logarithm of float32 by the polynomial of the Cephes library, with fused sums."""
    real = np.float32
    mantissa, exponent = np.frexp(x)
    small = mantissa < real(math.sqrt(0.5))
    power = exponent.astype(real) - small
    rest = mantissa - real(1) + np.where(small, mantissa, real(0))
    square = rest * rest
    value = np.full_like(rest, 7.0376836292e-2)
    for coefficient in _LOGARITHM:
        value = fused(value, rest, real(coefficient))
    value = fused(value * rest, square, power * real(-2.12194440e-4)) - real(0.5) * square
    return fused(power, real(0.693359375), rest + value)


def _sine_and_cosine(angle: Any) -> tuple[Any, Any]:
    """Sine and cosine of float32 by the polynomials of the Cephes library, with fused sums."""
    real = np.float32
    octant = ((angle * real(4 / math.pi)).astype(np.int32) + 1) & ~1
    turns = -octant.astype(real)
    for part in (0.78515625, 2.4187564849853515625e-4, 3.77489497744594108e-8):
        angle = fused(turns, real(part), angle)
    square = angle * angle
    cosine = fused(square, real(2.443315711809948e-5), real(-1.388731625493765e-3))
    cosine = fused(cosine, square, real(4.166664568298827e-2))
    cosine = fused(cosine * square, square, real(-0.5) * square) + real(1)
    sine = fused(square, real(-1.9515295891e-4), real(8.3321608736e-3))
    sine = fused(sine, square, real(-1.6666654611e-1))
    sine = fused(sine * square, angle, angle)
    swapped = octant & 2 != 0
    sine, cosine = np.where(swapped, cosine, sine), np.where(swapped, sine, cosine)
    sine = np.where(octant & 4, -sine, sine)
    return sine, np.where((octant - 2) & 4, cosine, -cosine)
