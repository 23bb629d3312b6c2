"""Attaching what `forward` returned to its node: marked tensors, returned inputs, views, tangents.

An input that is returned as it is becomes a view of itself, so that it can have a node of its own;
one that was changed and marked as dirty moves to the node; a view keeps its base, but may not be
changed in place, because that would bypass the user's backward.
"""

from __future__ import annotations

import warnings
from typing import Any

from ..backends.placement import of_array
from ..core.collector import collector
from ..core.ndarrays import ndarrays
from ..core.state import ThreadState
from ..core.tensor import (
    VIEW_CUSTOM_FUNCTION,
    VIEW_MULTI_OUTPUT,
    Tensor,
    bump_version,
    requires_of,
    set_fields,
)
from ..dispatch.rebasing import add_retain_hook, check_inplace, rebase_history
from .function_jvp import push_tangents
from .function_node import FunctionNode, among


def attach_outputs(
    node: FunctionNode, state: ThreadState, args: tuple, raw: tuple, separate: bool
) -> tuple:
    """The results of a call: each tensor an output of `node`, or outside of the graph."""
    recorded = bool(node.next_nodes)
    constant = _marked(node.non_differentiable, "mark_non_differentiable only accepts")
    dirty = _marked(node.dirty_tensors, "mark_dirty can only accept")
    node.non_differentiable = node.dirty_tensors = None
    _count_changes(dirty, state, node)
    kept = _kept(node) if separate else ()
    outputs: list[Any] = []
    metas: list[Any] = []
    differentiable = 0
    for nr, value in enumerate(raw):
        if not isinstance(value, Tensor):
            outputs.append(value)
            metas.append(None)
            continue
        is_input, changed = among(value, args), among(value, dirty)
        metas.append((value.array.shape, value.array.dtype))
        if not recorded or among(value, constant) or not ndarrays.is_differentiable(value.array):
            t = _outside_graph(value, state, is_input, changed, among(value, kept))
        else:
            if changed:
                _move_to(node, nr, value, state, args, len(raw))
                t = value
            else:
                t = _view_of_itself(value, state, among(value, kept)) if is_input else value
                set_fields(t, node=node, output_index=nr, needs_grad=True)
            differentiable += 1
        if t.view_meta is not None and not (is_input and changed):
            t.view_meta.creation = VIEW_CUSTOM_FUNCTION
            t.view_meta.version = t.version()
        if node.shown:
            collector.show(t)
        outputs.append(t)
    _check_returned(dirty, raw)
    _describe(node, raw, metas)
    if differentiable > 1:
        for t in outputs:
            if isinstance(t, Tensor) and t.view_meta is not None:
                t.view_meta.creation = VIEW_MULTI_OUTPUT
    if state.dual_level >= 0 and state.forward_grad_enabled and not state.tangents_aside:
        push_tangents(node, state, args, raw, tuple(outputs), constant, dirty)
    return tuple(outputs)


def _marked(tensors: Any, complaint: str) -> tuple:
    """The tensors given to one of the `mark` methods."""
    if tensors is None:
        return ()
    if not isinstance(tensors, tuple):
        raise RuntimeError(
            f"{complaint} variables: expected a tuple of tensors, got {type(tensors).__name__}"
        )
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise RuntimeError(
                f"{complaint} variables, but argument {i} is of type {type(t).__name__}"
            )
    return tensors


def _kept(node: FunctionNode) -> tuple:
    """What `setup_context` asked to be saved, for either direction."""
    return (*(node.to_save or ()), *(node.saved_for_forward or ()))


def _count_changes(dirty: tuple, state: ThreadState, node: FunctionNode) -> None:
    for t in dirty:
        check_inplace(t, False, state)
        bump_version(t, node.name())


def _outside_graph(
    value: Tensor, state: ThreadState, is_input: bool, changed: bool, kept: bool
) -> Tensor:
    """A result that gets no gradient; an input keeps its own place in the graph."""
    if not requires_of(value):
        return _view_of_itself(value, state, kept) if is_input and not changed else value
    if is_input:
        return value.detach()
    if value.view_meta is None:
        value.detach_()
    return value


def _view_of_itself(value: Tensor, state: ThreadState, kept: bool) -> Tensor:
    """A returned input as a tensor of its own; what was saved would still be the input."""
    if kept:
        raise RuntimeError(
            "An input that has been returned as-is as output is being saved for backward. This is "
            "not supported with setup_context: return and save a view of it, x.view_as(x), or "
            "write a forward that takes ctx"
        )
    modes = state.grad_enabled, state.forward_grad_enabled
    state.grad_enabled = state.forward_grad_enabled = False
    try:
        return value.view_as(value)
    finally:
        state.grad_enabled, state.forward_grad_enabled = modes


def _move_to(
    node: FunctionNode, nr: int, value: Tensor, state: ThreadState, args: tuple, count: int
) -> None:
    """Let `node` compute a tensor that `forward` changed in place."""
    is_view = value.view_meta is not None
    if requires_of(value) and value.node is None:
        raise RuntimeError(
            "a leaf Variable that requires grad has been used in an in-place operation: "
            f"{node.name()} marked it as dirty. Give it a clone()"
        )
    if not among(value, args):
        message = (
            "ctx.mark_dirty() received a tensor that was not an input. Only inputs that forward "
            "has changed are to be marked."
        )
        if is_view:
            raise RuntimeError(message)
        warnings.warn(message, UserWarning, stacklevel=6)
    if is_view and count > 1:
        raise RuntimeError(
            "If your Function modifies inplace an input that is a view of another Tensor, your "
            f"Function cannot return more than one Tensor; {node.name()} returns {count}. Pass a "
            "clone() of the view, or make the change a Function of its own"
        )
    check_inplace(value, True, state)
    set_fields(value, gradient=None)
    if is_view:
        node.out_shape, node.out_dtype = value.array.shape, value.array.dtype
        tensors = [a for a in args if isinstance(a, Tensor)]
        rebase_history(value, node, next(i for i, t in enumerate(tensors) if t is value))
        return
    retained = value.cold is not None and value.cold.retains_grad and value.node is not None
    if retained:
        value.node.cold.retain_hooks.pop(value.output_index, None)
    set_fields(value, node=node, output_index=nr, needs_grad=True)
    if retained:
        add_retain_hook(value)


def _check_returned(dirty: tuple, raw: tuple) -> None:
    for t in dirty:
        if not among(t, raw):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as "
                "output. The inputs that are modified inplace must all be outputs of the Function."
            )


def _describe(node: FunctionNode, raw: tuple, metas: list) -> None:
    """Tell the node the shapes of its outputs, for the gradients that arrive or are missing."""
    if len(raw) != 1:
        node.outputs_meta = metas
    elif metas[0] is not None:
        node.out_shape, node.out_dtype = metas[0]
    devices = tuple([of_array(t.array).type if isinstance(t, Tensor) else "cpu" for t in raw])
    if devices.count("cpu") != len(devices):
        node.output_devices = devices
