"""Methods of Tensor that give it other memory or another look at it."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from ..backends.allocation import new_array
from ..backends.geometry import memory_as, strided
from ..backends.placement import of_array
from ..core.arrays import unmarked
from ..core.layouts import CHANNELS_LAST, contiguous_format, keeps_order
from ..core.size import parse_size
from ..core.tensor import Tensor, set_fields, wrap
from ..dispatch.torch_function import marked
from ..transforms.memory import check_readable
from . import storages, tensor_types


def untyped_storage(self: Tensor) -> storages.UntypedStorage:
    """The memory that the tensor looks at, as bytes."""
    check_readable(self)
    return storages.storage_of(self)


def storage(self: Tensor) -> storages.TypedStorage:
    """The memory that the tensor looks at, as elements of its type."""
    return storages.TypedStorage(wrap_storage=untyped_storage(self), dtype=self.dtype)


def storage_type(self: Tensor) -> Any:
    """The class of the storages of this tensor's type."""
    return storages.STORAGES[f"{self.dtype.scalar_name}Storage"]


def new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    """A tensor of this type, of data or of sizes; an old form of new_tensor() and new_empty()."""
    return tensor_types.made(self.dtype, args, self.device if device is None else device)


def _give(self: Tensor, array: Any, what: str) -> Tensor:
    """Let a tensor look at another array."""
    if self.view_meta is not None and self.requires():
        raise RuntimeError(f"{what}(): a view that is part of a graph keeps its memory")
    set_fields(self, array=marked(type(self), array))
    self.bump(what)
    return self


def resize_(self: Tensor, *sizes: Any, size: Any = None, memory_format: Any = None) -> Tensor:
    """Give the tensor another shape; new elements are uninitialised, the first ones remain.

    It gets new memory if what it has from its first element on is too small.
    """
    if memory_format in CHANNELS_LAST:
        raise NotImplementedError(
            "resize_(): elements stay where they are in memory, in row-major order; use "
            "contiguous(memory_format=...) for a tensor with channels last"
        )
    if keeps_order(contiguous_format if memory_format is None else memory_format):
        raise RuntimeError("resize_(): preserve_format is unsupported, there is no order to keep")
    if self.requires():
        raise RuntimeError("cannot resize variables that require grad")
    check_readable(self)
    shape = tuple(parse_size("resize_", sizes, size))
    if shape == self.array.shape:
        return self
    source = unmarked(self.array)
    array = memory_as(source, shape)
    if array is None:
        array = new_array(shape, self.dtype, of_array(source))
        if of_array(source).type != "meta":
            held = memory_as(source, (self.untyped_storage().nbytes() // self.element_size()
                                      - self.storage_offset(),))
            array.reshape(-1)[: held.size] = held
    return _give(self, array, "resize_")


def resize_as_(self: Tensor, other: Tensor, *, memory_format: Any = None) -> Tensor:
    """Give the tensor the shape of another, see `resize_`."""
    return resize_(self, size=other.shape, memory_format=memory_format)


def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: int | None = None,
    size: Any = None,
    stride: Any = None,
) -> Tensor:
    """Let the tensor look at the memory of a tensor or a storage; at nothing without `source`."""
    if self.requires() and self.node is not None:
        raise RuntimeError("set_(): a tensor that was computed keeps its memory; use copy_()")
    if source is None:
        return _give(self, new_array((0,), self.dtype, of_array(self.array)), "set_")
    if isinstance(source, Tensor):
        if source.dtype is not self.dtype:
            raise RuntimeError(
                f"Could not set tensor of type {source.dtype.name} to a tensor of type "
                f"{self.dtype.name}"
            )
        check_readable(source)
        found = source.detach()
        if size is not None:
            found = found.as_strided(size, _strides(size, stride), storage_offset or 0)
    else:
        typed = storages.TypedStorage(wrap_storage=source.untyped(), dtype=self.dtype)
        if isinstance(source, storages.TypedStorage) and source.dtype is not self.dtype:
            raise RuntimeError(
                f"Expected a Storage of type {self.dtype.scalar_name} or an UntypedStorage, but "
                f"got type {source.dtype.scalar_name} for argument 1 'storage'"
            )
        found = wrap(typed.elements())
        if size is not None:
            found = found.as_strided(size, _strides(size, stride), storage_offset or 0)
    return _give(self, unmarked(found.array), "set_")


def _strides(size: Any, stride: Any) -> tuple[int, ...]:
    """The strides, by default those of elements that follow each other."""
    if stride is not None and (stride or not size):
        return tuple(stride)
    found, step = [], 1
    for n in reversed(tuple(size)):
        found.append(step)
        step *= max(n, 1)
    return tuple(reversed(found))


def share_memory_(self: Tensor) -> Tensor:
    """Move the tensor into memory that processes share that are forked from now on."""
    check_readable(self)
    array = unmarked(self.array)
    if of_array(array).type != "cpu" or storages.is_shared(array):
        return self
    if self.view_meta is not None:
        raise RuntimeError(
            "share_memory_(): a view shares the memory of its base; call it on the base before the "
            "view is made"
        )
    if not array.size:
        return self
    count = self.untyped_storage().nbytes()
    memory = np.frombuffer(mmap.mmap(-1, count), np.uint8)
    memory[...] = self.untyped_storage().bytes()
    offset = self.storage_offset() * array.itemsize
    shared = strided(memory.view(array.dtype), array.shape, array.strides, offset)
    return _give(self, shared, "share_memory_")
