"""Saving objects to files."""

from __future__ import annotations

import io
import os
import pickle
import sys
from collections import OrderedDict
from typing import Any

from ..backends.layout import steps_of
from ..backends.placement import of_array
from ..core import dtypes
from ..core.arrays import WrapperArray
from ..core.devices import device
from ..core.handles import warn_if_has_hooks
from ..core.layouts import layout, strided
from ..core.tensor import Tensor, wrap
from ..nn.parameter import Parameter
from ..tensor.pickling import check_storage, user_attributes
from . import rebuild
from .archive import ArchiveWriter
from .memory import MemoryTable, SavedMemory
from .names import NAME_OF, STORAGE_KINDS

DEFAULT_PROTOCOL = 2
_PickleInPython: Any = pickle._Pickler  # type: ignore[attr-defined]
_PLAIN = (str, int, float, bool, type(None), bytes, list, dict, tuple)


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Save an object to a file: a path, or anything with a method `write`.

    Tensors that share memory will share it again, and bring all of that memory along. If the
    object cannot be pickled, the file is left as it was.

    >>> import io, wengert
    >>> file = io.BytesIO()
    >>> wengert.save({"weight": wengert.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> wengert.load(file)
    {'weight': tensor([1., 1.])}
    """
    is_path = isinstance(f, (str, os.PathLike))
    if not is_path and not hasattr(f, "write"):
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute, "
            f"not {type(f).__name__}"
        )
    if pickle_module is not pickle:
        raise NotImplementedError(
            "save(): files are written by Python's own pickle; another pickle_module is not "
            "supported"
        )
    if not _use_new_zipfile_serialization:
        raise NotImplementedError(
            "save(): PyTorch's older format, from before version 1.6, is not supported"
        )
    if type(pickle_protocol) is not int or not 2 <= pickle_protocol <= pickle.HIGHEST_PROTOCOL:
        raise ValueError(
            f"save(): pickle_protocol must be between 2 and {pickle.HIGHEST_PROTOCOL}, got "
            f"{pickle_protocol!r}"
        )
    content = io.BytesIO()
    pickler = TensorPickler(content, pickle_protocol)
    pickler.dump(obj)
    if not is_path:
        _write(f, content, pickler.memory, not _disable_byteorder_record)
        return
    with open(f, "wb") as file:
        _write(file, content, pickler.memory, not _disable_byteorder_record)


def _write(file: Any, content: io.BytesIO, memory: MemoryTable, byte_order: bool) -> None:
    archive = ArchiveWriter(file)
    archive.write("data.pkl", content.getbuffer())
    if byte_order:
        archive.write("byteorder", sys.byteorder.encode())
    for piece in memory.pieces:
        archive.write(f"data/{piece.key}", piece.content())
    archive.write("version", b"3\n")
    archive.close()


class TensorPickler(_PickleInPython):
    """Pickles tensors as PyTorch does: memory lies outside of the pickle, in `memory`.

    It is the pickler written in Python, since only that can write names of objects that are not
    there.
    """

    def __init__(self, file: Any, protocol: int) -> None:
        super().__init__(file, protocol)
        self.memory = MemoryTable()

    def persistent_id(self, obj: Any) -> Any:
        if type(obj) is not SavedMemory:
            return None
        return ("storage", STORAGE_KINDS[obj.dtype], obj.key, obj.location, obj.count)

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if kind in _PLAIN:
            return NotImplemented
        if id(obj) in NAME_OF:
            return NAME_OF[id(obj)][1]
        if isinstance(obj, Tensor) and kind.__reduce_ex__ is Tensor.__reduce_ex__:
            return self._reduced(obj)
        if kind is device:
            return device, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if kind is layout and obj is strided:
            return rebuild.layout_named, ("torch.strided",)
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if id(obj) not in NAME_OF:
            super().save_global(obj, name)
            return
        module, name = NAME_OF[id(obj)]
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    def _reduced(self, tensor: Tensor) -> tuple:
        """The call that makes a tensor again."""
        check_storage(tensor)
        if tensor.requires():
            warn_if_has_hooks(tensor)
        kind, state = type(tensor), user_attributes(tensor)
        if kind is Parameter:
            parts: tuple = (wrap(tensor.array), tensor.requires(), OrderedDict())
            if state:
                return rebuild.rebuild_parameter_with_state, (*parts, state)
            return rebuild.rebuild_parameter, parts
        function, arguments = self._plain(tensor)
        if kind is Tensor and not state:
            return function, arguments
        own = getattr(tensor, "__getstate__", None)
        if own is not None and type(tensor).__getstate__ is not object.__getstate__:
            state = own()
        return rebuild.rebuild_from_type, (function, kind, arguments, state)

    def _plain(self, tensor: Tensor) -> tuple[Any, tuple]:
        """The call that makes a tensor's elements again, whatever its class."""
        array: Any = tensor.array
        size, requires = tuple(array.shape), tensor.requires()
        dtype = dtypes.from_numpy(array.dtype)
        place = of_array(array)
        stride = tuple([s // dtype.itemsize for s in steps_of(array)])
        if type(array) is WrapperArray:
            return rebuild.rebuild_wrapper_subclass, (
                type(tensor), dtype, size, stride, array.start, strided, place, requires
            )  # fmt: skip
        if place.type == "meta":
            return rebuild.rebuild_meta_tensor, (dtype, size, stride, requires)
        memory, offset, stride = self.memory.place(array)
        return rebuild.rebuild_tensor_v2, (
            memory, offset, size, stride, requires, OrderedDict()
        )  # fmt: skip
