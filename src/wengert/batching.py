"""Batching: what an operator does to tensors that have a batch dimension out of its sight.

A batch rule is ``rule(operator, args, dims) -> (result, dim)``. `args` are the operator's arguments
in schema order with physical tensors; `dims` holds, for each argument, the position of the batch
dimension or None (a list of those for a list of tensors). The result is physical too; `dim` says
where its batch dimension is (None: it has none), one for all results or one each.

Elementwise operators need no rule of their own. `along` makes the rule of operators that work along
dimensions named in their arguments, `leading` of those that leave leading dimensions alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .dispatch import operator_named
from .dtypes import from_numpy, result_dtype
from .errors import dimension_error
from .levels import Level, unbatched_target
from .tensor import Tensor

Rule = Callable[[Any, tuple, tuple], tuple[Any, Any]]


def call_batched(operator: Any, args: tuple, dims: tuple, level: Level) -> tuple[Any, Any]:
    """An operator on batched arguments by its rule, or one example at a time."""
    rule = operator.batch_rule
    if rule is None:
        rule = elementwise if operator.broadcasts else one_by_one
    return rule(operator, args, dims)


def write_batched(operator: Any, args: tuple, dims: tuple, level: Level) -> None:
    """An in-place operator on batched arguments: the first one's memory is changed."""
    if dims[0] is None:
        raise unbatched_target(operator.name)
    functional = operator.functional
    target = at_front(args[0], dims[0])
    if functional.broadcasts and functional.batch_rule is None:
        operands = _aligned(functional, (target, *args[1:]), (0, *dims[1:]))
        operator.call((target, *operands[1:]))
        return
    result, dim = call_batched(functional, args, dims, level)
    target.copy_(result if dim is None else at_front(result, dim))


# Moving dimensions -------------------------------------------------------------------------------


def at_front(x: Tensor, dim: int | None) -> Tensor:
    """`x` with its batch dimension first; `x` itself if it has none."""
    if not dim:
        return x
    order = (dim, *[i for i in range(x.array.ndim) if i != dim])
    return operator_named("permute").call((x, order))


def with_batch(x: Tensor, dim: int | None, size: int) -> Tensor:
    """`x` with a batch dimension in front, expanded from nothing if it has none."""
    if dim is not None:
        return at_front(x, dim)
    return operator_named("expand").call((x, (size, *x.array.shape), False))


def normal_dim(dim: int, rank: int) -> int:
    """`dim` counted from the front, among `rank` dimensions that the operator sees."""
    if not -max(rank, 1) <= dim < max(rank, 1):
        raise dimension_error(dim, rank)
    return dim % rank if rank else 0


def batch_size(args: tuple, dims: tuple) -> int:
    """The length of the batch dimension."""
    for value, dim in zip(args, dims, strict=True):
        if type(dim) is list:
            for item, d in zip(value, dim, strict=True):
                if d is not None:
                    return item.array.shape[d]
        elif dim is not None:
            return value.array.shape[dim]
    raise ValueError("none of the arguments has a batch dimension")


def all_batched(args: tuple, dims: tuple) -> tuple:
    """Every tensor argument with the batch dimension in front, expanded where it had none."""
    size = batch_size(args, dims)
    return tuple([_batched_value(v, d, size) for v, d in zip(args, dims, strict=True)])


def _batched_value(value: Any, dim: Any, size: int) -> Any:
    if isinstance(value, Tensor):
        return with_batch(value, dim, size)
    if type(value) is list:
        each = dim if type(dim) is list else [dim] * len(value)
        return [_batched_value(v, d, size) for v, d in zip(value, each, strict=True)]
    return value


# Rules -------------------------------------------------------------------------------------------


