"""CopySlices, the node of a base that was changed through a view, and the replay of views."""

from __future__ import annotations

from typing import Any

from ..core.registry import operator_named
from ..core.state import thread_state
from ..core.tensor import Tensor, wrap
from .accumulation import edge_node, edges
from .node import Node, apply_rules, unpack_saved
from .plans import OUT_SLOT, GradientPlan
from .saved import Freed, detached_alias

_COPY_SLICES_PLAN = GradientPlan(None, "CopySlices", 2)


class CopySlices(Node):
    """Replaces a base's node after an in-place change through a view of it.

    The gradient of the base flows on, except for the part the view covers, which first passes
    through the in-place operation's own node.
    """

    def __init__(self, base: Tensor, inner: Node, steps: tuple, written: int = 0) -> None:
        nodes = list(edges(inner))
        numbers = list(inner.next_nrs or (0,) * len(nodes))
        nodes[written], numbers[written] = edge_node(base), base.output_index
        Node.__init__(self, _COPY_SLICES_PLAN, tuple(nodes), tuple(numbers))
        self.inner = inner
        self.steps = steps
        self.written = written
        self.out_shape = base.array.shape
        self.out_dtype = base.array.dtype
        strides = base.array.strides
        self.order = tuple(sorted(range(len(strides)), key=lambda i: -strides[i]))

    def run(self, grads: Any) -> list:
        if grads is None:
            return [None] * len(self.next_nodes)
        result = copy_in_order(grads, self.order)
        part = replay(result, self.steps)
        if self.inner.plan.custom:
            through = self.inner.run(part.clone())
        else:
            through = self._run_rules(part.clone(), result.array)
        new = through[self.written]
        if thread_state().levels:  # the change may be batched where the gradient is not
            result = (part if new is None else new).new_zeros(result.array.shape) + result
            result = copy_in_order(result, self.order)
            part = replay(result, self.steps)
        if new is None:
            part.zero_()
        else:
            part.copy_(new)
        following = self.next_nodes[self.written]
        needed = thread_state().needed
        asked = following is not None and (needed is None or following in needed)
        through[self.written] = result if asked else None
        return through

    def _run_rules(self, part: Tensor, base_array: Any) -> list:
        """Pass the gradient of the changed part through the in-place operation's rules."""
        values = unpack_saved(self.inner)
        if thread_state().grad_enabled and OUT_SLOT in self.inner.plan.slots:
            at = self.inner.plan.slots.index(OUT_SLOT)
            values[at] = self.view_of_output(values[at], base_array)
        return apply_rules(self.inner, part, values)

    def view_of_output(self, saved: Tensor, base_array: Any) -> Tensor:
        """The output that the in-place operation saved, as the part of this node's output it is."""
        base = wrap(base_array)
        base.needs_grad = True
        base.node = self
        view = replay(base, self.steps)
        alias = detached_alias(saved)
        alias.needs_grad = True
        alias.node, alias.output_index = view.node, view.output_index
        alias.cold = saved.cold  # its tangent
        return alias

    def release(self, freed: Freed) -> None:
        self.inner.saved = freed


def copy_in_order(g: Tensor, order: tuple) -> Tensor:
    """A copy of `g` with its dimensions in the memory order of the base, as view steps expect."""
    if order == tuple(range(len(order))):
        return operator_named("_contiguous").call1(g)
    back = tuple(sorted(range(len(order)), key=order.__getitem__))
    return operator_named("_contiguous").call1(g.permute(order)).permute(back)


def replay(base: Tensor, steps: tuple | None) -> Tensor:
    """Apply the view operators in `steps`, innermost first, to `base`."""
    calls = []
    while steps is not None:
        steps, operator, args = steps
        calls.append((operator, args))
    for operator, args in reversed(calls):
        base = operator.call((base, *args))
    return base


def strided_steps(t: Tensor, base: Any) -> tuple:
    """The way from `base` to a view of its memory by shape, strides and offset alone."""
    from ..backends.geometry import offset_of, seen_from
    array = t.array
    stride = tuple([s // array.itemsize for s in array.strides])
    seen = seen_from(base.array, array.shape, stride, offset_of(array))
    return (None, operator_named("_as_strided"), seen)
