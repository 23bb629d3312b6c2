"""Pools whose windows begin at random places."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...creation.random import rand
from ...operators.joining import cat
from ...operators.pooling import flat_planes
from .pooling import _option


def _starts(samples: Tensor, length: int, count: int, kernel: int) -> Tensor:
    """Where the windows of one dimension begin, from one random number for each plane."""
    first = samples.unsqueeze(-1)
    last = (first * 0 + (length - kernel)).long()
    if count == 1:
        return last
    alpha = (length - kernel) / (count - 1)
    numbers = first.new_tensor([float(i) for i in range(count - 1)])
    starts = ((numbers + first) * alpha).floor() - (first * alpha).floor()
    return cat([starts.long(), last], -1)


def _checked(samples: Tensor, input: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Given random numbers, one for each plane and dimension, without those of more examples."""
    name = "_random_samples"
    given = samples.array.shape
    if samples.dtype is not input.dtype:
        raise RuntimeError(
            f"Expect {name} to have the same dtype as input, {input.dtype}, got {samples.dtype}"
        )
    if len(given) != 3:
        raise RuntimeError(f"Expect {name} to have 3 dimensions, got {len(given)}")
    if given[0] < shape[0]:
        raise RuntimeError(
            f"Expect {name}.size(0) no less then input batch size, {shape[0]}, got {given[0]}"
        )
    if given[1] != shape[1]:
        raise RuntimeError(
            f"Expect {name}.size(1) equals to input channel size, {shape[1]}, got {given[1]}"
        )
    if given[2] != shape[2]:
        raise RuntimeError(f"Expect {name}.size(2) equals to {shape[2]}; got {given[2]}.")
    return samples[: shape[0]]


def _fractional(
    name: str,
    count: int,
    input: Tensor,
    kernel_size: Any,
    output_size: Any,
    output_ratio: Any,
    return_indices: bool,
    samples: Tensor | None,
) -> Any:
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    ndim = input.array.ndim
    if ndim not in (count + 1, count + 2):
        raise RuntimeError(
            f"{name}(): Expected {count + 1}D or {count + 2}D tensor, but got {ndim}D"
        )
    shape = input.array.shape
    lead, planes = shape[: ndim - count], shape[ndim - count :]
    kernel = _option(name, "kernel_size", kernel_size, count)
    if output_size is None:
        ratios = (output_ratio,) * count if isinstance(output_ratio, float) else output_ratio
        output_size = [int(n * ratio) for n, ratio in zip(planes, ratios, strict=True)]
    sizes = _option(name, "output_size", output_size, count)
    for n, k, m in zip(planes, kernel, sizes, strict=True):
        if m + k - 1 > n:
            raise RuntimeError(
                f"{name}(): pool size {k} with output size {m} is too large relative to input "
                f"size {n}"
            )
    whole = (1, *lead) if len(lead) == 1 else lead
    if samples is None:
        samples = rand((*whole, count), dtype=input.dtype, device=input.device)
    else:
        samples = _checked(samples, input, (*whole, count))
    # Pictures read the random numbers of their columns first, volumes from the first dimension on.
    places = range(count) if count == 3 else reversed(range(count))
    table = None  # by windows and their elements, for all dimensions so far
    for length, k, m, place in zip(planes, kernel, sizes, places, strict=True):
        starts = _starts(samples.detach()[..., place], length, m, k)
        own = starts.unsqueeze(-1) + starts.new_tensor(list(range(k)))
        if table is None:
            table = own
        else:
            windows = table.array.shape[-2] * m
            table = (table.unsqueeze(-2).unsqueeze(-1) * length + own.unsqueeze(-2).unsqueeze(-4))
            table = table.reshape((*whole, windows, -1))
    assert table is not None
    table = table.reshape((*lead, *table.array.shape[-2:]))
    found = flat_planes(input, count).gather(-1, flat_planes(table, 2))
    values, chosen = found.reshape(table.array.shape).max(-1)
    values = values.reshape((*lead, *sizes))
    if not return_indices:
        return values
    indices = table.gather(-1, chosen.unsqueeze(-1)).reshape((*lead, *sizes))
    return values, indices


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The largest elements of windows of pictures that begin at random places."""
    options = (kernel_size, output_size, output_ratio, return_indices, _random_samples)
    return _fractional("fractional_max_pool2d", 2, input, *options)


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The largest elements of windows of volumes that begin at random places."""
    options = (kernel_size, output_size, output_ratio, return_indices, _random_samples)
    return _fractional("fractional_max_pool3d", 3, input, *options)
