"""What nodes save: the values themselves, and the check that they are unchanged when they are read.

A tensor that nobody has changed is saved by reference. An output, a changed tensor and one that
goes through saved-tensor hooks become a `SavedVariable`.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

from ..core.classes import COMPILED
from ..core.collector import collector
from ..core.registry import makers
from ..core.state import ThreadState, call_user, thread_state
from ..core.tensor import (
    Tensor,
    VersionCounter,
    counter_of,
    give_defaults,
    node_of,
    requires_of,
    wrap,
)
from .blame import modified_in_place_error, position
from .cycles import show_graph
from .tangents import set_tangent, tangent_of


class Freed:
    """Stands in a node for the values that a backward has freed; knows where that was called."""

    code: CodeType | None
    lasti: int


class SavedVariable:
    """A saved tensor that needs more than a reference: an output, a changed or a packed one."""

    array: Any
    tensor: Any
    counter: Any
    version: int
    output_nr: int
    is_output: bool
    needs_grad: bool
    hooks: Any
    packed: Any
    tangent: Tensor | None

    def show_itself(self) -> list:
        """This is itself never hidden; the tensor behind it may be."""
        return [self.tensor]

    def unpack(self, node: Any) -> Tensor:
        """The saved tensor, after checking that it is unchanged."""
        if self.hooks is not None:
            unpacked = call_user(self.hooks[1], self.packed)
            if not isinstance(unpacked, Tensor):
                raise TypeError(
                    "Output of saved tensor unpack_hook expected to be a Tensor but got result of "
                    f"type {type(unpacked).__name__}"
                )
            t = unpacked
            if self.is_output:
                alias = self._as_output(detached_alias(t), node)
            else:
                alias = self._with_history(t)
            if alias is not t:
                alias.counter = counter_of(t)  # what changes the original later does not matter
            return alias
        if not self.is_output:
            check_attached(self.tensor, node)
        self.check_version(node)
        if not self.is_output:
            return self.tensor
        kept = self.tensor
        return self._as_output(wrap(self.array) if kept is None else detached_alias(kept), node)

    def check_version(self, node: Any) -> None:
        """Raise if the tensor was changed in place since it was saved."""
        current = self.counter.value if self.is_output else self.tensor.version()
        if current != self.version:
            raise modified_in_place_error(self, node, current)

    def _as_output(self, t: Tensor, node: Any) -> Tensor:
        """A fresh tensor as the node's output; the output itself is not held: that is a cycle."""
        t.counter = self.counter
        t.watched = True
        if self.needs_grad:
            t.needs_grad = True
            t.node = node
            t.output_index = self.output_nr
        self._give_tangent(t)
        return t

    def _with_history(self, t: Tensor) -> Tensor:
        """What an unpack hook made, in the place of the original in the graph."""
        original = self.tensor
        if t is original:
            return t
        alias = detached_alias(t)
        if original is not None:
            alias.needs_grad = True
            if original.node is None:
                alias.accumulator = original  # the alias shares the sink of the leaf
            else:
                alias.node = original.node
                alias.output_index = original.output_index
        self._give_tangent(alias)
        return alias

    def _give_tangent(self, t: Tensor) -> None:
        if self.tangent is not None and thread_state().dual_level >= 0:
            set_tangent(t, self.tangent)


def detached_alias(t: Tensor) -> Tensor:
    """A new tensor without history on the memory of `t`."""
    if type(t) is Tensor:
        return wrap(t.array)
    return makers.alias(t)


def save(value: Any, state: ThreadState) -> Any:
    """What a node keeps of one argument: numbers as they are, an unchanged tensor by reference."""
    if not isinstance(value, Tensor):
        return tuple([save(item, state) for item in value]) if type(value) is list else value
    t: Tensor = value
    if t.inference:
        raise RuntimeError(
            "Inference tensors cannot be saved for backward: a recorded operation needs one that "
            "was made in inference mode. Clone it outside, or make it under no_grad()"
        )
    if state.saved_hooks:
        return pack(t, False, state.saved_hooks[-1])
    t.watched = True
    counter = t.counter
    if counter is None:
        return t
    counter.watched = True
    if counter.value == 0:
        return t
    saved = SavedVariable()
    saved.tensor = t
    saved.version = counter.value
    return saved


