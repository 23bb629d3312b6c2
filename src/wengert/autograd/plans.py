"""Gradient plans: what the nodes of one operator do, and how one of their rules is run.

Which inputs require gradients selects a plan, made once: a step for each edge, with its rule and
the places of what it reads among the saved values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..native import native
from ..operators import loops
from ..tensor import Tensor, wrap_as
from .saved import SavedVariable

_native = native
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
        self.saved_names = saved_names
        self.conjugates = conjugates
        self.several_outputs = several_outputs
        self.loops = bool(steps) and all(step.loop >= 0 for step in steps)


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
    return {operator._slot_name(operator._slot(read)) for read in operator.all_reads()}


def apply_loop(
    step: GradientStep, g: Tensor, values: Any, inference: bool, total: Tensor | None
) -> Tensor | None:
    """What a rule that is a native loop makes of a gradient; None if the operands do not suit it.

    `values` are the saved values, unpacked or not: if unchanged, they are read where they are. A
    product of matrices is added to `total`, if given and suited, which is then the result.
    """
    loop = step.loop
    if loop == _pass_on:
        return g
    value = values[step.first]
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
        if step.reads == 2 and values[step.indices[1]] != 1:
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
