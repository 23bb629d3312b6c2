"""From Python data and foreign arrays to tensors: tensor, as_tensor, asarray, from_numpy ..."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..backends.backend import has_elements, is_array, require_cupy
from ..backends.casting import copy_array, dtype_of, retype
from ..backends.placement import of_array, transfer
from ..core import dtypes
from ..core.arrays import is_level, made_here, unmarked
from ..core.devices import CPU, as_device, device
from ..core.numbers import _infer, overflow_error
from ..core.tensor import Tensor, wrap
from ..tape.leaves import require_grad
from ..transforms.memory import detached_copy

_PYTHON_NUMBERS = {bool, int, float, complex}
_MAX_DIMENSIONS = 64


def deliver(array: Any, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A fresh leaf tensor with the values of `array` on `device`."""
    place = _place_for(array, device)
    if place is not CPU or type(array) is not np.ndarray:
        array = transfer(array, place)
    return require_grad(made_here(wrap(array)), requires_grad)


# Public functions.


def tensor(
    data: Any,
    *,
    dtype: dtypes.dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new leaf tensor that holds a copy of `data`: a number, nested sequences or an array."""
    kind = None if dtype is None else dtypes.as_dtype(dtype)
    if pin_memory:
        raise RuntimeError("pin_memory=True is not supported: arrays live in ordinary memory")
    if isinstance(data, Tensor):
        warn_copy_construct("wengert.tensor(sourceTensor)")
        if is_level(data):
            copy = _converted(detached_copy(data), kind, device)
            return require_grad(copy) if requires_grad else copy
        place = of_array(data.array) if device is None else device
        return deliver(_copied(unmarked(data.array), kind), place, requires_grad)
    return deliver(array_from(data, kind), device, requires_grad)


def warn_copy_construct(call: str) -> None:
    warnings.warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() "
        f"or sourceTensor.detach().clone().requires_grad_(True), rather than {call}: these say "
        "whether the copy shall be differentiable.",
        UserWarning,
        stacklevel=3,
    )


def as_tensor(data: Any, dtype: dtypes.dtype | None = None, device: Any = None) -> Tensor:
    """`data` as a tensor that shares memory where it can; a tensor keeps its history."""
    kind = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(data, Tensor):
        return _converted(data, kind, device)
    if is_array(data) and _shareable(data):
        array = _adopted(data) if isinstance(data, np.ndarray) else data
        if kind is not None and array.dtype != kind.numpy:
            array = retype(array, kind)
        return deliver(array, device)
    return deliver(array_from(data, kind), device)


def asarray(
    obj: Any,
    *,
    dtype: dtypes.dtype | None = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """`obj` as a tensor. `copy` True always copies, False never does, None does where needed.

    A tensor keeps its history unless `requires_grad` is False; other objects give leaves.
    """
    kind = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(obj, Tensor):
        return _tensor_asarray(obj, kind, device, copy, requires_grad)
    source = _as_foreign_array(obj, kind)
    if source is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return deliver(array_from(obj, kind), device, bool(requires_grad))
    array = source
    if kind is not None and array.dtype != kind.numpy:
        if copy is False:
            raise ValueError(
                f"can't alias tensor with dtype '{dtypes.from_numpy(array.dtype).scalar_name}' "
                f"into dtype '{kind.scalar_name}'."
            )
        array = retype(array, kind)
    place = _place_for(array, device)
    if place.type != of_array(array).type and copy is False:
        raise ValueError(f"can't alias tensor on device '{of_array(array)}' to '{place}'.")
    if copy and array is source:
        array = copy_array(array)
    return deliver(array, place, bool(requires_grad))


def from_numpy(ndarray: np.ndarray[Any, Any]) -> Tensor:
    """A tensor that shares the memory of a NumPy array."""
    if not isinstance(ndarray, np.ndarray):
        kind = type(ndarray)
        module = "numpy." if kind.__module__ == "numpy" else ""
        raise TypeError(f"expected np.ndarray (got {module}{kind.__name__})")
    if any(stride < 0 for stride in ndarray.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, which tensors do not "
            "support. Give array.copy() instead."
        )
    if not _shareable(ndarray):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size; "
            "give array.copy() instead."
        )
    return wrap(_adopted(ndarray))


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of any array with the DLPack protocol, or of a capsule."""
    if isinstance(ext_tensor, Tensor) and ext_tensor.requires():
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    is_capsule = type(ext_tensor).__name__ == "PyCapsule"
    if is_capsule:
        ext_tensor = _Capsule(ext_tensor)
    if not hasattr(ext_tensor, "__dlpack__"):
        raise RuntimeError(
            "from_dlpack received an invalid capsule or object without the DLPack protocol: "
            f"{type(ext_tensor).__name__}"
        )
    on_cpu = ext_tensor.__dlpack_device__()[0] == 1
    if not on_cpu:
        array = require_cupy().from_dlpack(ext_tensor)
    elif is_capsule:
        array = _from_capsule(ext_tensor, copy)
    elif copy is None:
        array = np.from_dlpack(ext_tensor)
    else:
        array = np.from_dlpack(ext_tensor, copy=copy)
    dtypes.from_numpy(array.dtype)
    if any(stride < 0 for stride in array.strides):
        raise ValueError("At least one stride in the given array is negative; give it a copy.")
    return wrap(array if device is None else transfer(array, as_device(device)))


def legacy_array(
    args: tuple[Any, ...], device: Any = None, dtype: dtypes.dtype | None = None
) -> Any:
    """The array of `Tensor(*args)`: sizes of a blank tensor, or data, in the default type."""
    kind = dtype or dtypes.get_default_dtype()
    given = args[0] if len(args) == 1 else None
    if isinstance(given, Tensor):
        raise RuntimeError(
            "Legacy tensor constructor of the form wengert.Tensor(tensor, device=device) is not "
            "supported. Use tensor.to(device)"
        )
    if len(args) != 1 or _is_size(given):
        shape = given if isinstance(given, tuple) else args
        if not all(isinstance(each, (int, np.integer)) for each in shape):
            kinds = ", ".join([type(each).__name__ for each in args])
            raise TypeError(
                f"new() received an invalid combination of arguments - got ({kinds}), but expected "
                "one sequence of data, or sizes given as ints"
            )
        array = np.empty(shape if args else (0,), kind.numpy)
    elif not isinstance(given, np.ndarray) and not _is_sequence(given):
        raise TypeError(f"new(): data must be a sequence (got {type(given).__name__})")
    else:
        array = array_from(given, kind)
    return transfer(array, as_device(device))


def _is_size(given: Any) -> bool:
    if isinstance(given, (int, np.integer)):
        return not isinstance(given, bool)
    return type(given).__name__ == "Size"


# Tensors and arrays as sources.


def _converted(source: Tensor, kind: dtypes.dtype | None, device: Any) -> Tensor:
    place = None if device is None else as_device(device)
    if place is not None and place.type == of_array(source.array).type and place.index is None:
        place = None
    if kind is None or kind is dtype_of(source):
        converted: Tensor = source if place is None else source.to(place)
    else:
        converted = source.to(kind) if place is None else source.to(place, kind)
    return converted


def _tensor_asarray(
    source: Tensor,
    kind: dtypes.dtype | None,
    device: Any,
    copy: bool | None,
    requires_grad: bool | None,
) -> Tensor:
    result = _converted(source, kind, device)
    if result is not source and copy is False:
        raise ValueError(
            f"can't alias tensor with dtype '{dtype_of(source).scalar_name}' on "
            f"'{of_array(source.array)}' into another dtype or device."
        )
    if copy and result is source:
        result = source.clone()
    if requires_grad is None:
        return result
    if not requires_grad:
        return result.detach() if result.requires() else result
    return result if result.requires() else require_grad(result.detach())


def _copied(array: Any, kind: dtypes.dtype | None) -> Any:
    if kind is None or array.dtype == kind.numpy:
        return copy_array(array)
    return retype(array, kind)


def _place_for(array: Any, given: Any) -> device:
    """Where the tensor of an array goes: to a device that is given, else the default one.

    An array of another class than NumPy's is on some device already, and stays there.
    """
    if given is None and type(array) is not np.ndarray and has_elements(array):
        return of_array(array)
    return as_device(given)


def _shareable(array: np.ndarray[Any, Any]) -> bool:
    """Whether the array's strides are whole, non-negative numbers of elements."""
    size = array.dtype.itemsize
    return all(stride >= 0 and stride % size == 0 for stride in array.strides)


def _adopted(array: np.ndarray[Any, Any]) -> Any:
    """The array without its subclass, after the checks that sharing its memory needs."""
    dtypes.from_numpy(array.dtype)
    if not array.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable: in-place operations on the tensor will fail. "
            "Give a copy, or make the array writable first.",
            UserWarning,
            stacklevel=3,
        )
    if type(array) is np.ndarray or of_array(array) is not CPU:
        return array
    return array.view(np.ndarray)


