"""What the library asks of an array class: a namespace, memory, casts, strides, a device.

One `Backend` stands for one array class. Kernels get its namespace as `xp`, and what else depends
on the class is a method here. NumPy's arrays are the usual case, for which the short ways to a
kernel test; every other array goes to the backend of its class. docs/backends.md says what an array
class needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.devices import device, register_device_type


class Backend:
    """An array class on one type of device; a subclass for each defines what is left open here."""

    #: The class of the arrays, and the type of the devices that they live on.
    array_class: type
    device_type: str
    #: The namespace that kernels compute in.
    xp: Any
    #: Whether arrays have a shape, strides and a dtype only, and no elements.
    shape_only = False

    def _undefined(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} does not define {name}()")

    # Devices and memory ----------------------------------------------------------------------

    def device_of(self, array: Any) -> device:
        """The device on which an array lives."""
        raise self._undefined("device_of")

    def empty(self, shape: tuple[int, ...], dtype: Any, place: device) -> Any:
        """A new array in row-major order on a device, with any values."""
        raise self._undefined("empty")

    def from_numpy(self, array: np.ndarray, place: device) -> Any:
        """The values of a NumPy array as an array on a device."""
        raise self._undefined("from_numpy")

    def to_numpy(self, array: Any) -> np.ndarray:
        """The values of an array as a NumPy array."""
        raise self._undefined("to_numpy")

    def address(self, array: Any) -> int:
        """Where the first element of an array is, in bytes."""
        raise self._undefined("address")

    def may_share_memory(self, one: Any, other: Any) -> bool:
        """Whether the stretches of memory that two arrays span have bytes in common."""
        raise self._undefined("may_share_memory")

    # Strides and copies ----------------------------------------------------------------------

    def strided(self, array: Any, shape: Any, strides: Any, offset: int = 0) -> Any:
        """A view that begins `offset` bytes after the array, with strides in bytes."""
        raise self._undefined("strided")

    def view_shape(self, array: Any, shape: tuple[int, ...]) -> Any:
        """The array in another shape over the same memory, None where a copy would be needed."""
        raise self._undefined("view_shape")

    def empty_strided(self, shape: tuple[int, ...], strides: Any, dtype: Any, like: Any) -> Any:
        """A new array on the device of another one, without gaps, seen with these strides."""
        memory = self.empty(shape, dtype, self.device_of(like))
        return memory if memory.strides == strides else self.strided(memory, shape, strides)

    # Functions that not every namespace has ---------------------------------------------------

    def special(self, name: str) -> Any:
        """A function of scipy.special for arrays of this class."""
        raise NotImplementedError(f"it needs scipy.special.{name}, of which there is no such form")

    def scipy_linalg(self, name: str) -> Any:
        """A function of scipy.linalg for arrays of this class."""
        raise NotImplementedError(f"it needs scipy.linalg.{name}, of which there is no such form")

    def fourier(self, name: str) -> Any:
        """The function of that name in scipy.fft."""
        raise NotImplementedError(f"it needs scipy.fft.{name}, of which there is no such form")

    def accumulate(self, name: str, array: Any, dim: int) -> Any:
        """The results of an associative ufunc up to each place along a dimension.

        After each round an element covers twice as many of its predecessors.
        """
        function = getattr(self.xp, name)
        out = array.copy("C")
        step = 1
        while step < array.shape[dim]:
            front = (slice(None),) * dim
            later, earlier = (*front, slice(step, None)), (*front, slice(None, -step))
            out[later] = function(out[earlier], out[later])
            step *= 2
        return out

    # Kernels ---------------------------------------------------------------------------------

    def silence(self) -> Any:
        """Switch the floating-point warnings of `xp` off, if it has any; for `restore`."""

    def restore(self, token: Any) -> None:
        """Undo `silence`."""

    def number(self, value: Any, dtype: Any, like: Any) -> Any:
        """A number, or an array of NumPy's without dimensions, as an array beside another one."""
        return self.from_numpy(np.asarray(value).astype(dtype), self.device_of(like))

    def compute(self, operator: Any, args: tuple) -> Any:
        """What the kernel of an operator makes of promoted arguments."""
        return operator.compute(self.xp, args)

    def settled(self, operator: Any, args: tuple, out: Any) -> Any:
        """Results as they leave: a place to note what they have of operands beside values."""
        return out

    def as_result(self, value: Any, like: Any) -> Any:
        """What a kernel returned as an array, or as a tuple or list of arrays."""
        if type(value) is tuple or type(value) is list:
            return type(value)([self.as_result(item, like) for item in value])
        if is_array(value):
            return value
        given = np.asarray(value)
        return self.number(given, given.dtype, like)


#: The backends by the class of their arrays; hot modules look a class up here themselves.
BY_CLASS: dict[type, Backend] = {}
_BY_DEVICE: dict[str, Backend] = {}


def register(backend: Backend) -> None:
    """Let tensors have arrays of another class, on devices of the type that the backend names."""
    register_device_type(backend.device_type)
    BY_CLASS[backend.array_class] = backend
    _BY_DEVICE[backend.device_type] = backend


def is_array(value: Any) -> bool:
    """Whether a value is an array of a class that tensors may have."""
    return isinstance(value, np.ndarray) or type(value) in BY_CLASS


def has_elements(array: Any) -> bool:
    """Whether the elements of an array can be looked at: not without memory, nor in a transform."""
    backend = BY_CLASS.get(type(array))
    return backend is not None and not backend.shape_only


def backend_of(array: Any) -> Backend:
    """The backend of an array's class; tensors inside transforms have none, see `of_array`."""
    found = BY_CLASS.get(type(array))
    if found is None and isinstance(array, np.ndarray):
        return BY_CLASS[np.ndarray]
    if found is None:
        found = next((BY_CLASS[c] for c in type(array).__mro__ if c in BY_CLASS), None)
        if found is None:
            raise TypeError(
                f"arrays of class {type(array).__name__} are not supported: no Backend is "
                "registered for them"
            )
    return found


def backend_on(place: device) -> Backend:
    """The backend of the arrays on a device."""
    found = _BY_DEVICE.get(place.type)
    if found is None:
        if place.type == "cuda":
            require_cupy()
        raise RuntimeError(f"no array class is registered for {place.type} devices")
    return found


def require_cupy() -> Any:
    """The cupy module, which will hold the arrays of cuda devices."""
    try:
        import cupy  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise RuntimeError(
            "Wengert is not compiled with CUDA enabled: it computes on the CPU, and support for "
            "cuda devices is planned. Programs that run anywhere choose the device by "
            "wengert.cuda.is_available(), which is False"
        ) from None
    return cupy
