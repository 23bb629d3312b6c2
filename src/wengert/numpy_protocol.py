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
def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """NumPy's ufunc protocol."""
    function = _find(_UFUNCS.get(ufunc.__name__, ufunc.__name__))
    if method != "__call__" or options or function is None:
        return NotImplemented
    return function(*[_operand(value) for value in inputs])


def array_function(self: Tensor, function: Any, types: Any, args: tuple, kwargs: dict) -> Any:
    """NumPy's array function protocol, for the functions in the table below."""
    ours = _FUNCTIONS.get(function.__name__) if function.__module__ == "numpy" else None
    return NotImplemented if ours is None else ours(*args, **kwargs)


# NumPy's functions with NumPy's arguments and defaults; others raise TypeError --------------------


def _reduction(name: str) -> Any:
    def reduce(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        return _find(name)(a, _axes(a, axis), keepdims)

    return reduce


def _axes(a: Any, axis: Any) -> Any:
    return tuple(range(a.array.ndim)) if axis is None else axis


def _deviation(name: str) -> Any:
    def deviate(a: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
        return _find(name)(a, _axes(a, axis), correction=ddof, keepdim=keepdims)

    return deviate


def _position(name: str) -> Any:
    def locate(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        return _find(name)(a, axis, keepdims)

    return locate


def _joining(name: str) -> Any:
    def join(arrays: Any, axis: int = 0) -> Any:
        return _find(name)([_operand(a) for a in arrays], axis)

    return join


def _transpose(a: Any, axes: Any = None) -> Any:
    return a.permute(tuple(reversed(range(a.array.ndim))) if axes is None else tuple(axes))


def _cumsum(a: Any, axis: Any = None) -> Any:
    return a.reshape(-1).cumsum(0) if axis is None else a.cumsum(axis)


def _flip(a: Any, axis: Any = None) -> Any:
    return a.flip(_axes(a, axis) if axis is None or isinstance(axis, tuple) else (axis,))


def _dot(a: Any, b: Any) -> Any:
    a, b = _operand(a), _operand(b)
    scalar = not isinstance(a, Tensor) or not isinstance(b, Tensor) or 0 in (a.dim(), b.dim())
    return a * b if scalar else a @ b


_FUNCTIONS = {
    "sum": _reduction("sum"),
    "mean": _reduction("mean"),
    "max": _reduction("amax"),
    "amax": _reduction("amax"),
    "min": _reduction("amin"),
    "amin": _reduction("amin"),
    "var": _deviation("var"),
    "std": _deviation("std"),
    "argmax": _position("argmax"),
    "argmin": _position("argmin"),
    "concatenate": _joining("cat"),
    "stack": _joining("stack"),
    "transpose": _transpose,
    "reshape": lambda a, shape: a.reshape(shape),
    "ravel": lambda a: a.reshape(-1),
    "expand_dims": lambda a, axis: a.unsqueeze(axis),
    "squeeze": lambda a, axis=None: a.squeeze() if axis is None else a.squeeze(axis),
    "swapaxes": lambda a, axis1, axis2: a.transpose(axis1, axis2),
    "moveaxis": lambda a, source, destination: a.movedim(source, destination),
    "broadcast_to": lambda array, shape: array.broadcast_to(shape),
    "cumsum": _cumsum,
    "flip": _flip,
    "tril": lambda m, k=0: m.tril(k),
    "triu": lambda m, k=0: m.triu(k),
    "dot": _dot,
    "outer": lambda a, b: _find("outer")(_operand(a).reshape(-1), _operand(b).reshape(-1)),
    "einsum": lambda subscripts, *operands: _find("einsum")(
        subscripts, *[_operand(a) for a in operands]
    ),
    "where": lambda condition, x, y: _find("where")(
        _operand(condition), _operand(x), _operand(y)
    ),
    "clip": lambda a, a_min=None, a_max=None: a.clamp(_operand(a_min), _operand(a_max)),
    "shape": lambda a: tuple(a.array.shape),
    "ndim": lambda a: a.array.ndim,
    "size": lambda a, axis=None: a.array.size if axis is None else a.array.shape[axis],
}


def _find(name: str) -> Any:
    import wengert

    return getattr(wengert, name, None)


def _operand(value: Any) -> Any:
    return wrap(value) if isinstance(value, np.ndarray) else value


PROPERTIES: dict[str, Any] = {}
METHODS = {"__array_ufunc__": array_ufunc, "__array_function__": array_function}
