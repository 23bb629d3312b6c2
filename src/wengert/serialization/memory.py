"""Which memory the tensors that are saved look at, and where in it each of them lies."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.backend import backend_of
from ..backends.casting import copy_array
from ..backends.geometry import address_of, memory_size, owner_of
from ..backends.layout import steps_of
from ..backends.placement import of_array
from ..core import dtypes
from ..core.arrays import unmarked
from ..core.devices import CPU


class SavedMemory:
    """One piece of memory of a file: the array that owns it, and how tensors see its elements."""

    def __init__(self, owner: Any, dtype: dtypes.dtype, key: str) -> None:
        self.owner = owner
        self.dtype = dtype
        self.key = key
        self.count = memory_size(owner) // dtype.itemsize
        place = of_array(owner)
        self.location = "cuda:0" if str(place) == "cuda" else str(place)

    def content(self) -> Any:
        """All of its bytes, in the memory of the host."""
        owner = backend_of(self.owner).to_numpy(self.owner)
        size = self.count * self.dtype.itemsize
        return np.asarray(_Bytes(owner, size)) if size else np.empty(0, np.uint8)


class _Bytes:
    """Offers the memory from the first element of an array on as bytes; keeps the array alive."""

    def __init__(self, owner: Any, size: int) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "data": (address_of(owner), True), "shape": (size,), "typestr": "|u1", "version": 3,
        }  # fmt: skip


class MemoryTable:
    """The memory of all tensors that are saved, each piece once."""

    def __init__(self) -> None:
        self.pieces: list[SavedMemory] = []
        self._by_place: dict[Any, SavedMemory] = {}

    def place(self, array: Any) -> tuple[SavedMemory, int, tuple[int, ...]]:
        """The memory that an array looks at, its offset there and its strides, in elements."""
        array = unmarked(array)
        owner = owner_of(array)
        if not _can_share(array, owner):
            array = owner = copy_array(array)
        dtype = dtypes.from_numpy(array.dtype)
        memory = self._memory(owner, dtype)
        offset = (address_of(array) - address_of(owner)) // dtype.itemsize
        if not array.size:  # where it begins means nothing
            offset = min(max(offset, 0), memory.count)
        return memory, offset, tuple([s // dtype.itemsize for s in steps_of(array)])

    def _memory(self, owner: Any, dtype: dtypes.dtype) -> SavedMemory:
        size = memory_size(owner)
        # Pieces without elements may have one address, and are not the same.
        where = (str(of_array(owner)), address_of(owner), size) if size else id(owner)
        found = self._by_place.get(where)
        if found is None:
            found = self._by_place[where] = SavedMemory(owner, dtype, str(len(self.pieces)))
            self.pieces.append(found)
        if found.dtype is not dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different "
                f"types: {found.dtype} and {dtype}. Save clones of some of them"
            )
        return found


def _can_share(array: Any, owner: Any) -> bool:
    """Whether a tensor can be saved as a view of the memory that it looks at."""
    if type(owner) is not type(array) or any(s < 0 for s in owner.strides):
        return False
    if of_array(array) is not CPU and not owner.flags.c_contiguous:
        return False  # off the host, memory is read by the elements of its owner
    item = array.dtype.itemsize
    if any(s < 0 or s % item for s in array.strides):
        return False
    return not array.size or (address_of(array) - address_of(owner)) % item == 0
