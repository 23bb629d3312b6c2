"""Making gradient plans, and the classes of the nodes that follow them."""

from __future__ import annotations

from typing import Any

from ..backends.kernels import native_loop
from ..core.tensor import Tensor
from .node import Node
from .plans import (
    GradientPlan,
    GradientStep,
    rule_reads,
    saved_names_of,
    slot_name,
    slot_of,
)


def named_plan(operator: Any, mask: int, args: tuple) -> GradientPlan:
    """The plan of an operator whose node's name depends on its arguments."""
    name = operator.namer(*args)
    return operator.plans.get((mask, name)) or plan_for(operator, mask, name, args)


def plan_for(operator: Any, mask: int, name: str, args: tuple | None = None) -> GradientPlan:
    """The plan for one pattern of inputs that require gradients, made once.

    The `args` that have named the plan say which inputs have an edge.
    """
    slots: list[int] = []
    steps = []
    taken: list[str] = []
    edge = -1
    for i, position in enumerate(operator.grad_positions):
        value = None if args is None else args[position]
        if args is not None and not has_edge(operator, value, args):
            continue
        edge += 1
        if not mask >> i & 1:
            continue
        argument = operator.schema.arguments[position]
        rule = operator.rules.get(argument.name)
        if rule is None:
            continue
        taken.append(argument.name)
        indices = []
        for read in rule_reads(rule):
            slot = slot_of(operator, read)
            if slot not in slots:
                slots.append(slot)
            indices.append(slots.index(slot))
        steps.append(
            GradientStep(
                edge,
                rule,
                tuple(indices),
                position in operator.list_positions,
                operator.loops.get(argument.name, -1),
                operator.vector_loops.get(argument.name),
            )
        )
    cls = node_class(name)
    expose_saved(cls, operator)
    plan = GradientPlan(
        operator,
        name,
        edge + 1,
        tuple(steps),
        tuple(slots),
        tuple(slot_name(operator, slot) for slot in slots),
        conjugates=operator.family == "elementwise",
        several_outputs=operator.outputs != 1 and not operator.takes_undefined,
        node_class=cls,
        made_as=Node,
        joint=native_loop(f"{operator.name}.{'+'.join(taken)}") if len(taken) > 1 else None,
    )
    operator.plans[mask if operator.namer is None else (mask, name)] = plan
    return plan


def has_edge(operator: Any, value: Any, args: tuple) -> bool:
    """Whether a differentiable argument with this value has an edge in the node of a call.

    Where names depend on arguments, calls with numbers have nodes of their own, without edges for
    them; an argument left out then has one only if it stands beside tensors.
    """
    if operator.namer is None or isinstance(value, (Tensor, list, tuple)):
        return True
    if value is not None:
        return False
    return any(isinstance(args[i], Tensor) for i in operator.grad_positions[1:])


# Classes of nodes -------------------------------------------------------------------------------

_node_classes: dict[str, type] = {}


def node_class(name: str) -> type:
    """The class of nodes of one name, such as ``MulBackward0``; all behave alike."""
    if name not in _node_classes:
        members = {"__slots__": (), "__module__": Node.__module__}
        _node_classes[name] = type(name, (Node,), members)
    return _node_classes[name]


def expose_saved(cls: type, operator: Any) -> None:
    """Let nodes of a class tell what they save; a class with __getattr__ would be slow to read."""
    for name in saved_names_of(operator):
        for attribute in ("_saved_" + name, "_raw_saved_" + name):
            setattr(cls, attribute, SavedAttribute(attribute))


class SavedAttribute:
    """``_saved_self`` and the like as a descriptor: what a node keeps under a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, node: Any, owner: Any) -> Any:
        return self if node is None else node._saved_attribute(self.name)
