"""Storages: the memory that tensors look at, as bytes or as elements of one type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..backends.geometry import address_of, memory_size, owner_of
from ..backends.placement import of_array, transfer
from ..core import dtypes
from ..core.arrays import unmarked
from ..core.devices import as_device, device
from ..core.spelling import spelled
from ..core.tensor import Tensor, wrap
from ..creation.conversion import array_from
from ..creation.more import from_file

_KNOWN: WeakValueDictionary[int, UntypedStorage] = WeakValueDictionary()


class _Memory:
    """Offers the memory of an array, gaps included, to NumPy; keeps the array alive."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "data": (address_of(owner), not owner.flags.writeable),
            "shape": (memory_size(owner),),
            "typestr": "|u1",
            "version": 3,
        }


class UntypedStorage:
    """A piece of memory as a row of bytes.

    Made of a number of bytes, of a sequence of them, or found by `Tensor.untyped_storage`: tensors
    that look at one memory have one storage. Its size is fixed.
    """

    def __init__(self, *args: Any, device: Any = None) -> None:
        place = as_device("cpu" if device is None else device)
        given = args[0] if args else 0
        if isinstance(given, int):
            array = np.zeros(given, np.uint8)
        else:
            array = np.array(list(given), np.uint8)
        self.owner = transfer(array, place)
        _KNOWN[id(self.owner)] = self

    @property
    def device(self) -> device:
        """Where the memory is."""
        return of_array(self.owner)

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is that of a GPU."""
        return self.device.type == "cuda"

    is_sparse = False

    @staticmethod
    def from_file(filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """A storage that looks at a file; changes are written to it if `shared`."""
        return from_file(filename, shared, nbytes, dtype=dtypes.uint8).untyped_storage()

    def bytes(self) -> Any:
        """The memory of the host as an array of bytes, which shares it."""
        if self.device.type != "cpu":
            raise NotImplementedError(f"a storage on {self.device} has no bytes that can be read")
        return np.asarray(_Memory(self.owner)) if self.nbytes() else np.empty(0, np.uint8)

    def nbytes(self) -> int:
        """The number of bytes."""
        return memory_size(self.owner)

    size = nbytes

    def __len__(self) -> int:
        return self.nbytes()

    def data_ptr(self) -> int:
        """The address of the first byte; 0 where there is none."""
        if not self.nbytes() or self.device.type == "meta":
            return 0
        return address_of(self.owner)

    def element_size(self) -> int:
        """The size of a byte: 1."""
        return 1

    def get_device(self) -> int:
        """The number of the device, -1 for the CPU."""
        index = self.device.index
        return -1 if index is None else index

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return _of_owner(self.bytes()[index])
        return int(self.bytes()[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        self.bytes()[index] = value

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        """The bytes as a list."""
        return self.bytes().tolist()

    def fill_(self, value: int) -> UntypedStorage:
        """Set every byte."""
        self.bytes()[...] = value
        return self

    def copy_(self, source: Any, non_blocking: bool = False) -> UntypedStorage:
        """Take the bytes of another storage of this size."""
        if source.nbytes() != self.nbytes():
            raise RuntimeError(
                f"copy_(): the storages have {self.nbytes()} and {source.nbytes()} bytes"
            )
        self.bytes()[...] = source.untyped().bytes()
        return self

    def clone(self) -> UntypedStorage:
        """A copy."""
        return _of_owner(self.bytes().copy())

    def byteswap(self, dtype: dtypes.dtype) -> None:
        """Turn around the bytes of every element of a type."""
        parts = dtype.to_real().numpy
        self.bytes().view(parts).byteswap(inplace=True)

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def resizable(self) -> bool:
        """Whether the size can change: it cannot."""
        return False

    def resize_(self, size: int) -> UntypedStorage:
        """Refuse another size than this storage has."""
        if size != self.nbytes():
            raise RuntimeError(
                "Trying to resize storage that is not resizable: memory here belongs to arrays, "
                "whose size is fixed; use Tensor.resize_() or make a new tensor"
            )
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is page-locked: it is not."""
        return False

    def is_shared(self) -> bool:
        """Whether other processes see changes of the memory, see `Tensor.share_memory_`."""
        return is_shared(self.owner)

    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """A storage with these bytes on a device; this one if they are there."""
        moved = transfer(self.owner, as_device(device))
        return self if moved is self.owner else _of_owner(moved)

    def cpu(self) -> UntypedStorage:
        """A storage with these bytes in the memory of the host."""
        return self.to(device="cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """A storage with these bytes on a GPU."""
        return self.to(device="cuda" if device is None else device)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the class, as PyTorch has it."""
        if dtype is not None:
            raise NotImplementedError("type(): bytes have no type that could be converted")
        return "wengert.storage.UntypedStorage"

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, UntypedStorage):
            return NotImplemented
        return self.owner is other.owner or (
            self.nbytes() == other.nbytes() and self.data_ptr() == other.data_ptr() != 0
        )

    def __hash__(self) -> int:
        return self.data_ptr() or id(self.owner)

    def __repr__(self) -> str:
        shown = "" if self.device.type == "meta" else _column(self.tolist())
        name = "wengert.storage.UntypedStorage"
        return f"{shown}[{name}(device={self.device}) of size {len(self)}]"


