"""One call of a custom Function: the run of `forward`, recorded as one node.

`call_function` makes the node, runs `forward` without recording, attaches the results to the node
and saves what the user asked for. The common case, one fresh tensor, ends in `finish`; marked
tensors, views, returned inputs and several results go through `function_outputs.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.placement import of_array
from ..core.arrays import LevelArray, alive
from ..core.collector import collector
from ..core.ndarrays import ndarrays
from ..core.state import ThreadState, thread_state
from ..core.tensor import Tensor, requires_of
from ..dispatch.layers import innermost
from ..dispatch.levels import RecordedAlone, ascend, descend, lifted, unwrapped
from ..tape.cycles import show_graph
from ..tape.node import edge_target, new_node
from .function_arguments import bind
from .function_node import FunctionNode, among, no_setup_context, save_tensors
from .function_outputs import attach_outputs
from .function_transforms import (
    VmapInfo,
    call_batched,
    level_outside,
    lifted_results,
    made_inside_unless_given,
    same_or_lifted,
)

_collector = collector
_ndarrays = ndarrays
_ndarray = np.ndarray
_unknown_output = np.empty(())


def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Call the Function: run `forward` and record the call as one node of the graph."""
    return call_function(cls, args, kwargs)


def call_function(function: Any, args: tuple, kwargs: dict) -> Any:
    """Run `forward` without recording and make its results the results of one node."""
    setup = function.setup_context
    if setup is no_setup_context:
        setup = None
    if setup is not None or kwargs:
        args = bind(function, args, kwargs, setup is not None)
    state = thread_state()
    if state.profiler is None:
        return call_bound(function, state, args, setup)
    state.profiler.enter(function.__name__, sequence=state.sequence)
    try:
        return call_bound(function, state, args, setup)
    finally:
        state.profiler.leave()


def call_bound(function: Any, state: ThreadState, args: tuple, setup: Any) -> Any:
    """Call a Function with arguments by position; `setup` is None if `forward` takes the ctx."""
    for a in args:
        if isinstance(a, Tensor) and type(a.array) is LevelArray:
            args = tuple([alive(value) for value in args])
            break
    if state.levels:
        level = innermost(args)
        outside = level_outside(state.levels, 0 if level is None else level.number)
        if outside >= 0:
            return call_outside(function, state, args, outside)
        if level is not None:
            return call_at_level(function, state, args, setup, level)
    return call_recorded(function, state, args, setup, function.forward)


def call_recorded(
    function: Any, state: ThreadState, args: tuple, setup: Any, forward: Any
) -> Any:
    """One node for one run of `forward`; every tensor among the arguments is of one level."""
    node = new_function_node(function, state, args)
    enabled, forward_enabled = state.grad_enabled, state.forward_grad_enabled
    state.grad_enabled = False
    state.forward_grad_enabled = False
    try:
        if setup is None:
            output = forward(node, *args)
        else:
            output = forward(*args)
            setup(node, args, output)
    finally:
        state.grad_enabled = enabled
        state.forward_grad_enabled = forward_enabled
    return finish(node, state, args, output, setup is not None)


def new_function_node(function: Any, state: ThreadState, args: tuple) -> FunctionNode:
    """The node of a call, with edges if the call is to be recorded."""
    needs = []
    flags = []
    nodes = []
    nrs = []
    any_needs = any_nr = elsewhere = False
    plain = True
    recording = state.recording()
    for value in args:
        if isinstance(value, Tensor):
            t = value
            flags.append(True)
            if type(t.array) is not _ndarray:
                elsewhere = True
            if requires_of(t):
                any_needs = True
                needs.append(True)
                nodes.append(edge_target(t) if recording else None)
                nrs.append(t.output_index)
                if t.output_index:
                    any_nr = True
            else:
                needs.append(False)
                nodes.append(None)
                nrs.append(0)
        else:
            plain = False
            flags.append(False)
            needs.append(False)
    node: Any
    plan = function._plan
    if any_needs and recording:
        node = new_node(plan, state, _unknown_output, tuple(nodes), tuple(nrs) if any_nr else None)
    else:
        node = plan.node_class()
    node.needs_input_grad = tuple(needs)
    node.argument_count = len(needs)
    if not plain:
        node.tensor_flags = tuple(flags)
    if elsewhere:
        node.input_devices = tuple([of_array(a.array).type for a in args if isinstance(a, Tensor)])
    clears = function.clear_saved_tensors_on_access
    boxed = function.boxed_grads_call
    if clears is not False or boxed is not False:
        node.clears_on_access = checked_switch("clear_saved_tensors_on_access", clears)
        node.boxes_grads = checked_switch("boxed_grads_call", boxed)
    if any_needs and recording and function._refers_to_results:
        show_graph(node)  # methods of the class may refer to results, which refer to the node
    return node


