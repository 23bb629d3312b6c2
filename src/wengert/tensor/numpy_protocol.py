"""A differentiable NumPy: calls of NumPy functions on tensors become operators.

``np.sin(t)`` and ``np.ones(3) * t`` record like ``wengert.sin(t)`` and ``t * ones``. What has no
counterpart here is refused by a TypeError.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.tensor import Tensor, wrap
from ..operators.names import NUMPY_NAMES


def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """NumPy's ufunc protocol."""
    import wengert

    function = getattr(wengert, NUMPY_NAMES.get(ufunc.__name__, ufunc.__name__), None)
    if method != "__call__" or options or function is None:
        return NotImplemented
    return function(*[wrap(x) if isinstance(x, np.ndarray) else x for x in inputs])


def array_function(self: Tensor, function: Any, types: Any, args: tuple, kwargs: dict) -> Any:
    """NumPy's array function protocol."""
    from .numpy_functions import FUNCTIONS

    ours = FUNCTIONS.get(f"{function.__module__}.{function.__name__}".removeprefix("numpy."))
    return NotImplemented if ours is None else ours(*args, **kwargs)


PROPERTIES: dict[str, Any] = {}
METHODS = {"__array_ufunc__": array_ufunc, "__array_function__": array_function}