def elementwise(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """Broadcasting: batch dimensions in front, the others aligned from the right."""
    return operator.call(_aligned(operator, args, dims)), 0


def _aligned(operator: Any, args: tuple, dims: tuple) -> tuple:
    """Physical operands that broadcast as the logical ones do, and promote as they do."""
    positions = operator.tensor_positions
    ranks = [
        args[i].array.ndim - (dims[i] is not None)
        for i in positions
        if isinstance(args[i], Tensor)
    ]
    rank = max(ranks)
    out = list(args)
    for i in positions:
        x = args[i]
        if not isinstance(x, Tensor):
            continue
        if dims[i] is not None:
            x = at_front(x, dims[i])
            missing = rank - x.array.ndim + 1
            if missing:
                shape = (x.array.shape[0], *(1,) * missing, *x.array.shape[1:])
                x = operator_named("view").call((x, shape))
        out[i] = x
    return _promoted(operator, args, dims, out)


def _promoted(operator: Any, args: tuple, dims: tuple, out: list) -> tuple:
    """A batched number does not decide the result's dtype as a batched vector would."""
    tensors = [i for i in operator.tensor_positions if isinstance(args[i], Tensor)]
    if len({args[i].array.dtype for i in tensors}) > 1 and any(
        dims[i] is not None and args[i].array.ndim == 1 for i in tensors
    ):
        samples = [
            np.empty((1,) * (args[i].array.ndim - (dims[i] is not None)), args[i].array.dtype)
            for i in tensors
        ]
        goal = result_dtype(samples)
        for i, sample in zip(tensors, samples, strict=True):
            if sample.ndim == 0 and dims[i] is not None and sample.dtype.kind != "b":
                out[i] = out[i].to(from_numpy(goal))
    return tuple(out)


def leading(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """Operators that treat dimensions in front as a batch already: all tensors get one there."""
    return operator.call(all_batched(args, dims)), 0


def along(*names: str) -> Rule:
    """The rule of operators that work along the dimensions given by arguments called `names`.

    Dimensions count in the operator's first tensor. None stands for all of them. What has no
    dimension gets one for the call, since the batch dimension is not to be counted.
    """

    def rule(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
        rank = _rank(args, dims)
        values = all_batched(args, dims)
        if rank == 0:
            values = tuple([_with_one(v) if isinstance(v, Tensor) else v for v in values])
        arguments = operator.schema.names
        shifted = list(values)
        for name in names:
            position = arguments[name]
            shifted[position] = _shifted(args[position], rank)
        out = operator.call(tuple(shifted))
        return (out if rank else _without_one(out)), 0

    return rule


def _rank(args: tuple, dims: tuple) -> int:
    """The number of dimensions that the operator sees of its first tensor."""
    for value, dim in zip(args, dims, strict=True):
        if isinstance(value, Tensor):
            return value.array.ndim - (dim is not None)
        if type(value) is list and value and isinstance(value[0], Tensor):
            return value[0].array.ndim - (type(dim) is list and dim[0] is not None)
    raise ValueError("the operator has no tensor argument")


def _shifted(dim: Any, rank: int) -> Any:
    if dim is None or dim == ():
        return tuple(range(1, max(rank, 1) + 1))
    if isinstance(dim, int):
        return normal_dim(dim, rank) + 1
    return tuple([normal_dim(d, rank) + 1 for d in dim])


def _with_one(x: Tensor) -> Tensor:
    return operator_named("view").call((x, (*x.array.shape, 1)))


def _without_one(out: Any) -> Any:
    if isinstance(out, Tensor):
        return out.reshape(out.array.shape[:1]) if out.array.ndim > 1 else out
    return type(out)([_without_one(t) for t in out])


def one_by_one(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """Every example on its own: right for any operator, and slow."""
    if not operator.batches_by_loop:
        operator.batches_by_loop = True
        warnings.warn(
            f"There is a performance drop because {operator.name} has no batching rule: vmap calls "
            "it once per example",
            UserWarning,
            stacklevel=2,
        )
    select = operator_named("select").call
    stack = operator_named("stack").call
    results = []
    for i in range(batch_size(args, dims)):
        results.append(
            operator.call(
                tuple([_example(v, d, i, select) for v, d in zip(args, dims, strict=True)])
            )
        )
    if isinstance(results[0], Tensor):
        return stack((results, 0)), 0
    return tuple([stack((list(parts), 0)) for parts in zip(*results, strict=True)]), 0


def _example(value: Any, dim: Any, index: int, select: Callable) -> Any:
    if type(dim) is list:
        return [_example(v, d, index, select) for v, d in zip(value, dim, strict=True)]
    return value if dim is None else select((value, dim, index))
