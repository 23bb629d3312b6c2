"""Gradient plans: what the nodes of one operator do.

Which inputs require gradients selects a plan, made once (`planning.py`): a step for each edge, with
its rule and the places of what it reads among the saved values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..backends import loop_codes

# Where a value that a rule reads comes from: argument i is slot i, its shape SHAPE_SLOT + i, and
# result i is OUT_SLOT - i.
SHAPE_SLOT = 1000
OUT_SLOT = -1
#: The name of nodes that stand for a derivative that is missing.
MISSING = "NotImplemented"


class GradientStep:
    """One edge's gradient: the rule, and where in the saved values its arguments are."""

    def __init__(
        self, edge: int, rule: Callable, indices: tuple, spreads: bool, loop: int, vector: Any
    ) -> None:
        self.edge = edge
        self.rule = rule
        self.indices = indices
        self.reads = len(indices)
        self.spreads = spreads
        self.first: int = indices[0] if indices else -1
        self.alone = False  # whether what it reads is all that the node saves
        self.vector = vector  # the loop in C that does what the rule does, of all that it reads
        if loop < 0 and vector is not None:
            loop = loop_codes.VECTOR
        self.loop = loop  # what the rule comes down to, by backends/loop_codes.py, or -1
        self.is_product = loop >= loop_codes.PRODUCT
        self.shares = loop == loop_codes.SPREAD  # whether the result is the gradient's own memory


class GradientPlan:
    """What a node of one operator does for one pattern of inputs that require gradients.

    Nodes are made as `made_as` and seen as `node_class`, see `seen`; both are None for the kinds of
    nodes that are made by calling their class.
    """

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
        node_class: type | None = None,
        made_as: type | None = None,
        custom: bool = False,
        joint: Any = None,
    ) -> None:
        self.operator = operator
        self.name = name
        self.custom = custom
        self.is_missing = name == MISSING
        self.node_class: Any = node_class
        self.made_as: Any = node_class if made_as is None else made_as
        self.joint = joint  # what computes the gradients of all steps at once, or None
        self.edges = edges
        self.steps = steps
        self.slots = slots
        self.saves = len(slots)
        self.saves_tensors = any(slot < SHAPE_SLOT for slot in slots)
        for step in steps:
            step.alone = self.saves == 1
        self.saved_names = saved_names
        self.conjugates = conjugates
        self.several_outputs = several_outputs
        self.loops = (
            bool(steps) and not several_outputs and all(step.loop >= 0 for step in steps)
        )


def custom_plan(name: str, node_class: type) -> GradientPlan:
    """The plan of nodes whose backward is a user's function."""
    return GradientPlan(None, name, 0, node_class=node_class, custom=True)


# Where rules find what they read ----------------------------------------------------------------


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


def saved_names_of(operator: Any) -> set[str]:
    """What nodes of an operator may save, whichever inputs require gradients."""
    if operator is None:
        return set()
    reads = {read for rule in operator.rules.values() if rule for read in rule_reads(rule)}
    return {slot_name(operator, slot_of(operator, read)) for read in reads}