def checked_switch(name: str, value: Any) -> bool:
    """The value of a class attribute that must be a bool."""
    if not isinstance(value, bool):
        raise RuntimeError(f"{name} must be a bool, got {type(value).__name__}")
    return value


def finish(
    node: FunctionNode, state: ThreadState, args: tuple, output: Any, separate: bool
) -> Any:
    """Make the results of `forward` those of the node, and save what was asked for."""
    if (
        not isinstance(output, Tensor)
        or node.dirty_tensors is not None
        or node.non_differentiable is not None
        or state.layers
        or not node.next_nodes
    ):
        return finish_with_rules(node, state, args, output, separate)
    t = output
    if (
        t.view_meta is not None
        or t.inference
        or among(output, args)
        or type(t.array) is not _ndarray
        or not _ndarrays.is_differentiable(t.array)
    ):
        return finish_with_rules(node, state, args, output, separate)
    node.out_shape = _ndarrays.shape_of(t.array)
    node.out_dtype = t.array.dtype
    t.node = node
    t.output_index = 0
    t.needs_grad = True
    if node.shown:
        _collector.show(t)
    if node.to_save is not None:
        save_tensors(node, state, (t,))
    node.saved_for_forward = None
    return t


def finish_with_rules(
    node: FunctionNode, state: ThreadState, args: tuple, output: Any, separate: bool
) -> Any:
    """Make results of the node those that are several, inputs, views, marked or no tensors."""
    raw = output if isinstance(output, tuple) else (output,)
    outputs = attach_outputs(node, state, args, raw, separate)
    if node.next_nodes and node.to_save is not None:
        save_tensors(node, state, outputs)
    node.to_save = None
    node.saved_for_forward = None
    return outputs if isinstance(output, tuple) else outputs[0]


# Inside transforms -------------------------------------------------------------------------------


def call_outside(function: Any, state: ThreadState, args: tuple, number: int) -> Any:
    """Call a Function at level `number`; what it makes belongs to the levels further in."""
    saved = descend(state, number)
    try:
        out = apply(function, *args)
    finally:
        ascend(state, saved)
    inner = state.levels[number:]
    if isinstance(out, tuple):
        return tuple([made_inside_unless_given(item, args, inner) for item in out])
    return made_inside_unless_given(out, args, inner)


def call_at_level(
    function: Any, state: ThreadState, args: tuple, setup: Any, level: Any
) -> Any:
    """Call a Function some of whose arguments are tensors of a transform; `level` is innermost."""
    if level.traces:
        return level.call_function(function, state, args, setup)
    if setup is None:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
            f"jacrev, ...), it must override the setup_context staticmethod; {function.__name__} "
            "has a forward that takes ctx"
        )
    parts = [unwrapped(a, level) if isinstance(a, Tensor) else (a, None) for a in args]
    values, dims = tuple([value for value, _ in parts]), tuple([dim for _, dim in parts])
    if not level.differentiates:
        with level.below():
            if dims.count(None) == len(dims):
                return lifted_results(apply(function, *values), None, level)
            output, out_dims = call_batched(
                function, VmapInfo(level.batch_size, level.randomness), dims, values
            )
        return lifted_results(output, out_dims, level)
    inputs = tuple(
        [
            lifted(a, level) if isinstance(a, Tensor) and value is a else a
            for a, value in zip(args, values, strict=True)
        ]
    )
    with level.below():
        below = apply(function, *values)
    output = same_or_lifted(below, values, inputs, level)
    with RecordedAlone(level, state):
        return call_recorded(function, state, inputs, setup, lambda *same: output)
