"""Tensor's array attributes and methods: geometry, conversion, interchange with other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.geometry import address_of, offset_of
from ..backends.layout import steps_of
from ..backends.placement import of_array, transfer
from ..core import dtypes
from ..core.arrays import WrapperArray, is_level, unreadable_wrapper
from ..core.devices import as_device, device
from ..core.errors import dimension_error
from ..core.layouts import (
    CHANNELS_LAST,
    channel_order,
    contiguous_format,
    is_in_order,
    keeps_order,
    strided,
)
from ..core.loading import load
from ..core.size import Size, size_of, whole
from ..core.spelling import spelled
from ..core.state import overriding, thread_state
from ..core.tensor import Tensor
from ..creation.arguments import check_tensor
from ..dispatch.effects import Effect
from ..dispatch.torch_dispatch import override_function
from ..operators.arithmetic import div_
from ..operators.copying import cast, clone, pack, pack_in_order, to_device
from ..transforms.memory import check_readable, plain

# Geometry -----------------------------------------------------------------------------------------


def shape(self: Tensor) -> Size:
    """Lengths of the dimensions."""
    return size_of(self.array.shape)


def size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or the length of one dimension."""
    if dim is None:
        return size_of(self.array.shape)
    return self.array.shape[_dimension(self, dim)]


