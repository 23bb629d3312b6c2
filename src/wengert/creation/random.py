"""Tensors of random numbers; see `generator` for the streams and `sampling` for the draws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..backends.allocation import new_array, new_array_like
from ..backends.casting import dtype_of
from ..backends.placement import of_array, transfer
from ..core import dtypes
from ..core.devices import as_device
from ..core.errors import broadcast_error
from ..core.layouts import check_options
from ..core.numbers import overflow_error
from ..core.registry import operator_named
from ..core.size import whole
from ..core.state import thread_state
from ..core.tensor import Tensor, wrap
from ..dispatch.levels import check_same_parameters
from ..dispatch.out import wrong_out_type
from ..tape.leaves import require_grad
from .arguments import check_tensor, finish
from .declare import (
    GENERATOR,
    LIKE,
    OPTIONS,
    Blank,
    Drawing,
    LikeDraw,
    SizedDraw,
    SizedFirstDraw,
    SizedLastDraw,
    maker,
    variant,
)
from .drawing import Sampler, draws, sizes_drawn
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
    fill_binomial,
    fill_cauchy,
    fill_exponential,
    fill_geometric,
    fill_integers,
    fill_log_normal,
    fill_normal,
    fill_plain_normal,
    fill_plain_uniform,
    fill_poisson,
    fill_range,
    fill_slopes,
    fill_uniform,
)

__all__ = [
    "Generator", "bernoulli", "binomial", "default_generator", "fork_rng", "get_rng_state",
    "initial_seed", "manual_seed", "multinomial", "normal", "poisson", "rand", "rand_like",
    "randint", "randint_like", "randn", "randn_like", "randperm", "seed", "set_rng_state",
]  # fmt: skip


@maker(
    f"rand(SymInt[] size, *, {OPTIONS}, {GENERATOR}) -> Tensor",
    kind=SizedDraw, quick=fill_plain_uniform,
)  # fmt: skip
def rand(blank: Blank, *, generator: Generator | None = None) -> Any:
    """Numbers drawn uniformly from [0, 1)."""
    array = blank.empty()
    fill_uniform(array, 0.0, 1.0, generator)
    return array


@maker(
    f"randn(SymInt[] size, *, {OPTIONS}, {GENERATOR}) -> Tensor",
    kind=SizedDraw, quick=fill_plain_normal,
)  # fmt: skip
def randn(blank: Blank, *, generator: Generator | None = None) -> Any:
    """Numbers drawn from the normal distribution with mean 0 and variance 1."""
    array = blank.empty()
    fill_normal(array, 0.0, 1.0, generator)
    return array


@maker(
    f"randint(SymInt high, SymInt[] size, *, {OPTIONS}, {GENERATOR}) -> Tensor",
    f"randint.low(SymInt low, SymInt high, SymInt[] size, *, {OPTIONS}, {GENERATOR}) -> Tensor",
    kind=SizedLastDraw,
)
def randint(
    blank: Blank,
    *bounds: Any,
    low: Any = None,
    high: Any = None,
    generator: Generator | None = None,
) -> Any:
    """Whole numbers drawn from [low, high): `randint(high, size)` or `randint(low, high, size)`."""
    first, last = _bounds(blank.function, bounds, low, high)
    array = blank.empty(dtypes.int64)
    fill_range(array, first, last, generator)
    return array


def _bounds(function: str, given: tuple[Any, ...], low: Any, high: Any) -> tuple[int, int]:
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


rand_like = variant(
    rand, "rand_like", LikeDraw, f"rand_like(Tensor self, *, {LIKE}) -> Tensor",
    doc="Numbers drawn uniformly from [0, 1), with the shape, type and device of `input`.",
)  # fmt: skip
randn_like = variant(
    randn, "randn_like", LikeDraw, f"randn_like(Tensor self, *, {LIKE}) -> Tensor",
    doc="Standard normal numbers with the shape, type and device of `input`.",
)  # fmt: skip
randint_like = variant(
    randint, "randint_like", LikeDraw,
    f"randint_like(Tensor self, SymInt high, *, {LIKE}) -> Tensor",
    f"randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, {LIKE}) -> Tensor",
    doc="Whole numbers drawn from [low, high), with the shape, type and device of `input`.",
)  # fmt: skip


@maker(f"randperm(SymInt n, *, {OPTIONS}, {GENERATOR}) -> Tensor", kind=Drawing)
def randperm(blank: Blank, n: int, *, generator: Generator | None = None) -> Any:
    """The whole numbers from 0 to n - 1 in random order."""
    count = whole("randperm", "n", n)
    if count < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {count}: [{count}]")
    kind = blank.dtype(dtypes.int64)
    if kind.category in (dtypes.BOOL, dtypes.COMPLEX):
        raise NotImplementedError(f"\"randperm\" not implemented for '{kind.scalar_name}'")
    if kind.category == dtypes.INTEGRAL and count - 1 > dtypes.iinfo(kind).max:
        raise overflow_error(kind)
    if kind.category == dtypes.FLOATING and (count - 1) * dtypes.finfo(kind).eps > 2:
        raise RuntimeError(f"n is too large for {kind.name}, which cannot tell its numbers apart")
    if blank.place().type == "meta":
        blank.shape = (count,)
        return blank.empty(dtypes.int64)
    sizes = blank.batch_sizes
    if sizes:
        rows = [draw_permutation(count, generator) for _ in range(math.prod(sizes))]
        drawn = np.reshape(rows, (*sizes, count))
    else:
        drawn = draw_permutation(count, generator)
    drawn = drawn.astype(kind.numpy, copy=False)
    return transfer(drawn, blank.place())


def _normal_numbers(
    blank: Blank, mean: float, std: float, generator: Generator | None = None
) -> Any:
    array = blank.empty()
    fill_normal(array, mean, std, generator)
    return array


_normal_of_size = SizedFirstDraw("normal", _normal_numbers)


@draws()
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
        return _normal_of_size.draw(
            size, float(mean), float(std), generator=generator, out=out, dtype=dtype,
            device=device, requires_grad=requires_grad,
        )  # fmt: skip
    shape = _common_shape("normal", *tensors)
    kind, place = dtype_of(tensors[0]), of_array(tensors[0].array)
    if thread_state().levels:
        check_same_parameters(mean, std)
        noise = randn(shape, generator=generator, out=out, dtype=kind, device=place)
        return require_grad((noise * std + mean).detach(), requires_grad)
    means, stds = getattr(mean, "array", mean), getattr(std, "array", std)
    return _normal_of_size.draw(
        shape, means, stds, generator=generator, out=out, dtype=kind, device=place,
        requires_grad=requires_grad,
    )  # fmt: skip


@draws(f"bernoulli(Tensor self, *, {GENERATOR}) -> Tensor")
def bernoulli(
    input: Tensor,
    p: float | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Zeros and ones; `input` holds the probabilities of one, unless `p` is that for all."""
    check_tensor("bernoulli", "input", input)
    levels = thread_state().levels
    if levels:
        sizes_drawn(out)
        check_same_parameters(input)
        if p is not None:
            return levels[-1].drawn_like(lambda t: bernoulli(t, p, generator=generator), input)
        double = dtype_of(input) is dtypes.float64
        drawn_as = dtypes.float64 if double else dtypes.float32
        draws = rand(input.array.shape, generator=generator, dtype=drawn_as)
        return (draws < input).to(dtype_of(input))
    kind = dtype_of(input if out is None else out)
    array = new_array_like(input.array, kind, of_array(input.array))
    fill_bernoulli(array, input.array if p is None else p, generator)
    return finish("bernoulli", array, out, False)


