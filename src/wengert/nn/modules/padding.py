"""Layers that put a border around signals, pictures and volumes."""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.tensor import Tensor
from .. import functional as F
from .layer import Layer


class _Padding(Layer):
    """A border of given widths around the last dimensions."""

    _dimensions: ClassVar[int]
    _mode: ClassVar[str] = "constant"

    def __init_subclass__(cls, dimensions: int = 0, **options: Any) -> None:
        super().__init_subclass__(**options)
        if dimensions:
            cls._dimensions = dimensions

    def _prepare(self, values: dict[str, Any]) -> None:
        """Make one width the width on all sides."""
        given = values["padding"]
        widths = given if isinstance(given, (tuple, list)) else (given,) * (2 * self._dimensions)
        self.padding = tuple(widths)

    def forward(self, input: Tensor) -> Tensor:
        """The input with its border."""
        return F.pad(input, self.padding, self._mode)


class _Constant(_Padding):
    value: float

    def forward(self, input: Tensor) -> Tensor:
        """The input with a border of one value."""
        return F.pad(input, self.padding, self._mode, self.value)


class ConstantPad1d(_Constant, dimensions=1, fields="padding, value"):
    """A border of one value around signals."""


class ConstantPad2d(_Constant, dimensions=2, fields="padding, value"):
    """A border of one value around pictures."""


class ConstantPad3d(_Constant, dimensions=3, fields="padding, value"):
    """A border of one value around volumes."""


class _Zero(_Constant):
    def _prepare(self, values: dict[str, Any]) -> None:
        """Set the value, which is not a field."""
        super()._prepare(values)
        self.value = 0.0


class ZeroPad1d(_Zero, dimensions=1, fields="padding", shown="*padding"):
    """A border of zeros around signals."""


class ZeroPad2d(_Zero, dimensions=2, fields="padding", shown="*padding"):
    """A border of zeros around pictures."""


class ZeroPad3d(_Zero, dimensions=3, fields="padding", shown="*padding"):
    """A border of zeros around volumes."""


class _Reflection(_Padding):
    _mode = "reflect"


class ReflectionPad1d(_Reflection, dimensions=1, fields="padding", shown="*padding"):
    """A border that reflects signals at their ends."""


class ReflectionPad2d(_Reflection, dimensions=2, fields="padding", shown="*padding"):
    """A border that reflects pictures at their edges."""


class ReflectionPad3d(_Reflection, dimensions=3, fields="padding", shown="*padding"):
    """A border that reflects volumes at their faces."""


class _Replication(_Padding):
    _mode = "replicate"


class ReplicationPad1d(_Replication, dimensions=1, fields="padding", shown="*padding"):
    """A border that repeats the ends of signals."""


class ReplicationPad2d(_Replication, dimensions=2, fields="padding", shown="*padding"):
    """A border that repeats the edges of pictures."""


class ReplicationPad3d(_Replication, dimensions=3, fields="padding", shown="*padding"):
    """A border that repeats the faces of volumes."""


class _Circular(_Padding):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """The input, continued by itself."""
        inner = self._dimensions
        if input.dim() not in (inner + 1, inner + 2):
            raise ValueError(
                f"expected {inner + 1}D or {inner + 2}D input (got {input.dim()}D input)"
            )
        return super().forward(input)


class CircularPad1d(_Circular, dimensions=1, fields="padding", shown="*padding"):
    """A border that continues signals by their other ends."""


class CircularPad2d(_Circular, dimensions=2, fields="padding", shown="*padding"):
    """A border that continues pictures by their other edges."""


class CircularPad3d(_Circular, dimensions=3, fields="padding", shown="*padding"):
    """A border that continues volumes by their other faces."""
