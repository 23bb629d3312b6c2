"""The engine: one backward is one GraphTask, run newest node first on the calling thread.

`run_node` runs a node between its hooks, `run_loops` one that needs none of that; results are
delivered along the edges, where gradients are fitted and summed. No lock is held while user code
runs.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable
from os import register_at_fork
from sys import modules
from typing import Any

import numpy as np

from ..backends.loops import loops
from ..backends.numpy import add_into
from ..core.frames import frames
from ..core.loading import load
from ..core.ndarrays import ndarrays
from ..core.registry import makers, operator_named
from ..core.state import ThreadState, anomaly, inherit, overriding, thread_state
from ..core.tensor import Tensor
from .accumulation import add_gradient
from .hooks import run_post_hooks, run_pre_hooks, run_tensor_hooks
from .node import Node, apply_loop, unpack_saved
from .node_log import log_nodes, logs_nodes
from .saved import Freed
from .tasks import GraphTask, abandon, count_dependencies, plan_execution, pop, queue

_frames = frames
_loops = loops
_ndarrays = ndarrays
_overriding = overriding
_anomaly = anomaly
_ndarray = np.ndarray

# Reentrant calls deeper than this continue on a fresh thread, whose stack is empty.
MAX_DEPTH = 40

_claim_lock = allocate_lock()


def run_backward(
    roots: list[tuple[Node, int]],
    grads: list[Tensor],
    keep_graph: bool,
    create_graph: bool,
    targets: list[tuple[Node, int]] | None,
    accumulate: bool,
    task: GraphTask | None = None,
) -> list[Tensor | None] | None:
    """Send `grads` from the root edges through the graph.

    `roots` and `targets` are pairs (node, output number). With `accumulate` the leaves' ``.grad``
    grow, only those of `targets` if given; otherwise the gradients arriving at `targets` return.
    A `task` is given where this continues one that was begun on another thread.
    """
    state = thread_state()
    root_nodes = [node for node, _ in roots]
    if task is None:
        freed = Freed()
        freed.code, freed.lasti = _frames.caller(), _frames.lasti
        task = GraphTask(keep_graph, create_graph, state, state.graph_task, freed)
        if state.depth >= MAX_DEPTH:
            return _run_on_fresh_thread(task, roots, grads, targets, accumulate)
    saved = (state.graph_task, state.needed, state.grad_enabled, state.node, state.depth)
    task.roots = root_nodes
    state.depth += 1
    state.graph_task = task
    state.grad_enabled = task.create_graph
    stop_logging = None
    try:
        if "logging" in modules and logs_nodes():
            stop_logging = log_nodes(root_nodes)
        if targets:
            plan_execution(task, root_nodes, targets, accumulate)
        state.needed = task.needed
        with _claim_lock:
            count_dependencies(task, root_nodes)
        for i, (node, nr) in enumerate(roots):
            deliver(task, node, nr, validated(None, i, node, nr, grads[i]))
        if task.parallel and state.multithreading:
            # a graph over several devices is rare, and its queues import what else nothing needs
            from .workers import ParallelRun

            task.parallel_run = ParallelRun(task, evaluate, hand_on)
            task.parallel_run.run()
        else:
            task.parallel = False
            task.plain = task.needed is None
            run_on_caller(task, state)
        state.node = saved[3]
        while task.callbacks:
            task.callbacks.pop(0)()
        return task.captured
    except BaseException:
        abandon(task, root_nodes)
        raise
    finally:
        task.done = True
        state.graph_task, state.needed, state.grad_enabled, state.node, state.depth = saved
        task.parent = None
        # nodes that did not run still refer to the task, which must not hold the graph
        if task.needed is not None:
            task.needed = task.executed = set()
        task.captures = task.captured = task.parallel_run = task.roots = task.reachable = None
        task.overflow.clear()
        if stop_logging is not None:
            stop_logging()


def run_on_caller(task: GraphTask, state: ThreadState) -> None:
    """Run ready nodes until none is left."""
    watched = _anomaly.enabled or state.profiler is not None
    recorded = watched or not task.plain or state.grad_enabled or state.layers != 0
    while True:
        node = task.next_ready
        if node is None:
            if not task.heap:
                return
            node = pop(task.heap)
        task.next_ready = None
        if (
            not recorded
            and node.cold is None
            and node.claim is task
            and node.buffer is not None
        ):
            if node.plan.loops:
                run_loops(task, node, state)
                continue
            if node.is_accumulator and not _overriding.possible:
                sink: Any = node
                if sink.variable.cold is None:
                    g = node.buffer
                    node.buffer = None
                    node.claim = None
                    add_gradient(sink.variable, g)
                    g = None
                    continue
        watched = _anomaly.enabled or state.profiler is not None
        if watched:
            evaluate_observed(task, node, state)
        else:
            run_node(task, node, state)
        # only the hooks and rules in there can change this
        recorded = watched or not task.plain or state.grad_enabled or state.layers != 0


def queue_callback(callback: Callable[[], None]) -> None:
    """Call `callback` when the running backward has ended."""
    task = thread_state().graph_task
    if task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    if task.callbacks is None:
        task.callbacks = []
    task.callbacks.append(callback)


def _run_on_fresh_thread(
    task: GraphTask, roots: list, grads: list, targets: list | None, accumulate: bool
) -> list | None:
    """Continue a deeply nested backward where the stack is empty; the caller waits."""
    parent_state = thread_state()
    result: list = []
    failure: list = []

    def body() -> None:
        state = inherit(parent_state)
        state.graph_task = parent_state.graph_task
        state.node = parent_state.node
        state.depth = 0
        options = task.keep_graph, task.create_graph, targets, accumulate
        try:
            result.append(run_backward(roots, grads, *options, task=task))
        except BaseException as error:
            failure.append(error)

    from threading import Thread

    thread = Thread(target=body, name="wengert-reentrant", daemon=True)
    thread.start()
    thread.join()
    if failure:
        raise failure.pop()
    return result[0]


def evaluate(task: GraphTask, node: Node) -> list | None:
    """Run one node with its hooks and hand the results on."""
    state = thread_state()
    if _anomaly.enabled or state.profiler is not None:
        return evaluate_observed(task, node, state)
    return run_node(task, node, state)


def evaluate_observed(task: GraphTask, node: Node, state: ThreadState) -> list | None:
    """Run one node with its hooks under anomaly detection, under the profiler, or under both."""
    profiler = state.profiler
    if profiler is not None:
        profiler.enter_node(node)
    try:
        return run_node(task, node, state)
    except BaseException as error:
        if _anomaly.enabled:
            load("tape.anomaly").explain(node, error)
        raise
    finally:
        if profiler is not None:
            profiler.leave()


def run_node(task: GraphTask, node: Node, state: ThreadState) -> list | None:
    """Hooks before, the node, hooks after."""
    if node.claim is task:
        grads = node.buffer
        node.buffer = None
        node.claim = None
    else:
        grads = task.overflow.pop(node).buffer
    state.node = node
    state.grad_enabled = task.create_graph  # whatever an earlier hook has left behind
    if node.cold is not None or (
        node.is_accumulator and node.variable.cold is not None  # type: ignore[attr-defined]
    ):
        grads = run_tensor_hooks(node, grads)
    if task.needed is not None:
        if task.captures is not None:
            wanted = task.captures.get(node)
            if wanted is not None:
                for nr, index in wanted:
                    task.captured[index] = (  # type: ignore[index]
                        grads if grads is None or node.outputs_meta is None else grads[nr]
                    )
        if node not in task.executed:  # type: ignore[operator]
            return None
    if node.cold is not None and node.cold.pre_hooks:
        grads = run_pre_hooks(node, grads)
    if state.profiler is not None:
        outputs = state.profiler.run_node(node, grads, run_inside)
    elif _overriding.possible:
        outputs = run_inside(node, grads, state)
    elif node.is_accumulator:  # without a call between, whose reference to the gradient counts
        sink: Any = node
        add_gradient(sink.variable, grads)
        outputs = []
    else:
        outputs = node.run(grads)
    if node.cold is not None and node.cold.post_hooks:
        _fit(node, outputs)
        outputs = run_post_hooks(node, outputs, grads, task)
    if _anomaly.enabled and _anomaly.check_nan:
        load("tape.anomaly").refuse_nan(node, outputs)
    if not task.keep_graph and not node.is_accumulator:
        node.release(task.freed)
    grads = None
    if task.parallel:
        return outputs
    hand_on(task, node, outputs)
    return None


def run_loops(task: GraphTask, node: Node, state: ThreadState) -> None:
    """Run a node of native loops that has no hooks, while nothing watches or is recorded."""
    g = node.buffer
    node.buffer = None
    node.claim = None
    nodes = node.next_nodes
    saved = node.saved
    if type(saved) is Freed:
        unpack_saved(node)
    outputs = None
    plan = node.plan
    steps = plan.steps
    left = len(steps)
    # Held by nobody else, the gradient can become the result of the last step that reads it.
    owned = node.buffer_owned
    for step in steps:
        left -= 1
        edge = step.edge
        following = nodes[edge]
        if following is None:
            continue
        last = owned and (not left or (left == 1 and nodes[steps[-1].edge] is None))
        total = None
        if step.is_product and following.buffer_owned and following.claim is task:
            total = following.buffer
        value = None
        if outputs is None:
            value = apply_loop(step, g, saved, state.inference, total, last)
        fresh = last if value is g else not step.shares
        if value is None:
            if outputs is None:
                state.node = node
                outputs = run_inside(node, g, state) if _overriding.possible else node.run(g)
            value = outputs[edge]
            outputs[edge] = None
            fresh = False
        elif value is total:
            value = None
        elif fresh and step.vector is not None:
            fresh = _ndarrays.owns_memory(value.array)
        owned = owned and fresh
        if (
            value is None
            or not _ndarrays.has_shape(value.array, following.out_shape)
            or not receive(task, following, value, fresh)
        ):
            hand(task, node, edge, value)
    if plan.saves_tensors and not task.keep_graph:
        if isinstance(saved if plan.saves == 1 else saved[0], Tensor):
            node.saved = task.freed
        else:
            node.release(task.freed)


def run_inside(node: Node, grads: Any, state: ThreadState) -> list:
    """Run a node where classes override functions: what rules call is not theirs to override."""
    inside, state.inside = state.inside, not node.plan.custom
    try:
        return node.run(grads)
    finally:
        state.inside = inside


def hand_on(task: GraphTask, node: Node, outputs: list) -> None:
    """Deliver a node's results along its edges."""
    for i, following in enumerate(node.next_nodes):
        if following is not None:
            g = outputs[i]
            outputs[i] = None
            if (
                g is None
                or not task.plain
                or not _ndarrays.has_shape(g.array, following.out_shape)
                or not receive(task, following, g, False)
            ):
                hand(task, node, i, g)


