"""The rules that many operators share, and what makes them.

- `elementwise`: operands broadcast.
- `leading`: dimensions in front are a batch already.
- `along`, `along_one`, `over_all`, `flat`: reductions, scans, sorts and whatever has a `dim`.
- `sized`: the operator is told the size of its result.
- `varying`: the shape of the result depends on values, so there is no batch of them.
- `one_by_one`: a loop over the examples, for a stated reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ...core.loading import load
from ...core.registry import apply, operator_named
from ...core.tensor import Tensor
from .moving import (
    all_batched,
    at_front,
    batch_size,
    cast,
    common_dtype,
    flattened,
    normal_dim,
    padded,
    rank_of,
    reshaped,
    sample_of,
    unbatched_target,
)

Rule = Callable[[Any, tuple, tuple], tuple[Any, Any]]


class Rewriting:
    """A rule that only rewrites the arguments, and so serves the in-place form too.

    ``rewrite(operator, args, dims)`` returns the arguments of one call and where the batch
    dimension of its result is, or None for a case that the rule `otherwise` is for. The first
    argument of an in-place operator becomes a view of itself.
    """

    def __init__(self, rewrite: Callable, otherwise: Rule | None = None) -> None:
        self.rewrite = rewrite
        self.otherwise = otherwise

    def __call__(self, operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
        rewritten = self.rewrite(operator, args, dims)
        if rewritten is None:
            assert self.otherwise is not None
            return self.otherwise(operator, args, dims)
        return operator.call(rewritten[0]), rewritten[1]


# Elementwise -------------------------------------------------------------------------------------


def aligned(operator: Any, args: tuple, dims: tuple) -> tuple[tuple, int | None]:
    """Physical operands that broadcast as the logical ones do, and promote as they do."""
    functional = operator.functional if operator.mutates else operator
    dim = _common_dim(functional.tensor_positions, args, dims)
    if dim >= 0:
        return args, dim
    positions = [i for i in functional.tensor_positions if isinstance(args[i], Tensor)]
    if all(dims[i] is None for i in positions):
        return args, None
    rank = max([rank_of(args[i], dims[i]) for i in positions])
    out = list(args)
    for i in positions:
        if dims[i] is not None:
            out[i] = padded(args[i], dims[i], rank)
    _promote(functional, args, dims, positions, out, int(operator.mutates))
    return tuple(out), 0


def _common_dim(positions: tuple[int, ...], args: tuple, dims: tuple) -> int:
    """Where all operands have the batch dimension, if they broadcast as they are; else -1.

    They do if those with the batch dimension have equally many others, those without have at most
    as many as follow it, and there is nothing to promote.
    """
    common = ndim = most = -1
    dtype = None
    for i in positions:
        x = args[i]
        if not isinstance(x, Tensor):
            continue
        array = x.array
        if dtype is None:
            dtype = array.dtype
        elif array.dtype != dtype:
            return -1
        if dims[i] is None:
            most = max(most, array.ndim)
        elif common < 0:
            common, ndim = dims[i], array.ndim
        elif dims[i] != common or array.ndim != ndim:
            return -1
    return common if most < ndim - common else -1


def _promote(
    operator: Any, args: tuple, dims: tuple, positions: list[int], out: list, first: int
) -> None:
    """A batched number must not decide the result's dtype as a batched vector would."""
    kinds = {args[i].array.dtype for i in positions}
    numbers = [i for i in positions if dims[i] is not None and args[i].array.ndim == 1]
    if len(kinds) < 2 or not numbers:
        return
    samples = tuple([sample_of(x, d) for x, d in zip(args, dims, strict=True)])
    if operator.dtype_rule is not None:
        rule = getattr(operator.dtype_rule, "rounded", operator.dtype_rule)
        samples = rule(samples, operator.operands)
        goals = {i: samples[i].dtype for i in positions}
    else:
        goal = common_dtype([args[i] for i in positions], [dims[i] for i in positions])
        goals = dict.fromkeys(positions, goal)
    for i in positions:
        if i >= first:
            out[i] = cast(out[i], goals[i])


elementwise = Rewriting(aligned)


def broadcast(name: str, args: tuple, dims: tuple) -> tuple[Any, int | None]:
    """The elementwise operator `name` on operands of which some or none are batched."""
    operator = operator_named(name)
    tail = operator.tail[len(args) - operator.operands :]
    operands, dim = aligned(operator, (*args, *tail), (*dims, *[None] * len(tail)))
    return operator.call(operands), dim


def _leading(operator: Any, args: tuple, dims: tuple) -> tuple[tuple, int]:
    return all_batched(args, dims), 0


leading = Rewriting(_leading)


# Along dimensions --------------------------------------------------------------------------------


