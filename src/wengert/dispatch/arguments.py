"""Questions about the arguments of a call, and what kernels get in their place."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.backend import BY_CLASS
from ..core.state import ThreadState
from ..core.tensor import Tensor, wrap_as

_ndarray = np.ndarray
_backends = BY_CLASS


def only_tensors(args: tuple, count: int) -> bool:
    """Whether `args` are exactly `count` tensors."""
    if len(args) != count:
        return False
    for value in args:  # noqa: SIM110 - a generator would be made for every call
        if not isinstance(value, Tensor):
            return False
    return True


def fresh(out: Any, state: ThreadState) -> Tensor:
    """A tensor for one result: around an array, or the tensor that a layer below has made."""
    return out if isinstance(out, Tensor) else wrap_as(out, state.inference)


def is_foreign(array: Any) -> bool:
    """Whether an operand is an array that NumPy's kernels do not serve."""
    return type(array) is not _ndarray and (
        isinstance(array, _ndarray) or type(array) in _backends
    )


def any_foreign(args: tuple) -> bool:
    """Whether any tensor among the arguments has such an array."""
    for value in args:
        if isinstance(value, Tensor):
            t = value
            if type(t.array) is not _ndarray:
                return True
        elif type(value) is list:
            for item in value:
                if isinstance(item, Tensor):
                    t = item
                    if type(t.array) is not _ndarray:
                        return True
    return False


def arrays_of(args: tuple) -> tuple:
    """The arguments with every tensor replaced by its array, in lists too."""
    out = []
    for a in args:
        if isinstance(a, Tensor):
            t = a
            out.append(t.array)
        elif type(a) is list:
            out.append([i.array if isinstance(i, Tensor) else i for i in a])
        else:
            out.append(a)
    return tuple(out)