def receive(task: GraphTask, node: Node, g: Tensor, fresh: bool) -> bool:
    """Add a gradient of the shape of its value to what waits at `node`; False if more is to do.

    A `fresh` one is held by nobody else, so that others may be added to it in place.
    """
    if (
        not task.plain
        or node.claim is not task
        or node.outputs_meta is not None
        or _ndarrays.dtype_of(g.array) is not node.out_dtype
    ):
        return False
    if node.buffer is None:
        node.buffer = g
        node.buffer_owned = fresh
    else:
        node.buffer = combine(task, node.buffer, g, node.buffer_owned)
        node.buffer_owned = True
    node.pending -= 1
    if node.pending == 0:
        if task.next_ready is None and not task.heap:
            task.next_ready = node
        else:
            queue(task, node)
    return True


def hand(task: GraphTask, producer: Node, index: int, g: Tensor | None) -> None:
    """Deliver one result of a node, in the shape and dtype of the value it belongs to."""
    node = producer.next_nodes[index]
    nrs = producer.next_nrs
    nr = 0 if nrs is None else nrs[index]
    deliver(task, node, nr, validated(producer, index, node, nr, g))


def _fit(node: Node, outputs: list) -> None:
    """Bring the results of a node into the shapes of its inputs, as its hooks expect them."""
    nrs = node.next_nrs
    for i, following in enumerate(node.next_nodes):
        if following is not None:
            nr = 0 if nrs is None else nrs[i]
            outputs[i] = validated(node, i, following, nr, outputs[i])


