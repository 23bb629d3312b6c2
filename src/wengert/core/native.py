"""The interface of the compiled `native` module without C.

Loops for plain float operands are NumPy's ufuncs, the rest declines. `native.pyx` beside this file
is the compiled form; an extension module wins at import.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from types import CodeType, FrameType, MethodType
from typing import Any

import numpy as np

from ..backends.numpy import quiet_context

PACKAGE_FOLDER = __file__.rsplit("/", 2)[0] + "/"
RSUB, TANH, SIGMOID, RELU = 4, 7, 8, 9

_ndarray = np.ndarray
_float32, _float64 = np.dtype(np.float32), np.dtype(np.float64)
_frame_at = sys._getframe
_quietly = quiet_context().run
# By the codes of native.pyx; None where no single ufunc does it.
_UNARY = (
    np.negative, np.absolute, np.exp, np.log, np.sqrt, np.sin, np.cos, np.tanh, None, None,
    np.square, np.reciprocal,
)  # fmt: skip
_BINARY: tuple[Any, ...] = (
    np.add, np.subtract, np.multiply, np.divide, lambda a, b: np.subtract(b, a),
)  # fmt: skip


def is_in_rows(array: Any) -> bool:
    """Whether strides grow from the last dimension to the first, as far as dimensions tell.

    Dimensions of length one tell something only beside expanded ones, which do not.
    """
    if array.flags.c_contiguous:
        return True
    pairs = list(zip(reversed(array.shape), reversed(array.strides), strict=True))
    expanded = any(stride == 0 and length != 1 for length, stride in pairs)
    inner = 0
    for length, stride in pairs:
        if stride and (length != 1 or expanded):
            if stride <= inner:
                return False
            inner = stride
    return True


def outside_in(array: Any) -> tuple[int, ...] | None:
    """Dimensions sorted by their strides, those of length one first; None if that is ambiguous."""
    strides = [s for s, n in zip(array.strides, array.shape, strict=True) if n != 1]
    if len(set(strides)) < len(strides) or any(s <= 0 for s in strides):
        return None
    shape, steps = array.shape, array.strides
    return tuple(sorted(range(array.ndim), key=lambda dim: (shape[dim] != 1, -steps[dim])))


class Native:
    """Process-wide helpers; one instance, `native`."""

    def __init__(self) -> None:
        self.compiled = False
        self.lasti = -1
        self.last_code: CodeType | None = None
        self.thread_ident = get_ident
        self.watching = 0
        self.overriding = 0
        self.overriding_classes = False

    def refcount(self, value: object) -> int:
        """References to `value` held outside this call and its caller's own argument.

        Since Python 3.14 some locals borrow theirs. The number says nothing then: it is large.
        """
        return sys.getrefcount(value) - 2 if sys.version_info < (3, 14) else sys.maxsize

    def hide(self, value: object) -> None:
        """Keep an object away from the cyclic collector's walks, where Python lets us."""

    def show(self, value: object) -> None:
        """Undo `hide`."""

    def is_hidden(self, value: object) -> bool:
        return False

    def caller(self, inside: int = 1) -> CodeType | None:
        """Code object of the innermost frame outside this package; its instruction in `lasti`.

        That many frames are known to be `inside` and are not looked at.
        """
        frame: FrameType | None
        try:
            frame = _frame_at(inside)
        except ValueError:  # an operation that C code calls, on a thread without Python frames
            frame = _frame_at(1)
        code = frame.f_code
        if code is not self.last_code:
            while code.co_filename.startswith(PACKAGE_FOLDER):
                frame = frame.f_back
                if frame is None:
                    self.lasti = -1
                    return None
                code = frame.f_code
            self.last_code = code
        self.lasti = frame.f_lasti
        return code

    def shape_of(self, array: Any) -> tuple[int, ...]:
        return array.shape

    def has_shape(self, array: Any, shape: tuple[int, ...]) -> bool:
        return array.shape == shape

    def is_real_float(self, array: Any) -> bool:
        """Whether the dtype is float32 or float64."""
        return array.dtype.char in "fd"

    def is_half(self, array: Any) -> bool:
        """Whether the dtype is one of the 16-bit floats."""
        return array.dtype.char == "e" or array.dtype.kind == "V"

    def is_differentiable(self, array: Any) -> bool:
        """Whether the dtype is floating or complex; the V kind is bfloat16's."""
        return array.dtype.kind in "fcV"

    def is_empty(self, array: Any) -> bool:
        return array.size == 0

    def in_row_order(self, values: tuple) -> bool:
        """Whether elementwise results of these values are in row-major order without more ado.

        They are if no array has its dimensions in another order; expanded ones tell nothing.
        """
        for value in values:  # noqa: SIM110 - a generator would be made for every call
            if isinstance(value, _ndarray) and not is_in_rows(value):
                return False
        return True

    def order_of_first(self, values: tuple) -> tuple[int, ...] | None:
        """The dimensions of arrays of one shape from the outermost in memory to the innermost.

        They are those of the first array; an empty tuple if the others have the same order, None if
        shapes differ, or if expanded or equal strides leave the order open.
        """
        arrays = [value for value in values if isinstance(value, _ndarray)]
        if not arrays or any(a.shape != arrays[0].shape for a in arrays):
            return None
        orders = [outside_in(a) for a in arrays]
        if None in orders:
            return None
        return () if all(order == orders[0] for order in orders) else orders[0]

    def same_view(self, a: Any, b: Any) -> bool:
        """Whether two arrays are the same elements of the same memory."""
        return (
            a.shape == b.shape
            and a.strides == b.strides
            and a.__array_interface__["data"] == b.__array_interface__["data"]
        )

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
        if type(a) is _ndarray:
            dtype = a.dtype
            if type(b) is _ndarray:
                if b.dtype is not dtype or not (is_in_rows(a) and is_in_rows(b)):
                    return None
            elif (type(b) is not float and type(b) is not int) or not is_in_rows(a):
                return None
        elif (type(a) is float or type(a) is int) and type(b) is _ndarray:
            dtype = b.dtype
            if not is_in_rows(b):
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
            or code == RSUB
        ):
            return False
        try:
            _quietly(_BINARY[code], a, b, a)
        except (ValueError, RuntimeError):
            return False
        return True

    def matmul(self, a: Any, b: Any) -> Any:
        return None

    def product(self, a: Any, b: Any, turn_a: bool, turn_b: bool) -> Any:
        return None

    def product_into(self, out: Any, a: Any, b: Any, turn_a: bool, turn_b: bool) -> bool:
        return False

    def addmm(self, x: Any, a: Any, b: Any) -> Any:
        return None

    def differential(self, code: int, t: Any, value: Any) -> Any:
        """The differential of tanh, sigmoid or relu from their result; None for other operands."""
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

    def cut(self, array: Any, dim: int, sizes: list) -> list | None:
        return None

    def join(self, arrays: list, dim: int) -> Any:
        return None

    def sum_all(self, a: Any) -> Any:
        return None

    def sum_rows(self, a: Any) -> Any:
        return None

    def logistic_tail(self, e: Any) -> bool:
        return False

    def method(self, function: Any, instance: Any) -> Any:
        """The method that `function` is on an instance."""
        return MethodType(function, instance)

    def name_function(self, operator: Any, name: str) -> None:
        """Let an operator have the names of a function; a compiled one has __getattr__ for them."""
        operator.__name__ = operator.__qualname__ = name

    def watch(self, change: int) -> None:
        """Count the modes that are active, in all threads."""
        self.watching += change
        self.overriding += change

    def watch_classes(self) -> None:
        """Note that there are tensors whose class overrides functions."""
        if not self.overriding_classes:
            self.overriding_classes = True
            self.overriding += 1

    def attach(self, cls: type, name: str, value: object) -> None:
        """Set a class attribute; unlike setattr it reaches compiled classes too."""
        setattr(cls, name, value)

    def hide_init(self, cls: type) -> None:
        """Take `__init__` from a class, of which subclasses made from now on see nothing."""
        if "__init__" in vars(cls):  # it is gone already after a reload
            del cls.__init__  # type: ignore[misc]

    def set_attribute(self, target: object, name: str, value: object) -> None:
        """What `object.__setattr__` does, which compiled classes may not be given."""
        object.__setattr__(target, name, value)


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

make = object.__new__  # an instance without a call of __init__

native = Native()
