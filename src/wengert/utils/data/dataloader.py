"""DataLoader: batches of a dataset, fetched here or by worker processes."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeVar

from ...creation.generator import Generator
from .collate import default_collate, default_convert
from .dataset import IterableDataset
from .parallel import Pool
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, drawn_seed
from .worker import Fetcher

T_co = TypeVar("T_co", covariant=True)
_FIXED = frozenset(
    ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
)
_ITERABLE = "DataLoader with IterableDataset: expected unspecified {0} option, but got {0}={1}"


class _Endless(Sampler[None]):
    """The sampler of a dataset in a row: there is always another one to be asked for."""

    def __iter__(self) -> Iterator[None]:
        return repeat(None)


class DataLoader(Generic[T_co]):
    """Batches of a dataset, in the order of a sampler.

    With `num_workers` they are fetched by other processes, `prefetch_factor` for each in advance.
    Memory is never pinned: `pin_memory` changes nothing.
    """

    _initialized = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        in_a_row = isinstance(dataset, IterableDataset)
        if in_a_row:
            _check_row(shuffle, sampler, batch_sampler)
        _check_batches(batch_size, bool(shuffle), sampler, batch_sampler, drop_last)
        if sampler is None:
            if in_a_row:
                sampler = _Endless()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_sampler is not None:
            batch_size = None
        elif batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset = dataset
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.drop_last = drop_last
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self.collate_fn = collate_fn or (
            default_convert if batch_sampler is None else default_collate
        )
        self.in_a_row = in_a_row
        #: What the length of a dataset in a row was said to be, once somebody asked.
        self.promised: int | None = None
        self._iterator: DataIterator | None = None
        self._initialized = True
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in _FIXED:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> BaseContext | None:
        """How worker processes are started; None for Python's default."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None and self.num_workers == 0:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading "
                f"(num_workers > 0), but got num_workers={self.num_workers}"
            )
        if isinstance(context, str):
            methods = multiprocessing.get_all_start_methods()
            if context not in methods:
                raise ValueError(
                    "multiprocessing_context option should specify a valid start method in "
                    f"{methods!r}, but got multiprocessing_context={context!r}"
                )
            context = multiprocessing.get_context(context)
        if context is not None and not isinstance(context, BaseContext):
            raise TypeError(
                "multiprocessing_context option should be a valid context object or a string "
                f"specifying the start method, but got multiprocessing_context={context}"
            )
        self._context = context

    @property
    def index_sampler(self) -> Any:
        """What gives the indices of a batch, or of an example if there are no batches."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __iter__(self) -> DataIterator:
        if not self.persistent_workers:
            return DataIterator(self)
        if self._iterator is None:
            self._iterator = DataIterator(self)
        else:
            self._iterator.restart(self)
        return self._iterator

    def __len__(self) -> int:
        if not self.in_a_row:
            return len(self.index_sampler)
        length = self.promised = len(self.dataset)
        if self.batch_size is None:
            return length
        return (length + (0 if self.drop_last else self.batch_size - 1)) // self.batch_size

    def check_worker_number_rationality(self) -> None:
        """Warn of more workers than there are processors."""
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
        processors = processors or os.cpu_count() or 1
        if self.num_workers > processors:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our "
                f"suggested max number of worker in current system is {processors}, which is "
                "smaller than what this DataLoader is going to create. Please be aware that "
                "excessive worker creation might get DataLoader running slow or even freeze, "
                "lower the worker number to avoid potential slowness/freeze if necessary.",
                stacklevel=3,
            )


class DataIterator:
    """One pass over the batches of a loader, which it does not refer to."""

    def __init__(self, loader: DataLoader) -> None:
        self.dataset = loader.dataset
        self.index_sampler = loader.index_sampler
        self.pool: Pool | None = None
        self._begin(loader)
        base_seed = drawn_seed(loader.generator)
        if loader.num_workers:
            self.pool = Pool(loader, base_seed)
            self.pool.begin(self.indices)
        elif loader.timeout:
            raise AssertionError("timeout needs worker processes: num_workers > 0")
        else:
            batched = loader.batch_sampler is not None
            self.fetcher = Fetcher(
                loader.dataset, loader.in_a_row, batched, loader.collate_fn, loader.drop_last
            )

    def _begin(self, loader: DataLoader) -> None:
        self.indices = iter(self.index_sampler)
        self.yielded = 0
        self.promised = loader.promised if loader.in_a_row else None

    def restart(self, loader: DataLoader) -> None:
        """Begin another pass with the same worker processes."""
        assert self.pool is not None
        self._begin(loader)
        self.pool.resume()
        self.pool.begin(self.indices)

    def __iter__(self) -> DataIterator:
        return self

    def __next__(self) -> Any:
        if self.pool is None:
            batch = self.fetcher.fetch(next(self.indices))
        else:
            batch = self.pool.next_batch()
        self.yielded += 1
        if self.promised is not None and self.yielded > self.promised:
            warnings.warn(
                f"Length of IterableDataset {self.dataset} was reported to be {self.promised}"
                f"(when accessing len(dataloader)), but {self.yielded} samples have been fetched. "
                "With worker processes each has the whole dataset, unless it takes its part "
                "by get_worker_info()",
                stacklevel=2,
            )
        return batch

    def __len__(self) -> int:
        return len(self.index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; "
            "use num_workers=0 to disable multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing. Let num_workers "
            "> 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_row(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    """A dataset in a row has an order of its own."""
    if shuffle not in (False, None):
        raise ValueError(_ITERABLE.format("shuffle", shuffle))
    if sampler is not None:
        raise ValueError(_ITERABLE.format("sampler", sampler))
    if batch_sampler is not None:
        raise ValueError(_ITERABLE.format("batch_sampler", batch_sampler))


def _check_batches(
    batch_size: int | None, shuffle: bool, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive "
                "with batch_size, shuffle, sampler, and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError(
            "batch_size=None option disables auto-batching "
            "and is mutually exclusive with drop_last"
        )
