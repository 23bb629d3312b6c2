"""Samplers that try until a number is accepted: they take as many uniform numbers as that needs.

Each draws one number of a distribution, from float64 in [0, 1) that `unit` returns.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Unit = Callable[[], float]

#: Corrections to Stirling's approximation of the logarithm of k!, for k from 0.
_STIRLING = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.0207906721037650,
    0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
    0.00925546218271273, 0.00833056343336287,
)  # fmt: skip
# In float32, as PyTorch has it.
_THIRD = 0.3333333432674408
# From this mean on, rejection under a transformed hat is faster than counting.
_LARGE_MEAN = 10


def poisson(rate: float, unit: Unit) -> float:
    """How many events happen in a time in which `rate` are expected."""
    if rate >= _LARGE_MEAN:
        return _poisson_by_rejection(rate, unit)
    if rate == 0:
        return 0.0
    limit, product, events = math.exp(-rate), 1.0, 0
    while True:
        product *= unit()
        if product <= limit:
            return float(events)
        events += 1


def _poisson_by_rejection(rate: float, unit: Unit) -> float:
    """Hörmann's transformed rejection with squeeze, PTRS."""
    log_rate = math.log(rate)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    bound = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = unit() - 0.5
        v = unit()
        us = 0.5 - abs(u)
        if us == 0:
            continue
        k = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= bound:
            return float(k)
        if k < 0 or us < 0.013 and v > us:
            continue
        tried = _log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if tried <= -rate + k * log_rate - math.lgamma(k + 1):
            return float(k)


def binomial(count: float, probability: float, unit: Unit) -> float:
    """How many of `count` tries succeed, each with the same probability."""
    if count <= 0 or probability <= 0:
        return 0.0
    if probability >= 1:
        return count
    if math.isnan(probability) or math.isnan(count):
        return math.nan
    if probability > 0.5:
        return count - binomial(count, 1 - probability, unit)
    if count * probability >= _LARGE_MEAN:
        return _binomial_by_rejection(count, probability, unit)
    return _binomial_by_waiting(count, probability, unit)


def _binomial_by_waiting(count: float, probability: float, unit: Unit) -> float:
    """Count the geometric waiting times between successes that fit into `count` tries."""
    logarithm, tries, successes = math.log1p(-probability), 0.0, 0
    while True:
        tries += math.ceil(_log(unit()) / logarithm)
        if tries > count:
            return float(successes)
        successes += 1


def _binomial_by_rejection(count: float, probability: float, unit: Unit) -> float:
    """Hörmann's transformed rejection with squeeze, BTRS."""
    deviation = math.sqrt(count * probability * (1 - probability))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * probability
    c = count * probability + 0.5
    bound = 0.92 - 4.2 / b
    odds = probability / (1 - probability)
    alpha = (2.83 + 5.1 / b) * deviation
    m = math.floor((count + 1) * probability)
    while True:
        u = unit() - 0.5
        v = unit()
        us = 0.5 - abs(u)
        if us == 0:
            continue
        k = math.floor((2 * a / us + b) * u + c)
        if us >= 0.07 and v <= bound:
            return float(k)
        if k < 0 or k > count:
            continue
        tried = _log(v * alpha / (a / (us * us) + b))
        upper = (
            (m + 0.5) * math.log((m + 1) / (odds * (count - m + 1)))
            + (count + 1) * math.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * math.log(odds * (count - k + 1) / (k + 1))
            + _stirling(m)
            + _stirling(count - m)
            - _stirling(k)
            - _stirling(count - k)
        )
        if tried <= upper:
            return float(k)


def gamma(concentration: float, unit: Unit, normal: Unit) -> float:
    """A sample of the gamma distribution with rate one, by Marsaglia's and Tsang's method.

    `normal` returns standard normal numbers.
    """
    scale = 1.0
    if concentration < 1:
        if concentration == 0:
            return 0.0
        scale = (1 - unit()) ** (1 / concentration)
        concentration += 1
    d = concentration - _THIRD
    c = 1 / math.sqrt(9 * d)
    while True:
        x = normal()
        y = 1 + c * x
        if y <= 0:
            continue
        v, u, square = y * y * y, 1 - unit(), x * x
        if u < 1 - 0.0331 * square * square:
            return scale * d * v
        if math.log(u) < 0.5 * square + d * (1 - v + math.log(v)):
            return scale * d * v


def _stirling(k: float) -> float:
    """What Stirling's approximation of the logarithm of k! lacks."""
    if k < len(_STIRLING):
        return _STIRLING[int(k)]
    square = (k + 1) ** 2
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf
