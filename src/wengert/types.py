"""Names for the types of arguments, for annotations and `isinstance`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, TypeAlias

from .autograd.graph import GradientEdge
from .core.devices import device
from .core.dtypes import dtype
from .core.layouts import layout
from .core.size import Size
from .core.tensor import Tensor

_int, _float, _bool, _complex, _str, _bytes = int, float, bool, complex, str, bytes
_device, _dtype, _layout = device, dtype, layout

_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
_TensorOrTensorsOrGradEdge: TypeAlias = (
    Tensor | Sequence[Tensor] | GradientEdge | Sequence[GradientEdge]
)
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_symsize: TypeAlias = Size | Sequence[int]

#: A number of Python's that stands for a scalar.
Number: TypeAlias = int | float | bool
_Number = (int, float, bool)

#: What can be given where a device belongs.
Device: TypeAlias = device | str | int | None
#: What can be given where a file belongs.
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
# Sizes and numbers of a trace are plain ones here.
IntLikeType, FloatLikeType, BoolLikeType = int, float, bool

__all__ = ["BoolLikeType", "Device", "FileLike", "FloatLikeType", "IntLikeType", "Number"]
