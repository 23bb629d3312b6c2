"""Tensors of random numbers; see `generator` for the streams and `sampling` for the draws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..backends.allocation import new_array, new_array_like
from ..backends.casting import dtype_of
from ..backends.placement import of_array, transfer
from ..core import dtypes
from ..core.arrays import alive
from ..core.devices import as_device
from ..core.errors import broadcast_error
from ..core.layouts import check_options
from ..core.numbers import overflow_error
from ..core.size import parse_size, sequence_size, whole
from ..core.state import thread_state
from ..core.tensor import Tensor, wrap
from ..tape.leaves import require_grad
from ..transforms.randomness import (
    check_same_parameters,
    drawn_by_rows,
    drawn_here,
    drawn_like,
    draws,
    sizes_here,
)
from .arguments import check_tensor, choose_dtype, finish
from .generator import (
    Generator,
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from .sampling import (
    draw_multinomial,
    draw_permutation,
    fill_bernoulli,
    fill_normal,
    fill_range,
    fill_uniform,
)

__all__ = [
    "Generator", "bernoulli", "default_generator", "fork_rng", "get_rng_state", "initial_seed",
    "manual_seed", "multinomial", "normal", "rand", "rand_like", "randint", "randint_like",
    "randn", "randn_like", "randperm", "seed", "set_rng_state",
]  # fmt: skip


def _blank(
    shape: tuple[int, ...], dtype: Any, out: Tensor | None, device: Any, default: Any
) -> Any:
    """The array to draw into, of the type and on the device of the result."""
    place = as_device(device) if out is None else of_array(out.array)
    return new_array((*sizes_here(out), *shape), choose_dtype(dtype, out, default), place)


def _drawn(function: str, array: Any, out: Tensor | None, requires_grad: bool) -> Tensor:
    """The tensor to return for an array of `_blank` that has been filled."""
    if out is not None:
        return finish(function, array, out, requires_grad)
    result = drawn_here(wrap(array))
    return require_grad(result) if requires_grad else result


def _blank_like(input: Tensor, dtype: Any, device: Any, memory_format: Any) -> Any:
    kind = dtype_of(input) if dtype is None else dtypes.as_dtype(dtype)
    place = of_array(input.array) if device is None else as_device(device)
    return new_array_like(alive(input).array, kind, place, memory_format)


@draws
def rand(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Numbers drawn uniformly from [0, 1)."""
    check_options(layout, pin_memory)
    array = _blank(parse_size("rand", sizes, size), dtype, out, device, None)
    fill_uniform(array, 0.0, 1.0, generator)
    return _drawn("rand", array, out, requires_grad)