def _column(values: list) -> str:
    return "".join([f" {each}\n" for each in values])


def _of_owner(owner: Any) -> UntypedStorage:
    found = _KNOWN.get(id(owner))
    if found is None:
        found = UntypedStorage.__new__(UntypedStorage)
        found.owner = owner
        found = _KNOWN.setdefault(id(owner), found)
    return found


def storage_of(t: Tensor) -> UntypedStorage:
    """The memory that a tensor looks at."""
    return _of_owner(owner_of(unmarked(t.array)))


def is_shared(array: Any) -> bool:
    """Whether an array lies in memory that other processes see."""
    while array is not None:
        if type(array).__name__ == "mmap":
            return True
        if isinstance(array, memoryview):
            array = array.obj
        else:
            array = getattr(array, "base", None)
    return False


# Elements -----------------------------------------------------------------------------------------


class TypedStorage:
    """A piece of memory as a row of elements of one type."""

    def __init__(
        self, *args: Any, wrap_storage: UntypedStorage | None = None,
        dtype: dtypes.dtype | None = None, device: Any = None, _internal: bool = False,
    ) -> None:  # fmt: skip
        self.dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
        if wrap_storage is not None:
            self._untyped_storage = wrap_storage.untyped()
            return
        given = args[0] if args else 0
        if isinstance(given, int):
            array = np.zeros(given, self.dtype.numpy)
        else:
            array = array_from(list(given), self.dtype)
        place = as_device("cpu" if device is None else device)
        self._untyped_storage = _of_owner(transfer(array, place))

    def untyped(self) -> UntypedStorage:
        """The memory as bytes."""
        return self._untyped_storage

    @property
    def device(self) -> device:
        """Where the memory is."""
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is that of a GPU."""
        return self._untyped_storage.is_cuda

    is_sparse = False

    def elements(self) -> Any:
        """The memory of the host as an array of elements, which shares it."""
        return self._untyped_storage.bytes()[: self.nbytes()].view(self.dtype.numpy)

    def size(self) -> int:
        """The number of elements."""
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    def __len__(self) -> int:
        return self.size()

    def nbytes(self) -> int:
        """The number of bytes of the elements."""
        return self.size() * self.dtype.itemsize

    def element_size(self) -> int:
        """The number of bytes of one element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """The address of the first element; 0 where there is none."""
        return self._untyped_storage.data_ptr()

    def get_device(self) -> int:
        """The number of the device, -1 for the CPU."""
        return self._untyped_storage.get_device()

    def tolist(self) -> list:
        """The elements as a list of Python numbers."""
        found = wrap(self.elements()).tolist()
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return wrap(self.elements()[index : index + 1 or None]).item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self.elements()[index] = value

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        self.elements()[...] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Take the elements of another storage, converted to this type."""
        self.elements()[...] = source.elements()
        return self

    def clone(self) -> TypedStorage:
        """A copy."""
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def converted(self, dtype: dtypes.dtype) -> TypedStorage:
        """The elements in another type, in memory of their own."""
        if dtype is self.dtype:
            return self
        array = self.elements().astype(dtype.numpy)
        return TypedStorage(wrap_storage=_of_owner(array), dtype=dtype)

    def resizable(self) -> bool:
        """Whether the size can change: it cannot."""
        return False

    def resize_(self, size: int) -> TypedStorage:
        """Refuse another size than this storage has."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is page-locked: it is not."""
        return False

    def is_shared(self) -> bool:
        """Whether other processes see changes of the memory."""
        return self._untyped_storage.is_shared()

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """A storage with these elements on a device."""
        return TypedStorage(wrap_storage=self._untyped_storage.to(device=device), dtype=self.dtype)

    def cpu(self) -> TypedStorage:
        """A storage with these elements in the memory of the host."""
        return self.to(device="cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """A storage with these elements on a GPU."""
        return self.to(device="cuda" if device is None else device)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the storages of this type, or the elements converted to another."""
        if dtype is None:
            return spelled(f"{self.dtype.scalar_name}Storage")
        return self.converted(getattr(dtype, "dtype", dtype))

    def pickle_storage_type(self) -> str:
        """The name of the storages of this type in files."""
        return f"{self.dtype.scalar_name}Storage"

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, TypedStorage):
            return NotImplemented
        return self.dtype is other.dtype and self._untyped_storage == other._untyped_storage

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    def __repr__(self) -> str:
        shown = "" if self.device.type == "meta" else _column(self.tolist())
        name = "wengert.storage.TypedStorage"
        return f"{shown}[{name}(dtype={self.dtype}, device={self.device}) of size {len(self)}]"


