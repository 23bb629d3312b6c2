"""Arrays in another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes
from ..core.errors import warn_user
from ..core.tensor import Tensor
from .backend import backend_of
from .layout import copied


def dtype_of(tensor: Tensor) -> dtypes.dtype:
    return dtypes.from_numpy(tensor.array.dtype)


def copy_array(array: Any) -> Any:
    """A new array with the same values, on the same device, in the same order of dimensions."""
    if isinstance(array, np.ndarray):
        return array.copy(order="K") if not backend_of(array).shape_only else array
    return copied(array)


def retype(array: Any, kind: dtypes.dtype) -> Any:
    """The values in another type; what does not fit becomes infinite or wraps around."""
    with np.errstate(over="ignore", invalid="ignore"):
        return as_real_for(kind.numpy, array).astype(kind.numpy, copy=False)


def as_real_for(target: Any, array: Any) -> Any:
    """The real part where `target` is a type of real numbers; any part makes a complex one true."""
    if array.dtype.kind != "c" or target.kind in "cb":
        return array
    warn_user("Casting complex values to real discards the imaginary part; take `.real` to say so")
    return array.real
