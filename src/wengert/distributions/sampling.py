"""Draws that distributions need beside those of the package: gamma, Poisson and binomial."""

from __future__ import annotations

import numpy as np

from ..core.state import thread_state
from ..core.tensor import Tensor, wrap
from ..creation.drawing import draws
from ..creation.random import binomial, poisson
from ..creation.sampling import fill_gamma
from ..dispatch.levels import check_same_parameters
from ..operators.gamma_samples import gamma_sample
from ..operators.joining import broadcast_tensors


def standard_gamma(concentration: Tensor) -> Tensor:
    """Samples of gamma distributions with rate one, differentiable by the concentration."""
    return gamma_sample.call((concentration, draw_gamma(concentration.detach())))


@draws()
def draw_gamma(concentration: Tensor) -> Tensor:
    """Samples of gamma distributions with rate one."""
    levels = thread_state().levels
    if levels:
        check_same_parameters(concentration)
        return levels[-1].drawn_like(draw_gamma, concentration)
    if concentration.is_meta:
        return concentration.new_empty(concentration.shape)
    array = np.empty(concentration.shape, concentration.array.dtype)
    fill_gamma(array, concentration.array)
    return wrap(array)


def draw_poisson(rate: Tensor) -> Tensor:
    """Numbers of events where `rate` are expected."""
    return poisson(rate.detach())


def draw_binomial(count: Tensor, probs: Tensor) -> Tensor:
    """Numbers of successes in `count` tries that succeed with probability `probs`."""
    return binomial(*broadcast_tensors(count.detach().to(probs.dtype), probs.detach()))
