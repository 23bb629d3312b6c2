"""A differentiable NumPy: calls of NumPy functions on tensors become operators.

``np.sin(t)`` and ``np.ones(3) * t`` record like ``wengert.sin(t)`` and ``t * ones``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .tensor import Tensor, wrap

# NumPy's name -> ours, where they differ.
_UFUNCS = {
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "subtract": "sub",
    "negative": "neg",
    "power": "pow",
    "float_power": "pow",
    "absolute": "abs",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "equal": "eq",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "invert": "bitwise_not",
    "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
    "conjugate": "conj",
}
_FUNCTIONS = {"concatenate": "cat", "transpose": "_numpy_transpose", "expand_dims": "unsqueeze"}
_KEYWORDS = {"axis": "dim", "keepdims": "keepdim"}


def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """NumPy's ufunc protocol."""
    function = _find(_UFUNCS.get(ufunc.__name__, ufunc.__name__))
    if method != "__call__" or options or function is None:
        return NotImplemented
    return function(*[_operand(value) for value in inputs])


def array_function(self: Tensor, function: Any, types: Any, args: tuple, kwargs: dict) -> Any:
    """NumPy's array function protocol."""
    name = _FUNCTIONS.get(function.__name__, function.__name__)
    if name == "_numpy_transpose":
        return _transpose(*args, **kwargs)
    ours = _find(name)
    if ours is None:
        return NotImplemented
    return ours(*args, **{_KEYWORDS.get(key, key): value for key, value in kwargs.items()})


def _transpose(tensor: Tensor, axes: Any = None) -> Tensor:
    order = tuple(reversed(range(tensor.array.ndim))) if axes is None else tuple(axes)
    return tensor.permute(order)


def _find(name: str) -> Any:
    import wengert

    return getattr(wengert, name, None)


def _operand(value: Any) -> Any:
    return wrap(value) if isinstance(value, np.ndarray) else value


PROPERTIES: dict[str, Any] = {}
METHODS = {"__array_ufunc__": array_ufunc, "__array_function__": array_function}
