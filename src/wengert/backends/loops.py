"""Elementwise loops over plain float operands, which are NumPy's ufuncs; the rest is declined.

`loops.pyx` beside this file is the compiled form; an extension module wins at import.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..core.ndarrays import is_in_rows
from .loop_codes import COPY, RELU, RSUB, SIGMOID, TANH
from .numpy import quiet_context

_ndarray = np.ndarray
_float32, _float64 = np.dtype(np.float32), np.dtype(np.float64)
_quietly = quiet_context().run
# By the numbers of loop_codes.py; None where no single ufunc does it.
_UNARY = (
    np.negative, np.absolute, np.exp, np.log, np.sqrt, np.sin, np.cos, np.tanh, None, None,
    np.square, np.reciprocal, partial(np.add.reduce, axis=None),
)  # fmt: skip
_BINARY: tuple[Any, ...] = (
    np.add, np.subtract, np.multiply, np.divide, lambda a, b: np.subtract(b, a),
)  # fmt: skip


class Loops:
    """Loops by the numbers of `loop_codes.py`; one instance, `loops`."""

    def unary(self, code: int, a: Any) -> Any:
        """A loop over one plain float array; None for anything else."""
        ufunc = _UNARY[code]
        if type(a) is not _ndarray or ufunc is None:
            return None
        if a.dtype is not _float32 and a.dtype is not _float64:
            return None
        if a.base is not None and not is_in_rows(a):
            return None
        try:
            out = _quietly(ufunc, a)
        except RuntimeError:
            return None
        return out if type(out) is _ndarray else np.asarray(out)

    def binary(self, code: int, a: Any, b: Any) -> Any:
        """A loop over plain float arrays of one dtype, or one and a number; None for others.

        What is in another order than row-major needs `layout.py`.
        """
        if code == COPY:
            return None
        if type(a) is _ndarray:
            dtype = a.dtype
            if type(b) is _ndarray:
                if b.dtype is not dtype or not (b.flags.c_contiguous or is_in_rows(b)):
                    return None
            elif type(b) is not float and type(b) is not int:
                return None
            if not (a.flags.c_contiguous or is_in_rows(a)):
                return None
        elif (type(a) is float or type(a) is int) and type(b) is _ndarray:
            dtype = b.dtype
            if not (b.flags.c_contiguous or is_in_rows(b)):
                return None
        else:
            return None
        if dtype is not _float32 and dtype is not _float64:
            return None
        try:
            out = _quietly(_BINARY[code], a, b)
        except (ValueError, RuntimeError):
            return None
        return out if type(out) is _ndarray else np.asarray(out)

    def binary_into(self, code: int, a: Any, b: Any, alpha: float = 1.0) -> bool:
        """`a = a op b` in place; False for operands other than plain float arrays of one dtype.

        Views, which may overlap in themselves and with others, are declined.
        """
        if type(a) is not _ndarray or type(b) is not _ndarray:
            return False
        dtype = a.dtype
        if (
            dtype is not b.dtype
            or (dtype is not _float32 and dtype is not _float64)
            or a.base is not None
            or b.base is not None
            or alpha != 1.0
            or code in (RSUB, COPY)
        ):
            return False
        try:
            _quietly(_BINARY[code], a, b, a)
        except (ValueError, RuntimeError):
            return False
        return True

    def differential(self, code: int, t: Any, value: Any, into: bool = False) -> Any:
        """The differential of tanh, sigmoid or relu from their result; None for other operands.

        The compiled form writes it `into` the tangent, which saves time only there.
        """
        if (
            type(t) is not _ndarray
            or type(value) is not _ndarray
            or t.dtype is not value.dtype
            or (t.dtype is not _float32 and t.dtype is not _float64)
            or t.shape != value.shape
        ):
            return None
        try:
            return _quietly(_DIFFERENTIALS[code], t, value)
        except RuntimeError:
            return None

    def sum_rows(self, a: Any) -> Any:
        return None

    def logistic_tail(self, e: Any) -> bool:
        return False


def _tanh_change(t: Any, out: Any) -> Any:
    change = np.multiply(out, out, np.empty_like(out))
    np.subtract(_ONE[out.dtype], change, change)
    return np.multiply(t, change, change)


def _sigmoid_change(t: Any, out: Any) -> Any:
    change = np.subtract(_ONE[out.dtype], out, np.empty_like(out))
    np.multiply(change, out, change)
    return np.multiply(t, change, change)


def _relu_change(t: Any, out: Any) -> Any:
    return np.where(np.less_equal(out, 0), _ZERO[out.dtype], t)


# Numbers as arrays: NumPy takes longer to convert one than to run the loop.
_ONE = {dtype: np.ones((), dtype) for dtype in (_float32, _float64)}
_ZERO = {dtype: np.zeros((), dtype) for dtype in (_float32, _float64)}
_DIFFERENTIALS = {TANH: _tanh_change, SIGMOID: _sigmoid_change, RELU: _relu_change}

loops = Loops()
