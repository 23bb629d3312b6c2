"""What the names in a saved file mean here, and by which names our own objects are saved.

A file names PyTorch's functions and classes. Loading gives ours in their place, saving writes
PyTorch's names for ours; neither imports PyTorch.
"""

from __future__ import annotations

import collections
from importlib import import_module
from typing import Any

from ..core import dtypes, layouts
from ..core.devices import device
from ..core.size import Size
from ..core.tensor import Tensor
from ..nn.parameter import Parameter
from . import rebuild
from .storage import StorageKind

#: The storages of v3 tensors have no type: they are bytes.
UNTYPED = StorageKind(dtypes.uint8, "UntypedStorage")
STORAGE_KINDS = {each: StorageKind(each, each.scalar_name + "Storage") for each in dtypes.EVERY}

#: What our own objects are called in files.
OURS: dict[str, Any] = {
    "torch.Tensor": Tensor,
    "torch.Size": Size,
    "torch.device": device,
    "torch.nn.parameter.Parameter": Parameter,
    "torch.contiguous_format": layouts.contiguous_format,
    "torch.preserve_format": layouts.preserve_format,
    "torch.channels_last": layouts.channels_last,
    "torch.channels_last_3d": layouts.channels_last_3d,
    "torch.storage.UntypedStorage": UNTYPED,
    "torch.serialization._get_layout": rebuild.layout_named,
    "torch._utils._rebuild_tensor": rebuild.rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": rebuild.rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": rebuild.rebuild_tensor_v3,
    "torch._utils._rebuild_meta_tensor_no_storage": rebuild.rebuild_meta_tensor,
    "torch._utils._rebuild_parameter": rebuild.rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": rebuild.rebuild_parameter_with_state,
    "torch._utils._rebuild_wrapper_subclass": rebuild.rebuild_wrapper_subclass,
    "torch._tensor._rebuild_from_type_v2": rebuild.rebuild_from_type,
    **{f"torch.{each.name}": each for each in dtypes.EVERY},
    **{f"torch.{kind.name}": kind for kind in STORAGE_KINDS.values()},
}
#: The module and the name that stand for one of our objects, by the identity of the object.
NAME_OF = {id(value): tuple(name.rsplit(".", 1)) for name, value in OURS.items()}

#: Names of PyTorch that stand for what Wengert does not have, and what to say of them.
ABSENT = {
    "torch._utils._rebuild_sparse_tensor": "sparse tensors",
    "torch._utils._rebuild_sparse_csr_tensor": "sparse tensors",
    "torch._utils._rebuild_qtensor": "quantized tensors",
    "torch._utils._rebuild_nested_tensor": "nested tensors",
    **{
        f"torch.{name}": f"tensors of dtype {name}"
        for name in (
            "complex32", "float8_e4m3fn", "float8_e5m2",
            "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2",
            "quint8", "qint8", "qint32", "quint4x2", "quint2x4",
        )
    },
}  # fmt: skip


def full_name(module: str, name: str) -> str:
    """The name of a global as files have it: objects of this package have PyTorch's names."""
    full = f"{module}.{name}"
    return "torch" + full[len("wengert") :] if full.startswith("wengert.") else full


def refuse_absent(full: str) -> None:
    """Refuse what this library does not have."""
    if full in ABSENT:
        raise ValueError(f"{ABSENT[full]} are not supported, and the file has them ({full})")


# The plain values that pickles make by calls. Called by a forged file, the classes themselves could
# take all memory (bytearray(10**12)) or all time (encode with a codec that decompresses).


def made_bytes(text: Any, codec: Any) -> bytes:
    """Bytes, as pickles of protocol 2 write them."""
    if type(text) is not str or codec not in ("latin1", "latin-1"):
        raise ValueError("bytes are not written as pickles write them")
    return text.encode("latin1")


def made_bytearray(content: Any = b"", codec: Any = "latin-1") -> bytearray:
    """A bytearray of given bytes."""
    return bytearray(content if type(content) is bytes else made_bytes(content, codec))


def made_complex(real: Any, imaginary: Any) -> complex:
    """A complex number of two floats."""
    if type(real) is not float or type(imaginary) is not float:
        raise ValueError("a complex number is not made of two floats")
    return complex(real, imaginary)


def made_set(items: Any = ()) -> set:
    """A set of given items."""
    return set(map(hashable, _sequence(items)))


def made_frozenset(items: Any = ()) -> frozenset:
    """A frozenset of given items."""
    return frozenset(map(hashable, _sequence(items)))


def made_ordered_dict(pairs: Any = ()) -> collections.OrderedDict:
    """An OrderedDict of pairs."""
    made: collections.OrderedDict = collections.OrderedDict()
    for key, value in _sequence(pairs):
        made[hashable(key)] = value
    return made


def made_counter(counts: Any = None) -> collections.Counter:
    """A Counter of given counts."""
    if counts is not None and type(counts) is not dict:
        raise ValueError("a Counter is not made of a dictionary")
    return collections.Counter(counts or {})


def _sequence(items: Any) -> Any:
    if type(items) not in (list, tuple):
        raise ValueError("items are neither a list nor a tuple")
    return items


_MOST_PARTS, _DEEPEST = 10_000, 100


def hashable(key: Any) -> Any:
    """A key, unless it is a tuple of tuples too many or too deep to be hashed.

    Python hashes nested tuples recursively without a limit, and parts that are shared once for
    every place where they stand.
    """
    waiting = [(key, 0)] if isinstance(key, (tuple, frozenset)) else []
    seen = 0
    while waiting:
        items, depth = waiting.pop()
        seen += len(items)
        if seen > _MOST_PARTS or depth > _DEEPEST:
            raise ValueError("a key of a dictionary or an item of a set is nested too deeply")
        waiting += [(each, depth + 1) for each in items if isinstance(each, (tuple, frozenset))]
    return key


#: What a file may name when nothing else was allowed.
ALLOWED: dict[str, Any] = {
    **OURS,
    "torch.UntypedStorage": UNTYPED,
    "torch.nn.Parameter": Parameter,
    "collections.OrderedDict": made_ordered_dict,
    "collections.Counter": made_counter,
    "_codecs.encode": made_bytes,
    "builtins.bytearray": made_bytearray,
    "builtins.complex": made_complex,
    "builtins.set": made_set,
    "builtins.frozenset": made_frozenset,
}
# What a pickle may call: all functions, and those of our classes that check their arguments.
CALLABLE = [
    value for value in ALLOWED.values()
    if not isinstance(value, (StorageKind, dtypes.dtype, layouts.memory_format))
    and value is not Tensor
]  # fmt: skip


def public_object(module: str, name: str) -> Any:
    """The object of this package that has a name of PyTorch's; AttributeError if there is none.

    Modules that PyTorch has and we have not count as those around them, which have their names.
    """
    parts = module.split(".")[1:]
    while True:
        try:
            found: Any = import_module(".".join(["wengert", *parts]))
            for part in name.split("."):
                found = getattr(found, part)
            return found
        except (ImportError, AttributeError):
            if not parts:
                raise AttributeError(f"wengert has no {module}.{name} of its own") from None
            parts.pop()
