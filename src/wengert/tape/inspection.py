"""Looking into nodes: the gradients they expect and the tensors they have saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..core.devices import as_device, device
from ..core.dtypes import dtype, from_numpy
from ..core.size import Size
from ..core.tensor import Tensor
from .blame import already_freed_error
from .node import keep_items, kept_items
from .plans import saved_names_of
from .saved import Freed, SavedVariable, pack, unpack_item


class InputMetadata(NamedTuple):
    """What a node knows of one gradient it is given."""

    dtype: dtype
    device: device
    shape: Size
    is_nested_tensor: bool = False
    is_cpp_nested_tensor: bool = False


def input_metadata(node: Any) -> tuple[InputMetadata, ...]:
    """One entry for each output of the recorded operation; the device is where the node runs.

    A result of a custom Function that is no tensor counts as a number.
    """
    place = as_device("cpu" if node.out_device is None else node.out_device)
    metas = node.outputs_meta
    if metas is None:
        metas = [(node.out_shape, node.out_dtype)]
    known = [meta or ((), np.dtype(np.float32)) for meta in metas]
    return tuple(InputMetadata(from_numpy(kind), place, Size(shape)) for shape, kind in known)


# Saved values -------------------------------------------------------------------------------------


class SavedTensor:
    """A place in a node where a tensor is saved; hooks of its own can be set on it."""

    _node: Any
    _place: tuple[int, ...] | None

    def __init__(self) -> None:
        raise RuntimeError(
            "Trying to create a SavedTensor object from Python is forbidden; the _raw_saved_ "
            "attributes of a node return them"
        )

    @property
    def data(self) -> Any:
        """What is kept: the tensor, or what a pack hook made of it."""
        item = self._item()
        if isinstance(item, SavedVariable):
            return item.unpack(self._node) if item.hooks is None else item.packed
        return item

    @property
    def unpack_hook(self) -> Callable[[Any], Tensor] | None:
        """The hook that will make a tensor of `data` again, None if there is none."""
        item = self._item()
        if isinstance(item, SavedVariable) and item.hooks is not None:
            return item.hooks[1]
        return None

    def unpack(self) -> Tensor | None:
        """The saved tensor, after checking that it is unchanged."""
        return None if self._place is None else unpack_item(self._item(), self._node)

    def register_hooks(self, *hooks: Any) -> None:
        """Replace what is kept by the result of a pack hook, now; an unpack hook undoes it."""
        if len(hooks) != 2 or not all(map(callable, hooks)):
            kinds = ", ".join([type(hook).__name__ for hook in hooks])
            raise TypeError(
                "register_hooks(): incompatible function arguments. A pack hook and an unpack hook "
                f"are expected, which can be called; got ({kinds})"
            )
        if self._place is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor with value None is forbidden: the node "
                "did not need this value and has not saved it"
            )
        if type(self._node.saved) is Freed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. A backward "
                "frees what the graph saved. Specify retain_graph=True in that call to keep it"
            )
        item = self._item()
        if isinstance(item, SavedVariable) and item.hooks is not None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set; only "
                "one pair of hooks is allowed at a time"
            )
        is_output = isinstance(item, SavedVariable) and item.is_output
        packed = pack(unpack_item(item, self._node), is_output, hooks)
        keep_items(self._node, _replaced(kept_items(self._node), self._place, packed))

    def _item(self) -> Any:
        if self._place is None:
            return None
        if type(self._node.saved) is Freed:
            raise already_freed_error(self._node, self._node.saved)
        return _item_at(self._node, self._place)


def saved_attribute(node: Any, name: str) -> Any:
    """What a node answers to ``_saved_self`` and the like, and to ``_raw_saved_self``."""
    raw = name.startswith("_raw_saved_")
    wanted = name[11:] if raw else name[7:]
    names = node.plan.saved_names
    if wanted not in names:
        if wanted in saved_names_of(node.plan.operator):
            return absent_tensor(node) if raw else None
    elif not raw:
        if type(node.saved) is Freed:
            raise already_freed_error(node, node.saved)
        value = unpack_item(kept_items(node)[names.index(wanted)], node)
        return tuple(value) if type(value) is list else value
    elif type(node.saved) is Freed or is_saved_tensor(kept_items(node)[names.index(wanted)]):
        return saved_tensor(node, names.index(wanted))
    raise AttributeError(f"'{node.name()}' object has no attribute '{name}'")


def saved_tensor(node: Any, *place: int) -> Any:
    """The handle of one saved value, found by its index; a tuple of handles for a list of them."""
    if type(node.saved) is not Freed:
        item = _item_at(node, place)
        if type(item) is tuple:
            return tuple(saved_tensor(node, *place, i) for i in range(len(item)))
    return _handle(node, place)


def absent_tensor(node: Any) -> SavedTensor:
    """The handle of a value that the node could have saved and did not need."""
    return _handle(node, None)


def is_saved_tensor(item: Any) -> bool:
    """Whether a saved value has a handle: it is a tensor, or a list that may contain some."""
    return isinstance(item, (Tensor, SavedVariable, tuple))


def _handle(node: Any, place: tuple[int, ...] | None) -> SavedTensor:
    handle = SavedTensor.__new__(SavedTensor)
    handle._node = node
    handle._place = place
    return handle


def _item_at(node: Any, place: tuple[int, ...]) -> Any:
    item: Any = kept_items(node)
    for index in place:
        item = item[index]
    return item


def _replaced(items: tuple, place: tuple[int, ...], new: Any) -> tuple:
    first, *rest = place
    inner = _replaced(items[first], tuple(rest), new) if rest else new
    return (*items[:first], inner, *items[first + 1 :])
