"""Worker processes of a loader: tasks go out in turn, results come back in order."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import wait
from time import monotonic
from typing import Any, NoReturn

from .worker import PATIENCE, Assignment, Exhausted, Failure, Resume, work

_NOTHING = object()


class Member:
    """One worker process, the pipe of its tasks and the queue of its results."""

    def __init__(self, context: Any, given: Assignment) -> None:
        tasks, self.tasks = context.Pipe(duplex=False)
        self.results = context.Queue()
        self.active = True
        self.process = context.Process(target=work, args=(given, tasks, self.results), daemon=True)
        self.process.start()
        # Only the worker reads and writes at its ends: when it dies, both of ours end too.
        tasks.close()
        self.results._writer.close()

    def send(self, task: Any) -> None:
        """Hand over a task; a worker that has died is noticed when its results are waited for."""
        with suppress(OSError):
            self.tasks.send(task)


class Pool:
    """The worker processes of a loader, and the tasks that they have.

    It keeps no reference to the loader: so it ends as soon as nobody iterates any more.
    """

    def __init__(self, loader: Any, base_seed: int) -> None:
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self.in_order = loader.in_order
        self.persistent = loader.persistent_workers
        self.timeout = loader.timeout
        self.ahead = loader.prefetch_factor * loader.num_workers
        self.members: list[Member] = []
        self.closed = False
        self.creator = os.getpid()
        try:
            for number in range(loader.num_workers):
                given = Assignment(
                    number, loader.num_workers, base_seed, loader.dataset, loader.in_a_row,
                    loader.batch_sampler is not None, loader.collate_fn, loader.drop_last,
                    loader.worker_init_fn, os.getpid(),
                )  # fmt: skip
                self.members.append(Member(context, given))
        except BaseException:
            self.close()
            raise

    def begin(self, indices: Iterator[Any]) -> None:
        """Hand out the first tasks of a pass."""
        self.indices = indices
        self.turn = 0
        self.sent = 0
        self.wanted = 0
        #: Who has a task, and the results that came before their turn.
        self.owners: dict[int, int] = {}
        self.arrived: dict[int, Any] = {}
        for member in self.members:
            member.active = True
        for _ in range(self.ahead):
            self._send_task()

    def resume(self) -> None:
        """Let all workers begin another pass; what they still send of the last is thrown away."""
        if self.closed:
            raise RuntimeError("the worker processes of this DataLoader have ended")
        for member in self.members:
            member.send(Resume())
        waiting = set(range(len(self.members)))
        while waiting:
            number, _, outcome = self._receive(waiting)
            if isinstance(outcome, Resume):
                waiting.discard(number)

    def next_batch(self) -> Any:
        """The next result; StopIteration when all tasks are done."""
        while True:
            batch = self._next_arrived()
            if batch is not _NOTHING:
                self._send_task()
                if isinstance(batch, Failure):
                    batch.reraise()
                return batch
            if not self.owners:
                if not self.persistent:
                    self.close()
                raise StopIteration
            working = {owner for owner in self.owners.values() if self.members[owner].active}
            _, task, outcome = self._receive(working)
            if isinstance(outcome, Exhausted):
                self._retire(outcome.worker)
                self._send_task()
            elif task in self.owners:
                self.arrived[task] = outcome

    def _next_arrived(self) -> Any:
        """The result whose turn it is, if it is there."""
        if not self.in_order:
            if not self.arrived:
                return _NOTHING
            task = next(iter(self.arrived))
            del self.owners[task]
            return self.arrived.pop(task)
        while self.wanted < self.sent and self.wanted not in self.owners:
            self.wanted += 1  # given to a worker whose part of the dataset has ended
        if self.wanted not in self.arrived:
            return _NOTHING
        del self.owners[self.wanted]
        self.wanted += 1
        return self.arrived.pop(self.wanted - 1)

    def _retire(self, number: int) -> None:
        """A worker has no more examples: it gets no tasks, and those that it has are void."""
        member = self.members[number]
        member.active = False
        for task, owner in list(self.owners.items()):
            if owner == number and task not in self.arrived:
                del self.owners[task]
        if not self.persistent:
            member.send(None)

    def _send_task(self) -> None:
        """Hand out the next indices, to the next worker in turn that is active."""
        if not any(member.active for member in self.members):
            return
        indices = next(self.indices, _NOTHING)
        if indices is _NOTHING:
            return
        while not self.members[self.turn].active:
            self.turn = (self.turn + 1) % len(self.members)
        self.members[self.turn].send((self.sent, indices))
        self.owners[self.sent] = self.turn
        self.turn = (self.turn + 1) % len(self.members)
        self.sent += 1

    def _receive(self, numbers: set[int]) -> tuple[int, Any, Any]:
        """A result of one of these workers: its number, the task and the outcome."""
        members = {self.members[number].results._reader: number for number in numbers}
        sentinels = {self.members[number].process.sentinel: number for number in numbers}
        limit = self.timeout
        deadline = monotonic() + limit if limit else None
        while True:
            patience = PATIENCE if deadline is None else max(deadline - monotonic(), 0)
            ready = wait([*members, *sentinels], patience)
            for each in ready:
                if each in members:
                    number = members[each]
                    try:
                        packed = self.members[number].results.get()
                    except EOFError:
                        self._raise_death([self.members[number].process])
                    return (number, *pickle.loads(packed))
            if ready:
                dead = [self.members[sentinels[each]].process for each in ready]  # type: ignore[index]
                self._raise_death(dead)
            if deadline is not None and monotonic() >= deadline:
                raise RuntimeError(f"DataLoader timed out after {limit} seconds")

    def _raise_death(self, dead: list[Any]) -> NoReturn:
        """A worker has ended without being told to."""
        for process in dead:
            process.join()
        told = [
            f"{process.pid} ("
            + (f"signal {-process.exitcode}" if process.exitcode < 0 else f"{process.exitcode}")
            + ")"
            for process in dead
        ]
        self.close()
        raise RuntimeError(
            f"DataLoader worker (pid(s) {', '.join(told)}) exited unexpectedly: killed, out of "
            "memory, or ended by the dataset itself; num_workers=0 shows errors where they are"
        )

    def close(self) -> None:
        """End all workers: they are told to, and stopped if they do not within a few seconds."""
        if self.closed or os.getpid() != self.creator:
            return
        self.closed = True
        for member in self.members:
            member.send(None)
        end = monotonic() + PATIENCE
        for member in self.members:
            member.process.join(max(end - monotonic(), 0))
            if member.process.is_alive():
                member.process.terminate()
                member.process.join()
            member.tasks.close()
            member.results.close()

    def __del__(self) -> None:
        if not getattr(self, "closed", True):
            with suppress(Exception):  # at the end of the interpreter queues are gone
                self.close()
