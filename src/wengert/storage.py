"""Storages: the memory that tensors look at, ``t.untyped_storage()``."""

from .tensor.storages import TypedStorage as TypedStorage
from .tensor.storages import UntypedStorage as UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
