"""The batching rule that ``generate_vmap_rule = True`` derives for a custom Function.

A batch of calls is one call of `BatchedFunction` on the values with their batch dimensions. Its
methods run those of the Function inside a vmap of their own; `BatchedContext` stands for the ctx
there and keeps, of every saved tensor, the value and where its batch dimension is.
"""

from __future__ import annotations

from itertools import repeat
from typing import Any

from ..core.tensor import Tensor
from ..dispatch.levels import Level, lifted, unwrapped
from ..operators.joining import cat
from ..transforms.levels import VmapLevel
from .function import Function
from .function_node import user_backward


class BatchedContext:
    """The ctx of a Function inside vmap, around the ctx of the whole batch."""

    def __init__(self, ctx: Any, level: Level, leading: int) -> None:
        self.__dict__.update(_ctx=ctx, _level=level, _leading=leading)

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        values, self._ctx.backward_dims = unwrapped_all(tensors, self._level)
        self._ctx.save_for_backward(*values)

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        values, self._ctx.forward_dims = unwrapped_all(tensors, self._level)
        self._ctx.save_for_forward(*values)

    def mark_dirty(self, *tensors: Tensor) -> None:
        self._ctx.mark_dirty(*unwrapped_all(tensors, self._level)[0])

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        self._ctx.mark_non_differentiable(*unwrapped_all(tensors, self._level)[0])

    def set_materialize_grads(self, value: bool) -> None:
        self._ctx.set_materialize_grads(value)

    @property
    def saved_tensors(self) -> tuple:
        ctx = self._ctx
        in_jvp = ctx.saved_for_forward is not None
        dims = ctx.forward_dims if in_jvp else getattr(ctx, "backward_dims", ())
        return lifted_all(ctx.saved_tensors, dims, self._level)

    @property
    def needs_input_grad(self) -> tuple:
        return self._ctx.needs_input_grad[self._leading :]

    def __getattr__(self, name: str) -> Any:
        own = self._ctx.attributes
        return own[name] if name in own else getattr(self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        # Apart from those of the batch, which may be a batch of batches with the same names.
        self._ctx.attributes[name] = value


class BatchedFunction(Function):
    """A Function on batched values: ``apply(function, info, in_dims, *values)``.

    Returns the pair (whether the Function returns a tuple, the batch dims), then its results.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(function: Any, info: Any, in_dims: tuple, *values: Any) -> tuple:
        level = VmapLevel(info.batch_size, info.randomness)
        with level.entered():
            output = function.forward(*lifted_all(values, in_dims, level))
            several = isinstance(output, tuple)
            results, dims = unwrapped_all(output if several else (output,), level)
        return ((several, dims), *results)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        function, info, in_dims, *values = inputs
        (several, dims), *results = output
        ctx.attributes = {}
        ctx.call = function, info, in_dims, dims
        level = VmapLevel(info.batch_size, info.randomness)
        with level.entered():
            given = lifted_all(values, in_dims, level)
            made = _identical(lifted_all(results, dims, level), results, given, values)
            ctx.shapes = [t.array.shape if isinstance(t, Tensor) else None for t in given]
            function.setup_context(
                BatchedContext(ctx, level, 3), given, made if several else made[0]
            )

    @staticmethod
    def backward(ctx: Any, facts: None, *grads: Any) -> tuple:
        function, info, in_dims, dims = ctx.call
        level = VmapLevel(info.batch_size, info.randomness)
        parts = [_of_one_example(*each, info.batch_size) for each in zip(grads, dims, strict=True)]
        with level.entered():
            given = lifted_all([g for g, _ in parts], [dim for _, dim in parts], level)
            returned = user_backward(function)(BatchedContext(ctx, level, 3), *given)
            returned = returned if isinstance(returned, tuple) else (returned,)
            fitted = [
                g.sum_to_size(shape) if _needs_sum(g, shape) else g
                for g, shape in zip(returned, _padded(ctx.shapes, len(returned)), strict=True)
            ]
            values, found = unwrapped_all(fitted, level)
        places = _padded(in_dims, len(values))
        return (None, None, None, *map(_gradient, values, found, places, repeat(info.batch_size)))

    @staticmethod
    def jvp(ctx: Any, function: None, info: None, in_dims: None, *tangents: Any) -> tuple:
        call, facts, dims_in, dims_out = ctx.call
        level = VmapLevel(facts.batch_size, facts.randomness)
        with level.entered():
            given = lifted_all(tangents, dims_in, level)
            returned = call.jvp(BatchedContext(ctx, level, 3), *given)
            returned = returned if isinstance(returned, tuple) else (returned,)
            values, found = unwrapped_all(returned, level)
        places = _padded(dims_out, len(values))
        return (None, *map(_tangent, values, found, places, repeat(facts.batch_size)))


def derived_rule(function: Any) -> Any:
    """The rule for ``generate_vmap_rule=True``: the Function's own methods under vmap."""

    def rule(info: Any, in_dims: tuple, *args: Any) -> tuple[Any, Any]:
        (several, dims), *results = BatchedFunction.apply(function, info, in_dims, *args)
        return (tuple(results), dims) if several else (results[0], dims[0])

    return rule


def lifted_all(values: Any, dims: Any, level: Level) -> tuple:
    """Tensors as seen inside the level; other values and batches of none as they are."""
    return tuple(
        [
            lifted(value, level, dim) if isinstance(value, Tensor) and dim is not None else value
            for value, dim in zip(values, dims, strict=True)
        ]
    )


def unwrapped_all(values: Any, level: Level) -> tuple[tuple, tuple]:
    """The values below the level and their batch dimensions."""
    parts = [unwrapped(v, level) if isinstance(v, Tensor) else (v, None) for v in values]
    return tuple([value for value, _ in parts]), tuple([dim for _, dim in parts])


def _identical(made: tuple, results: list, given: tuple, values: list) -> tuple:
    """Results inside the level, an input that `forward` returned being the input again."""
    out = list(made)
    for i, result in enumerate(results):
        for value, inside in zip(values, given, strict=True):
            if isinstance(result, Tensor) and result is value:
                out[i] = inside
    return tuple(out)


def _padded(items: Any, count: int) -> list:
    """As many items as a method returned; it may return too many Nones."""
    return [*items, *(None,) * (count - len(items))][:count]


def _needs_sum(g: Any, shape: Any) -> bool:
    return isinstance(g, Tensor) and shape is not None and g.array.shape != shape


def _of_one_example(g: Any, dim: int | None, size: int) -> tuple[Any, int | None]:
    """The gradient of a result that all examples share: it is handed on once, by the first."""
    if dim is not None or not isinstance(g, Tensor) or size < 2:
        return g, dim
    return cat([g.unsqueeze(0), g.new_zeros((size - 1, *g.array.shape))]), 0


def _gradient(value: Any, dim: int | None, place: int | None, size: int) -> Any:
    """A gradient with the batch dimension of its input: summed if the input has none."""
    if isinstance(value, Tensor) and place is None and dim is not None:
        return value.sum(dim)
    return _placed(value, dim, place, size)


def _tangent(value: Any, dim: int | None, place: int | None, size: int) -> Any:
    """A tangent with the batch dimension of its result: any example's if they share the result."""
    if isinstance(value, Tensor) and place is None and dim is not None:
        return value.select(dim, 0)
    return _placed(value, dim, place, size)


def _placed(value: Any, dim: int | None, place: int | None, size: int) -> Any:
    """A value with its batch dimension at `place`."""
    if not isinstance(value, Tensor) or place is None or dim == place:
        return value
    if dim is None:
        value, dim = value.expand((size, *value.array.shape)), 0
    return value.movedim(dim, place)
