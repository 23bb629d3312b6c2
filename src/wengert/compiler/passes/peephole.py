"""Small rewrites that look at one node and the nodes before it.

Adding zero changes nothing but the sign of a negative zero, and is left out all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import dtype as dtype_class
from ..ir import primitives as prim
from ..ir.aliasing import Aliases
from ..ir.blocks import Block
from ..ir.graph import Graph
from ..ir.literals import HOLE
from ..ir.nodes import Node, Value
from ..ir.types import TensorType

Rewrite = Callable[[Node], Value | None]


def peephole(graph: Graph) -> Graph:
    """Apply the rewrites until none applies; nodes that are left without users are not removed."""
    aliases = Aliases(graph.block)
    while _visit(graph.block, aliases):
        pass
    return graph


def _visit(block: Block, aliases: Aliases) -> bool:
    changed = False
    for node in block.nodes():
        for inner in node.blocks:
            changed |= _visit(inner, aliases)
        rewrite = _rewrite_of(node)
        if rewrite is None or not node._outputs[0]._uses or aliases.touches_written(node):
            continue
        old = node._outputs[0]
        with node.graph.inserting_before(node):
            new = rewrite(node)
        if new is None:
            continue
        made = new.node.next is node and not new._uses
        if made:
            new.copy_metadata(old)
            if new.node.is_view:
                aliases.unite(new, new.node._inputs[0])
        if aliases.may_replace(old, new):
            old.replace_all_uses_with(new)
            aliases.replaced(old, new)
            changed = True
        elif made:
            new.node.destroy()
    return changed


def _same_type(a: Value, b: Value) -> bool:
    """Whether two values are known to have one dtype and shape."""
    s, t = a.type, b.type
    return (
        isinstance(s, TensorType)
        and isinstance(t, TensorType)
        and s.is_complete
        and s.dtype is t.dtype
        and s.shape == t.shape
    )


def _number(item: Any) -> Any:
    """A literal number, or the one number that a constant tensor or `full` consists of."""
    if isinstance(item, Value):
        node = item.node
        if node.kind == prim.FULL and not isinstance(node.bound_arguments()[1], Value):
            return node.bound_arguments()[1]
        if node.kind != prim.CONSTANT:
            return None
        item = node.attributes["value"]
        if getattr(getattr(item, "array", None), "size", 0) == 1:
            return item.item()
    return item if isinstance(item, (int, float, complex)) else None


def _without_neutral(node: Node) -> Value | None:
    """An operand that stands for the result, since the other one is the neutral number."""
    number, *positions = node.fact("neutral")
    arguments = node.bound_arguments()
    for position in positions:
        other = arguments[1 - position]
        if (
            isinstance(other, Value)
            and _number(arguments[position]) == number
            and _same_type(other, node._outputs[0])
            # What remains of `self + alpha * other` is `other` only if alpha is 1.
            and (position == 1 or _rest_is_default(node, arguments))
        ):
            return other
    return None


def _rest_is_default(node: Node, arguments: tuple) -> bool:
    """Whether all arguments behind the two operands have their default values."""
    pairs = zip(node.schema.arguments[2:], arguments[2:], strict=True)
    return all(_number(item) == argument.default for argument, item in pairs)


def _involution(node: Node) -> Value | None:
    """Twice the same is nothing, unless the first one changed the dtype."""
    source = node._inputs[0].node
    if source.kind == node.kind and _same_type(source._inputs[0], node._outputs[0]):
        return source._inputs[0]
    return None


def _transpose(node: Node) -> Value | None:
    x, *dims = node.bound_arguments()
    rank = _rank(x)
    if rank is None or not all(isinstance(d, int) for d in dims):
        return None
    one = {d % rank for d in dims} if rank else {0}
    if len(one) == 1:
        return x
    source = x.node
    if source.kind == node.kind and {d % rank for d in source.bound_arguments()[1:]} == one:
        return source._inputs[0]
    return None


def _rank(value: Value) -> int | None:
    t = value.type
    return len(t.shape) if isinstance(t, TensorType) and t.shape is not None else None


def _permute(node: Node) -> Value | None:
    x, dims = node.bound_arguments()
    if not _is_literal(dims):
        return None
    order = [d % len(dims) for d in dims]
    if order == sorted(order):
        return x
    source = x.node
    if source.kind != node.kind or not _is_literal(source.arguments[1]):
        return None
    first = [d % len(dims) for d in source.arguments[1]]
    return node.graph.insert(node.kind, source._inputs[0], tuple(first[d] for d in order))


def _is_literal(item: Any) -> bool:
    return isinstance(item, tuple) and HOLE not in item and not any(
        isinstance(part, Value) for part in item
    )


def _reshape(node: Node) -> Value | None:
    """A view of a view is one view; one that changes nothing is none."""
    x, size = node.bound_arguments()[:2]
    if _same_type(x, node._outputs[0]):
        return x
    if x.node.kind == node.kind and _is_literal(size):
        return node.graph.insert(node.kind, x.node._inputs[0], size)
    return None


def _expand(node: Node) -> Value | None:
    x = node._inputs[0]
    return x if _same_type(x, node._outputs[0]) else None


def _cast(node: Node) -> Value | None:
    """Casts to the same type, and casts of what was cast without loss."""
    x, goal = node.bound_arguments()
    if not isinstance(goal, dtype_class) or not isinstance(x.type, TensorType):
        return None
    if x.type.dtype is goal:
        return x
    source = x.node
    if source.kind != node.kind:
        return None
    original = source._inputs[0]
    first = original.type.dtype if isinstance(original.type, TensorType) else None
    between = x.type.dtype
    if first is None or between is None or not _keeps_all(first, between):
        return None
    return original if first is goal else node.graph.insert(node.kind, original, goal)


def _keeps_all(small: dtype_class, large: dtype_class) -> bool:
    """Whether every value of one type is exactly a value of the other."""
    if small is large:
        return True
    if small.name == "bfloat16" or large.name == "bfloat16":
        return small.name == "bfloat16" and large.name in ("float32", "float64")
    return bool(np.can_cast(small.numpy, large.numpy, "safe"))


def _sum_to_size(node: Node) -> Value | None:
    g, size = node.bound_arguments()
    if size is None:
        return g
    shape = g.type.concrete_shape if isinstance(g.type, TensorType) else None
    if size == shape:
        return g
    if g.node.kind == node.kind:
        return node.graph.insert(node.kind, g.node._inputs[0], size)
    return None


def _rewrite_of(node: Node) -> Rewrite | None:
    """What to try: by what is declared of the operator, or by its kind."""
    if node.fact("neutral"):
        return _without_neutral
    return _involution if node.fact("involution") else _REWRITES.get(node.kind)


_REWRITES: dict[str, Rewrite] = {
    "wengert::transpose": _transpose,
    "wengert::permute": _permute,
    "wengert::view": _reshape,
    "wengert::_reshape_alias": _reshape,
    "wengert::_unsafe_view": _reshape,
    "wengert::expand": _expand,
    "wengert::_to_copy": _cast,
    prim.GRAD_SUM_TO_SIZE: _sum_to_size,
}