def stride(self: Tensor, dim: int | None = None) -> Any:
    """Steps between neighbours in memory, in elements."""
    array = self.array
    strides = tuple(s // array.itemsize for s in steps_of(array))
    return strides if dim is None else strides[_dimension(self, dim)]


def _dimension(self: Tensor, dim: int) -> int:
    if type(dim) is not int:
        dim = whole("size", "dim", dim)
    ndim = self.array.ndim
    if not -ndim <= dim < ndim:
        raise dimension_error(dim, ndim)
    return dim


def dim(self: Tensor) -> int:
    """The number of dimensions."""
    return self.array.ndim


def numel(input: Tensor) -> int:
    """The number of elements."""
    check_tensor("numel", "input", input)
    return input.array.size


def storage_offset(self: Tensor) -> int:
    """Where in its base's memory this tensor begins, in elements."""
    array = self.array
    return array.start if type(array) is WrapperArray else offset_of(array)


def is_contiguous(self: Tensor, *, memory_format: Any = contiguous_format) -> bool:
    """Whether the elements lie in memory without gaps, in row-major order or channels last."""
    if memory_format in CHANNELS_LAST:
        return is_in_order(memory_format, self.array.shape, stride(self))
    keeps_order(memory_format)
    return bool(self.array.flags.c_contiguous)


def contiguous(self: Tensor, *, memory_format: Any = contiguous_format) -> Tensor:
    """This tensor if it is contiguous in that format, else a contiguous copy."""
    order = channel_order(memory_format, self.array.ndim)
    if order is not None:
        is_so = is_in_order(memory_format, self.array.shape, stride(self))
        return self if is_so else pack_in_order.call((self, order))
    keeps = keeps_order(memory_format)
    if self.array.flags.c_contiguous:
        return self
    if keeps:
        raise RuntimeError(
            "preserve memory format is unsupported by the contiguous operator: it names no order"
        )
    return pack.call1(self)


def data_ptr(self: Tensor) -> int:
    """Address of the first element; 0 where there is none."""
    array = self.array
    if type(array) is WrapperArray:
        return 0
    check_readable(self)
    if array.size == 0 or of_array(array).type == "meta":
        return 0
    return address_of(array)


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether the shapes are the same."""
    check_tensor("is_same_size", "other", other)
    return self.array.shape == other.array.shape


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both tensors are the same part of the same memory, in the same order."""
    check_tensor("is_set_to", "tensor", tensor)
    return (
        data_ptr(self) == data_ptr(tensor)
        and self.array.shape == tensor.array.shape
        and self.array.strides == tensor.array.strides
        and self.array.dtype == tensor.array.dtype
    )


def element_size(self: Tensor) -> int:
    """Bytes of one element."""
    return self.array.itemsize


def nbytes(self: Tensor) -> int:
    """Bytes of all elements."""
    return self.array.nbytes


# Types and devices --------------------------------------------------------------------------------


def dtype_of(self: Tensor) -> dtypes.dtype:
    """The type of the elements."""
    return dtypes.from_numpy(self.array.dtype)


def device_of(self: Tensor) -> device:
    """Where the elements are."""
    return of_array(self.array)


def is_floating_point(input: Tensor) -> bool:
    """Whether the elements are real floating-point numbers."""
    check_tensor("is_floating_point", "input", input)
    return dtypes.from_numpy(input.array.dtype).is_floating_point


def is_complex(input: Tensor) -> bool:
    """Whether the elements are complex numbers."""
    check_tensor("is_complex", "input", input)
    return input.array.dtype.kind == "c"


def is_signed(input: Tensor) -> bool:
    """Whether the elements can be negative."""
    check_tensor("is_signed", "input", input)
    return dtypes.from_numpy(input.array.dtype).is_signed


def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not zero."""
    check_tensor("is_nonzero", "input", input)
    return bool(input)


def to(
    self: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """This tensor with another dtype or on another device; itself if nothing changes."""
    flags = []  # non_blocking, which changes nothing on the CPU, and copy
    for value in args:
        if isinstance(value, Tensor):
            dtype, device = value.dtype, value.device
        elif isinstance(value, (dtypes.dtype, type)):
            dtype = dtypes.as_dtype(value)
        elif isinstance(value, bool):
            flags.append(value)
        elif value is not None:
            device = value
    if len(flags) > 1:
        copy = flags[1]
    if channel_order(memory_format, self.array.ndim) is not None:
        out = to(self, dtype=dtype, device=device)
        packed = contiguous(out, memory_format=memory_format)
        return clone.call1(packed) if copy and packed is self else packed
    row_major = not keeps_order(memory_format)
    target = self.dtype if dtype is None else dtypes.as_dtype(dtype)
    place = self.device if device is None else as_device(device)
    if place.index is None and place.type == self.device.type:
        place = self.device  # "the" device of that type is any of them
    out = self
    if not keeps_order(memory_format) and (copy or place != out.device or target is not out.dtype):
        out = contiguous(out)
    if place != out.device:
        out = move(out, place)
    if target is not out.dtype:
        out = cast.call((out, target))
    elif copy and out is self:
        return (pack if row_major else clone).call1(self)
    return contiguous(out) if row_major and out is not self else out


def move(self: Tensor, place: device) -> Tensor:
    """A differentiable copy on another device."""
    return to_device.call((self, place, of_array(self.array)))


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor's type, or the tensor cast to one."""
    if dtype is None:
        place = self.device.type
        within = "" if place == "cpu" else f"{place}."
        return spelled(f"{within}{self.dtype.scalar_name}Tensor")
    if isinstance(dtype, str):
        module, _, name = dtype.rpartition(".")
        place = _DEVICE_OF_TENSOR_TYPE.get(module)
        kind = _DTYPE_OF_TENSOR_TYPE.get(name)
        if place is None or kind is None:
            raise ValueError(f"invalid type: '{dtype}'")
        return to(self, place, kind)
    named = getattr(dtype, "dtype", None)  # FloatTensor and its kind
    if isinstance(dtype, type) and isinstance(named, dtypes.dtype):
        return to(self, named)
    if isinstance(dtype, type):
        raise ValueError(f"invalid type: '{dtype.__name__}'")
    if not isinstance(dtype, dtypes.dtype):
        raise TypeError(f"dtype must be a str or a dtype, not {type(dtype).__name__}")
    return to(self, dtype)


_DTYPE_OF_TENSOR_TYPE = {f"{kind.scalar_name}Tensor": kind for kind in dtypes.EVERY}
_DEVICE_OF_TENSOR_TYPE = {
    "torch": "cpu", "wengert": "cpu", "torch.cuda": "cuda", "wengert.cuda": "cuda",
}  # fmt: skip


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """This tensor with the dtype and on the device of `other`."""
    check_tensor("type_as", "other", other)
    return to(self, other)


def cpu(self: Tensor, *, memory_format: Any = None) -> Tensor:
    """This tensor in CPU memory."""
    return to(self, device="cpu", memory_format=memory_format)


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
    """This tensor in the memory of a CUDA device."""
    return to(self, device="cuda" if device is None else device)


def get_device(self: Tensor) -> int:
    """The number of the device, -1 for the CPU and where there is no memory."""
    index = of_array(self.array).index
    return -1 if index is None else index


def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether the memory is page-locked, which it never is."""
    return False


def is_shared(self: Tensor) -> bool:
    """Whether other processes see changes of the memory, see `share_memory_`."""
    return load("tensor.storages").is_shared(self.array)


def _caster(name: str, target: dtypes.dtype) -> Any:
    def cast_to(self: Tensor, *, memory_format: Any = None) -> Tensor:
        if memory_format is not None:
            return to(self, target, memory_format=memory_format)
        return self if self.dtype is target else cast.call((self, target))

    cast_to.__name__ = name
    cast_to.__doc__ = f"This tensor as {target.name}."
    return cast_to


# Python and other libraries -----------------------------------------------------------------------


class Reading(Effect):
    """Reading the one element of a tensor as a Python number."""

    def __call__(self, t: Tensor) -> Any:
        if overriding.possible and not is_level(t):
            value = override_function(self.overloads[0], (t,), {})
            if value is not NotImplemented:
                return value
        if type(t.array) is not np.ndarray and of_array(t.array).type == "meta":
            raise RuntimeError("Tensor.item() cannot be called on meta tensors: they have no data")
        array = plain(t, ".item()").array
        return _python_number(array.item(), array)


_local_scalar_dense = Reading(
    "_local_scalar_dense", ("_local_scalar_dense(Tensor self) -> Scalar",)
)


def item(self: Tensor) -> Any:
    """The one element as a Python number."""
    if self.array.size != 1:
        raise RuntimeError(
            f"a Tensor with {self.array.size} elements cannot be converted to Scalar"
        )
    return _local_scalar_dense(self)


def _python_number(value: Any, array: Any) -> Any:
    return float(value) if array.dtype.kind == "V" else value


def tolist(self: Tensor) -> Any:
    """The elements as nested lists of Python numbers."""
    if type(self.array) is not np.ndarray and of_array(self.array).type == "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data! Asked by tolist()")
    array = plain(self, ".tolist()").array
    return (array.astype("float32") if array.dtype.kind == "V" else array).tolist()


def numpy(self: Tensor, *, force: bool = False) -> Any:
    """The tensor's own memory as a NumPy array; with `force` a detached copy if need be."""
    if not force and self.requires() and thread_state().recording():
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    if type(self.array) is WrapperArray:
        raise unreadable_wrapper(".numpy()")
    check_readable(self)
    place = of_array(self.array)
    if place.type != "cpu":
        if not force or place.type == "meta":
            raise TypeError(
                f"can't convert {place} device type tensor to numpy. Use Tensor.cpu() to copy the "
                "tensor to host memory first."
            )
        return transfer(self.array, as_device("cpu"))
    return self.array.view(np.ndarray)


def as_array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """The array protocol of NumPy."""
    array = numpy(self)
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


def dlpack(self: Tensor, *, stream: Any = None, **options: Any) -> Any:
    """The DLPack protocol; the receiver shares the memory."""
    if self.requires():
        raise BufferError(
            "Can't export tensors that require gradient, use tensor.detach()"
        )
    check_readable(self)
    if of_array(self.array).type == "meta":
        raise BufferError("Cannot pack tensors on meta: they have no data")
    return self.array.__dlpack__(stream=stream, **options)


def dlpack_device(self: Tensor) -> Any:
    return self.array.__dlpack_device__()


def clone_method(self: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy that gradients flow through."""
    order = channel_order(memory_format, self.array.ndim)
    if order is not None:
        return pack_in_order.call((self, order))
    return (clone if keeps_order(memory_format) else pack).call1(self)


def real(self: Tensor) -> Tensor:
    """The real part, as a view; the tensor itself if it is not complex."""
    return load("operators.complex").real(self)


def imag(self: Tensor) -> Tensor:
    """The imaginary part of a complex tensor, as a view."""
    return load("operators.complex").imag(self)


def _view_property(name: str, doc: str) -> property:
    """A property that a function of `operators/views.py` computes."""

    def view(self: Tensor) -> Tensor:
        return getattr(load("operators.views"), name)(self)

    return property(view, doc=doc)


def set_real(self: Tensor, value: Any) -> None:
    self.real.copy_(value)


def set_imag(self: Tensor, value: Any) -> None:
    self.imag.copy_(value)


def reduce_ex(self: Tensor, protocol: int) -> Any:
    return load("tensor.pickling").reduce_tensor(self)


def deepcopy(self: Tensor, memo: dict) -> Tensor:
    return load("tensor.pickling").deepcopy_tensor(self, memo)


PROPERTIES = {
    "real": property(real, set_real),
    "imag": property(imag, set_imag),
    "T": _view_property("reverse_dims", "The dimensions in reverse order."),
    "mT": _view_property("matrix_transpose", "The last two dimensions exchanged."),
    "H": _view_property("matrix_adjoint", "A matrix transposed and conjugated."),
    "mH": _view_property("batch_adjoint", "The last two dimensions exchanged, conjugated."),
    "shape": property(shape),
    "ndim": property(dim),
    "nbytes": property(nbytes),
    "itemsize": property(element_size),
    "dtype": property(dtype_of),
    "device": property(device_of),
    "is_cuda": property(
        lambda self: of_array(self.array).type == "cuda", doc="Whether it lies on a GPU."
    ),
    "is_cpu": property(
        lambda self: of_array(self.array).type == "cpu", doc="Whether it lies on the CPU."
    ),
    "is_meta": property(
        lambda self: of_array(self.array).type == "meta", doc="Whether it has no elements."
    ),
    "is_sparse": property(lambda self: False, doc="False: all tensors are dense."),
    "layout": property(lambda self: strided, doc="How elements lie in memory: by strides."),
    "grad_dtype": property(dtype_of, doc="The type of gradients, which is that of the tensor."),
    "name": property(lambda self: None, doc="None: tensors have no names of their own."),
    "volatile": property(lambda self: False, doc="False: an old word for no_grad()."),
    "is_quantized": property(lambda self: False, doc="False: there are no quantized tensors."),
    "is_nested": property(lambda self: False, doc="False: there are no nested tensors."),
    **{
        f"is_{kind}": property(lambda self: False, doc=f"Whether it is {kind}: no tensor here is.")
        for kind in (
            "ipu", "maia", "mkldnn", "mps", "mtia", "sparse_csr", "vulkan", "xla", "xpu",
        )
    },
}
# What the package offers as functions too.
FUNCTIONS = {
    "is_complex": is_complex,
    "is_floating_point": is_floating_point,
    "is_nonzero": is_nonzero,
    "is_signed": is_signed,
    "numel": numel,
}
METHODS: dict[str, Any] = {
    "size": size,
    "stride": stride,
    "dim": dim,
    "ndimension": dim,
    "numel": numel,
    "nelement": numel,
    "storage_offset": storage_offset,
    "is_contiguous": is_contiguous,
    "contiguous": contiguous,
    "data_ptr": data_ptr,
    "const_data_ptr": data_ptr,
    "element_size": element_size,
    "is_same_size": is_same_size,
    "is_set_to": is_set_to,
    "get_device": get_device,
    "is_pinned": is_pinned,
    "is_shared": is_shared,
    "is_floating_point": is_floating_point,
    "is_complex": is_complex,
    "is_signed": is_signed,
    "is_nonzero": is_nonzero,
    "to": to,
    "type": type_,
    "type_as": type_as,
    "cpu": cpu,
    "cuda": cuda,
    "item": item,
    "tolist": tolist,
    "numpy": numpy,
    "clone": clone_method,
    "div_": div_,
    "divide_": div_,
    "true_divide_": div_,
    "__array__": as_array,
    "__dlpack__": dlpack,
    "__dlpack_device__": dlpack_device,
    "__reduce_ex__": reduce_ex,
    "__deepcopy__": deepcopy,
    **{
        name: _caster(name, target)
        for name, target in {
            "float": dtypes.float32,
            "double": dtypes.float64,
            "half": dtypes.float16,
            "bfloat16": dtypes.bfloat16,
            "byte": dtypes.uint8,
            "char": dtypes.int8,
            "short": dtypes.int16,
            "int": dtypes.int32,
            "long": dtypes.int64,
            "bool": dtypes.bool,
            "cfloat": dtypes.complex64,
            "cdouble": dtypes.complex128,
        }.items()
    },
}
