"""What the tests know of an operation: where it is, what it supports, inputs to try it on."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Fixed:
    """An array without gradient: indices, masks and classes; weights, if it takes on the dtype."""

    array: np.ndarray
    takes_dtype: bool = False


@dataclass(frozen=True)
class DType:
    """A dtype by name, so that a sample belongs to no library."""

    name: str


class Sample:
    """The arguments of one call; NumPy arrays stand for the tensors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs

    def map(self, data: Callable, fixed: Callable | None = None, other: Callable | None = None):
        """The sample with its arrays and, if wanted, its other leaves replaced."""

        def convert(value: Any) -> Any:
            if isinstance(value, np.ndarray):
                return data(value)
            if isinstance(value, Fixed):
                return value if fixed is None else fixed(value)
            if type(value) in (tuple, list):
                return type(value)(convert(item) for item in value)
            return value if other is None else other(value)

        result = Sample(*[convert(value) for value in self.args])
        result.kwargs = {name: convert(value) for name, value in self.kwargs.items()}
        return result

    def arrays(self) -> list[np.ndarray]:
        """The arrays that stand for differentiable tensors, in order."""
        found: list[np.ndarray] = []
        self.map(lambda array: found.append(array))
        return found

    def __repr__(self) -> str:
        parts = [_text(value) for value in self.args]
        parts += [f"{name}={_text(value)}" for name, value in self.kwargs.items()]
        return f"({', '.join(parts)})"


def _text(value: Any) -> str:
    if isinstance(value, Fixed):
        return f"{value.array.dtype}{list(value.array.shape)}"
    if isinstance(value, np.ndarray):
        return f"array{list(value.shape)}"
    if type(value) in (tuple, list):
        inside = ", ".join(_text(item) for item in value)
        return f"[{inside}]" if type(value) is list else f"({inside})"
    return repr(value)


class Make:
    """Repeatable arrays of one kind: "real", "complex" or "integer"."""

    def __init__(self, kind: str, seed: int) -> None:
        self.kind = kind
        self.random = np.random.default_rng(seed)

    def __call__(self, *shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
        """Values between `low` and `high`; real ones have no ties."""
        if self.kind == "integer":
            first, last = int(np.ceil(low)), int(np.floor(high))
            return np.asarray(self.random.integers(first, max(first, last) + 1, shape))
        real = self._spread(shape, low, high)
        if self.kind == "complex":
            return np.asarray(real + 1j * self._spread(shape, low, high))
        return real

    def positive(self, *shape: int, low: float = 0.3, high: float = 2.5) -> np.ndarray:
        """Values above zero, whole ones from one on."""
        return self(*shape, low=1 if self.kind == "integer" else low, high=high)

    def apart(self, *shape: int, low: float = 0.4, high: float = 2.0) -> np.ndarray:
        """Values of both signs that keep a distance from zero."""
        size = self.positive(*shape, low=low, high=high)
        return np.asarray(size * np.where(self.random.random(shape) < 0.5, -1, 1))

    def _spread(self, shape: tuple, low: float, high: float) -> np.ndarray:
        count = max(int(np.prod(shape)), 1)
        places = self.random.permutation(count) + self.random.uniform(0.2, 0.8, count)
        values = low + (high - low) * places / count
        return values[: int(np.prod(shape))].reshape(shape)

    def weights(self, *shape: int) -> Fixed:
        """Positive constants in the dtype of the data."""
        return Fixed(self.random.uniform(0.5, 2, shape), takes_dtype=True)

    def index(self, *shape: int, high: int, low: int = 0) -> Fixed:
        """Indices from `low` to below `high`."""
        return Fixed(np.asarray(self.random.integers(low, high, shape)))

    def distinct(self, count: int, high: int) -> Fixed:
        """A vector of different indices."""
        return Fixed(self.random.permutation(high)[:count])

    def mask(self, *shape: int) -> Fixed:
        """A mask; with two elements or more, one at least is set and one is not."""
        count = int(np.prod(shape))
        values = self.random.random(count) < 0.5
        values[:2] = (True, False)[:count]
        return Fixed(self.random.permutation(values).reshape(shape))


@dataclass(frozen=True)
class Operation:
    """One function of the library and what it is expected to support."""

    name: str
    samples: Callable[[Make], Iterable[Sample]]
    #: Where it is: "sum", "Tensor.view", or a function from a library to a callable.
    path: Any = ""
    #: Declared operators that these samples exercise, besides the one of the same name.
    covers: tuple[str, ...] = ()
    differentiable: bool = True
    real: bool = True
    complex: bool = True
    integer: bool = True
    #: Whether float16 and bfloat16 are computed.
    half: bool = True
    #: Whether it is a method of Tensor as well.
    method: bool = True
    #: Whether it takes out=.
    out: bool = False
    #: Number of operands for the elementwise operations, else zero.
    operands: int = 0
    #: Reason why a call without data is refused, if it is.
    needs_data: str = ""
    #: Whether inputs may have any memory layout.
    any_layout: bool = True
    #: Whether the result has a dtype of its own instead of the inputs'.
    own_dtype: bool = False
    #: Tolerances for 16-bit floats, by which the error of intermediate results grows.
    half_scale: float = 1.0
    #: By how much the error of PyTorch's own results is larger.
    inexact: float = 1.0
    #: Whether the gradient is the derivative, or something else by definition.
    true_gradient: bool = True
    #: Whether results are too coarse to take differences of.
    coarse: bool = False

    def resolve(self, lib: Any) -> Callable:
        """The function in a library."""
        path = self.path or self.name
        if not isinstance(path, str):
            return path(lib)
        value = lib
        for part in path.split("."):
            value = getattr(value, part)
        return value

    @property
    def declared(self) -> tuple[str, ...]:
        """Names of the declared operators covered."""
        return (self.name.rpartition(".")[2], *self.covers)

    def draw(self, kind: str) -> list[Sample]:
        """The samples of one kind, the same in every run."""
        return _draw(self, kind)

    def __repr__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash(self.name)


@cache
def _draw(operation: Operation, kind: str) -> list[Sample]:
    return list(operation.samples(Make(kind, zlib.crc32(operation.name.encode()))))
