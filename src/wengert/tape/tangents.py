"""Tangents of tensors in forward mode: where they are kept, and what views see of them."""

from __future__ import annotations

import weakref
from typing import Any

from ..backends.backend import has_elements
from ..backends.geometry import may_overlap, owner_of, same_elements
from ..core.arrays import LevelArray, WrapperArray, is_level, plain_array
from ..core.scopes import DualsAside
from ..core.state import thread_state
from ..core.tensor import VIEW_NO_GRAD, Tensor
from .views import copy_in_order, replay, strided_steps

# In `tangent_base` of a view: it has no part in the tangent of its base, nor have its own views.
_ITSELF: Any = object()


def tangent_base(tensor: Tensor) -> Tensor | None:
    """The tensor that a view has its tangent from; None if the tangent is the tensor's own."""
    view = tensor.view_meta
    if view is None:
        return None
    if tensor.cold is None or tensor.cold.tangent_base is None:
        return view.base
    return None if tensor.cold.tangent_base is _ITSELF else tensor.cold.tangent_base


def inherit_tangent_base(tensor: Tensor, views: Any) -> None:
    """Let views of a tensor that is apart from its base, as a primal is, be apart from it too."""
    base = None if tensor.cold is None else tensor.cold.tangent_base
    if base is not None:
        for view in views if isinstance(views, (tuple, list)) else (views,):
            view.make_cold().tangent_base = tensor if base is _ITSELF else base


def set_tangent(tensor: Tensor, tangent: Tensor) -> None:
    """Give a tensor its tangent; that of a view is a part of its base's, if the base has one."""
    cold = tensor.make_cold()
    if cold.tangents is None:
        thread_state().duals.append(weakref.ref(tensor))
    cold.tangents = tangent
    cold.tangent_source = _base_tangent(tensor)


def _base_tangent(tensor: Tensor) -> Tensor | None:
    base = tangent_base(tensor)
    return None if base is None or base.cold is None else base.cold.tangents


def copy_tangent(source: Tensor, copy: Tensor) -> None:
    """Give a copy of a tensor, or of a part of it, a copy of the tangent."""
    tangent = tangent_of(source)
    if tangent is not None:
        with DualsAside(thread_state()):
            set_tangent(copy, tangent.clone())


def drop_tangent(tensor: Tensor) -> None:
    """Make a dual tensor an ordinary one."""
    if tensor.cold is not None:
        tensor.cold.tangents = None


def tangent_of(value: Any) -> Tensor | None:
    """The tangent of a tensor; a view takes its part of the base's."""
    if not isinstance(value, Tensor):
        return None
    cold = value.cold
    source = _base_tangent(value)
    if (
        cold is not None
        and cold.tangents is not None
        and (cold.tangent_source is None or cold.tangent_source is source)
    ):
        return cold.tangents
    if source is None:
        return None
    tangent = _part(source, value)
    set_tangent(value, tangent)
    return tangent


def _part(tangent: Tensor, view: Tensor) -> Tensor:
    """What a view sees of the tangent of its base.

    It is a view of the same kind, whatever the mode when somebody first asks for it.
    """
    state = thread_state()
    meta: Any = view.view_meta
    enabled, state.grad_enabled = state.grad_enabled, meta.creation != VIEW_NO_GRAD
    try:
        return _replayed(tangent, view)
    finally:
        state.grad_enabled = enabled


def _replayed(tangent: Tensor, view: Tensor) -> Tensor:
    base: Any = tangent_base(view)
    meta: Any = view.view_meta
    calls = _calls_between(base, view)
    unchanged = meta.version == view.version()  # else the base may have another shape by now
    if unchanged and calls is not None and all(operator.outputs == 1 for operator, _ in calls):
        for operator, args in calls:
            tangent = operator.call((tangent, *args))
        return tangent
    with DualsAside(thread_state()):
        found = [] if calls is None else _parts_in_place(base, tangent, calls, view)
    if not found:
        return replay(tangent, _strided_steps(base, tangent, view))
    if len(found) > 1 and view.array.size and type(plain_array(view)) is WrapperArray:
        raise RuntimeError(
            "in forward mode, one of several views of a tensor without memory cannot be told from "
            "the others: pass storage_offset to _make_wrapper_subclass()"
        )
    return found[0]


