"""An array class that is not NumPy's, as strict as one on another device.

It offers what a CuPy array offers and holds its values in a NumPy array that nobody else may touch.
Every implicit way to NumPy, or from it, is an error: what takes such a way would fail on a device,
or copy back and forth without a word.
"""

from __future__ import annotations

import operator
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import numpy as np
from numpy.lib.stride_tricks import as_strided


class Strictness(TypeError):
    """An implicit conversion between the stand-in's arrays and NumPy's or Python's values."""


#: The arrays that own memory, by the identity of what they hold.
_OWNERS: WeakValueDictionary[int, Array] = WeakValueDictionary()


class Flags:
    """The flags that CuPy's arrays have; none of them says whether memory may be written to."""

    def __init__(self, values: np.ndarray) -> None:
        self.c_contiguous = values.flags.c_contiguous
        self.f_contiguous = values.flags.f_contiguous
        self.forc = values.flags.forc
        self.owndata = values.flags.owndata


class Array:
    """Numbers on the stand-in device."""

    __slots__ = ("_values", "__weakref__")
    __hash__ = None

    def __init__(self, values: np.ndarray) -> None:
        assert type(values) is np.ndarray
        if values.dtype.kind not in "biufc":
            raise TypeError(f"Unsupported dtype {values.dtype}")
        self._values = values
        if values.base is None:
            _OWNERS[id(values)] = self

    # What there is to know of an array.
    dtype = property(lambda self: self._values.dtype)
    shape = property(lambda self: self._values.shape)
    strides = property(lambda self: self._values.strides)
    ndim = property(lambda self: self._values.ndim)
    size = property(lambda self: self._values.size)
    itemsize = property(lambda self: self._values.itemsize)
    nbytes = property(lambda self: self._values.nbytes)
    flags = property(lambda self: Flags(self._values))
    T = property(lambda self: wrapped(self._values.T))

    @property
    def base(self) -> Array | None:
        """The array that owns the memory, None if this one does."""
        found, below = None, self._values.base
        while below is not None:
            if isinstance(below, np.ndarray):
                found = below
            below = getattr(below, "base", None)
        return None if found is None else _owner(found)

    @property
    def pointer(self) -> int:
        """Where the first element is."""
        return self._values.__array_interface__["data"][0]

    def _part(name: str) -> property:
        def write(self: Array, value: Any) -> None:
            setattr(self._values, name, bare(value))

        return property(lambda self: wrapped(getattr(self._values, name)), write)

    real, imag = _part("real"), _part("imag")
    del _part

    # Ways to the host that say so.
    def get(self) -> np.ndarray:
        """A copy in the memory of the host."""
        return self._values.copy(order="K")

    def item(self, *place: int) -> Any:
        return self._values.item(*place)

    def tolist(self) -> Any:
        return self._values.tolist()

    # Ways that do not, and are refused.
    def _refuse(self, *args: Any, **options: Any) -> NoReturn:
        raise Strictness("Implicit conversion of a stand-in array to a NumPy or Python value")

    __array__ = __array_ufunc__ = __array_function__ = _refuse
    __float__ = __int__ = __index__ = __complex__ = __bool__ = __iter__ = __contains__ = _refuse

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"standin.{self._values!r}"

    # Elements.
    def __getitem__(self, key: Any) -> Array:
        return wrapped(self._values[bare(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._values[bare(key)] = bare(value)

    def view(self, dtype: Any = None) -> Array:
        return wrapped(self._values.view() if dtype is None else self._values.view(dtype))

    def astype(
        self, dtype: Any, order: str = "K", casting: Any = None, subok: Any = None,
        copy: bool = True,
    ) -> Array:  # fmt: skip
        if not copy and self.dtype == np.dtype(dtype):
            return self
        return wrapped(self._values.astype(dtype, order=order))

    def strided(self, shape: tuple, strides: tuple, offset: int = 0) -> Array:
        """A view of the same memory; strides and offset are in bytes."""
        values = self._values
        if offset:
            values = as_strided(values, (2,), (offset,))[1:]
        return wrapped(as_strided(values, shape, strides))


def _owner(values: np.ndarray) -> Array:
    known = _OWNERS.get(id(values))
    return Array(values) if known is None else known


def bare(value: Any) -> Any:
    """Arguments as NumPy takes them, of which no array may be NumPy's already."""
    if type(value) is Array:
        return value._values
    if isinstance(value, np.ndarray):
        raise Strictness("Unsupported type <class 'numpy.ndarray'>: move it to the device first")
    if type(value) in (tuple, list):
        return type(value)([bare(item) for item in value])
    if type(value) is dict:
        return {name: bare(item) for name, item in value.items()}
    return value


def wrapped(value: Any) -> Any:
    """Results on the device: arrays, also where NumPy returns a number."""
    if isinstance(value, np.ndarray):
        return Array(value)
    if isinstance(value, np.generic):
        return Array(np.asarray(value))
    if isinstance(value, (tuple, list)):
        return (list if isinstance(value, list) else tuple)([wrapped(item) for item in value])
    return value


def _method(name: str) -> Any:
    def method(self: Array, *args: Any, **options: Any) -> Any:
        return wrapped(getattr(self._values, name)(*bare(args), **bare(options)))

    return method


for _name in (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "clip", "conj", "copy", "cumprod",
    "cumsum", "diagonal", "dot", "fill", "flatten", "max", "mean", "min", "nonzero", "partition",
    "prod", "put", "ravel", "repeat", "reshape", "round", "sort", "squeeze", "std", "sum",
    "swapaxes", "take", "trace", "transpose", "var",
):  # fmt: skip
    setattr(Array, _name, _method(_name))


def _binary(function: Any, swapped: bool = False) -> Any:
    def method(self: Array, other: Any) -> Any:
        if not isinstance(other, (Array, int, float, complex, np.generic, np.ndarray)):
            return NotImplemented
        other = bare(other)
        with np.errstate(all="ignore"):
            if swapped:
                return wrapped(function(other, self._values))
            return wrapped(function(self._values, other))

    return method


def _in_place(function: Any) -> Any:
    def method(self: Array, other: Any) -> Array:
        values = self._values
        with np.errstate(all="ignore"):
            function(values, bare(other))
        return self

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or",
              "xor", "lshift", "rshift"):  # fmt: skip
    _function = getattr(operator, f"__{_name}__")
    setattr(Array, f"__{_name}__", _binary(_function))
    setattr(Array, f"__r{_name}__", _binary(_function, swapped=True))
    setattr(Array, f"__i{_name}__", _in_place(getattr(operator, f"__i{_name}__")))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Array, f"__{_name}__", _binary(getattr(operator, f"__{_name}__")))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Array, f"__{_name}__", _method(f"__{_name}__"))
