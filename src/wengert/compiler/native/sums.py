"""Products of matrices with something added, perhaps with nothing below a bound, as one step.

`p - 0.1 * (a.t() @ b)`, `linear(x, weight, bias)` and `relu` of either are such sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ..ir import primitives as prim
from ..ir.nodes import Node
from ..ir.nodes import Value as Symbol
from ..ir.types import TensorType

#: Whether the factors of a product are transposed, by the operator's name.
_TURNED = {"mm": (False, False), "_mm_left": (True, False), "_mm_right": (False, True)}


class Sum(NamedTuple):
    """`start + factor * (left @ right)`, no element less than `least`; without `start` if None."""

    left: Symbol
    right: Symbol
    turned: tuple[bool, bool]
    start: Symbol | None = None
    factor: float = 1.0
    least: float = -math.inf
    #: Other nodes whose results are computed on the way, which nobody else reads.
    parts: tuple[Node, ...] = ()


def sums_of(nodes: Sequence[Node]) -> dict[Node, Sum]:
    """The nodes that are such sums, of which others of the nodes may be parts."""
    known = set(nodes)
    found: dict[Node, Sum] = {}
    for node in nodes:
        made = _sum(node) or _bounded(node, found)
        if made is not None and known.issuperset(made.parts):
            found[node] = made
    return found


def _sum(node: Node) -> Sum | None:
    name = node.operator.name if node.operator is not None else ""
    if name == "_affine":
        bias, x, weight = node.bound_arguments()
        return Sum(x, weight, (False, True), bias)
    sign, alpha = 1, 1
    if node.kind == prim.AUTOGRAD_ADD:
        x, y = node.inputs
    elif name == "add" or name == "sub":
        x, y, alpha = node.bound_arguments()
        sign = 1 if name == "add" else -1
    else:
        return None
    if not _is_number(alpha) or not _are_alike(x, y):
        return None
    scaled = _scaled(y)
    if scaled is not None:
        return scaled._replace(start=x, factor=sign * alpha * scaled.factor)
    scaled = _scaled(x) if sign == alpha == 1 else None
    return None if scaled is None else scaled._replace(start=y)


def _bounded(node: Node, found: dict[Node, Sum]) -> Sum | None:
    """The rectified result of another sum."""
    if node.operator is None or node.operator.name != "relu":
        return None
    (x,) = node.inputs
    inner = found.get(x.node)
    if inner is None or len(x.uses) != 1:
        return None
    return inner._replace(least=0.0, parts=(*inner.parts, x.node))


def _scaled(symbol: Symbol) -> Sum | None:
    """A product, or a product times a number, which one node reads."""
    node = symbol.node
    if len(symbol.uses) != 1 or node.operator is None:
        return None
    turned = _TURNED.get(node.operator.name)
    if turned is not None:
        left, right = node.bound_arguments()
        return Sum(left, right, turned, parts=(node,))
    if node.operator.name != "mul":
        return None
    x, y = node.bound_arguments()
    if _is_number(x):
        x, y = y, x
    if not isinstance(x, Symbol) or not _is_number(y) or x.node.operator is None:
        return None
    product = _scaled(x) if x.node.operator.name in _TURNED else None
    return None if product is None else product._replace(factor=y, parts=(*product.parts, node))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _are_alike(x: object, y: object) -> bool:
    """Whether two values are matrices of one shape and type."""
    if not isinstance(x, Symbol) or not isinstance(y, Symbol):
        return False
    first, second = x.type, y.type
    return (
        isinstance(first, TensorType)
        and isinstance(second, TensorType)
        and len(first.concrete_shape or ()) == 2
        and first.concrete_shape == second.concrete_shape
        and first.dtype is not None
        and first.dtype is second.dtype
    )
