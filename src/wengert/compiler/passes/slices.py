"""Slices of one whole: sums of gradients of slices as stacks, and stacks of a loop's results.

The gradient of `x` in a loop over `x[t]` is a sum of arrays that are zero but for one slice. Such a
sum is a stack of the slices, and if they are results of a loop, its stacked result.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..ir import primitives as prim
from ..ir.graph import Graph
from ..ir.nodes import Node, Value
from ..ir.types import TensorType, without_grad

_ADD, _OF_SLICE = "wengert::add", "wengert::select_backward"
_SELECT, _STACK = "wengert::select", "wengert::stack"


class _Pieces(NamedTuple):
    """A sum: the shape of the whole, the dimension, and the slices by their index."""

    shape: tuple[int, ...]
    dim: int
    slices: dict[int, Value]


def stack_gradients(graph: Graph, fewest: int) -> None:
    """Make stacks of sums of at least so many gradients of different slices of something."""
    sums: dict[Value, _Pieces] = {}
    for node in graph.nodes():
        joined = _joined(node, sums)
        if joined is not None:
            sums[node.output] = joined
    for value, pieces in sums.items():
        if len(pieces.slices) >= fewest and _is_whole(pieces):
            with graph.inserting_before(value.node):
                parts = [pieces.slices[i] for i in range(len(pieces.slices))]
                found: Value = graph.insert(_STACK, parts, pieces.dim)
            found.type = without_grad(value.type)
            value.replace_all_uses_with(found)


def _is_whole(pieces: _Pieces) -> bool:
    return len(pieces.slices) == pieces.shape[pieces.dim]


def _joined(node: Node, sums: dict[Value, _Pieces]) -> _Pieces | None:
    """What a node sums up, if it is the gradient of a slice or a sum of such sums; the sums that it
    is made of are taken out of `sums`."""
    if node.kind == _OF_SLICE:
        _, shape, dim, index = node.arguments or ()
        dim %= len(shape)
        return _Pieces(tuple(shape), dim, {index % shape[dim]: node._inputs[0]})
    if node.kind != _ADD or len(node._inputs) != 2 or (node.arguments or ())[2:] != (1,):
        return None
    a, b = (sums.get(value) for value in node._inputs)
    if a is None or b is None or a[:2] != b[:2] or a.slices.keys() & b.slices.keys():
        return None
    if any(len(value._uses) > 1 for value in node._inputs):
        return None
    larger, smaller = (a, b) if len(a.slices) >= len(b.slices) else (b, a)
    larger.slices.update(smaller.slices)
    for value in node._inputs:
        del sums[value]
    return larger


# Stacks of results of loops -----------------------------------------------------------------------


class _Run(NamedTuple):
    """Slices of a loop's result that follow each other, from `start` on, forward or backward."""

    source: Value
    start: int
    length: int
    step: int


def unstack(graph: Graph, fewest: int) -> None:
    """Slices of a loop's result that are stacked again, in their order or the other way, are parts
    of that result."""
    for node in list(graph.nodes()):
        if node.kind != _STACK or len(node._inputs) < fewest:
            continue
        parts = _runs(node, fewest)
        if not any(isinstance(part, _Run) for part in parts):
            continue
        with graph.inserting_before(node):
            found = _joined_runs(graph, node, parts)
        node.output.replace_all_uses_with(found)
        node.destroy()


def _slice_of(value: Value) -> tuple[Value, int] | None:
    """The loop's result and the index, of a value that is a slice of one."""
    node = value.node
    if node.kind != _SELECT or node.arguments is None or node.arguments[1] != 0:
        return None
    source = node._inputs[0]
    return (source, node.arguments[2]) if source.node.kind == prim.SCAN else None


def _runs(node: Node, fewest: int) -> list[_Run | Value]:
    """The inputs of a stack, as long runs and values."""
    inputs = node._inputs
    slices = [_slice_of(value) for value in inputs]
    found: list[_Run | Value] = []
    i = 0
    while i < len(inputs):
        end, step, here = i + 1, 0, slices[i]
        while here is not None and end < len(inputs):
            following = slices[end]
            if following is None or following[0] is not here[0]:
                break
            distance = following[1] - here[1]
            if distance not in (1, -1) or step not in (0, distance):
                break
            end, step, here = end + 1, distance, following
        first = slices[i]
        if first is not None and end - i >= fewest:
            found.append(_Run(first[0], first[1], end - i, step))
        else:
            found += inputs[i:end]
        i = end
    return found


def _joined_runs(graph: Graph, node: Node, parts: list[_Run | Value]) -> Value:
    """The stack, of parts of loops' results and single values."""
    dtype = node.output.type.dtype  # type: ignore[attr-defined]
    shape = list(node._inputs[0].type.shape)  # type: ignore[attr-defined]

    def insert(kind: str, sizes: list[int], *args: Any) -> Value:
        value: Value = graph.insert(kind, *args)
        value.type = TensorType(dtype, sizes)
        return value

    made, lengths = [], []
    for part in parts:
        lengths.append(part.length if isinstance(part, _Run) else 1)
        if isinstance(part, _Run):
            low = part.start if part.step > 0 else part.start - part.length + 1
            value, sizes = part.source, [part.length, *shape]
            if (low, part.length) != (0, part.source.type.shape[0]):  # type: ignore[attr-defined]
                value = insert("wengert::slice", sizes, value, 0, low, low + part.length)
            made.append(insert("wengert::flip", sizes, value, (0,)) if part.step < 0 else value)
        else:
            made.append(insert("wengert::unsqueeze", [1, *shape], part, 0))
    count = len(node._inputs)
    whole = made[0]
    if len(made) > 1:
        whole = insert("wengert::_cat", [count, *shape], made, 0, tuple(lengths))
    dim = node.arguments[1] % (len(shape) + 1)  # type: ignore[index]
    if dim:
        order = [*range(1, dim + 1), 0, *range(dim + 1, len(shape) + 1)]
        sizes = [[count, *shape][d] for d in order]
        whole = insert("wengert::permute", sizes, whole, tuple(order))
    return insert("wengert::clone", list(node.output.type.shape), whole)  # type: ignore[attr-defined]
