"""The names of tensors of a type: ``FloatTensor([1, 2])``, ``t.type(LongTensor)``.

They make tensors of class Tensor and have these as instances; nothing can inherit from them.
"""

from __future__ import annotations

from typing import Any

from ..core import dtypes
from ..core.layouts import strided
from ..core.tensor import Tensor, wrap
from ..creation.conversion import legacy_array
from .storages import TypedStorage, UntypedStorage


class tensortype(type):
    """The class of `FloatTensor` and its kind."""

    dtype: dtypes.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.is_cpu

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        return made(cls.dtype, args, device)


def made(dtype: dtypes.dtype, args: tuple, device: Any) -> Tensor:
    """A tensor of data or of sizes, or another look at a tensor or a storage of the type."""
    given = args[0] if len(args) == 1 else None
    if isinstance(given, Tensor):
        if given.dtype is not dtype:
            raise TypeError(
                f"expected a tensor of {dtype} (got one of {given.dtype}); use given.to({dtype})"
            )
        return given.detach()
    if isinstance(given, (TypedStorage, UntypedStorage)):
        return wrap(TypedStorage(wrap_storage=given.untyped(), dtype=dtype).elements())
    return wrap(legacy_array(args, device, dtype))


def _tensor_type(kind: dtypes.dtype) -> tensortype:
    doc = f"Makes tensors of {kind.name} of data, or of sizes; such tensors are its instances."
    body = {
        "dtype": kind, "layout": strided, "is_cuda": False, "is_sparse": False,
        "__module__": "wengert", "__doc__": doc,
    }  # fmt: skip
    return tensortype(f"{kind.scalar_name}Tensor", (), body)


TENSOR_TYPES = {
    f"{kind.scalar_name}Tensor": _tensor_type(kind)
    for kind in dtypes.ALL
    if kind.category != dtypes.COMPLEX
}
globals().update(TENSOR_TYPES)


def set_default_tensor_type(t: Any) -> None:
    """Set the default floating-point type by the name of its tensors, or by such a name's object.

    `set_default_dtype` does the same with a dtype.
    """
    name = t if isinstance(t, str) else getattr(t, "__name__", "")
    found = TENSOR_TYPES.get(name.rpartition(".")[2])
    if found is None:
        raise TypeError(f"invalid type object: {t!r} is no type of tensors such as FloatTensor")
    if name.startswith(("torch.cuda.", "wengert.cuda.")):
        raise TypeError(f"type {t} not available: use set_default_device('cuda')")
    dtypes.set_default_dtype(found.dtype)