def _as_foreign_array(obj: Any, kind: dtypes.dtype | None) -> Any:
    """The array behind an object that has one; None for plain data."""
    if isinstance(obj, np.ndarray):
        return from_numpy(obj).array
    if is_array(obj):
        dtypes.from_numpy(obj.dtype)
        return obj
    if isinstance(obj, (np.generic, int, float, complex, list, tuple, range)):
        return None
    if hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        return from_dlpack(obj).array
    if isinstance(obj, (bytes, bytearray, memoryview)) or type(obj).__module__ == "array":
        return _adopted(np.frombuffer(obj, (kind or dtypes.get_default_dtype()).numpy))
    if hasattr(obj, "__array__"):
        return from_numpy(np.asarray(obj)).array
    return None


def _from_capsule(capsule: _Capsule, copy: bool | None) -> Any:
    try:
        array = np.from_dlpack(capsule)
    except ValueError as error:
        raise RuntimeError(
            "from_dlpack received an invalid capsule: each can be taken only once, "
            "and this one may have been"
        ) from error
    if copy:
        return array.copy()
    # A capsule of the old kind cannot say that it may be written to, which NumPy takes for a no.
    return array if array.flags.writeable else np.asarray(_Writable(array))


class _Writable:
    """Offers the memory of an array to be written to."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        described: dict[str, Any] = dict(array.__array_interface__)
        described["data"] = (described["data"][0], False)
        self.__array_interface__ = described


class _Capsule:
    """Gives a bare DLPack capsule of host memory the methods that NumPy asks for."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


