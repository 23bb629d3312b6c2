"""Gradient plans: what the nodes of one operator do, and how one of their rules is run.

Which inputs require gradients selects a plan, made once: a step for each edge, with its rule and
the places of what it reads among the saved values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import loops
from ..core.native import native
from ..core.tensor import Tensor, wrap_as
from .saved import SavedVariable

_native = native
# Where a value that a rule reads comes from: argument i is slot i, its shape SHAPE_SLOT + i, and
# result i is OUT_SLOT - i.
SHAPE_SLOT = 1000
OUT_SLOT = -1

_fused, _scale, _pass_on, _product = loops.FUSED, loops.SCALE, loops.PASS_ON, loops.PRODUCT


class GradientStep:
    """One edge's gradient: the rule, and where in the saved values its arguments are."""

    def __init__(
        self, edge: int, rule: Callable, indices: tuple, spreads: bool, loop: int
    ) -> None:
        self.edge = edge
        self.rule = rule
        self.indices = indices
        self.reads = len(indices)
        self.spreads = spreads
        self.first: int = indices[0] if indices else -1
        self.alone = False  # whether what it reads is all that the node saves
        self.loop = loop  # what the rule comes down to, by operators/loops.py, or -1
        self.is_product = loop >= _product


class GradientPlan:
    """What a node of one operator does for one pattern of inputs that require gradients."""

    def __init__(
        self,
        operator: Any,
        name: str,
        edges: int,
        steps: tuple = (),
        slots: tuple = (),
        saved_names: tuple = (),
        conjugates: bool = False,
        several_outputs: bool = False,
        custom_class: type | None = None,
    ) -> None:
        self.operator = operator
        self.name = name
        self.custom = custom_class is not None
        self.node_class = node_class(name) if custom_class is None else custom_class
        # uncompiled, all are made as plain nodes, see `seen`
        plain = not _native.compiled and not self.custom
        self.made_as: Any = self.node_class.__base__ if plain else self.node_class
        if operator is not None:
            expose_saved(self.node_class, operator)
        self.edges = edges
        self.steps = steps
        self.slots = slots
        self.saves = len(slots)
        for step in steps:
            step.alone = self.saves == 1
        self.saved_names = saved_names
        self.conjugates = conjugates
        self.several_outputs = several_outputs
        self.loops = bool(steps) and all(step.loop >= 0 for step in steps)


# Making plans ------------------------------------------------------------------------------------


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
            )
        )
    plan = GradientPlan(
        operator,
        name,
        edge + 1,
        tuple(steps),
        tuple(slots),
        tuple(slot_name(operator, slot) for slot in slots),
        conjugates=operator.family == "elementwise",
        several_outputs=operator.outputs != 1,
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


def slot_of(operator: Any, name: str) -> int:
    """Where a rule's parameter comes from: an argument, its shape, or an output."""
    names = [a.name for a in operator.schema.arguments]
    if name in names:
        return names.index(name)
    if name.startswith("out") and (name == "out" or name[3:].isdigit()):
        return OUT_SLOT - int(name[3:] or 0)
    if name.endswith("_shape") and name[:-6] in names:
        return SHAPE_SLOT + names.index(name[:-6])
    raise TypeError(
        f"{operator.name}: a gradient rule reads '{name}', which is no argument or output"
    )


def slot_name(operator: Any, slot: int) -> str:
    """What users call the value of a slot, after ``_saved_``."""
    if slot >= SHAPE_SLOT:
        return operator.schema.arguments[slot - SHAPE_SLOT].name + "_sym_sizes"
    if slot >= 0:
        return operator.schema.arguments[slot].name
    return "result" if operator.outputs == 1 else f"result{OUT_SLOT - slot}"


def rule_reads(rule: Callable) -> tuple[str, ...]:
    """Names of the values a gradient rule reads, after the gradient itself."""
    code = rule.__code__
    return code.co_varnames[1 : code.co_argcount]


def values_read(operator: Any, rule: Callable, args: Any, outs: Any) -> list:
    """The values that a rule reads, picked out of the arguments and results of a call."""
    values = []
    for name in rule_reads(rule):
        slot = slot_of(operator, name)
        if slot >= SHAPE_SLOT:
            values.append(args[slot - SHAPE_SLOT].array.shape)
        else:
            values.append(args[slot] if slot >= 0 else outs[OUT_SLOT - slot])
    return values


# Classes of nodes --------------------------------------------------------------------------------


_node_classes: dict[str, type] = {}


def node_class(name: str) -> type:
    """The class of nodes of one name, such as ``MulBackward0``; all behave alike."""
    if name not in _node_classes:
        from .node import Node

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


def saved_names_of(operator: Any) -> set[str]:
    """What nodes of an operator may save, whichever inputs require gradients."""
    if operator is None:
        return set()
    reads = {read for rule in operator.rules.values() if rule for read in rule_reads(rule)}
    return {slot_name(operator, slot_of(operator, read)) for read in reads}


# Running rules -----------------------------------------------------------------------------------


def apply_loop(
    step: GradientStep, g: Tensor, saved: Any, inference: bool, total: Tensor | None
) -> Tensor | None:
    """What a rule that is a native loop makes of a gradient; None if the operands do not suit it.

    `saved` is what the node saves, in the form of `Node.saved`, unpacked or not: what is unchanged
    is read where it is. A product of matrices is added to `total`, if given and suited, which is
    then the result.
    """
    loop = step.loop
    if loop == _pass_on:
        return g
    value = saved if step.alone else saved[step.first]
    if loop == _scale:
        if value == 1:
            return g
        array = _native.binary(2, g.array, value)
        return None if array is None else wrap_as(array, inference)
    if isinstance(value, Tensor):
        t = value
        if t.counter is not None and t.counter.value != 0:
            return None
        if t.cold is not None and t.cold.detached_at >= 0:
            return None
        value = t.array
    elif type(value) is SavedVariable:
        variable = value
        if variable.array is None or variable.counter.value != variable.version:
            return None
        value = variable.array
    if loop < _fused:
        array = _native.binary(loop, g.array, value)
    elif loop < _scale:
        array = _native.differential(loop - _fused, g.array, value)
    else:
        if step.reads == 2 and saved[step.indices[1]] != 1:
            return None
        a, b = (value, g.array) if loop & 1 else (g.array, value)
        if total is not None and _native.product_into(
            total.array, a, b, (loop & 2) != 0, (loop & 4) != 0
        ):
            return total
        array = _native.product(a, b, (loop & 2) != 0, (loop & 4) != 0)
    return None if array is None else wrap_as(array, inference)


def apply_rule(step: GradientStep, grads: Any, values: list) -> Any:
    """What one rule makes of the gradients and the saved values it reads."""
    rule = step.rule
    indices = step.indices
    count = step.reads
    if count == 1:
        return rule(grads, values[indices[0]])
    if count == 0:
        return rule(grads)
    if count == 2:
        return rule(grads, values[indices[0]], values[indices[1]])
    return rule(grads, *[values[i] for i in indices])
