"""NumPy as the CPU's array namespace, and the two things kernels need beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy._core import umath

ndarray = np.ndarray


class Quiet:
    """Floating-point warnings off inside a `with`: NaN and inf are values here, as in PyTorch.

    numpy.errstate does the same but costs more than most of the operations it would guard.
    """

    def __init__(self) -> None:
        try:
            self._variable = umath._extobj_contextvar
            self._ignore = umath._make_extobj(all="ignore")
        except AttributeError:
            self._variable = None

    def enter(self) -> Any:
        if self._variable is not None:
            return self._variable.set(self._ignore)
        return np.seterr(all="ignore")

    def exit(self, token: Any) -> None:
        if self._variable is not None:
            self._variable.reset(token)
        else:
            np.seterr(**token)


quiet = Quiet()


def view_shape(array: Any, shape: tuple[int, ...]) -> Any:
    """`array` with another shape over the same memory, or None where a copy would be needed."""
    try:
        view = array.view()
        view.shape = shape
    except (AttributeError, ValueError):
        return None
    return view