def _caster(name: str, target: dtypes.dtype) -> Any:
    def cast(self: TypedStorage) -> TypedStorage:
        return self.converted(target)

    cast.__name__, cast.__qualname__ = name, f"TypedStorage.{name}"
    cast.__doc__ = f"The elements as {target.name}."
    return cast


for _name, _target in {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16,
    "bfloat16": dtypes.bfloat16, "byte": dtypes.uint8, "char": dtypes.int8, "short": dtypes.int16,
    "int": dtypes.int32, "long": dtypes.int64, "bool": dtypes.bool,
    "complex_float": dtypes.complex64, "complex_double": dtypes.complex128,
}.items():  # fmt: skip
    setattr(TypedStorage, _name, _caster(_name, _target))


class _StorageType(type):
    """The class of `FloatStorage` and its kind: storages of a type are instances of it."""

    dtype: dtypes.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, device: Any = None, **kwargs: Any) -> Any:
        return TypedStorage(*args, dtype=cls.dtype, device=device, **kwargs)


_OLD_TYPES = dtypes.ALL


def _storage_type(kind: dtypes.dtype) -> Any:
    name = f"{kind.scalar_name}Storage"
    doc = f"Makes storages of {kind.name}, which are its instances."
    return _StorageType(name, (), {"dtype": kind, "__module__": "wengert", "__doc__": doc})


STORAGES = {f"{kind.scalar_name}Storage": _storage_type(kind) for kind in _OLD_TYPES}
globals().update(STORAGES)
Storage = STORAGES["FloatStorage"]


def is_storage(obj: Any) -> bool:
    """Whether `obj` is a storage."""
    return isinstance(obj, (UntypedStorage, TypedStorage))


for _class in (UntypedStorage, TypedStorage):
    _class.__module__ = "wengert.storage"
