"""What a worker process does: it fetches batches for a loader in another process."""

from __future__ import annotations

import os
import random
import sys
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

from ...creation.generator import manual_seed
from .dataset import examples_at

#: How long a worker waits for work, in seconds, before it looks whether the loader still lives.
PATIENCE = 5.0


class WorkerInfo:
    """What a worker knows of itself: number, number of workers, seed and its copy of the dataset.

    Nothing can be assigned to it.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: Any) -> None:
        raise RuntimeError(f"Cannot assign attributes to {type(self).__name__} objects")

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"


class _Process:
    info: WorkerInfo | None = None


_process = _Process()


def get_worker_info() -> WorkerInfo | None:
    """What a worker process knows of itself; None in all other processes."""
    return _process.info


class Exhausted(NamedTuple):
    """A worker's part of a row of examples has come to its end."""

    worker: int


class Resume(NamedTuple):
    """Begin another pass over the dataset."""


class Failure:
    """An exception of a worker, to be raised in the process of the loader."""

    def __init__(self, error: BaseException, where: str) -> None:
        self.kind = type(error)
        self.text = (
            f"Caught {self.kind.__name__} {where}.\n"
            f"Original {''.join(traceback.format_exception(error))}"
        )

    def reraise(self) -> None:
        """Raise an exception of the class of the worker's, with its traceback as text."""
        if issubclass(self.kind, KeyError):
            raise self.kind(_Lines(self.text))
        try:
            error = self.kind(self.text)
        except Exception:  # a class with other arguments
            raise RuntimeError(self.text) from None
        raise error


class _Lines(str):
    """The text of a KeyError, which shows what it is given as it would print it."""

    def __repr__(self) -> str:
        return str(self)


class Fetcher:
    """Makes batches of a dataset: of examples at indices, or of the next ones in a row."""

    def __init__(
        self,
        dataset: Any,
        in_a_row: bool,
        batched: bool,
        collate_fn: Callable[[Any], Any],
        drop_last: bool,
    ) -> None:
        self.dataset = dataset
        self.row: Iterator[Any] | None = iter(dataset) if in_a_row else None
        self.ended = False
        self.batched = batched
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, indices: Any) -> Any:
        """The batch for what a sampler gave; StopIteration at the end of a row."""
        if self.row is None:
            found = examples_at(self.dataset, indices) if self.batched else self.dataset[indices]
            return self.collate_fn(found)
        if self.ended:
            raise StopIteration
        if not self.batched:
            return self.collate_fn(next(self.row))
        examples: list[Any] = []
        for _ in indices:
            try:
                examples.append(next(self.row))
            except StopIteration:
                self.ended = True
                break
        if not examples or self.drop_last and len(examples) < len(indices):
            raise StopIteration
        return self.collate_fn(examples)


class Assignment(NamedTuple):
    """What a worker is told at its start."""

    worker: int
    workers: int
    base_seed: int
    dataset: Any
    in_a_row: bool
    batched: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    init_fn: Callable[[int], Any] | None
    parent: int


def work(given: Assignment, tasks: Any, results: Any) -> None:
    """The life of a worker: take tasks (number, indices), put results (number, batch)."""
    try:
        _work(given, tasks, results)
    except KeyboardInterrupt:
        pass  # the loader has it too and says so
    finally:
        results.close()


def _work(given: Assignment, tasks: Any, results: Any) -> None:
    where = f"in DataLoader worker process {given.worker}"
    problem: Failure | None = None
    fetcher: Fetcher | None = None
    try:
        _seed(given)
        if given.init_fn is not None:
            given.init_fn(given.worker)
        fetcher = _fetcher(given)
    except Exception as error:
        problem = Failure(error, where)
    while True:
        if not tasks.poll(PATIENCE):
            if os.getppid() != given.parent:
                return
            continue
        try:
            task = tasks.recv()
        except EOFError:
            task = None
        if task is None:
            results.cancel_join_thread()  # nobody will read what is left
            return
        if isinstance(task, Resume):
            _put(results, None, task, where)
            try:
                fetcher = _fetcher(given)
            except Exception as error:
                problem = Failure(error, where)
            continue
        number, indices = task
        outcome: Any
        if problem is not None or fetcher is None:
            outcome, problem = problem, None
        else:
            try:
                outcome = fetcher.fetch(indices)
            except Exception as error:
                if isinstance(error, StopIteration) and given.in_a_row:
                    outcome = Exhausted(given.worker)
                else:
                    outcome = Failure(error, where)
        _put(results, number, outcome, where)


def _fetcher(given: Assignment) -> Fetcher:
    return Fetcher(
        given.dataset, given.in_a_row, given.batched, given.collate_fn, given.drop_last
    )


def _put(results: Any, number: int | None, outcome: Any, where: str) -> None:
    """Hand over a result; one that cannot be pickled is a failure, not a loss."""
    try:
        packed = ForkingPickler.dumps((number, outcome))
    except Exception as error:
        packed = ForkingPickler.dumps((number, Failure(error, where)))
    results.put(bytes(packed))


def _seed(given: Assignment) -> None:
    """Seed what draws random numbers, in every worker differently."""
    seed = given.base_seed + given.worker
    random.seed(seed)
    manual_seed(seed)
    # Only a program that has loaded it draws from NumPy's generator.
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        low, high = given.base_seed % 2**32, given.base_seed >> 32
        states = numpy_random.SeedSequence([given.worker, low, high, 0]).generate_state(4)
        numpy_random.seed(states)
    _process.info = WorkerInfo(
        id=given.worker, num_workers=given.workers, seed=seed, dataset=given.dataset
    )