@draws
def randn(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Numbers drawn from the normal distribution with mean 0 and variance 1."""
    check_options(layout, pin_memory)
    array = _blank(parse_size("randn", sizes, size), dtype, out, device, None)
    fill_normal(array, 0.0, 1.0, generator)
    return _drawn("randn", array, out, requires_grad)


@draws
def randint(
    *bounds: Any,
    low: Any = None,
    high: Any = None,
    size: Any = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Whole numbers drawn from [low, high): `randint(high, size)` or `randint(low, high, size)`."""
    check_options(layout, pin_memory)
    given = list(bounds)
    if size is None:
        if len(given) < 2 and high is None or not given:
            raise TypeError("randint() missing required argument: 'size'")
        size = given.pop()
    first, last = _bounds("randint", given, low, high)
    shape = sequence_size("randint", size)
    array = _blank(shape, dtype, out, device, dtypes.int64)
    fill_range(array, first, last, generator)
    return _drawn("randint", array, out, requires_grad)


def _bounds(function: str, given: list[Any], low: Any, high: Any) -> tuple[int, int]:
    """Both bounds of randint, from positions (high, or low and high) and keywords."""
    if len(given) == 2 and low is None and high is None:
        low, high = given
    elif len(given) == 1 and high is None:
        high = given[0]
    elif len(given) == 1 and low is None:
        low = given[0]
    elif given or high is None:
        raise TypeError(f"{function}(): expected 'high', or 'low' and 'high'")
    first = 0 if low is None else whole(function, "low", low)
    return first, whole(function, "high", high)


@draws
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """The whole numbers from 0 to n - 1 in random order."""
    check_options(layout, pin_memory)
    count = whole("randperm", "n", n)
    if count < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {count}: [{count}]")
    kind = choose_dtype(dtype, out, dtypes.int64)
    if kind.category in (dtypes.BOOL, dtypes.COMPLEX):
        raise NotImplementedError(f"\"randperm\" not implemented for '{kind.scalar_name}'")
    if kind.category == dtypes.INTEGRAL and count - 1 > dtypes.iinfo(kind).max:
        raise overflow_error(kind)
    if kind.category == dtypes.FLOATING and (count - 1) * dtypes.finfo(kind).eps > 2:
        raise RuntimeError(f"n is too large for {kind.name}, which cannot tell its numbers apart")
    place = as_device(device) if out is None else of_array(out.array)
    sizes = sizes_here(out)
    if place.type == "meta":
        array = new_array((*sizes, count), kind, place)
    else:
        rows = [draw_permutation(count, generator) for _ in range(math.prod(sizes))]
        drawn = np.reshape(rows, (*sizes, count)).astype(kind.numpy, copy=False)
        array = transfer(drawn, place)
    return _drawn("randperm", array, out, requires_grad)


@draws
def normal(
    mean: Any,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Numbers drawn from normal distributions.

    `mean` and `std` are two numbers with a `size`, or at least one of them is a tensor.
    """
    check_options(layout, pin_memory)
    tensors = [each for each in (mean, std) if isinstance(each, Tensor)]
    for name, each in (("mean", mean), ("std", std)):
        if not isinstance(each, (Tensor, int, float, np.floating, np.integer)):
            raise TypeError(
                f"normal(): argument '{name}' must be a Tensor or a float, "
                f"not {type(each).__name__}"
            )
    if bool(tensors) == (size is not None):
        raise TypeError("normal() expects a size with two numbers, and none with a tensor")
    if not tensors:
        array = _blank(sequence_size("normal", size), dtype, out, device, None)
        fill_normal(array, float(mean), float(std), generator)
        return _drawn("normal", array, out, requires_grad)
    arrays = tuple([each.array for each in tensors])
    try:
        shape = np.broadcast_shapes(*[each.shape for each in arrays])
    except ValueError as error:
        raise broadcast_error("normal", arrays, error) from None
    if thread_state().levels:
        sizes_here(out)
        check_same_parameters(mean, std)
        kind, place = dtype_of(tensors[0]), of_array(arrays[0])
        noise = randn(shape, generator=generator, out=out, dtype=kind, device=place)
        drawn = (noise * std + mean).detach()
        return require_grad(drawn) if requires_grad else drawn
    array = _blank(shape, dtype_of(tensors[0]), out, of_array(arrays[0]), None)
    fill_normal(array, getattr(mean, "array", mean), getattr(std, "array", std), generator)
    return _drawn("normal", array, out, requires_grad)


@draws
def bernoulli(
    input: Tensor,
    p: float | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Zeros and ones; `input` holds the probabilities of one, unless `p` is that for all."""
    check_tensor("bernoulli", "input", input)
    if thread_state().levels:
        sizes_here(out)
        check_same_parameters(input)
        if p is not None:
            return drawn_like(bernoulli, input, p=p, generator=generator)
        draws = rand(input.array.shape, generator=generator, dtype=dtypes.float64)
        return (draws < input).to(dtype_of(input))
    kind = dtype_of(input if out is None else out)
    array = new_array_like(input.array, kind, of_array(input.array))
    fill_bernoulli(array, input.array if p is None else p, generator)
    return finish("bernoulli", array, out, False)


@draws
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Indices drawn in proportion to the weights in `input`, or in each of its rows."""
    check_tensor("multinomial", "input", input)
    count = whole("multinomial", "num_samples", num_samples)
    if thread_state().levels and input.array.ndim in (1, 2):
        sizes_here(out)
        return drawn_by_rows(
            multinomial, input, num_samples=count, replacement=replacement, generator=generator
        )
    weights = input.array
    if dtype_of(input).category != dtypes.FLOATING:
        raise RuntimeError(
            "multinomial only supports floating-point dtypes for input, got: "
            f"{dtype_of(input).scalar_name}"
        )
    if weights.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if count <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and count > weights.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    shape = (*weights.shape[:-1], count)
    place = of_array(weights)
    if place.type == "meta":
        return finish("multinomial", new_array(shape, dtypes.int64, place), out, False)
    rows = transfer(weights, as_device("cpu")).reshape(-1, weights.shape[-1])
    drawn = draw_multinomial(rows, count, replacement, generator).reshape(shape)
    return finish("multinomial", transfer(drawn, place), out, False)


@draws
def rand_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Numbers drawn uniformly from [0, 1), with the shape, type and device of `input`."""
    check_options(layout, False)
    check_tensor("rand_like", "input", input)
    if thread_state().levels:
        options = {"generator": generator, "dtype": dtype, "device": device}
        drawn = drawn_like(rand_like, input, **options, memory_format=memory_format)
        return require_grad(drawn) if requires_grad else drawn
    array = _blank_like(input, dtype, device, memory_format)
    fill_uniform(array, 0.0, 1.0, generator)
    return finish("rand_like", array, None, requires_grad)


@draws
def randn_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Standard normal numbers with the shape, type and device of `input`."""
    check_options(layout, False)
    check_tensor("randn_like", "input", input)
    if thread_state().levels:
        options = {"generator": generator, "dtype": dtype, "device": device}
        drawn = drawn_like(randn_like, input, **options, memory_format=memory_format)
        return require_grad(drawn) if requires_grad else drawn
    array = _blank_like(input, dtype, device, memory_format)
    fill_normal(array, 0.0, 1.0, generator)
    return finish("randn_like", array, None, requires_grad)


@draws
def randint_like(
    input: Tensor,
    *bounds: Any,
    low: Any = None,
    high: Any = None,
    generator: Generator | None = None,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Whole numbers drawn from [low, high), with the shape, type and device of `input`."""
    check_options(layout, False)
    first, last = _bounds("randint_like", list(bounds), low, high)
    check_tensor("randint_like", "input", input)
    if thread_state().levels:
        options = {"generator": generator, "dtype": dtype, "device": device, "low": first}
        drawn = drawn_like(randint_like, input, **options, high=last, memory_format=memory_format)
        return require_grad(drawn) if requires_grad else drawn
    array = _blank_like(input, dtype, device, memory_format)
    fill_range(array, first, last, generator)
    return finish("randint_like", array, None, requires_grad)
