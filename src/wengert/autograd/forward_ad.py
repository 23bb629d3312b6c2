"""Forward-mode differentiation: dual tensors carry a tangent through every operation.

There is one level at a time. Reverse mode composes with it: primal and tangent are both ordinary
recorded computations.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np

from ..core.arrays import WrapperArray, unmarked
from ..core.dtypes import is_differentiable
from ..core.scopes import DualsAside as duals_aside
from ..core.scopes import enter_dual_level, exit_dual_level
from ..core.state import thread_state
from ..core.tensor import VIEW_NO_GRAD, Tensor
from ..dispatch.levels import is_level, plain_array, same_elements
from ..dispatch.operator import operator_named
from ..tape.copy_slices import copy_in_order, replay
from ..tape.node import saved_items
from ..tape.plans import values_read
from ..tape.saved import SavedVariable
from .grad_mode import _Flag, dual_level

__all__ = [
    "UnpackedDualTensor",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
    "dual_level",
]


class UnpackedDualTensor(NamedTuple):
    """The two parts of a dual tensor; the tangent is None where there is none."""

    primal: Tensor
    tangent: Tensor | None


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of `tensor` that carries `tangent`."""
    state = thread_state()
    if state.dual_level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists: use it inside "
            "`with dual_level()`"
        )
    if level is not None and level != state.dual_level:
        raise RuntimeError(
            f"Invalid level given to make_dual: {level}, while level {state.dual_level} is open"
        )
    check_tangent(tensor, tangent)
    if tangent_of(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            "same level is not supported; take the primal that unpack_dual() returns"
        )
    if tangent_of(tangent) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level is not "
            "supported; take the primal that unpack_dual() returns"
        )
    with duals_aside(state):
        dual = tensor.view_as(tensor)
        tangent = in_layout_of(dual, _without_neighbours(tangent))
    dual.make_cold().tangent_base = _ITSELF
    set_tangent(dual, tangent)
    return dual


def check_tangent(tensor: Any, tangent: Any) -> None:
    """Refuse a tangent that does not fit its primal."""
    for value, what in ((tensor, "primal"), (tangent, "tangent")):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"make_dual(): expected {what} to be a Tensor, not {type(value).__name__}"
            )
        if not is_differentiable(value.array.dtype):
            raise ValueError(
                f"Expected {what} to be floating point or complex, but got: {value.dtype}"
            )
    if tensor.array.shape != tangent.array.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor: {list(tangent.array.shape)} for {list(tensor.array.shape)}"
        )
    if tensor.array.dtype != tangent.array.dtype:
        raise RuntimeError(
            f"Expected the tangent to have the dtype of the primal, {tensor.dtype}, but got "
            f"{tangent.dtype}"
        )


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal without tangent, and the tangent or None; `level` can only be the open one."""
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"unpack_dual(): argument 'tensor' must be Tensor, not {type(tensor).__name__}"
        )
    state = thread_state()
    if state.dual_level < 0 or (level is not None and level != state.dual_level):
        return UnpackedDualTensor(tensor, None)
    tangent = tangent_of(tensor)
    with duals_aside(state):
        primal = operator_named("_primal").call((tensor,))
    primal.make_cold().tangent_base = _ITSELF
    return UnpackedDualTensor(primal, tangent)


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
        with duals_aside(thread_state()):
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
    with duals_aside(thread_state()):
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
    from ..dispatch.inplace import strided_steps

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


def call_with_tangents(operator: Any, args: tuple, tangents: dict[str, Any]) -> Any:
    """Call an operator and give its results their tangents; called with the duals put aside."""
    functional = getattr(operator, "functional", None)
    if functional is not None:
        return _call_inplace(operator, functional, args, tangents)
    out = operator.call(args)
    outs = out if isinstance(out, tuple) else (out,)
    if operator.is_view:
        inherit_tangent_base(args[0], outs)
    for t, tangent in zip(outs, _as_tuple(jvp(operator, args, tangents, outs)), strict=True):
        if tangent is not None and is_differentiable(t.array.dtype):
            tangent = _fitted(tangent, t)
            if not operator.is_view and _shares_memory(tangent, tangents):
                tangent = tangent.clone()  # a change of the result must not reach the operand
            set_tangent(t, tangent)
            _note_in_saved(t, t.node)
    return out


def _shares_memory(tangent: Tensor, tangents: dict[str, Any]) -> bool:
    """Whether a tangent is one of the given ones or, where arrays have memory, a part of one."""
    for given in tangents.values():
        for other in given if isinstance(given, list) else (given,):
            if other is tangent or (not is_level(tangent) and _may_share(tangent, other)):
                return True
    return False


def _may_share(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors may have memory in common, as far as arrays have any."""
    ours, theirs = unmarked(plain_array(a)), unmarked(plain_array(b))
    return type(ours) is type(theirs) is np.ndarray and np.may_share_memory(ours, theirs)


