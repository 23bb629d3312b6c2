"""Storages: one piece of memory in a file, which any number of tensors may look at."""

from __future__ import annotations

from typing import Any

from ..backends import meta
from ..backends.geometry import strided
from ..backends.placement import of_array, transfer
from ..core import dtypes
from ..core.devices import META, as_device, device
from ..core.tensor import Tensor, wrap

_MOST_DIMENSIONS = 64
_LARGEST = 2**63


class StorageKind:
    """What the pickle of a tensor calls its storage's class: it tells the type of the elements."""

    def __init__(self, dtype: dtypes.dtype, name: str) -> None:
        self.dtype = dtype
        self.name = name

    def __repr__(self) -> str:
        return f"<storages of {self.dtype}>"


class Storage:
    """The elements of one piece of memory, as `map_location` gets them.

    `array` is one-dimensional; on the meta device it has no elements to read.
    """

    def __init__(self, array: Any, dtype: dtypes.dtype) -> None:
        self.array = array
        self.dtype = dtype

    @property
    def device(self) -> device:
        """Where the memory is."""
        return of_array(self.array)

    def __len__(self) -> int:
        return int(self.array.size)

    def size(self) -> int:
        """The number of elements."""
        return len(self)

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def nbytes(self) -> int:
        """The number of bytes."""
        return len(self) * self.dtype.itemsize

    def to(self, device: Any) -> Storage:
        """A storage with these elements on a device; this one if they are already there."""
        place = as_device(device)
        if place.type == "meta":
            return Storage(meta.empty((len(self),), self.dtype.numpy), self.dtype)
        moved = transfer(self.array, place)
        return self if moved is self.array else Storage(moved, self.dtype)

    def cpu(self) -> Storage:
        """A storage with these elements in the memory of the host."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> Storage:
        """A storage with these elements on a GPU."""
        return self.to("cuda" if device is None else device)

    def __repr__(self) -> str:
        return f"<Storage of {len(self)} {self.dtype} on {self.device}>"


def is_count(value: Any) -> bool:
    """Whether this is a plain number that can be a size, a stride or an offset."""
    return type(value) is int and 0 <= value < _LARGEST


def check_geometry(size: Any, stride: Any) -> None:
    """Refuse sizes and strides that no tensor has."""
    for name, given in (("sizes", size), ("strides", stride)):
        if not isinstance(given, tuple) or not all(is_count(each) for each in given):
            raise ValueError(f"the {name} of a tensor are not a tuple of natural numbers")
    if len(size) != len(stride) or len(size) > _MOST_DIMENSIONS:
        raise ValueError(
            f"a tensor has {len(size)} sizes and {len(stride)} strides; both must be as many, and "
            f"at most {_MOST_DIMENSIONS}"
        )


def tensor_in(
    storage: Any, dtype: dtypes.dtype, offset: Any, size: Any, stride: Any
) -> Tensor:
    """A tensor that looks at a storage from the element `offset` on, if it lies within."""
    if not isinstance(storage, Storage):
        raise ValueError(f"a tensor has a {type(storage).__name__} in place of a storage")
    check_geometry(size, stride)
    if not is_count(offset):
        raise ValueError("the storage offset of a tensor is not a natural number")
    item = dtype.itemsize
    reach = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if reach and (offset + reach) * item > storage.nbytes():
        raise ValueError(
            f"a tensor of sizes {list(size)}, strides {list(stride)} and storage offset {offset} "
            f"is out of bounds for storage of size {storage.nbytes()} bytes"
        )
    in_bytes = tuple([s * item for s in stride])
    if storage.device == META:
        return wrap(meta.of_strides(size, in_bytes, dtype.numpy))
    if not reach:  # where it begins and how it steps means nothing, but is kept where it can be
        offset = min(offset, storage.nbytes() // item)
        if any(s >= _LARGEST for s in in_bytes):
            raise ValueError("a stride of a tensor is too large")
    return wrap(strided(storage.array.view(dtype.numpy), size, in_bytes, offset * item))
