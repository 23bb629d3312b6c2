"""What tells the calls of a compiled function apart: the kinds of their arguments, and the modes.

Tensors count by shape, dtype, strides, device and whether they require grad, numbers and strings by
value, NumPy arrays by content. Other objects count by identity; what of them the function reads is
watched like everything else that it does not get as an argument (`surroundings.py`).
"""

from __future__ import annotations

import enum
from types import EllipsisType
from typing import Any

import numpy as np

from ...backends.placement import of_array
from ...core.arrays import LevelArray
from ...core.devices import device
from ...core.dtypes import dtype, get_default_dtype
from ...core.state import anomaly, thread_state
from ...core.tensor import Tensor, requires_of

_ndarray = np.ndarray
_PLAIN = frozenset((int, bool, str, bytes, type(None)))
_BY_VALUE = (
    int, str, bytes, complex, range, EllipsisType, enum.Enum, np.generic, np.dtype, dtype, device,
)  # fmt: skip


class ByIdentity:
    """A key for an object that is the same only if it is that very object."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return f"<{type(self.value).__name__} at {id(self.value):#x}>"


class TensorKey(tuple):
    """Shape, dtype, strides if not row-major, what is required, and what else is special."""

    __slots__ = ()


def tensor_key(t: Tensor) -> TensorKey:
    """The kind of a tensor."""
    array = t.array
    strides = None if array.flags.c_contiguous else array.strides
    needs: Any = requires_of(t)
    if type(array) is LevelArray:
        needs = "inside"  # of a transform; what it stands for may require one
    elif needs and t.node is None:
        needs = "leaf"  # which must not be changed in place
    if type(t) is Tensor and type(array) is _ndarray:
        return TensorKey((array.shape, array.dtype, strides, needs))
    return TensorKey((array.shape, array.dtype, strides, needs, str(of_array(array)), type(t)))


def leaf_key(value: Any) -> Any:
    """A key for one argument."""
    if isinstance(value, Tensor):
        return tensor_key(value)
    cls = type(value)
    if cls in _PLAIN:
        return (cls, value)
    if isinstance(value, float):
        return (cls, repr(value))  # zeros have signs, and what is not a number equals nothing
    if isinstance(value, _BY_VALUE):
        return (cls, repr(value) if isinstance(value, (complex, np.generic)) else value)
    if isinstance(value, slice):
        return (cls, leaf_key(value.start), leaf_key(value.stop), leaf_key(value.step))
    if cls is _ndarray:
        return (cls, value.shape, value.dtype, value.tobytes())
    return ByIdentity(value)


def is_leaf(value: Any) -> bool:
    """Whether an argument is surely no container."""
    return isinstance(value, Tensor) or type(value) in _PLAIN or type(value) is float


def modes_key() -> tuple:
    """The modes that decide what a call records and computes, and others that it may ask for."""
    state = thread_state()
    return (state.grad_enabled, state.inference, get_default_dtype(), anomaly.enabled)


def repeats_key(tensors: list[Tensor]) -> tuple[int, ...] | None:
    """Which tensors are one and the same: for each the place of the first; None if all differ."""
    if len(tensors) < 2:
        return None
    first: dict[int, int] = {}
    places = tuple([first.setdefault(id(t), i) for i, t in enumerate(tensors)])
    return None if len(first) == len(tensors) else places


_PARTS = ("shape", "dtype", "strides", "requires_grad", "device", "class")
_MODES = ("grad mode", "inference mode", "default dtype", "anomaly mode")


def same_structure(old: tuple, new: tuple) -> bool:
    """Whether the keys of two calls differ in the arguments' kinds only, not in their number."""
    return old[0] == new[0] and len(old[1]) == len(new[1])


def differences(old: tuple, new: tuple) -> list[str]:
    """In what the key of a call differs from another one."""
    (_, old_leaves, old_repeats, old_modes) = old
    (_, new_leaves, new_repeats, new_modes) = new
    found = []
    if not same_structure(old, new):
        found.append(f"{_structure(new)} instead of {_structure(old)}")
    else:
        for i, (a, b) in enumerate(zip(old_leaves, new_leaves, strict=True)):
            if a != b:
                found += [f"argument {i}: {text}" for text in _leaf_differences(a, b)]
        if old_repeats != new_repeats:
            found.append("other arguments are one and the same tensor")
    for name, a, b in zip(_MODES, old_modes, new_modes, strict=True):
        if a != b:
            found.append(f"{name} {b} instead of {a}")
    return found


def _structure(key: tuple) -> str:
    """How many arguments there are, and of what structure."""
    tree, leaves, *_ = key
    if tree is None:
        return _counted(len(leaves))
    positional, keywords = tree.children_specs
    if all(child.is_leaf() for child in (*positional.children(), *keywords.children())):
        names = ", ".join(keywords.context)
        return _counted(positional.num_children) + (f" and by name {names}" if names else "")
    return "arguments of the structure " + " ".join(str(tree).split())


def _counted(count: int) -> str:
    return f"{count} positional argument{'' if count == 1 else 's'}"


def _leaf_differences(old: Any, new: Any) -> list[str]:
    if type(old) is type(new) is TensorKey and len(old) == len(new):
        return [
            f"{name} {_shown_part(name, b)} instead of {_shown_part(name, a)}"
            for name, a, b in zip(_PARTS, old, new, strict=False)
            if a != b
        ]
    return [f"{_shown(new)} instead of {_shown(old)}"]


def _shown_part(name: str, value: Any) -> str:
    if name == "strides" and value is None:
        return "contiguous"
    if name == "requires_grad" and value == "inside":
        return "that of a transform"
    if name == "requires_grad" and value:
        return "True, as a leaf" if value == "leaf" else "True, as a result"
    return str(value)


def _shown(key: Any) -> str:
    if type(key) is TensorKey:
        return "a tensor"
    if isinstance(key, tuple):
        return "an array" if key[0] is _ndarray else str(key[1])
    return repr(key)
