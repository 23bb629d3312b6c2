"""Backward over several devices: one worker thread per device, CPU nodes on the caller.

A node runs on the worker of its `out_device`; results are handed on under the task's lock, which is
never held while a node or a hook runs. Whoever waits for a task serves a queue meanwhile, a worker
its own: so a hook on a worker may run backward over any device, its own included.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable
from os import register_at_fork
from typing import Any

from ..core.state import ThreadState, inherit, thread_state
from .node import Node
from .tasks import GraphTask

_MODES = (
    "grad_enabled",
    "inference",
    "multithreading",
    "view_replay",
    "grad_layout",
    "layers",
    "modes",
    "function_modes",
    "function_disabled",
    "dispatch_disabled",
    "profiler",
    "levels",
    "dual_level",
    "tangents_aside",
    "duals",
    "forward_grad_enabled",
    "saved_hooks",
    "saved_hooks_disabled",
)

_workers: dict[Any, Worker] = {}
_workers_lock = threading.Lock()
# The device queue that a thread serves: a worker, or a thread that stands in for a waiting worker.
_served: dict[int, ReadyQueue] = {}


class ReadyQueue:
    """Ready nodes for one thread: those of the newest task first, of these the newest first."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.heap: list[tuple] = []
        self.arrivals = itertools.count()

    def put(self, run: ParallelRun, node: Node) -> None:
        entry = (-run.task.id, -node.sequence, next(self.arrivals), run, node)
        with self.changed:
            heapq.heappush(self.heap, entry)
            self.changed.notify()

    def take(self, awaited: ParallelRun | None = None) -> tuple[ParallelRun, Node] | None:
        """The next node and its run; None as soon as the run that the caller awaits has ended."""
        with self.changed:
            while awaited is None or awaited.outstanding:
                if self.heap:
                    return heapq.heappop(self.heap)[3:]
                self.changed.wait()
        return None

    def wake(self) -> None:
        """Let a waiting thread look again whether what it awaits has ended."""
        with self.changed:
            self.changed.notify()


class Worker:
    """The thread that runs the nodes of one device."""

    def __init__(self, device: Any) -> None:
        self.queue = ReadyQueue()
        self.thread = threading.Thread(
            target=self._loop, name=f"wengert-device-{device}", daemon=True
        )
        self.thread.start()

    def _loop(self) -> None:
        _served[threading.get_ident()] = self.queue
        while True:
            self._serve()

    def _serve(self) -> None:
        """Run one node; a frame of its own, so that an idle worker keeps no graph alive."""
        item = self.queue.take()
        if item is not None:
            run, node = item
            run.execute(node)


def worker_of(device: Any) -> Worker:
    """The worker of a device, started when first asked for."""
    with _workers_lock:
        worker = _workers.get(device)
        if worker is None:
            worker = _workers[device] = Worker(device)
        return worker


class ParallelRun:
    """One task spread over the caller and the device workers.

    The engine says how a node is run and how its results are handed on.
    """

    def __init__(
        self,
        task: GraphTask,
        evaluate: Callable[[GraphTask, Node], list | None],
        hand_on: Callable[[GraphTask, Node, list], None],
    ) -> None:
        self.task = task
        self.evaluate = evaluate
        self.hand_on = hand_on
        self.modes = _captured_modes()
        self.modes.profiler = None  # it measures the calling thread
        self.device_queue = _device_queue_of_caller(task)
        self.queue = self.device_queue or ReadyQueue()
        self.lock = threading.Lock()
        self.outstanding = 0
        self.failure: BaseException | None = None

    def enqueue(self, node: Node) -> None:
        """Queue a ready node on its device; the caller of this holds the lock."""
        self.outstanding += 1
        device = node.out_device
        queue = self.queue if device is None else worker_of(device).queue
        queue.put(self, node)

    def execute(self, node: Node) -> None:
        """Run one node on a thread that did not make the call, under the modes of the call."""
        state = thread_state()
        own = _captured_modes()
        place = (state.graph_task, state.needed, state.node)
        inherit(self.modes)
        state.graph_task = self.task
        state.needed = self.task.needed
        self.step(node)
        inherit(own)
        state.graph_task, state.needed, state.node = place

    def step(self, node: Node) -> None:
        """Run one node and hand its results on; after a failure, only account for it."""
        try:
            if self.failure is None:
                outputs = self.evaluate(self.task, node)
                with self.lock:
                    if outputs is not None and self.failure is None:
                        self.hand_on(self.task, node, outputs)
        except BaseException as error:
            self.fail(error)
        with self.lock:
            self.outstanding -= 1
            ended = self.outstanding == 0
        if ended:
            self.queue.wake()

    def fail(self, error: BaseException) -> None:
        """Keep the first exception; the nodes still queued will not run."""
        with self.lock:
            if self.failure is None:
                self.failure = error

    def run(self) -> None:
        """Serve the caller's queue until every node of the task is done, here or on a worker."""
        with self.lock:
            ready, self.task.heap = self.task.heap, []
            first, self.task.next_ready = self.task.next_ready, None
            for node in ready if first is None else [first, *ready]:
                self.enqueue(node)
        thread = threading.get_ident()
        stands_in = self.device_queue is not None and thread not in _served
        if stands_in:
            _served[thread] = self.queue
        try:
            while (item := self.queue.take(self)) is not None:
                run, node = item
                if run is self:
                    self.step(node)
                else:
                    run.execute(node)
        except BaseException as error:  # an interrupt of the wait: nodes are still on the workers
            self.fail(error)
            raise
        finally:
            if stands_in:
                del _served[thread]
        failure, self.failure = self.failure, None
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # or the exception would hold this frame, which holds the exception


def _captured_modes() -> ThreadState:
    """A copy of the calling thread's modes, which no later change reaches."""
    state = thread_state()
    copy = ThreadState(0)
    for name in _MODES:
        setattr(copy, name, getattr(state, name))
    copy.modes, copy.saved_hooks = list(state.modes), list(state.saved_hooks)
    return copy


def _device_queue_of_caller(task: GraphTask | None) -> ReadyQueue | None:
    """The queue of the worker whose hook made the call, directly or further up.

    A call too deeply nested continues on a fresh thread, while the worker waits for it: then that
    thread is the one to serve the worker's device.
    """
    while task is not None:
        queue = _served.get(task.caller.ident)
        if queue is not None:
            return queue
        task = task.parent
    return None


def forget() -> None:
    """In a forked child: the parent's workers are not here; new ones start when needed."""
    global _workers_lock
    _workers_lock = threading.Lock()
    _workers.clear()
    _served.clear()


register_at_fork(after_in_child=forget)
