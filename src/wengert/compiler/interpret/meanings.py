"""What operators mean in a graph, where memory layout is nothing that counts.

Where an operator wants its argument to lie in memory in a certain way, as `view` does, it copies if
it has to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.registry import operator_named
from ...core.tensor import Tensor
from ...operators.copying import clone, pack
from ...operators.views import reshape
from ..ir import primitives as prim
from ..ir.literals import literal_key
from ..ir.nodes import Node


def _reshape(args: tuple) -> Tensor:
    return reshape(args[0], args[1])


def _unsafe_view(args: tuple) -> Tensor:
    """No view, unlike a reshape: the caller would see one where it is a result of the graph."""
    x, size = args
    return operator_named("_unsafe_view").call(
        (x if x.array.flags.c_contiguous else pack.call1(x), size)
    )


def _view_as_complex(args: tuple) -> Tensor:
    x = args[0]
    return operator_named("view_as_complex").call(
        (x if x.array.flags.c_contiguous else pack.call1(x),)
    )


def _view_dtype(args: tuple) -> Tensor:
    x, dtype = args
    return operator_named("view.dtype").call(
        (x if x.array.flags.c_contiguous else pack.call1(x), dtype)
    )


def _copy(args: tuple) -> Tensor:
    """What `copy_` would write, in memory of its own."""
    return clone.call1(operator_named("copy").call(args))


def _stop_gradient(args: tuple) -> Tensor:
    """No view for autograd, which would require grad as what it is a view of does."""
    return args[0].detach()


#: Operators that want a certain layout or return a view where it does not matter, by what they mean
#: in a graph.
_MEANINGS: dict[str, Callable[[tuple], Any]] = {
    "view": _reshape,
    "_reshape_alias": _reshape,
    "_unsafe_view": _unsafe_view,
    "view_as_complex": _view_as_complex,
    "view.dtype": _view_dtype,
    "copy": _copy,
    "_stop_gradient": _stop_gradient,
}


def function_of(operator: Any) -> Callable[[tuple], Any]:
    """What an operator means in a graph, where memory layout is nothing that counts."""
    return _MEANINGS.get(operator.name, operator.call)


def callable_of(node: Node) -> Callable[[tuple], Any]:
    """The function of all arguments that an operator's node stands for."""
    operator = node.operator
    if prim.is_custom(operator):
        return operator.call_converted
    count = short_operands(node)
    if count == 1:
        return lambda args: operator.call1(args[0])
    if count == 2:
        return lambda args: operator.call2(args[0], args[1])
    return function_of(operator)


def short_operands(node: Node) -> int:
    """How many operands an operator's node has if the short way leads to it, else 0.

    Eager programs take that way too where there are one or two operands and defaults: its loops may
    round otherwise than the general kernel.
    """
    operator = node.operator
    if prim.is_custom(operator) or operator.name in _MEANINGS or operator.mutates:
        return 0
    count = operator.operands
    if count not in (1, 2) or not operator.tail_has_defaults:
        return 0
    rest = (node.arguments or ())[count:]
    return count if literal_key(rest) == literal_key(operator.tail) else 0
