"""Random tensors for tests."""

from __future__ import annotations

import math
from typing import Any

from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..core.size import parse_size
from ..core.tensor import Tensor
from ..creation.factories import empty
from ..creation.random import randint

_LIMIT = 9  # the usual tensor holds numbers of this size


def make_tensor(
    *shape: Any,
    dtype: dtypes.dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of numbers drawn uniformly from [low, high), by default from -9 to 9."""
    sizes = parse_size("make_tensor", shape) if shape else ()
    low, high = _bounds(dtype, low, high)
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, "
            f"but got noncontiguous=True and memory_format={memory_format}"
        )
    noncontiguous = noncontiguous and math.prod(sizes) > 1
    if noncontiguous:
        sizes = (*sizes[:-1], 2 * sizes[-1])
    if dtype.category < dtypes.FLOATING:
        made = randint(math.floor(low), math.ceil(high), sizes, dtype=dtype, device=device)
    else:
        made = empty(sizes, dtype=dtype, device=device).uniform_(low, high)
    if noncontiguous:
        made = made[..., 1::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        with no_grad():
            made[made == 0] = 1 if dtype.category < dtypes.FLOATING else dtypes.finfo(dtype).tiny
    return made.requires_grad_() if requires_grad else made


def _bounds(
    dtype: dtypes.dtype, low: float | None, high: float | None
) -> tuple[float, float]:
    """The range, within what the type holds."""
    whole = dtype.category < dtypes.FLOATING
    if dtype.category == dtypes.BOOL:
        least, most, usual = 0.0, 2.0, (0, 2)
    elif whole:
        limits = dtypes.iinfo(dtype)
        least, most = limits.min, limits.max
        usual = (0, 10) if least == 0 else (-_LIMIT, _LIMIT + 1)
    else:
        most = dtypes.finfo(dtype).max
        least, usual = -most, (-_LIMIT, _LIMIT)
    low, high = (usual[0] if low is None else low), (usual[1] if high is None else high)
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low!r} and high={high!r}")
    if low >= high and (whole or low > high):
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < least or low > most:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} "
            f"only supports [{least}, {most})"
        )
    return max(low, least), min(high, most)
