"""Recording of one call: the node, its edges, what it saves, and the relation of views to a base.

`record_small` is the short way for one and two operands; `record` and `fill_saved` take all
arguments in schema order.
"""

from __future__ import annotations

from typing import Any

from ..core.classes import COMPILED
from ..core.collector import collector
from ..core.state import ThreadState, thread_state
from ..core.tensor import (
    VIEW_DEFAULT,
    VIEW_INFERENCE,
    VIEW_MULTI_OUTPUT,
    VIEW_NO_GRAD,
    Tensor,
    ViewMeta,
    counter_of,
    node_of,
    requires_of,
)
from ..tape.node import Node, edge_target, keep_items, new_node
from ..tape.planning import has_edge, named_plan, plan_for
from ..tape.plans import OUT_SLOT, SHAPE_SLOT
from ..tape.saved import never_saved, save, save_output
from .declaration import Declaration

_collector = collector
_hides = COMPILED
_SHAPE_SLOT, _OUT_SLOT = SHAPE_SLOT, OUT_SLOT
# Between the look at the user's frame and that frame: Native.caller, new_node, record_small, call1
# or call2, and the method or function that the user called.
_FRAMES = 5


def record_small(
    operator: Declaration, state: ThreadState, x: Any, y: Any, mask: int, result: Tensor
) -> None:
    """Record a call of one or two operands, all of them differentiable, without lists."""
    plan = operator.small_plans[mask]
    if plan is None:
        if operator.namer is None:
            plan = plan_for(operator, mask, operator.node_name)
            operator.small_plans[mask] = plan
        else:
            operands = (x,) if y is None else (x, y)
            plan = named_plan(operator, mask, operands + operator.tail)
    first = second = None
    nr = other_nr = 0
    from_leaf = False
    if mask & 1:
        t = x
        first = t.node if t.view_meta is None else node_of(t)
        if first is None and t.needs_grad:
            first = t
            from_leaf = True
        else:
            nr = t.output_index
    if mask & 2:
        t = y
        second = t.node if t.view_meta is None else node_of(t)
        if second is None and t.needs_grad:
            second = t
            from_leaf = True
        else:
            other_nr = t.output_index
    if plan.edges == 1:
        if first is None:
            first = second
            nr = other_nr
        nodes = (first,)
        nrs = (nr,) if nr else None
    else:
        nodes = (first, second)  # type: ignore[assignment]
        nrs = (nr, other_nr) if nr or other_nr else None  # type: ignore[assignment]
    node = new_node(plan, state, result.array, nodes, nrs, _FRAMES)
    node.unresolved = from_leaf
    result.node = node
    result.needs_grad = True
    count = plan.saves
    if count == 1:
        node.saved = saved_value(operator, state, plan.slots[0], x, y, result)
    elif count == 2:
        slots = plan.slots
        node.saved = (
            saved_value(operator, state, slots[0], x, y, result),
            saved_value(operator, state, slots[1], x, y, result),
        )
    elif count:
        node.saved = tuple([saved_value(operator, state, s, x, y, result) for s in plan.slots])
    if _hides:
        if node.shown:
            _collector.show(result)
        elif count > 1:
            _collector.hide(node.saved)


def saved_value(
    operator: Declaration, state: ThreadState, slot: int, x: Any, y: Any, result: Tensor
) -> Any:
    """What `record_small` keeps for one slot of the plan."""
    if slot < 0:
        return save_output(result, state)
    if slot < operator.operands:
        value = y if slot else x
        if type(value) is Tensor and not state.saved_hooks:
            t = value
            counter = t.counter
            if (counter is None or counter.value == 0) and not t.inference:
                t.watched = True
                if counter is not None:
                    counter.watched = True
                return t
        return save(value, state)
    if slot >= _SHAPE_SLOT:
        return (x if slot == _SHAPE_SLOT else y).array.shape
    return operator.tail[slot - operator.operands]


def record(operator: Declaration, state: ThreadState, args: tuple, out_array: Any) -> Node:
    """A node with its edges; which inputs require gradients selects the plan."""
    mask = 0
    bit = 1
    nodes = []
    nrs = None
    for position in operator.grad_positions:
        value = args[position]
        if isinstance(value, Tensor):
            t = value
            target = edge_target(t)
            nodes.append(target)
            nr = 0
            if target is not None or (t.view_meta is not None and requires_of(t)):
                mask |= bit
                nr = t.output_index
            if nr and nrs is None:
                nrs = [0] * (len(nodes) - 1)
            if nrs is not None:
                nrs.append(nr)
        elif type(value) is list or type(value) is tuple:
            nrs = []
            for t in value:
                if t is not None and requires_of(t):
                    mask |= bit
                    nodes.append(edge_target(t))
                    nrs.append(t.output_index)
                else:
                    nodes.append(None)
                    nrs.append(0)
        elif has_edge(operator, value, args):
            nodes.append(None)
            if nrs is not None:
                nrs.append(0)
        bit <<= 1
    plan = operator.plans.get(mask) if operator.namer is None else named_plan(operator, mask, args)
    if plan is None:
        plan = plan_for(operator, mask, operator.node_name)
    return new_node(
        plan, state, out_array, tuple(nodes), None if nrs is None else tuple(nrs), _FRAMES - 1
    )


def fill_saved(node: Node, args: tuple, outs: tuple) -> None:
    """Save exactly what the plan's rules read."""
    if node.plan.slots:
        fill_outputs(node, saved_arguments(node, args), outs)


def saved_arguments(node: Node, args: tuple) -> list:
    """What the plan's rules read of the arguments, with gaps for what they read of the outputs."""
    state = thread_state()
    saved: list = []
    for index in node.plan.slots:
        if index >= _SHAPE_SLOT:
            saved.append(args[index - _SHAPE_SLOT].array.shape)
        elif index >= 0:
            saved.append(save(args[index], state))
        else:
            saved.append(None)
    return saved


def fill_outputs(node: Node, saved: list, outs: tuple) -> None:
    """Save what the plan's rules read of the outputs beside what they read of the arguments.

    After an error a change in place has happened, so its node stays and tells of the error.
    """
    if not saved:
        return
    state = thread_state()
    for i, index in enumerate(node.plan.slots):
        if index < 0:
            try:
                saved[i] = save_output(outs[_OUT_SLOT - index], state)
            except BaseException as error:
                saved[i] = never_saved(error)
                keep_items(node, tuple(saved))
                raise
    keep_items(node, tuple(saved))


def set_view(operator: Declaration, state: ThreadState, args: tuple, outs: tuple) -> None:
    """Make `outs` views of the first argument: shared version, base, way to be re-made."""
    x = args[0]
    for t in outs:
        t.inference = x.inference
    if x.inference:
        return
    meta = x.view_meta
    creation = VIEW_DEFAULT
    if not state.grad_enabled:
        creation = VIEW_NO_GRAD
    elif len(outs) > 1 or operator.outputs != 1:
        creation = VIEW_MULTI_OUTPUT
    if state.inference:
        creation = VIEW_INFERENCE
    base = x
    steps = (None, operator, args[1:])
    if meta is not None:
        base = meta.base
        steps = (meta.steps, operator, args[1:])
        if meta.creation != VIEW_DEFAULT and creation == VIEW_DEFAULT:
            creation = meta.creation
    counter = counter_of(x)
    for t in outs:
        t.counter = counter
        t.view_meta = ViewMeta(base, steps, creation, counter.value)
