"""Calls of operators on tensors that have tangents."""

from __future__ import annotations

from typing import Any

from ..backends.allocation import zeros_for
from ..backends.backend import has_elements
from ..backends.geometry import may_share_memory, owner_of, span
from ..core.arrays import WrapperArray, is_level, plain_array, unmarked
from ..core.dtypes import is_differentiable
from ..core.state import thread_state
from ..core.tensor import Tensor, any_requires
from ..tape.node import kept_items
from ..tape.plans import values_read
from ..tape.saved import SavedVariable
from ..tape.tangents import (
    in_layout_of,
    inherit_tangent_base,
    laid_out,
    memory_around,
    same_strides,
    set_tangent,
    shares_places,
    tangent_base,
    tangent_of,
)
from ..tape.views import copy_in_order
from .rebasing import check_inplace, check_result_shape


def call_with_tangents(operator: Any, args: tuple, tangents: dict[str, Any]) -> Any:
    """Call an operator and give its results their tangents; called with the duals put aside."""
    if operator.mutates:
        return _call_inplace(operator, operator.functional, args, tangents)
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
    return has_elements(ours) and has_elements(theirs) and may_share_memory(ours, theirs)


def _note_in_saved(t: Tensor, node: Any) -> None:
    """Give the output `t` that its node saved the tangent that `t` has got by now."""
    for item in () if node is None else kept_items(node):
        if not isinstance(item, SavedVariable) or not item.is_output:
            continue
        if item.needs_grad and item.output_nr == t.output_index:  # indices, say, have no number
            item.tangent = tangent_of(t)


def tangents_of(operator: Any, args: tuple) -> dict[str, Any]:
    """Tangents by argument name, for the arguments the operator is differentiable in."""
    rules = operator.functional.rules
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
    return zeros_for(t.array.shape, t.array.dtype, t.array)


def _fitted(tangent: Tensor, t: Tensor) -> Tensor:
    """A tangent in the shape, the dtype and the memory order of its primal."""
    if tangent.array.shape != t.array.shape:
        tangent = tangent.expand(t.array.shape)
    if tangent.array.dtype != t.array.dtype:
        tangent = tangent.to(t.dtype)
    return in_layout_of(t, tangent)


def _call_inplace(operator: Any, functional: Any, args: tuple, tangents: dict) -> Any:
    target = args[0]
    if not is_differentiable(target.array.dtype):
        return operator.call(args)
    state = thread_state()
    recording = state.recording() and any_requires(args, functional.grad_positions)
    check_inplace(target, recording, state)
    # A graph of the new tangent must not save what is about to be overwritten.
    kept = (target.clone(), *args[1:])
    name = functional.schema.arguments[0].name
    if name in tangents:
        tangents[name] = tangents[name].clone()
    result = functional.call(kept)
    check_result_shape(result.array.shape, target.array)
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
        if own is None or not (_keeps_history(own) or memory_around(target)):
            set_tangent(target, laid_out(target, tangent.clone()))
        else:
            set_tangent(target, _recorded_copy(own, tangent, target))
            _write(tangent_of(target), tangent)  # type: ignore[arg-type]
    elif own is not None and (target.cold.tangent_source is None or not thread_state().levels):
        _write(own, tangent)
    else:
        # A new tangent for the base, since the old one may belong to other levels than the change.
        assert base is not None  # else the tangent is the target's own
        if own is None:
            whole = _no_tangent(base, tangent)
        else:
            whole = _recorded_copy(target.cold.tangent_source, tangent, base)
        set_tangent(base, whole)
        part: Any = tangent_of(target)
        _check_part(part, base)
        _write(part, tangent)


def _keeps_history(own: Tensor) -> bool:
    """Whether a change leaves the graph of a tangent as it is: some level records it, but not now.

    As with any tensor that is changed in place without recording, derivatives ignore the change.
    """
    if thread_state().grad_enabled:
        return False
    while not own.requires():
        if not is_level(own):
            return False
        own = own.array.value
    return True


def _no_tangent(t: Tensor, tangent: Tensor) -> Tensor:
    """Zeros for each element of `t`, at the levels of `tangent`; they share memory as those do."""
    if not shares_places(t):
        return laid_out(t, tangent.new_zeros(t.array.shape, dtype=t.dtype))
    memory = tangent.new_zeros((span(t.array.shape, t.stride()),), dtype=t.dtype)
    return memory.as_strided(t.shape, t.stride(), 0)


def _recorded_copy(own: Tensor, tangent: Tensor, t: Tensor) -> Tensor:
    """A copy of the tangent `own` of `t`, at the levels of `tangent` too, that has its history."""
    state = thread_state()
    enabled, state.grad_enabled = state.grad_enabled, True
    try:
        zeros = _no_tangent(t, tangent)
        if shares_places(t) and same_strides(t.array, own.array):
            size, start, at = span(t.array.shape, t.stride()), own.storage_offset(), 0
        else:
            size, start, at = memory_around(t), 0, t.storage_offset()
            if not size or memory_around(own) != size:
                return zeros + own
        everything = zeros.as_strided((size,), (1,), 0) + own.as_strided((size,), (1,), start)
        return everything.as_strided(t.shape, t.stride(), at)
    finally:
        state.grad_enabled = enabled


def _check_part(part: Tensor, base: Tensor) -> None:
    """Refuse to write to a part of a tangent that is a copy, from which the change would be lost.

    Only a view by strides makes one: inside `vmap` a tangent has other strides than its primal.
    """
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
        if size > 1 and stride == 0:
            own, tangent = own.narrow(dim, 0, 1), tangent.narrow(dim, 0, 1)
    own.copy_(tangent.clone() if _may_share(own, tangent) else tangent)