# Python data.


def array_from(data: Any, kind: dtypes.dtype | None) -> Any:
    """A new array with the values of `data`; its type is inferred where `kind` is None."""
    python_type = type(data)
    if python_type in _PYTHON_NUMBERS:
        return _from_numbers(data, {python_type}, kind)
    if is_array(data):
        dtypes.from_numpy(data.dtype)
        return _copied(data.view(np.ndarray) if of_array(data) is CPU else data, kind)
    if isinstance(data, np.generic):
        dtypes.from_numpy(data.dtype)
        return np.array(data, None if kind is None else kind.numpy)
    if hasattr(data, "__array__") and not isinstance(data, (list, tuple)):
        return array_from(np.asarray(data), kind)
    shape = _shape_of(data)
    leaves: set[Any] = set()
    numbers = _checked(data, 0, shape, leaves)
    if not leaves:
        return np.empty(shape, (kind or dtypes.get_default_dtype()).numpy)
    return _from_numbers(numbers, leaves, kind)


def _from_numbers(numbers: Any, leaves: set[Any], kind: dtypes.dtype | None) -> Any:
    """An array of nested Python numbers whose types (or those they came from) are `leaves`."""
    inferred = _infer(leaves)
    target = kind or inferred
    if inferred.is_complex and target.category in (dtypes.INTEGRAL, dtypes.FLOATING):
        raise TypeError(f"must be real number, not complex, for {target}")
    if target.category >= dtypes.FLOATING:
        with np.errstate(over="ignore"):
            return np.array(numbers, target.numpy)
    if inferred.category == dtypes.BOOL:
        return np.array(numbers, target.numpy)
    try:
        if target is dtypes.uint64 and inferred.category == dtypes.INTEGRAL:
            return _unsigned(numbers)
        wide = np.array(numbers, _WIDEST[inferred.category])
    except OverflowError:
        raise ValueError("Overflow when unpacking long long: an int exceeds 64 bits") from None
    return _narrowed(wide, target)


