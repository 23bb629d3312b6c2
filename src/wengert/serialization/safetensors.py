"""Tensors in the safetensors format: names, shapes and plain bytes, and no code.

The package `safetensors` reads and writes the bytes: ``pip install safetensors``. Under
`wengert.as_torch` its own module `safetensors.torch` works as well.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.tensor import Tensor, wrap

try:
    from safetensors import deserialize
    from safetensors.numpy import save as _save_arrays
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "wengert.serialization.safetensors needs the package safetensors: "
        "pip install safetensors",
        name=error.name,
    ) from None

_DTYPES = {
    "F64": dtypes.float64, "F32": dtypes.float32, "F16": dtypes.float16, "BF16": dtypes.bfloat16,
    "I64": dtypes.int64, "I32": dtypes.int32, "I16": dtypes.int16, "I8": dtypes.int8,
    "U8": dtypes.uint8, "BOOL": dtypes.bool, "C64": dtypes.complex64,
}  # fmt: skip


def save(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a file with these tensors; those that share memory are written one by one."""
    arrays = {name: _array(name, tensor) for name, tensor in tensors.items()}
    return _save_arrays(arrays, None if metadata is None else dict(metadata))


def save_file(
    tensors: Mapping[str, Tensor],
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write tensors by their names, as those of a state dict, to a file."""
    content = save(tensors, metadata)
    with open(filename, "wb") as file:
        file.write(content)


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors in the bytes of a file."""
    return {name: _tensor(name, part) for name, part in deserialize(data)}


def load_file(filename: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The tensors of a file by their names."""
    with open(filename, "rb") as file:
        return load(file.read())


def _array(name: str, tensor: Any) -> Any:
    if not isinstance(tensor, Tensor):
        raise ValueError(
            f"Key `{name}` is invalid, expected wengert.Tensor but received {type(tensor).__name__}"
        )
    if dtypes.from_numpy(tensor.array.dtype) not in _DTYPES.values():
        raise ValueError(f"Key `{name}`: the format has no {tensor.dtype}")
    return np.ascontiguousarray(tensor.detach().array).reshape(tensor.shape)


def _tensor(name: str, part: Mapping[str, Any]) -> Tensor:
    kind = _DTYPES.get(part["dtype"])
    if kind is None:
        raise ValueError(f"Key `{name}`: there are no tensors of type {part['dtype']} here")
    return wrap(np.frombuffer(bytearray(part["data"]), kind.numpy).reshape(part["shape"]))