def deliver(task: GraphTask, node: Node, nr: int, g: Tensor | None) -> bool:
    """Add one gradient to what waits at `node`; queue the node when it was the last."""
    if node.claim is task:
        node.pending -= 1
        ready = node.pending == 0
        if task.needed is not None and node not in task.needed:
            return False
        if g is not None:
            owned = node.buffer is not None and node.outputs_meta is None
            node.buffer = with_one_more(task, node, node.buffer, node.buffer_owned, nr, g)
            node.buffer_owned = owned
    else:
        slot = task.overflow[node]
        slot.pending -= 1
        ready = slot.pending == 0
        if task.needed is not None and node not in task.needed:
            return False
        if g is not None:
            owned = slot.buffer is not None and node.outputs_meta is None
            slot.buffer = with_one_more(task, node, slot.buffer, slot.buffer_owned, nr, g)
            slot.buffer_owned = owned
    if ready:
        if task.parallel_run is not None:
            task.parallel_run.enqueue(node)
        elif task.next_ready is None and not task.heap:
            task.next_ready = node
        else:
            queue(task, node)
    return ready


def with_one_more(
    task: GraphTask, node: Node, waiting: Any, owned: bool, nr: int, g: Tensor
) -> Any:
    """What waits at a node, and one gradient more for the output `nr`."""
    if node.outputs_meta is None:
        return g if waiting is None else combine(task, waiting, g, owned)
    if waiting is None:
        waiting = [None] * len(node.outputs_meta)
    waiting[nr] = g if waiting[nr] is None else combine(task, waiting[nr], g, False)
    return waiting