def _note_in_saved(t: Tensor, node: Any) -> None:
    """Give the output `t` that its node saved the tangent that `t` has got by now."""
    for item in () if node is None else saved_items(node):
        if isinstance(item, SavedVariable) and item.is_output and item.output_nr == t.output_index:
            item.tangent = tangent_of(t)


def tangents_of(operator: Any, args: tuple) -> dict[str, Any]:
    """Tangents by argument name, for the arguments the operator is differentiable in."""
    rules = getattr(operator, "functional", operator).rules
    found: dict[str, Any] = {}
    for argument, value in zip(operator.schema.arguments, args, strict=True):
        if argument.name not in rules:
            continue
        if isinstance(value, list):
            parts = [tangent_of(item) for item in value]
            if any(part is not None for part in parts):
                found[argument.name] = [
                    _zeros(item) if part is None else part
                    for part, item in zip(parts, value, strict=True)
                ]
        else:
            tangent = tangent_of(value)
            if tangent is not None:
                found[argument.name] = tangent
    return found


def jvp(operator: Any, args: tuple, tangents: dict[str, Any], outs: tuple) -> Any:
    """The tangent of an operator's output from the tangents of its arguments."""
    if operator.family == "elementwise":
        return _sum(
            rule(tangents[name], *values_read(operator, rule, args, outs))
            for name, rule in operator.rules.items()
            if name in tangents
        )
    if operator.is_view:
        try:
            return operator.call((tangents["self"], *args[1:]))
        except RuntimeError:
            return operator.call((_laid_out_tangent(args[0]), *args[1:]))
    if operator.family == "linear":
        return _sum_outputs(
            [
                operator.call(
                    tuple(
                        tangents[name] if argument.name == name else value
                        for argument, value in zip(operator.schema.arguments, args, strict=True)
                    )
                )
                for name in tangents
            ]
        )
    rule = operator.jvp_rule
    if rule is None:
        raise NotImplementedError(
            f"Trying to use forward AD with {operator.name} that does not support it because it "
            "has no forward rule"
        )
    return rule(tangents, *values_read(operator, rule, args, outs))


def _laid_out_tangent(t: Any) -> Any:
    """The tangent of `t` with strides like those of `t`, which a view may depend on.

    What is laid out anew is the tangent of the base, of which that of a view remains a part.
    """
    base = tangent_base(t)
    owner: Any = t if base is None or t.cold.tangent_source is None else base
    strides = owner.array.strides
    order = tuple(sorted(range(len(strides)), key=lambda i: -strides[i]))
    set_tangent(owner, copy_in_order(owner.cold.tangents, order))
    return tangent_of(t)


def _sum(terms: Any) -> Any:
    total = None
    for term in terms:
        total = term if total is None else total + term
    return total


def _sum_outputs(results: list) -> Any:
    if not isinstance(results[0], tuple):
        return _sum(results)
    return tuple(_sum(parts) for parts in zip(*results, strict=True))


