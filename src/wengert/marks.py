"""The mark on the array of a tensor whose class overrides functions or operators.

The short ways to a kernel look at the type of an array and go no further if it is not NumPy's own.
So such a tensor carries its array under another type: every call on it takes the long way, where
overrides are looked up, and calls on other tensors do not have to ask.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .tensor import Tensor, wrap


class SubclassArray(np.ndarray):
    """The array of a tensor whose class overrides; its elements are those of an ordinary array."""


def mark(array: Any) -> Any:
    """An array as a tensor of such a class carries it; only NumPy's own needs the mark."""
    return np.ndarray.view(array, SubclassArray) if type(array) is np.ndarray else array


def unmarked(array: Any) -> Any:
    """The ordinary array behind a mark."""
    return np.ndarray.view(array, np.ndarray) if type(array) is SubclassArray else array


def unmarked_arguments(args: tuple) -> tuple:
    """The arguments as kernels take them: plain tensors in place of those whose arrays are marked.

    The memory is the same, so that a kernel may write to it.
    """
    return tuple([_unmarked_argument(value) for value in args])


def _unmarked_argument(value: Any) -> Any:
    if isinstance(value, Tensor):
        return wrap(unmarked(value.array)) if type(value.array) is SubclassArray else value
    return [_unmarked_argument(item) for item in value] if type(value) is list else value