def along(*names: str, empty_means_all: bool = True) -> Rule:
    """The rule of operators that work along the dimensions given by arguments called `names`.

    Dimensions count in the operator's first tensor. None stands for all of them, and so does an
    empty list unless `empty_means_all` is False. What has no dimension gets one for the call, since
    the batch dimension is not to be counted.
    """

    def rule(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
        rank = _first_rank(args, dims)
        values = list(all_batched(args, dims))
        if rank == 0:
            values = [_with_one(v) if isinstance(v, Tensor) else v for v in values]
        for name in names:
            position = operator.schema.names[name]
            values[position] = _shifted(args[position], rank, empty_means_all)
        out = operator.call(tuple(values))
        return (out if rank else _without_one(out)), 0

    return rule


def _first_rank(args: tuple, dims: tuple) -> int:
    for value, dim in zip(args, dims, strict=True):
        if isinstance(value, Tensor):
            return rank_of(value, dim)
    raise ValueError("the operator has no tensor argument")


def _shifted(dim: Any, rank: int, empty_means_all: bool) -> Any:
    if dim is None or (dim == () and empty_means_all):
        return tuple(range(1, max(rank, 1) + 1))
    if isinstance(dim, int):
        return normal_dim(dim, rank) + 1
    return tuple([normal_dim(d, rank) + 1 for d in dim])


def _with_one(x: Tensor) -> Tensor:
    return apply("view", x, (*x.array.shape, 1))


def _without_one(out: Any) -> Any:
    if isinstance(out, Tensor):
        return reshaped(out, out.array.shape[:1])
    return tuple([_without_one(t) for t in out])


def along_one(name: str) -> Rule:
    """A rule for an operator along one dimension, or on the flattened tensor without one."""
    along_it = along(name)

    def rule(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
        names = operator.schema.names
        if args[names[name]] is not None:
            return along_it(operator, args, dims)
        values = list(args)
        values[0] = flattened(args[0], dims[0])
        values[names[name]] = 1
        out = operator.call(tuple(values))
        if not args[names["keepdim"]]:
            return out, 0
        shape = (values[0].array.shape[0],) + (1,) * rank_of(args[0], dims[0])
        if isinstance(out, Tensor):
            return reshaped(out, shape), 0
        return tuple([reshaped(t, shape) for t in out]), 0

    return rule


def over_all(name: str) -> Rule:
    """The rule of a reduction of all elements: another operator reduces the given dimensions."""

    def rule(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
        x = at_front(args[0], dims[0])
        if x.array.ndim == 1:
            x = _with_one(x)
        return apply(name, x, tuple(range(1, x.array.ndim)), False, *args[1:]), 0

    return rule


def flat(name: str, several: bool = False) -> Rule:
    """A reduction of all by an operator of one dimension; of `several` results the first counts."""

    def rule(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
        out = apply(name, flattened(args[0], dims[0]), 1, False, *args[1:])
        return (out[0] if several else out), 0

    return rule


def sized(size: str, *names: str) -> Rule:
    """The rule of operators whose argument `size` is that of the result.

    Dimensions given by arguments called `names` count in the result.
    """

    def rule(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
        values = list(all_batched(args, dims))
        positions = operator.schema.names
        shape = args[positions[size]]
        values[positions[size]] = (batch_size(args, dims), *shape)
        for name in names:
            values[positions[name]] = normal_dim(args[positions[name]], len(shape)) + 1
        return operator.call(tuple(values)), 0

    return rule


# Without a batched computation -------------------------------------------------------------------


def dynamic_shape(name: str) -> RuntimeError:
    """The refusal of a result whose shape depends on values."""
    return RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape: the values of "
        f"each example would decide how many elements {name} gives. Use a mask with where() or "
        "masked_fill(), which keep the shape."
    )


def varying(name: str) -> Rule:
    """The rule of an operator whose result has no shape without values: it is refused."""

    def rule(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
        raise dynamic_shape(name)

    return rule


def one_by_one(reason: str) -> Rule:
    """The rule of an operator that has to see the examples one after the other, and why."""

    def rule(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
        return each_example(operator, args, dims)

    rule.__doc__ = reason
    return rule


def fallback(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """What an operator does that was declared without a rule: a loop, and a warning."""
    for position in getattr(operator, "mutated", ()):
        if dims[position] is None:
            raise unbatched_target(operator.name)
    if not operator.batches_by_loop or load("core.settings").is_warn_always_enabled():
        operator.batches_by_loop = True
        warnings.warn(
            f"There is a performance drop because {operator.name} has no batching rule: vmap calls "
            "it once per example",
            UserWarning,
            stacklevel=2,
        )
    return each_example(operator, args, dims)


def each_example(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """The operator called once for each example: right for any operator, and slow."""
    size = batch_size(args, dims)
    if not size:
        raise RuntimeError(
            f"vmap: {operator.name} is called once per example, and a batch of size 0 has none "
            "from which the shape of the result could be known"
        )
    results = []
    for i in range(size):
        results.append(
            operator.call(tuple([_example(v, d, i) for v, d in zip(args, dims, strict=True)]))
        )
    if results[0] is None:
        return None, None
    if isinstance(results[0], Tensor):
        return apply("stack", results, 0), 0
    return tuple([apply("stack", list(parts), 0) for parts in zip(*results, strict=True)]), 0


def _example(value: Any, dim: Any, index: int) -> Any:
    if type(dim) is list:
        return [_example(v, d, index) for v, d in zip(value, dim, strict=True)]
    return value if dim is None else apply("select", value, dim, index)
