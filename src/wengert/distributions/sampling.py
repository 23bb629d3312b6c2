"""Draws that distributions need beside those of the package: gamma, Poisson and binomial."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.backend import backend_of
from ..core import dtypes
from ..core.state import thread_state
from ..core.tensor import Tensor
from ..creation.conversion import from_numpy
from ..creation.drawing import draws
from ..creation.random import rand, randn
from ..dispatch.levels import check_same_parameters
from ..operators.gamma_samples import gamma_sample
from ..operators.joining import broadcast_tensors, stack


def standard_gamma(concentration: Tensor) -> Tensor:
    """Samples of gamma distributions with rate one, differentiable by the concentration."""
    return gamma_sample.call((concentration, draw_gamma(concentration.detach())))


def _at_levels(draw: Any, *parameters: Tensor) -> Tensor | None:
    """What the innermost transform makes of a draw; None where there is none."""
    levels = thread_state().levels
    if not levels:
        return None
    check_same_parameters(*parameters)
    joined = stack(list(broadcast_tensors(*parameters)), -1)
    return levels[-1].drawn_like(lambda t: draw(*t.unbind(-1)), joined)


def _doubles(shape: tuple[int, ...], normal: bool = False) -> np.ndarray:
    make = randn if normal else rand
    return make(shape, dtype=dtypes.float64).array


@draws()
def draw_gamma(concentration: Tensor) -> Tensor:
    """Samples of gamma distributions with rate one, by Marsaglia's and Tsang's rejection."""
    inside = _at_levels(draw_gamma, concentration)
    if inside is not None:
        return inside
    if concentration.is_meta:
        return concentration.new_empty(concentration.shape)
    given = np.asarray(concentration.array, np.float64)
    boosted = given < 1
    d = np.where(boosted, given + 1, given).reshape(-1) - 1 / 3
    c = 1 / np.sqrt(9 * d)
    result = np.empty(d.shape)
    waiting = np.arange(d.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        while waiting.size:
            x = _doubles(waiting.shape, normal=True)
            v = (1 + c[waiting] * x) ** 3
            log_u = np.log(1 - _doubles(waiting.shape))
            scale = d[waiting]
            bound = 0.5 * x * x + scale - scale * v + scale * np.log(v)
            accepted = (v > 0) & (log_u < bound)
            result[waiting[accepted]] = (scale * v)[accepted]
            waiting = waiting[~accepted]
        # A sample of a smaller concentration is one of a larger times a power of a uniform number.
        shrink = np.log(1 - _doubles(given.shape)) / given
        result = result.reshape(given.shape) * np.where(boosted, np.exp(shrink), 1)
    return _as(result, concentration)


def _as(values: np.ndarray, like: Tensor) -> Tensor:
    return from_numpy(np.ascontiguousarray(values)).to(like.device, like.dtype)


def _smallest(found: Any, reaches: Any) -> Any:
    """Whole numbers from real ones that were found, rounded up unless the number below does."""
    found = np.maximum(np.ceil(found), 0)
    below = np.maximum(found - 1, 0)
    return np.where(reaches(below), below, found)


@draws()
def draw_poisson(rate: Tensor) -> Tensor:
    """Numbers of events where `rate` are expected."""
    inside = _at_levels(draw_poisson, rate)
    if inside is not None:
        return inside
    if rate.is_meta:
        return rate.new_empty(rate.shape)
    rates = np.asarray(rate.array, np.float64)
    safe, u = np.maximum(rates, 1e-300), _doubles(rates.shape)
    special = backend_of(u).special
    drawn = _smallest(
        special("pdtrik")(u, safe), lambda k: special("gammaincc")(k + 1, safe) >= u
    )
    return _as(np.where(rates == 0, 0, drawn), rate)


@draws()
def draw_binomial(count: Tensor, probs: Tensor) -> Tensor:
    """Numbers of successes in `count` tries that succeed with probability `probs`."""
    inside = _at_levels(draw_binomial, count, probs)
    if inside is not None:
        return inside
    counts, shares = np.broadcast_arrays(
        np.asarray(count.array, np.float64), np.asarray(probs.array, np.float64)
    )
    if probs.is_meta or count.is_meta:
        return probs.new_empty(counts.shape)
    is_sure = (shares <= 0) | (shares >= 1) | (counts == 0)
    p, n = np.where(is_sure, 0.5, shares), np.where(is_sure, 1, counts)
    u = _doubles(counts.shape)
    special = backend_of(u).special

    def reaches(k: Any) -> Any:
        return np.where(k < n, special("betainc")(np.maximum(n - k, 1), k + 1, 1 - p), 1) >= u

    drawn = np.clip(_smallest(special("bdtrik")(u, n, p), reaches), 0, n)
    return _as(np.where(is_sure, np.where(shares >= 1, counts, 0), drawn), probs)
