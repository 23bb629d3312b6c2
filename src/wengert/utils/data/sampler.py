"""Samplers: in which order examples are taken, and how they are put into batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

from ...core import dtypes
from ...creation.conversion import as_tensor
from ...creation.factories import empty
from ...creation.generator import Generator
from ...creation.random import multinomial, randint, randperm

T_co = TypeVar("T_co", covariant=True)
# As many indices are drawn at a time with replacement.
_CHUNK = 32


class Sampler(Generic[T_co]):
    """Indices in an order: a subclass has `__iter__`, mostly `__len__`."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


def drawn_seed(generator: Generator | None = None) -> int:
    """A seed for another generator, drawn from this one."""
    return int(empty((), dtype=dtypes.int64).random_(generator=generator).item())


class SequentialSampler(Sampler[int]):
    """Indices in their own order."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order, or drawn one by one with `replacement`."""

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                "num_samples should be a positive integer value, but got "
                f"num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """How many indices there are, which the dataset may change."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        generator = self.generator
        if generator is None:
            generator = Generator().manual_seed(drawn_seed())
        size, count = len(self.data_source), self.num_samples
        if self.replacement:
            for length in (*[_CHUNK] * (count // _CHUNK), count % _CHUNK):
                yield from randint(size, (length,), generator=generator).tolist()
            return
        for length in (*[size] * (count // size), count % size):
            yield from randperm(size, generator=generator).tolist()[:length]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some indices, in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for place in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn in proportion to weights."""

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        _check_positive("num_samples", num_samples)
        _check_flag("replacement", replacement)
        self.weights = as_tensor(weights, dtype=dtypes.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape "
                f"{tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The indices of another sampler in lists of `batch_size`; the last may be shorter."""

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        _check_positive("batch_size", batch_size)
        _check_flag("drop_last", drop_last)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        count: int = len(self.sampler)  # type: ignore[arg-type]
        rest = 0 if self.drop_last else self.batch_size - 1
        return (count + rest) // self.batch_size


def _check_positive(name: str, number: Any) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or number <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={number}")


def _check_flag(name: str, flag: Any) -> None:
    if not isinstance(flag, bool):
        raise ValueError(f"{name} should be a boolean value, but got {name}={flag}")
