"""What an in-place change does to the history of a tensor, of its base and of its views."""

from __future__ import annotations

import weakref
from typing import Any

from ..backends.geometry import owner_of, same_elements
from ..core.arrays import plain_array
from ..core.collector import collector
from ..core.errors import inplace_view_error, refuse_inference_update, shape_text
from ..core.state import ThreadState, thread_state
from ..core.tensor import VIEW_DEFAULT, Tensor, node_of, requires_of
from ..tape.copy_slices import CopySlices
from ..tape.node import Node, edge_node, edges
from ..tape.plans import OUT_SLOT
from ..tape.saved import detached_alias
from ..tape.shared_places import shared_places
from ..tape.views import replay, sees_parts, strided_steps

_collector = collector


def check_inplace(t: Tensor, recording: bool, state: ThreadState) -> None:
    """Refuse the in-place changes that autograd cannot follow."""
    if t.inference and not state.inference:
        refuse_inference_update(t)
    if not recording:
        return
    meta = t.view_meta
    if meta is not None:
        if meta.creation != VIEW_DEFAULT:
            raise inplace_view_error(t, False)
        if requires_of(t) and meta.base.node is None:
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an in-place "
                "operation."
            )
    if t.needs_grad and node_of(t) is None:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation. "
            "Change it under no_grad(), or work on a clone()."
        )


def check_result_shape(shape: tuple[int, ...], target: Any) -> None:
    """Refuse to write a result of this shape into an array that it would have to enlarge."""
    if shape != target.shape:
        raise RuntimeError(
            f"output with shape {shape_text(target.shape)} doesn't match the broadcast shape "
            f"{shape_text(shape)}"
        )


def rebase_history(t: Tensor, node: Node, written: int = 0) -> None:
    """Make `node` the node of `t` after an in-place operation; for a view, rewrite its base.

    `written` is the edge of `node` that stands for the changed tensor.
    """
    meta = t.view_meta
    if meta is None:
        move_retained_grad(t, node)
        t.node = node
        t.output_index = 0
        t.needs_grad = True
        return
    base = meta.base
    # A view of a view may have been made of one whose steps had been overtaken.
    if not base.needs_grad and (meta.version + 1 != t.version() or meta.steps[0] is not None):
        _refit_steps(t)
    before = edges(node)
    node.next_nodes = (*before[:written], edge_node(base), *before[written + 1 :])
    copy = CopySlices(base, node, meta.steps, written)
    if not base.array.flags.forc:
        copy.shared = shared_places(base.array, t.array)
    move_retained_grad(base, copy)
    base.node = copy
    base.output_index = 0
    base.needs_grad = True
    t.needs_grad = True
    regenerate_view(t)
    if node.plan.custom or OUT_SLOT in node.plan.slots:
        copy.changed, copy.version = weakref.ref(t), t.version()


def regenerate_view(t: Tensor) -> None:
    """Give a view of a changed base its new node, by making the view again."""
    meta: Any = t.view_meta
    if meta.creation != VIEW_DEFAULT:
        raise inplace_view_error(t, True)
    state = thread_state()
    enabled = state.grad_enabled
    state.grad_enabled = True
    try:
        fresh = _view_again(t)
        if fresh.node is None and t.node is not None:
            fresh = _view_of_detached(meta)
    finally:
        state.grad_enabled = enabled
    retained = t.cold is not None and t.cold.retains_grad and t.node is not None
    if retained:
        t.node.cold.retain_hooks.pop(t.output_index, None)
    t.node = fresh.node
    if fresh.node is not None and fresh.node.shown:
        _collector.show(t)
    t.output_index = fresh.output_index
    t.needs_grad = fresh.needs_grad
    meta.version = t.version()
    if retained and t.node is not None:
        add_retain_hook(t)


def _view_again(t: Tensor) -> Tensor:
    """The view made anew: by its own steps, or by strides if its base was reshaped in place."""
    meta: Any = t.view_meta
    try:
        fresh = replay(meta.base, meta.steps)
        if same_elements(fresh, t) or not _strides_lead_to(t, meta.base):
            return fresh
    except (RuntimeError, IndexError, ValueError):
        pass
    meta.steps = strided_steps(t, meta.base)
    return replay(meta.base, meta.steps)


def _view_of_detached(meta: Any) -> Tensor:
    """A view made anew of a base that was detached since: its node stays, and leads nowhere."""
    base = detached_alias(meta.base)
    base.needs_grad = True
    fresh = replay(base, meta.steps)
    last: Any = fresh.node
    while last.next_nodes[0] is not base:
        last = last.next_nodes[0]
    last.next_nodes = (None, *last.next_nodes[1:])
    return fresh


def _strides_lead_to(t: Tensor, base: Tensor) -> bool:
    """Whether the numbers of a view are those of its base, or real parts of them in its memory."""
    if t.array.dtype == base.array.dtype:
        return True
    return sees_parts(t, base) and owner_of(plain_array(t)) is owner_of(plain_array(base))


def _refit_steps(t: Tensor) -> None:
    """Make the steps of a view lead to it again, if its base was reshaped without a history."""
    state = thread_state()
    enabled, state.grad_enabled = state.grad_enabled, False
    try:
        _view_again(t)
    finally:
        state.grad_enabled = enabled


def move_retained_grad(t: Tensor, node: Node) -> None:
    """Let `retain_grad` follow the tensor to its new node."""
    if t.cold is None or not t.cold.retains_grad or t.node is None:
        return
    hook = t.node.cold.retain_hooks.pop(t.output_index, None)
    if hook is not None:
        cold = node.make_cold()
        if cold.retain_hooks is None:
            cold.retain_hooks = {}
        cold.retain_hooks[0] = hook


def add_retain_hook(t: Tensor) -> None:
    """Keep the gradient that reaches `t`, a non-leaf, in its ``.grad``."""
    cold = t.node.make_cold()
    if cold.retain_hooks is None:
        cold.retain_hooks = {}
    cold.retain_hooks[t.output_index] = weakref.ref(t)
