"""The interface of the compiled `native` module without C: loops decline, NumPy does the work.

`native.pyx` beside this file is the compiled form; an extension module wins at import.
"""

from __future__ import annotations

import sys
from threading import get_ident
from types import CodeType, FrameType
from typing import Any

PACKAGE_FOLDER = __file__.rpartition("/")[0] + "/"


class Native:
    """Process-wide helpers; one instance, `native`."""

    def __init__(self) -> None:
        self.compiled = False
        self.lasti = -1
        self.thread_ident = get_ident

    def refcount(self, value: object) -> int:
        """References to `value` held outside this call and its caller's own argument."""
        return sys.getrefcount(value) - 2

    def hide(self, value: object) -> None:
        """Keep an object away from the cyclic collector's walks, where Python lets us."""

    def show(self, value: object) -> None:
        """Undo `hide`."""

    def is_hidden(self, value: object) -> bool:
        return False

    def caller(self) -> CodeType | None:
        """Code object of the innermost frame outside this package; its instruction in `lasti`."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(PACKAGE_FOLDER):
            frame = frame.f_back
        if frame is None:
            self.lasti = -1
            return None
        self.lasti = frame.f_lasti
        return frame.f_code

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

    def same_view(self, a: Any, b: Any) -> bool:
        """Whether two arrays are the same elements of the same memory."""
        return (
            a.shape == b.shape
            and a.strides == b.strides
            and a.__array_interface__["data"] == b.__array_interface__["data"]
        )

    def unary(self, code: int, a: Any) -> Any:
        return None

    def binary(self, code: int, a: Any, b: Any) -> Any:
        return None

    def binary_into(self, code: int, a: Any, b: Any, alpha: float = 1.0) -> bool:
        return False

    def matmul(self, a: Any, b: Any) -> Any:
        return None

    def product(self, a: Any, b: Any, turn_a: bool, turn_b: bool) -> Any:
        return None

    def addmm(self, x: Any, a: Any, b: Any) -> Any:
        return None

    def differential(self, code: int, t: Any, value: Any) -> Any:
        return None

    def sum_all(self, a: Any) -> Any:
        return None

    def sum_rows(self, a: Any) -> Any:
        return None

    def logistic_tail(self, e: Any) -> bool:
        return False

    def attach(self, cls: type, name: str, value: object) -> None:
        """Set a class attribute; unlike setattr it reaches compiled classes too."""
        setattr(cls, name, value)

    def set_attribute(self, target: object, name: str, value: object) -> None:
        """What `object.__setattr__` does, which compiled classes may not be given."""
        object.__setattr__(target, name, value)


native = Native()
