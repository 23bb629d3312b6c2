"""Graph tasks: which nodes one backward will run, in which order, and what it can be asked.

A node's pending count and gradient buffer are fields of the node while one task has claimed it; a
second task that meets a claimed node (another thread, a reentrant call) keeps a Slot of its own.
"""

from __future__ import annotations

import itertools
from typing import Any

from ..core.state import ThreadState, thread_state
from .node import Node, edges, seen
from .saved import Freed

_task_ids = itertools.count()


class Slot:
    """A task's own record of a node that another running task has claimed."""

    def __init__(self) -> None:
        self.pending = 0
        self.buffer: Any = None
        self.buffer_owned = False


class GraphTask:
    """One call of backward or grad: what to keep, what to capture, where it stands."""

    def __init__(
        self,
        keep_graph: bool,
        create_graph: bool,
        caller: ThreadState,
        parent: GraphTask | None,
        freed: Freed,
    ) -> None:
        self.id = next(_task_ids)
        self.keep_graph = keep_graph
        self.create_graph = create_graph
        self.caller = caller
        self.parent = parent
        self.done = False
        self.parallel = False
        self.plain = False
        self.needed: set | None = None
        self.executed: set | None = None
        self.captures: dict | None = None
        self.captured: list | None = None
        self.callbacks: list | None = None
        self.next_ready: Node | None = None
        self.heap: list = []
        self.overflow: dict = {}
        self.freed = freed
        self.parallel_run: Any = None
        self.roots: list | None = None
        self.reachable: set | None = None


def claim(task: GraphTask, node: Node) -> bool:
    """Take a place for `node` in this task; False if it has one already."""
    owner = node.claim
    if owner is task or (task.overflow and node in task.overflow):
        return False
    if owner is None or owner.done:
        node.claim = task
        node.pending = 0
        node.buffer = None
        node.buffer_owned = False
        return True
    task.overflow[node] = Slot()
    return True


def count_dependencies(task: GraphTask, roots: list) -> None:
    """Count, for every reachable node, the gradients it has to wait for."""
    stack = []
    for node in roots:
        if claim(task, node):
            stack.append(node)
        if node.claim is task:
            node.pending += 1
        else:
            task.overflow[node].pending += 1
    while stack:
        node = stack.pop()
        while node is not None:  # along a chain without the stack
            if node.out_device is not None:
                task.parallel = True
            unseen = None
            for following in edges(node) if node.unresolved else node.next_nodes:
                if following is None:
                    continue
                if following.claim is task:
                    following.pending += 1
                    continue
                if following.claim is None and not task.overflow:
                    following.claim = task
                    following.pending = 1
                    following.buffer = None
                    following.buffer_owned = False
                else:
                    is_new = claim(task, following)
                    if following.claim is task:
                        following.pending += 1
                    else:
                        task.overflow[following].pending += 1
                    if not is_new:
                        continue
                if unseen is not None:
                    stack.append(unseen)
                unseen = following
            node = unseen


def plan_execution(task: GraphTask, roots: list, targets: list, accumulate: bool) -> None:
    """Restrict the task to the nodes on a way to one of `targets`."""
    nodes = {node for node, _ in targets if node is not None}
    order = find_needed(roots)
    executed = set(nodes) if accumulate else set()
    wanted = set(nodes)
    for node in order:
        if not wanted.isdisjoint(node.next_nodes):
            wanted.add(node)
            executed.add(node)
    if len(roots) == 1:  # its hooks run even when no target can be reached
        wanted.add(roots[0])
    task.needed = wanted
    task.executed = executed
    if not accumulate:
        task.captured = [None] * len(targets)
        captures: dict = {}
        for index, (node, nr) in enumerate(targets):
            if node is not None:
                captures.setdefault(node, []).append((nr, index))
        task.captures = captures


def find_needed(roots: list) -> list:
    """All reachable nodes, each after everything that it leads to."""
    order: list = []
    seen: set = set()
    stack: list = [(node, False) for node in roots]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            order.append(node)
            continue
        if node in seen:
            continue
        seen.add(node)
        stack.append((node, True))
        for following in edges(node) if node.unresolved else node.next_nodes:
            if following is not None and following not in seen:
                stack.append((following, False))
    return order


def abandon(task: GraphTask, roots: list) -> None:
    """After a failure, leave no gradient behind in the graph."""
    seen: set = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.claim is task:
            node.claim = None
            node.buffer = None
        stack.extend(edges(node))
    task.next_ready = None
    task.heap.clear()
    task.overflow.clear()


# The nodes that are ready ------------------------------------------------------------------------


def queue(task: GraphTask, node: Node) -> None:
    """Add a node that is ready: before the heap if none is newer, which is the usual case."""
    first = task.next_ready
    if first is None:
        top = task.heap[0] if task.heap else None
        if top is None or top.sequence < node.sequence:
            task.next_ready = node
            return
    elif first.sequence < node.sequence:
        task.next_ready, node = node, first
    push(task.heap, node)


def push(heap: list, node: Node) -> None:
    """Insert into a heap whose first element has the highest sequence number."""
    heap.append(node)
    i = len(heap) - 1
    while i > 0:
        parent = (i - 1) >> 1
        other = heap[parent]
        if other.sequence >= node.sequence:
            break
        heap[i] = other
        i = parent
    heap[i] = node


def pop(heap: list) -> Node:
    """Remove and return the node with the highest sequence number."""
    last = heap.pop()
    n = len(heap)
    if n == 0:
        return last
    top = heap[0]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        left = heap[child]
        if child + 1 < n:
            right = heap[child + 1]
            if right.sequence > left.sequence:
                left = right
                child += 1
        if left.sequence <= last.sequence:
            break
        heap[i] = left
        i = child
    heap[i] = last
    return top


# What a running backward can be asked ------------------------------------------------------------


def current_graph_task_id() -> int:
    """Number of the backward this thread is running, or -1."""
    task = thread_state().graph_task
    return -1 if task is None else task.id


def current_autograd_node() -> Node | None:
    """The node this thread is running."""
    return seen(thread_state().node)


def will_engine_execute_node(node: Node) -> bool:
    """Whether the running backward runs `node`, now, later or already."""
    if not isinstance(node, Node):
        raise RuntimeError(
            f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}"
        )
    task = thread_state().graph_task
    if task is None:
        raise RuntimeError(
            "_will_engine_execute_node() should only be called during the backward pass: from a "
            "hook or from the backward of a Function"
        )
    if task.executed is None:
        return _is_reachable(task, node)
    captured = task.captures is not None and node in task.captures
    if not captured and node not in task.executed:
        return False
    if not _is_reachable(task, node):  # what is asked for need not be
        return False
    if captured and node.is_accumulator:
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently running "
            "autograd.grad(), which captures its gradient: the node does not run then, the "
            "hooks of its tensor do"
        )
    return True


def _is_reachable(task: GraphTask, node: Node) -> bool:
    """Whether a task meets `node`, run or not; the graph is walked at the first question."""
    if task.reachable is None:
        reachable: set = set()
        stack = list(task.roots or ())
        while stack:
            item = stack.pop()
            if item is not None and item not in reachable:
                reachable.add(item)
                stack.extend(edges(item))
        task.reachable = reachable
    return node in task.reachable


def is_checkpoint_valid() -> bool:
    """Whether every backward under way runs the whole graph, none with `inputs=`."""
    task = thread_state().graph_task
    while task is not None:
        if task.needed is not None:
            return False
        task = task.parent
    return True