def combine(task: GraphTask, old: Tensor, g: Tensor, owned: bool) -> Tensor:
    """The sum of two gradients; in place when the first is a sum that only the engine holds."""
    if owned and not task.create_graph and type(old) is Tensor and not task.caller.layers:
        if _loops.binary_into(0, old.array, g.array):
            return old
        if type(old.array) is _ndarray and type(g.array) is _ndarray:
            add_into(old.array, g.array)
            return old
    return operator_named("add").call2(old, g)


def validated(
    producer: Node | None, index: int, node: Node, nr: int, g: Tensor | None
) -> Tensor | None:
    """`g` in the shape and dtype of the forward value it belongs to, or an error."""
    if g is None:
        return None
    if node.outputs_meta is None:
        shape, dtype = node.out_shape, node.out_dtype
    else:
        shape, dtype = node.outputs_meta[nr]
    array = g.array
    if _ndarrays.dtype_of(array) is dtype:
        if not shape and not array.ndim:  # the usual root
            return g
        if _ndarrays.has_shape(array, shape):
            return g
    return makers.reduce_gradient(producer, index, g, shape, dtype)


def _renew_lock() -> None:
    """In a forked child: a lock that one of the parent's threads held is never released."""
    global _claim_lock
    _claim_lock = allocate_lock()


register_at_fork(after_in_child=_renew_lock)