#: Single precision tells no more numbers apart.
_CATEGORIES = 2**24


@draws(
    "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, "
    f"{GENERATOR}) -> Tensor"
)
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
    if out is not None and dtype_of(out) is not dtypes.int64:
        raise wrong_out_type("multinomial", dtypes.int64, dtype_of(out))
    count = whole("multinomial", "num_samples", num_samples)
    levels = thread_state().levels
    if levels and input.array.ndim in (1, 2):
        sizes_drawn(out)
        return levels[-1].drawn_by_rows(
            lambda rows: multinomial(rows, count, replacement, generator=generator), input
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
    if weights.shape[-1] > _CATEGORIES:
        raise RuntimeError(
            f"number of categories cannot exceed 2^24: multinomial() got {weights.shape[-1]}"
        )
    shape = (*weights.shape[:-1], count)
    place = of_array(weights)
    if place.type == "meta":
        return finish("multinomial", new_array(shape, dtypes.int64, place), out, False)
    rows = transfer(weights, as_device("cpu")).reshape(-1, weights.shape[-1])
    drawn = draw_multinomial(rows, count, replacement, generator).reshape(shape)
    return finish("multinomial", transfer(drawn, place), out, False)


@draws(f"poisson(Tensor self, {GENERATOR}) -> Tensor")
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers of events, where `input` holds how many are expected."""
    check_tensor("poisson", "input", input)
    kind = dtype_of(input)
    if kind.category != dtypes.FLOATING:
        raise NotImplementedError(f"\"poisson_cpu\" not implemented for '{kind.scalar_name}'")
    levels = thread_state().levels
    if levels:
        check_same_parameters(input)
        return levels[-1].drawn_like(lambda t: poisson(t, generator), input)
    array = new_array(input.array.shape, kind, of_array(input.array))
    fill_poisson(array, input.array, generator)
    return wrap(array)


@draws()
def random_slopes(input: Tensor, low: float, high: float) -> Tensor:
    """Numbers in [low, high) where the input is not positive, and ones elsewhere."""
    levels = thread_state().levels
    if levels:
        check_same_parameters(input)
        return levels[-1].drawn_like(lambda t: random_slopes(t, low, high), input)
    array = new_array(input.array.shape, dtype_of(input), of_array(input.array))
    fill_slopes(array, input.array, low, high)
    return wrap(array)


@draws(f"binomial(Tensor count, Tensor prob, {GENERATOR}) -> Tensor")
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers of successes in `count` tries that succeed with probability `prob`."""
    for name, each in (("count", count), ("prob", prob)):
        check_tensor("binomial", name, each)
        if dtype_of(each).category != dtypes.FLOATING:
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: "
                f"{dtype_of(each).scalar_name}"
            )
    kind = dtype_of(count)
    if kind is not dtype_of(prob):
        raise RuntimeError(
            f"Found dtype {dtype_of(prob).scalar_name} but expected {kind.scalar_name}"
        )
    if kind.itemsize == 2:
        raise NotImplementedError(f"\"binomial_cpu\" not implemented for '{kind.scalar_name}'")
    levels = thread_state().levels
    if levels:
        check_same_parameters(count, prob)
        shape = _common_shape("binomial", count, prob)
        both = [each.expand(shape) for each in (count, prob)]
        return levels[-1].drawn_like(
            lambda pairs: binomial(pairs.select(-1, 0), pairs.select(-1, 1), generator),
            operator_named("stack").call((both, -1)),
        )
    array = new_array(_common_shape("binomial", count, prob), kind, of_array(count.array))
    fill_binomial(array, count.array, prob.array, generator)
    return wrap(array)


