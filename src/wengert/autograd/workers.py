"""Backward over several devices: one worker thread per device, CPU nodes on the caller.

A node runs on the worker of its `out_device`; results are handed on under the task's lock, which is
never held while a node or a hook runs.
"""

from __future__ import annotations

import threading
from typing import Any

from ..state import inherit
from .engine import GraphTask, evaluate, hand_on
from .node import Node

_workers: dict[Any, Worker] = {}
_workers_lock = threading.Lock()


class ReadyQueue:
    """Ready (task, node) pairs of one device, newest node first within a task."""

    def __init__(self) -> None:
        self.available = threading.Condition()
        self.tasks: list[tuple[ParallelRun, list]] = []

    def put(self, run: ParallelRun, node: Node) -> None:
        with self.available:
            for owner, heap in self.tasks:
                if owner is run:
                    push_node(heap, node)
                    break
            else:
                self.tasks.append((run, [node]))
            self.available.notify()

    def take(self) -> tuple[ParallelRun, Node]:
        with self.available:
            while not self.tasks:
                self.available.wait()
            run, heap = self.tasks[-1]
            node = pop_node(heap)
            if not heap:
                self.tasks.pop()
            return run, node


class Worker:
    """The thread that runs the nodes of one device."""

    def __init__(self, device: Any) -> None:
        self.queue = ReadyQueue()
        self.thread = threading.Thread(
            target=self._loop, name=f"wengert-device-{device}", daemon=True
        )
        self.thread.start()

    def _loop(self) -> None:
        while True:
            run, node = self.queue.take()
            run.execute(node)


def worker_of(device: Any) -> Worker:
    with _workers_lock:
        worker = _workers.get(device)
        if worker is None:
            worker = _workers[device] = Worker(device)
        return worker


class ParallelRun:
    """One task spread over the caller and the device workers."""

    def __init__(self, task: GraphTask) -> None:
        self.task = task
        self.changed = threading.Condition()
        self.local: list = []
        self.outstanding = 0
        self.failure: BaseException | None = None

    def enqueue(self, node: Node) -> None:
        """Queue a ready node on its device; the caller of this holds `changed`."""
        self.outstanding += 1
        if node.out_device is None:
            push_node(self.local, node)
            self.changed.notify()
        else:
            worker_of(node.out_device).queue.put(self, node)

    def execute(self, node: Node) -> None:
        """Run one node on a worker, under the caller's modes."""
        state = inherit(self.task.caller)
        state.graph_task = self.task
        state.needed = self.task.needed
        state.grad_enabled = self.task.create_graph
        self._step(node)
        state.graph_task = None
        state.needed = None
        state.node = None

    def _step(self, node: Node) -> None:
        outputs = None
        try:
            if self.failure is None:
                outputs = evaluate(self.task, node)
            with self.changed:
                if outputs is not None and self.failure is None:
                    hand_on(self.task, node, outputs)
        except BaseException as error:
            with self.changed:
                self.failure = self.failure or error
        finally:
            with self.changed:
                self.outstanding -= 1
                self.changed.notify()

    def run(self) -> None:
        """Run CPU nodes until every node of the task is done, here or on a worker."""
        with self.changed:
            ready, self.task.heap = self.task.heap, []
            for node in ready:
                self.enqueue(node)
        while True:
            with self.changed:
                while not self.local and self.outstanding and self.failure is None:
                    self.changed.wait()
                if self.failure is not None:
                    self.outstanding -= len(self.local)
                    self.local.clear()
                    while self.outstanding:
                        self.changed.wait()
                    raise self.failure
                if not self.outstanding:
                    return
                node = pop_node(self.local)
            self._step(node)


def run_parallel(task: GraphTask) -> None:
    """Run a task whose graph has nodes of several devices."""
    task.parallel_run = ParallelRun(task)
    task.parallel_run.run()


def push_node(heap: list, node: Node) -> None:
    heap.append(node)
    heap.sort(key=_sequence)


def pop_node(heap: list) -> Node:
    return heap.pop()


def _sequence(node: Node) -> int:
    return node.sequence


def forget() -> None:
    """In a forked child: the parent's workers are not here; new ones start when needed."""
    global _workers_lock
    _workers_lock = threading.Lock()
    _workers.clear()