def _as_tuple(value: Any) -> tuple:
    return value if isinstance(value, tuple) else (value,)


def _zeros(t: Tensor) -> Tensor:
    from ..creation.factories import zeros_for

    return zeros_for(t.array.shape, t.array.dtype)


def _fitted(tangent: Tensor, t: Tensor) -> Tensor:
    """A tangent in the shape, the dtype and the memory order of its primal."""
    if tangent.array.shape != t.array.shape:
        tangent = tangent.expand(t.array.shape)
    if tangent.array.dtype != t.array.dtype:
        tangent = tangent.to(t.dtype)
    return in_layout_of(t, tangent)


def _without_neighbours(tangent: Tensor) -> Tensor:
    """The tangent, or a copy if its memory has other elements too, which somebody may change."""
    array: Any = tangent.array
    if type(array) is not np.ndarray:  # its memory is not what NumPy says
        return tangent
    owner = array
    while type(owner.base) is np.ndarray:
        owner = owner.base
    return tangent if owner.nbytes == array.nbytes else tangent.clone()


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


def _call_inplace(operator: Any, functional: Any, args: tuple, tangents: dict) -> Any:
    target = args[0]
    # A graph of the new tangent must not save what is about to be overwritten.
    kept = (target.clone(), *args[1:])
    name = functional.schema.arguments[0].name
    if name in tangents:
        tangents[name] = tangents[name].clone()
    result = functional.call(kept)
    tangent = _fitted(jvp(functional, kept, tangents, (result,)), target)
    operator.call(args)
    write_tangent(target, tangent)
    node = target.node if target.view_meta is None else target.view_meta.base.node
    _note_in_saved(target, getattr(node, "inner", node))
    return target


def write_tangent(target: Any, tangent: Tensor) -> None:
    """Replace the tangent of a tensor that was changed in place, and so of its views and base."""
    own = tangent_of(target)
    base = tangent_base(target)
    if base is None and (own is None or target.view_meta is None):
        set_tangent(target, tangent.clone())
    elif own is not None and (target.cold.tangent_source is None or not thread_state().levels):
        _write(own, tangent)
    else:
        # A new tangent for the base, since the old one may belong to other levels than the change.
        assert base is not None  # else the tangent is the target's own
        whole = in_layout_of(base, tangent.new_zeros(base.array.shape))
        if own is not None:
            whole = whole + target.cold.tangent_source
        set_tangent(base, whole)
        part: Any = tangent_of(target)
        _check_part(part, base)
        _write(part, tangent)


def _check_part(part: Tensor, base: Tensor) -> None:
    """Refuse to write to a part of a tangent that is a copy, from which the change would be lost.

    Only a view by strides makes one: inside `vmap` a tangent has other strides than its primal.
    """
    from ..backends.geometry import owner_of

    whole: Any = tangent_of(base)
    array = plain_array(part)
    if type(array) is WrapperArray or not array.size:
        return
    if owner_of(array) is not owner_of(plain_array(whole)):
        raise RuntimeError(
            "in forward mode inside vmap, a view made by as_strided() cannot be changed in place: "
            "the strides of the tensor and of its tangent differ. Use views by index or by shape"
        )


def _write(own: Tensor, tangent: Tensor) -> None:
    """Replace the values of a tangent; of elements that share memory, the first decides."""
    for dim, (size, stride) in enumerate(zip(own.array.shape, own.array.strides, strict=True)):
        if size > 1 and stride == 0 and not is_level(own):
            own, tangent = own.narrow(dim, 0, 1), tangent.narrow(dim, 0, 1)
    own.copy_(tangent.clone() if _may_share(own, tangent) else tangent)


def _is_fwd_grad_enabled() -> bool:
    return thread_state().forward_grad_enabled


class _set_fwd_grad_enabled(_Flag):
    """Switch forward mode on or off, at once and for a `with` block."""

    flag = "forward_grad_enabled"
