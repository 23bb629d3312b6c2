"""NumPy as the CPU's array namespace, and the few things kernels need beside it."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from functools import partial
from typing import Any

import numpy as np
from numpy._core import umath

ndarray = np.ndarray


class Quiet:
    """Switches NumPy's floating-point warnings off and on: NaN and inf are values, as in PyTorch.

    ``token = set(ignore)`` ... ``reset(token)``. numpy.errstate does the same but costs more than
    most of the operations it would guard.
    """

    def __init__(self) -> None:
        self.ignore: Any
        try:
            variable = umath._extobj_contextvar
            self.set, self.reset = variable.set, variable.reset
            self.ignore = umath._make_extobj(all="ignore")
        except AttributeError:
            self.set, self.reset = self._set_errors, self._reset_errors
            self.ignore = None

    def _set_errors(self, ignore: Any) -> Any:
        return np.seterr(all="ignore")

    def _reset_errors(self, token: Any) -> None:
        np.seterr(**token)


quiet = Quiet()


def cast_into(target: Any, source: Any) -> None:
    """Write values into an array of another dtype: what does not fit becomes infinite or wraps."""
    token = quiet.set(quiet.ignore)
    try:
        target[...] = source
    finally:
        quiet.reset(token)


def add_into(target: Any, addend: Any) -> None:
    """Add to an array in place: the sum of two infinities is a value like others."""
    token = quiet.set(quiet.ignore)
    try:
        target += addend
    finally:
        quiet.reset(token)


def quiet_context() -> Context:
    """A context in which these warnings are off: `run(function, *arguments)` calls inside of it.

    Entering it is next to free, while setting and resetting a variable costs half a ufunc call. It
    cannot be entered twice at a time: RuntimeError if another thread or a finalizer tries.
    """
    context = Context()
    context.run(np.seterr, all="ignore")
    return context


def dense_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[int, ...]:
    """Strides in bytes, without gaps, that order the dimensions as the given ones do."""
    dense = [0] * len(shape)
    step = itemsize
    for dim in sorted(range(len(shape)), key=lambda dim: (strides[dim], -dim)):
        dense[dim] = step
        step *= max(shape[dim], 1)
    return tuple(dense)


def _set_shape(array: Any, shape: tuple[int, ...]) -> Any:
    """For NumPy 2.0, whose reshape cannot be forbidden to copy."""
    view = array.view()
    view.shape = shape
    return view


reshape_uncopied: Callable[..., Any] = (
    _set_shape if np.__version__.startswith("2.0.") else partial(ndarray.reshape, copy=False)
)