_WIDEST = {
    dtypes.INTEGRAL: np.dtype(np.int64),
    dtypes.FLOATING: np.dtype(np.float64),
    dtypes.COMPLEX: np.dtype(np.complex128),
}


def _unsigned(numbers: Any) -> Any:
    """Whole numbers as uint64, of which half are beyond int64; negative ones wrap around."""
    found = np.array(numbers, object)
    return np.array([int(each) % 2**64 for each in found.reshape(-1)], np.uint64).reshape(
        found.shape
    )


def _narrowed(wide: Any, target: dtypes.dtype) -> Any:
    """Numbers in a smaller discrete type; negative ints wrap around in unsigned ones."""
    if target.category == dtypes.BOOL:
        return np.asarray(wide != 0)
    if wide.dtype != target.numpy:
        limits = dtypes.iinfo(target)
        wraps = not target.is_signed and wide.dtype.kind == "i"
        lowest = -limits.max if wraps else limits.min
        # 2**63 - 1 rounds up as a double, hence the strict comparison with its successor.
        if wide.size and not (np.min(wide) >= lowest and np.max(wide) < limits.max + 1):
            raise overflow_error(target)
        wide = wide.astype(np.int64).astype(target.numpy)
    return wide


def _is_sequence(data: Any, inside: bool = False) -> bool:
    if isinstance(data, (list, tuple)):
        return True
    if isinstance(data, (str, bytes)):
        raise (ValueError if inside else TypeError)(
            f"too many dimensions '{type(data).__name__}'"
            if inside
            else f"new(): invalid data type '{type(data).__name__}'"
        )
    if isinstance(data, (Tensor, np.generic)) or hasattr(data, "keys"):
        return False
    if isinstance(data, np.ndarray):
        return data.ndim > 0
    return hasattr(data, "__len__") and hasattr(data, "__getitem__")


def _shape_of(data: Any) -> list[int]:
    """The shape of nested sequences, judged by the first element of each level."""
    shape: list[int] = []
    while _is_sequence(data, inside=bool(shape)):
        shape.append(len(data))
        if not shape[-1]:
            break
        if len(shape) > _MAX_DIMENSIONS:
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        data = data[0]
    return shape


def _checked(data: Any, dim: int, shape: Sequence[int], leaves: set[Any]) -> Any:
    """`data` as nested Python numbers, after checking that it fills `shape` from `dim` on."""
    if dim == len(shape):
        return _leaf(data, leaves)
    if not _is_sequence(data):
        raise TypeError(f"not a sequence: '{type(data).__name__}' at dim {dim}")
    if len(data) != shape[dim]:
        raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {len(data)})")
    if isinstance(data, np.ndarray) and data.dtype != object:
        leaves.add(dtypes.from_numpy(data.dtype))
        inner: set[Any] = set()
        return _checked(data.tolist(), dim, shape, inner)
    if dim == len(shape) - 1:
        types = set(map(type, data))
        if types <= _PYTHON_NUMBERS:
            leaves |= types
            return data if isinstance(data, (list, tuple)) else list(data)
    return [_checked(each, dim + 1, shape, leaves) for each in data]


def _leaf(value: Any, leaves: set[Any]) -> Any:
    if isinstance(value, Tensor):
        if value.array.size != 1:
            if dtype_of(value).category <= dtypes.INTEGRAL:
                raise TypeError(
                    "only integer tensors of a single element can be converted to an index; "
                    "join tensors by stack()"
                )
            raise ValueError(
                "only one element tensors can be converted to Python scalars; "
                "join tensors by stack()"
            )
        leaves.add(dtype_of(value))
        return value.item()
    if isinstance(value, (np.generic, np.ndarray)):
        leaves.add(dtypes.from_numpy(value.dtype))
        return value.item()
    for python_type in (bool, int, float, complex):
        if isinstance(value, python_type):
            leaves.add(python_type)
            return value
    if _is_sequence(value):
        raise TypeError(f"must be a number, not {type(value).__name__}: the nesting is uneven")
    raise RuntimeError(f"Could not infer dtype of {type(value).__name__}")
