"""CopySlices, the node of a base that was changed through a view."""

from __future__ import annotations

from typing import Any

from ..core.state import thread_state
from ..core.tensor import Tensor, wrap
from .node import Node, apply_rules, edge_node, edges, unpack_saved
from .plans import OUT_SLOT, GradientPlan
from .saved import Freed, detached_alias
from .views import copy_in_order, replay

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
        # A weak reference to the view, where a rule reads the output, and its version afterwards.
        self.changed: Any = None
        self.version = 0
        self.out_shape = base.array.shape
        self.out_dtype = base.array.dtype
        strides = base.array.strides
        self.order = tuple(sorted(range(len(strides)), key=lambda i: -strides[i]))
        #: Where elements of the base share memory with others; None if they do not.
        self.shared: Any = None

    def run(self, grads: Any) -> list:
        if grads is None:
            return [None] * len(self.next_nodes)
        if self.shared is not None:
            part = self.shared.part(grads)
            through = self._run_inner(part, grads.array)
            return self._handed(through, self.shared.with_part(grads, through[self.written]))
        result = copy_in_order(grads, self.order)
        part = replay(result, self.steps)
        through = self._run_inner(part.clone(), result.array)
        new = through[self.written]
        if thread_state().levels:  # the change may be batched where the gradient is not
            like = part if new is None else new
            result = like.new_zeros(result.array.shape, dtype=result.dtype) + result
            result = copy_in_order(result, self.order)
            part = replay(result, self.steps)
        if new is None:
            part.zero_()
        else:
            part.copy_(new)
        return self._handed(through, result)

    def _run_inner(self, part: Tensor, base_array: Any) -> list:
        if self.inner.plan.custom:
            return self._run_custom(part)
        return self._run_rules(part, base_array)

    def _handed(self, through: list, result: Tensor) -> list:
        """What the change hands on, with the gradient of the base if that was asked for."""
        following = self.next_nodes[self.written]
        needed = thread_state().needed
        asked = following is not None and (needed is None or following in needed)
        through[self.written] = result if asked else None
        return through

    def _run_custom(self, part: Tensor) -> list:
        """Pass the gradient of the changed part through a Function. Hooks see none of the gradients
        that nobody has asked for."""
        through: list = self.inner.run(part)
        needed = thread_state().needed
        if needed is not None:
            for number, following in enumerate(self.next_nodes):
                if number != self.written and following not in needed:
                    through[number] = None
        return through

    def _run_rules(self, part: Tensor, base_array: Any) -> list:
        """Pass the gradient of the changed part through the in-place operation's rules."""
        values = unpack_saved(self.inner)
        if thread_state().grad_enabled and OUT_SLOT in self.inner.plan.slots:
            at = self.inner.plan.slots.index(OUT_SLOT)
            values[at] = self.view_of_output(values[at], base_array)
        return apply_rules(self.inner, part, values)

    def view_of_output(self, saved: Tensor, base_array: Any) -> Tensor:
        """The output that the in-place operation saved, as the part of this node's output it is.

        It is the view that was changed, whose hooks and retained gradient see what arrives, unless
        that has been changed again since.
        """
        alias = detached_alias(saved)
        alias.needs_grad = True
        alias.cold = saved.cold  # its tangent
        changed = None if self.changed is None else self.changed()
        if changed is not None and changed.version() == self.version and changed.node is not None:
            alias.node, alias.output_index = changed.node, changed.output_index
        else:
            base = wrap(base_array)
            base.needs_grad = True
            base.node = self
            view = replay(base, self.steps)
            alias.node, alias.output_index = view.node, view.output_index
        return alias

    def release(self, freed: Freed) -> None:
        self.inner.saved = freed
