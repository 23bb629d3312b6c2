"""Making a batch of examples: tensors are stacked, containers are kept."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.tensor import Tensor
from ...creation.conversion import as_tensor, tensor
from ...operators.joining import stack

Collate = Callable[..., Any]


def default_convert(data: Any) -> Any:
    """Arrays as tensors, within containers too; what is neither stays as it is."""
    kind = type(data)
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in "SUO" else as_tensor(data)
    if isinstance(data, Mapping):
        return _mapping_like(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple):
        values = [default_convert(each) for each in data]
        return kind(*values) if hasattr(data, "_fields") else values
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _sequence_like(data, [default_convert(each) for each in data])
    return data


def default_collate(batch: Any) -> Any:
    """A batch of examples: of tensors one with a dimension more, of containers the same inside."""
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch: Any, *, collate_fn_map: dict[Any, Collate] | None = None) -> Any:
    """A batch of examples, by the functions for the classes of their parts."""
    first = batch[0]
    kind = type(first)
    table = collate_fn_map or {}
    function = table.get(kind)
    if function is None:
        matching = [function for known, function in table.items() if isinstance(first, known)]
        function = matching[0] if matching else None
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)

    def within(parts: Any) -> Any:
        return collate(parts, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        columns = {key: within([example[key] for example in batch]) for key in first}
        return _mapping_like(first, columns)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*[within(parts) for parts in zip(*batch, strict=True)])
    if isinstance(first, Sequence):
        if any(len(example) != len(first) for example in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        values = [within(parts) for parts in zip(*batch, strict=True)]
        return values if isinstance(first, tuple) else _sequence_like(first, values)
    raise TypeError(_REFUSAL.format(kind))


_REFUSAL = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def _mapping_like(example: Mapping, values: dict[Any, Any]) -> Any:
    """The values in a mapping of the same class, or in a dict where it cannot be made."""
    try:
        if isinstance(example, MutableMapping):
            made = copy.copy(example)
            made.update(values)
            return made
        return type(example)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def _sequence_like(example: Sequence, values: list[Any]) -> Any:
    """The values in a sequence of the same class, or in a list where it cannot be made."""
    try:
        if isinstance(example, MutableSequence):
            made = copy.copy(example)
            for place, value in enumerate(values):
                made[place] = value
            return made
        return type(example)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def _stacked(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return stack(list(batch), 0)


def _arrays(batch: Any, *, collate_fn_map: Any = None) -> Any:
    if batch[0].dtype.kind in "SUO":
        raise TypeError(_REFUSAL.format(batch[0].dtype))
    return stack([as_tensor(each) for each in batch], 0)


def _array_numbers(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return as_tensor(np.asarray(batch))


def _floats(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return tensor(batch, dtype=dtypes.float64)


def _whole(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return tensor(batch)


def _unchanged(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return batch


#: How batches are made of examples of these classes.
default_collate_fn_map: dict[Any, Collate] = {
    Tensor: _stacked,
    np.ndarray: _arrays,
    (np.bool_, np.number): _array_numbers,
    float: _floats,
    int: _whole,
    str: _unchanged,
    bytes: _unchanged,
}
