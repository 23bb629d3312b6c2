"""Pickling and deep copies of tensors: values, type, requires_grad and user attributes.

History does not travel: a pickled result becomes a leaf, and only leaves can be deep-copied.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ..backends.allocation import new_array
from ..backends.backend import backend_of, has_elements
from ..backends.casting import copy_array
from ..backends.geometry import address_of, owner_of, strided
from ..backends.placement import of_array, transfer
from ..core import dtypes
from ..core.arrays import LevelArray, WrapperArray, unmarked, wrapper_array
from ..core.devices import as_device, device
from ..core.handles import warn_if_has_hooks
from ..core.tensor import FRESH, Tensor, set_fields, wrap
from ..dispatch.inplace import copy_of
from .subclasses import bare

# Without compilation these share the instance dictionary with what users attach to a tensor.
FIELDS = frozenset(FRESH)


def reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    """How to pickle a tensor, as `__reduce_ex__` returns it."""
    check_storage(tensor)
    if tensor.requires():
        warn_if_has_hooks(tensor)
    place = of_array(tensor.array)
    if type(tensor.array) is WrapperArray:
        array: Any = tensor.array
        described = (array.shape, array.strides, array.dtype, place, array.start)
        return (
            rebuild_wrapper,
            (type(tensor), described, tensor.requires(), user_attributes(tensor)),
        )
    if place.type == "meta":
        content: Any = (tensor.array.shape, dtypes.from_numpy(tensor.array.dtype))
    else:
        content = transfer(unmarked(tensor.array), as_device("cpu"))
    arguments = (type(tensor), content, place, tensor.requires(), user_attributes(tensor))
    return (rebuild_tensor, arguments)


def rebuild_tensor(
    kind: type[Tensor],
    content: Any,
    place: device,
    requires_grad: bool,
    attributes: dict[str, Any],
) -> Tensor:
    """The leaf tensor that `reduce_tensor` took apart."""
    if place.type == "meta":
        shape, dtype = content
        array = new_array(shape, dtype, place)
    else:
        array = transfer(np.asarray(content), place)
    return _leaf(kind, array, requires_grad, attributes)


def rebuild_wrapper(
    kind: type[Tensor], described: tuple, requires_grad: bool, attributes: dict[str, Any]
) -> Tensor:
    """The tensor without memory of its own that was taken apart; its attributes hold its values."""
    return _leaf(kind, wrapper_array(*described), requires_grad, attributes)


def deepcopy_tensor(tensor: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy of a leaf with its gradient and attributes, as `__deepcopy__` returns it."""
    if id(tensor) in memo:
        known: Tensor = memo[id(tensor)]
        return known
    if tensor.current_node() is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment. Detach the tensor first, or copy what it was computed from."
        )
    check_storage(tensor)
    if type(tensor.array) is WrapperArray:
        made = _copied_by_class(tensor)
    else:
        array = _copy_with_memory(unmarked(tensor.array), memo)
        made = _leaf(type(tensor), array, tensor.requires(), {})
    memo[id(tensor)] = made
    if tensor.gradient is not None:
        set_fields(made, gradient=copy.deepcopy(tensor.gradient, memo))
    for name, value in user_attributes(tensor).items():
        setattr(made, name, copy.deepcopy(value, memo))
    return made


def _copied_by_class(tensor: Tensor) -> Tensor:
    """A copy that the class of a tensor without memory makes of it."""
    made: Tensor = copy_of(tensor)
    if type(made) is not type(tensor):
        raise RuntimeError(
            "The default implementation of __deepcopy__() for wrapper subclasses only works for "
            "subclass types that properly implement clone(): that of "
            f"{type(tensor).__name__} returns a {type(made).__name__}"
        )
    set_fields(made, needs_grad=tensor.requires())
    return made


def check_storage(tensor: Tensor) -> None:
    """Refuse to copy or pickle a tensor of a transform, which holds no elements of its own."""
    if type(tensor.array) is LevelArray:
        kind = tensor.array.level.kind
        raise NotImplementedError(
            f"Cannot access storage of a tensor inside {kind}, so it can't be pickled or copied by "
            "the copy module; use clone()"
        )


def _copy_with_memory(array: Any, memo: dict[Any, Any]) -> Any:
    """A copy of an array that shares memory with copies of those the array shares it with."""
    owner = owner_of(array)
    if not has_elements(array) or type(owner) is not type(array) or not owner.flags.forc:
        return copy_array(array)
    where = ("memory", backend_of(array).device_type, address_of(owner))
    if where not in memo:
        memo[where] = copy_array(owner)
    start = (address_of(array) - address_of(owner)) if array.size else 0
    if type(array) is np.ndarray:  # perhaps of another dtype than the memory was made for
        return np.ndarray(array.shape, array.dtype, memo[where], start, array.strides)
    return strided(memo[where].view(array.dtype), array.shape, array.strides, start)


def user_attributes(tensor: Tensor) -> dict[str, Any]:
    """The attributes that a user or a subclass has set on a tensor."""
    own = getattr(tensor, "__dict__", {})
    attributes = {name: value for name, value in own.items() if name not in FIELDS}
    if tensor.cold is not None and tensor.cold.attributes:
        attributes.update(tensor.cold.attributes)
    return attributes


def _leaf(
    kind: type[Tensor], array: Any, requires_grad: bool, attributes: dict[str, Any]
) -> Tensor:
    made = bare(kind)
    made.adopt(wrap(array))
    set_fields(made, needs_grad=requires_grad)
    for name, value in attributes.items():
        setattr(made, name, value)
    return made
