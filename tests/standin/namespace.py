"""The functions of the stand-in's namespace: those of NumPy that CuPy has too, and no others.

Functions take arrays of the stand-in and numbers, and return arrays. Only `asarray` and `array`
take arrays of NumPy's: there the program says that values move.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from .array import Array, bare, wrapped

ndarray = Array
pi, inf, nan, e, newaxis = np.pi, np.inf, np.nan, np.e, np.newaxis
finfo, iinfo, dtype, errstate = np.finfo, np.iinfo, np.dtype, np.errstate
bool_, int8, int16, int32, int64, uint8 = (
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8
)  # fmt: skip
float16, float32, float64, complex64, complex128 = (
    np.float16, np.float32, np.float64, np.complex64, np.complex128
)  # fmt: skip

_UFUNCS = """
    abs absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and bitwise_or
    bitwise_xor ceil conj conjugate copysign cos cosh divide divmod equal exp exp2 expm1 floor
    floor_divide fmax fmin fmod frexp gcd greater greater_equal heaviside hypot invert isfinite
    isinf isnan lcm ldexp left_shift less less_equal log log10 log1p log2 logaddexp logaddexp2
    logical_and logical_not logical_or logical_xor maximum minimum mod multiply negative
    nextafter not_equal positive power reciprocal remainder right_shift rint sign signbit sin
    sinh sqrt square subtract tan tanh true_divide trunc
"""
#: By CuPy's implementation: others have no atomic function, or no scan, on the device.
_SCATTERING = {"add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"}
_SCANNING = {"add", "multiply"}
_FUNCTIONS = """
    all allclose any append arange argmax argmin argpartition argsort argwhere array_split
    ascontiguousarray atleast_1d atleast_2d bincount broadcast_arrays broadcast_to clip
    concatenate copyto count_nonzero cross cumprod cumsum diag diagonal diff digitize dot einsum
    empty empty_like expand_dims eye fill_diagonal flatnonzero flip full full_like identity imag
    indices inner isclose isin iscomplexobj kron linspace matmul max mean median meshgrid min
    moveaxis nan_to_num nonzero ones ones_like outer pad partition prod ravel real repeat
    reshape result_type roll rollaxis rot90 round searchsorted select sort split squeeze stack
    std sum swapaxes take take_along_axis tensordot tile trace transpose tri tril triu unique
    unravel_index var vdot where zeros zeros_like angle around nanmax nanmin nansum isreal
    isneginf isposinf nanmean ndim shape size promote_types issubdtype can_cast hstack vstack
    dstack column_stack lexsort
"""
#: Options of NumPy's functions that CuPy's do not have.
_ABSENT = {"order", "subok", "where", "initial", "like", "mode"}
_HAVE = {
    "copyto": {"where"}, "zeros": {"order"}, "empty": {"order"}, "ones": {"order"},
    "empty_like": {"order"}, "zeros_like": {"order"}, "ones_like": {"order"},
    "full_like": {"order"}, "full": {"order"}, "reshape": {"order"}, "ravel": {"order"},
    "pad": {"mode"}, "take": {"mode"}, "unravel_index": {"order"},
}  # fmt: skip


def _checked(name: str, options: dict) -> dict:
    for absent in (_ABSENT - _HAVE.get(name, set())) & set(options):
        raise TypeError(f"{name}() got an unexpected keyword argument '{absent}'")
    return bare(options)


def _quietly(function: Any, *args: Any, **options: Any) -> Any:
    """Devices raise no floating-point warnings."""
    with np.errstate(all="ignore"):
        return wrapped(function(*bare(args), **bare(options)))


class Ufunc:
    """A universal function on the device."""

    def __init__(self, name: str) -> None:
        self.name, self.function = name, getattr(np, name)

    def __call__(self, *args: Any, **options: Any) -> Any:
        return _quietly(self.function, *args, **_checked_options(self.name, options))

    def outer(self, a: Array, b: Array) -> Array:
        return _quietly(self.function.outer, a, b)

    def at(self, a: Array, indices: Any, b: Any = None) -> None:
        if self.name not in _SCATTERING:
            raise NotImplementedError(f"`{self.name}.at` is not supported yet")
        _quietly(self.function.at, a, indices, b)

    def accumulate(self, array: Array, axis: int = 0, dtype: Any = None) -> Array:
        if self.name not in _SCANNING:
            raise NotImplementedError(f"`{self.name}.accumulate` is not supported yet")
        return _quietly(self.function.accumulate, array, axis, dtype)

    def reduce(self, array: Array, axis: Any = 0, keepdims: bool = False) -> Array:
        return _quietly(self.function.reduce, array, axis, keepdims=keepdims)


def _checked_options(name: str, options: dict) -> dict:
    _checked(name, options)
    return options


def _function(name: str) -> Any:
    numpy_function = getattr(np, name)

    def function(*args: Any, **options: Any) -> Any:
        return _quietly(numpy_function, *args, **_checked_options(name, options))

    function.__name__ = name
    return function


for _name in _UFUNCS.split():
    globals()[_name] = Ufunc(_name)
for _name in _FUNCTIONS.split():
    globals()[_name] = _function(_name)


_LINALG = "cholesky det eig eigh eigvals eigvalsh inv qr slogdet solve svd"


def _matrix_function(name: str) -> Any:
    numpy_function = getattr(np.linalg, name)
    return lambda *args, **options: _quietly(numpy_function, *args, **options)


linalg = SimpleNamespace(
    LinAlgError=np.linalg.LinAlgError,
    **{name: _matrix_function(name) for name in _LINALG.split()},
)


def asarray(a: Any, dtype: Any = None, order: str = "K") -> Array:
    """An array of the stand-in, itself if it is one of that dtype; NumPy's are copied."""
    if type(a) is Array:
        if order == "C" and not a.flags.c_contiguous:
            return a.astype(a.dtype if dtype is None else dtype, "C")
        return a if dtype is None or a.dtype == np.dtype(dtype) else a.astype(dtype)
    return array(a, dtype)


asanyarray = asarray


def array(obj: Any, dtype: Any = None, copy: bool = True) -> Array:
    """A new array of the stand-in."""
    if type(obj) is Array:
        return wrapped(np.array(bare(obj), dtype))
    if isinstance(obj, np.ndarray):
        return Array(np.array(obj, dtype, order="K", subok=False))
    return Array(np.array(bare(obj), dtype))


def may_share_memory(a: Array, b: Array) -> bool:
    return np.may_share_memory(bare(a), bare(b))
