"""Reductions and normalisations that leave out elements: ``masked.mean(x, 1, mask=m)``.

An element takes part where the mask, which broadcasts to the input, is True. What nothing takes
part in is the neutral element of the reduction, or NaN where it has none.
"""

from typing import Any

from ..core.loading import load as _load
from .normalisations import cumprod as cumprod
from .normalisations import cumsum as cumsum
from .normalisations import log_softmax as log_softmax
from .normalisations import normalize as normalize
from .normalisations import softmax as softmax
from .normalisations import softmin as softmin
from .reductions import amax as amax
from .reductions import amin as amin
from .reductions import argmax as argmax
from .reductions import argmin as argmin
from .reductions import logaddexp as logaddexp
from .reductions import logsumexp as logsumexp
from .reductions import mean as mean
from .reductions import median as median
from .reductions import norm as norm
from .reductions import prod as prod
from .reductions import std as std
from .reductions import sum as sum
from .reductions import var as var

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp",
    "logsumexp", "mean", "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum",
    "var",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    return _load("tensor.out_of_scope").look_up(__name__, name)