def _common_shape(name: str, *tensors: Tensor) -> tuple[int, ...]:
    arrays = tuple([each.array for each in tensors])
    try:
        return np.broadcast_shapes(*[each.shape for each in arrays])
    except ValueError as error:
        raise broadcast_error(name, arrays, error) from None


# Methods that fill a tensor in place.

uniform_ = Sampler(
    "uniform_", fill_uniform,
    f"uniform_(Tensor(a!) self, float from=0., float to=1., *, {GENERATOR}) -> Tensor(a!)",
)  # fmt: skip
normal_ = Sampler(
    "normal_", fill_normal,
    f"normal_(Tensor(a!) self, float mean=0., float std=1., *, {GENERATOR}) -> Tensor(a!)",
)  # fmt: skip
bernoulli_ = Sampler(
    "bernoulli_", fill_bernoulli,
    f"bernoulli_.float(Tensor(a!) self, float p=0.5, *, {GENERATOR}) -> Tensor(a!)",
)  # fmt: skip
exponential_ = Sampler(
    "exponential_", fill_exponential,
    f"exponential_(Tensor(a!) self, float lambd=1., *, {GENERATOR}) -> Tensor(a!)",
)  # fmt: skip
cauchy_ = Sampler(
    "cauchy_", fill_cauchy,
    f"cauchy_(Tensor(a!) self, float median=0., float sigma=1., *, {GENERATOR}) -> Tensor(a!)",
)  # fmt: skip
log_normal_ = Sampler(
    "log_normal_", fill_log_normal,
    f"log_normal_(Tensor(a!) self, float mean=1., float std=2., *, {GENERATOR}) -> Tensor(a!)",
)  # fmt: skip
geometric_ = Sampler(
    "geometric_", fill_geometric,
    f"geometric_(Tensor(a!) self, float p, *, {GENERATOR}) -> Tensor(a!)",
)  # fmt: skip
random_ = Sampler(
    "random_", fill_integers,
    f"random_(Tensor(a!) self, *, {GENERATOR}) -> Tensor(a!)",
    f"random_.to(Tensor(a!) self, int to, *, {GENERATOR}) -> Tensor(a!)",
    f"random_.from(Tensor(a!) self, int from, int? to, *, {GENERATOR}) -> Tensor(a!)",
)  # fmt: skip