def save_output(t: Tensor, state: ThreadState) -> Any:
    """What a node keeps of its own output."""
    if state.saved_hooks:
        return pack(t, True, state.saved_hooks[-1])
    counter = t.counter
    if counter is None:
        t.counter = counter = VersionCounter()
    counter.watched = True
    t.watched = True
    saved = SavedVariable()
    saved.array = t.array
    if type(t) is not Tensor:  # its class may handle operators, and then makes it again
        saved.tensor = detached_alias(t)
    saved.counter = counter
    saved.version = counter.value
    saved.output_nr = t.output_index
    saved.is_output = True
    saved.needs_grad = t.needs_grad
    saved.hooks = None
    return saved


def never_saved(error: BaseException) -> SavedVariable:
    """Stands for a result that could not be saved, and says so when it is needed."""
    reason = f"{type(error).__name__}: {error}"

    def refuse(packed: None) -> None:
        raise RuntimeError(
            "a result that was changed in place could not be saved for backward, since a pack hook "
            f"or the saving itself raised {reason}. Repeat the forward pass"
        )

    saved = SavedVariable()
    saved.hooks = (refuse, refuse)
    return saved


def pack(t: Tensor, is_output: bool, hooks: tuple) -> SavedVariable:
    """Save through a pair of saved-tensor hooks; the first sees the tensor itself, unrecorded."""
    state = thread_state()
    saved = SavedVariable()
    saved.hooks = hooks
    saved.is_output = is_output
    saved.output_nr = t.output_index
    saved.needs_grad = requires_of(t)
    if not is_output and saved.needs_grad:
        saved.tensor = _history_of(t)
    if state.dual_level >= 0:
        saved.tangent = tangent_of(t)
    saved.counter = counter_of(t)
    before = saved.counter.value
    show_graph(t)  # what a hook keeps may lead back to the node that saves it
    if is_output and t.node is not None:  # indices, say, have none
        for following in t.node.next_nodes:
            show_graph(following)
    enabled = state.grad_enabled
    state.grad_enabled = False
    try:
        saved.packed = call_user(hooks[0], t)
    finally:
        state.grad_enabled = enabled
    if saved.counter.value != before:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place; the operation that saves "
            "the tensor would then differentiate other values. Pack a clone()"
        )
    return saved


def _history_of(t: Tensor) -> Tensor:
    """A leaf itself, or an alias that keeps the edge but not the memory of `t`."""
    node = node_of(t)
    if node is None:
        return t
    alias = wrap(None)
    alias.node = node
    alias.output_index = t.output_index
    alias.needs_grad = True
    collector.show(alias)  # as all that is packed
    return alias


def unpack_item(item: Any, node: Any) -> Any:
    """One saved value as a rule reads it; a tensor is checked for in-place changes."""
    if type(item) is SavedVariable:
        return item.unpack(node)
    if isinstance(item, Tensor):
        t = item
        check_attached(t, node)
        if t.counter is not None and t.counter.value != 0:
            raise modified_in_place_error(item, node, t.counter.value)
        return item
    if type(item) is tuple:
        return [unpack_item(part, node) for part in item] if holds_tensors(item) else item
    return item


def check_attached(t: Tensor, node: Any) -> None:
    """Refuse a saved tensor whose history was taken away after it was saved."""
    if t.cold is not None and t.cold.detached_at > node.sequence:
        raise RuntimeError(
            f"Trying to use a saved tensor that has been detached in-place: {node.name()} saved it "
            f"at {position(node.code, node.lasti)}, and detach_() was called on it later. Use "
            "detach() instead"
        )


def holds_tensors(items: tuple) -> bool:
    """Whether a saved tuple has a tensor in it, at any depth."""
    for item in items:
        if isinstance(item, (Tensor, SavedVariable)):
            return True
        if type(item) is tuple and holds_tensors(item):
            return True
    return False


if not COMPILED:
    give_defaults(
        SavedVariable,
        array=None, tensor=None, counter=None, version=0, output_nr=0, is_output=False,
        needs_grad=False, hooks=None, packed=None, tangent=None,
    )  # fmt: skip
