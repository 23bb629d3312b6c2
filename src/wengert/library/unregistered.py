"""Operators that have a kernel and say nothing about autograd: a backward through them warns.

What the kernel calls is recorded. That may be the derivative, or a part of it: what the kernel
computes outside of operators is lost without a word. So the results warn when a gradient arrives,
and those that the kernel left without history get a node that passes nothing on.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..core.collector import collector
from ..core.errors import warn_user
from ..core.ndarrays import ndarrays
from ..core.state import ThreadState
from ..core.tensor import Tensor, node_of, requires_of, set_fields
from .node import new_operator_node, plan_for

_no_output = np.empty(())


class _Stopped:
    """What the node of an operator without derivative asks: a formula that returns nothing."""

    setup_context = None
    has_lists = True

    def __init__(self, operator: Any) -> None:
        self.name = operator.name
        self.positional = operator.positional
        self.list_positions = operator.list_positions
        self.plan = plan_for(self, "WarnNotImplemented")

    def backward(self, ctx: Any, *grads: Any) -> tuple:
        _warn(self.name)
        kinds = ctx.input_kinds
        return tuple([[None] * len(kind) if type(kind) is tuple else None for kind in kinds])


def warn_in_backward(
    operator: Any, state: ThreadState, args: tuple, results: list[Tensor], inputs: list[Tensor]
) -> None:
    """Let a backward that reaches the results of a call warn that nobody gave a derivative."""
    if state.levels and state.levels[-1].traces:
        return  # a graph has the operator itself as a node
    given = {id(t) for t in inputs}
    changed = {id(t) for t in operator.mutated_tensors(args)}
    without_history = []
    for t in results:
        if id(t) in given and id(t) not in changed:
            continue  # as it came, so nothing was computed
        if not requires_of(t):
            if id(t) not in given and ndarrays.is_differentiable(t.array):
                without_history.append(t)
        elif node_of(t) is not None:
            t.register_hook(partial(_warn, operator.name))
    if without_history:
        _set_node(operator, state, args, without_history)


def _set_node(operator: Any, state: ThreadState, args: tuple, results: list[Tensor]) -> None:
    """Make the results those of a node that warns, and leads to the arguments."""
    if operator.stopped is None:
        operator.stopped = _Stopped(operator)
    node: Any = new_operator_node(operator.stopped, state, args, _no_output)
    node.keeps_undefined = True
    node.result_kinds = (True,) * len(results)
    node.outputs_meta = [(t.array.shape, t.array.dtype) for t in results]
    for i, t in enumerate(results):
        set_fields(t, view_meta=None, node=node, output_index=i, needs_grad=True)
        if node.shown:
            collector.show(t)


def _warn(name: str, gradient: Any = None) -> None:
    warn_user(
        f"{name}: an autograd kernel was not registered to the Autograd key(s) but we are trying "
        "to backprop through it. The gradients are those of the operators that its kernel calls, "
        "and what the kernel computes otherwise is missing from them. Give the operator its "
        "derivative by register_autograd, or its kernel to CompositeImplicitAutograd if it calls "
        "operators only. If it has no derivative, give fallthrough_kernel to Autograd"
    )