def _calls_between(base: Tensor, view: Tensor) -> list | None:
    """The operator calls that lead from a base to a view; None if the base was reshaped since."""
    calls: list = []
    steps = view.view_meta.steps  # type: ignore[union-attr]
    beginning = None if base.view_meta is None else base.view_meta.steps
    while steps is not beginning:
        if steps is None:
            return None
        steps, operator, args = steps
        calls.append((operator, args))
    return calls[::-1]


def _strided_steps(base: Tensor, tangent: Tensor, view: Tensor) -> tuple:
    """The way from a tangent to the part of a view, where only places in memory tell it."""
    if not same_strides(base.array, tangent.array):
        raise RuntimeError(
            "in forward mode, a view of a tensor that was reshaped in place since has lost its "
            "tangent: the memory of the tensor has gaps, that of its tangent has none. Make the "
            "view again"
        )
    return strided_steps(view, base)


def _parts_in_place(base: Tensor, tangent: Tensor, calls: list, view: Tensor) -> list[Tensor]:
    """The part of a tangent that `calls` make where they make `view` of `base`, in a list.

    Of the results of one operator, only their places in memory tell which one it is, and after a
    change of the base, whether the calls still lead to the view. There are several such parts if
    these places are unknown, and none if the calls do not fit any more.
    """
    for i, (operator, args) in enumerate(calls):
        try:
            base, tangent = operator.call((base, *args)), operator.call((tangent, *args))
        except (RuntimeError, IndexError, ValueError):
            return []
        if isinstance(base, (tuple, list)):
            rest = calls[i + 1 :]
            pairs = zip(base, tangent, strict=True)
            return [
                found for pair in pairs for found in _parts_in_place(*pair, rest, view)
            ]
    return [tangent] if same_elements(base, view) else []


def laid_out(t: Tensor, tangent: Tensor) -> Tensor:
    """The tangent, or a copy that lies in memory as `t` does.

    What else is there has the tangent zero, so that every view of `t` has a tangent.
    """
    size = memory_around(t)
    if not size or _memory(tangent) is None:
        return in_layout_of(t, _without_neighbours(tangent))
    around: Tensor = tangent.new_zeros((size,))
    return around.as_strided(t.shape, t.stride(), t.storage_offset()).copy_(tangent)


def memory_around(t: Tensor) -> int:
    """How many elements the memory of a tensor has if they are more than its own, else none."""
    array = _memory(t)
    if array is None or not array.size or may_overlap(array.shape, array.strides):
        return 0
    size = owner_of(array).nbytes // array.itemsize
    return size if size > array.size else 0


def shares_places(t: Tensor) -> bool:
    """Whether elements of a tensor are at one place in memory."""
    array = _memory(t)
    return array is not None and array.size > 0 and may_overlap(array.shape, array.strides)


def _memory(t: Tensor) -> Any:
    """The array that a tensor shows, also inside grad and jvp; None if it has other elements."""
    array: Any = t.array
    while type(array) is LevelArray and array.level.differentiates:
        array = array.value.array
    return array if has_elements(array) else None


def _without_neighbours(tangent: Tensor) -> Tensor:
    """The tangent, or a copy if its memory has other elements too, which somebody may change."""
    array: Any = tangent.array
    if not has_elements(array):  # its memory is not what it seems
        return tangent
    return tangent if owner_of(array).nbytes == array.nbytes else tangent.clone()


def in_layout_of(t: Tensor, tangent: Tensor) -> Tensor:
    """The tangent, or a copy with the strides of `t`, so that every view of `t` is one of it too.

    A view whose elements share memory keeps the tangent that its own operator makes. Inside a
    transform, where strides depend on batches, views lay out a tangent that they do not fit.
    """
    if is_level(tangent):
        return tangent
    array = t.array
    if 0 in array.strides or same_strides(array, tangent.array):
        return tangent
    order = tuple(sorted(range(array.ndim), key=lambda i: -array.strides[i]))
    return copy_in_order(tangent, order)


def same_strides(a: Any, b: Any) -> bool:
    """Whether two arrays of one shape lie alike in memory."""
    if a.strides == b.strides or a.size < 2:
        return True
    return all(s == t for s, t, n in zip(a.strides, b.strides, a.shape, strict=True) if n > 1)
