"""The sinks of leaves, which add to ``.grad``, and the edges that lead to them.

A leaf is an edge itself; its sink is made when a backward or a look at the graph asks for it.
"""

from __future__ import annotations

import weakref
from _thread import allocate_lock
from typing import Any

from ..core.errors import refuse_inference_update
from ..core.native import native
from ..core.state import call_user, thread_state
from ..core.tensor import Tensor, bump_version, node_of, wrap
from .node import Node, NodeCold
from .plans import GradientPlan

_native = native

# The engine's own references to a gradient that nobody else holds, see AccumulateGrad.
SOLE_TENSOR_REFERENCES = 2 if native.compiled else 3
SOLE_ARRAY_REFERENCES = 2
ACCUMULATE_SEQUENCE = 2**62
_ACCUMULATE_PLAN = GradientPlan(None, "AccumulateGrad", 0)

_gradient_locks = [allocate_lock() for _ in range(61)]
_sink_lock = allocate_lock()


class AccumulateGrad(Node):
    """The sink of a leaf: adds what arrives to the leaf's ``.grad``."""

    def __init__(self, variable: Tensor) -> None:
        self.start(_ACCUMULATE_PLAN, (), None)
        self.variable = variable
        _native.show(variable)
        self.sequence = ACCUMULATE_SEQUENCE
        self.out_shape = variable.array.shape
        self.out_dtype = variable.array.dtype
        self.is_accumulator = True

    def make_cold(self) -> NodeCold:
        """Hooks on a leaf's sink live as long as the leaf, which from now on holds the sink."""
        self.variable.accumulator = self
        if self.cold is None:
            self.cold = NodeCold()
        return self.cold

    def run(self, grads: Any) -> list:
        if grads is not None and self.variable.node is not None:
            raise moved_leaf_error(self.variable)
        if grads is not None and self.variable.needs_grad:
            self.accumulate(grads)
        else:
            run_post_accumulate_hooks(self.variable)
        return []

    def accumulate(self, new: Tensor) -> None:
        """Add `new` to the leaf's gradient: by taking it over, in place, or out of place."""
        variable = self.variable
        state = thread_state()
        if state.grad_enabled:
            self._accumulate_recorded(new)
        elif _native.overriding and self._concerns_class(new):
            self._accumulate_by_class(new)
        elif state.dual_level >= 0:  # by operators, which take care of tangents
            if variable.gradient is None:
                variable.gradient = new.clone()
            else:
                variable.gradient.add_(new)
        else:
            with _gradient_locks[id(variable) % 61]:
                old = variable.gradient
                if old is None:
                    variable.gradient = self._first(new)
                else:
                    if old.inference and not state.inference:
                        refuse_inference_update(old)
                    if not _native.binary_into(0, old.array, new.array):
                        _add_into(old.array, new.array)
                    bump_version(old, "AccumulateGrad")
        if variable.cold is not None:
            run_post_accumulate_hooks(variable)

    def _concerns_class(self, new: Tensor) -> bool:
        """Whether the old or the new gradient may be of a class that handles operators."""
        old = self.variable.gradient
        return type(new) is not Tensor or (old is not None and type(old) is not Tensor)

    def _accumulate_by_class(self, new: Tensor) -> None:
        """By operators, which classes of gradients handle; that is user code: no lock is held."""
        variable = self.variable
        if variable.gradient is None:
            sole = _native.refcount(new) <= SOLE_TENSOR_REFERENCES + 2
            dense = bool(new.array.flags.c_contiguous)
            variable.gradient = new.detach() if sole and dense else new.clone()
        else:
            variable.gradient.add_(new)

    def _accumulate_recorded(self, new: Tensor) -> None:
        """Out of place, as part of the graph; user code may run in it, so no lock is held."""
        from .cycles import show_graph

        variable = self.variable
        while True:
            old = variable.gradient
            total = new.clone() if old is None else old + new
            show_graph(total)
            with _gradient_locks[id(variable) % 61]:
                if variable.gradient is old:
                    variable.gradient = total
                    return

    def _first(self, new: Tensor) -> Tensor:
        array = new.array
        if (
            array.base is None
            and _native.refcount(new) <= SOLE_TENSOR_REFERENCES
            and _native.refcount(array) <= SOLE_ARRAY_REFERENCES
            and (array.strides == self.variable.array.strides or not thread_state().grad_layout)
        ):
            return wrap(array)
        return wrap(_copy_in_layout(array, self.variable.array))


def moved_leaf_error(variable: Tensor) -> RuntimeError:
    """For a tensor that was a leaf when it was used and has been changed in place since."""
    return RuntimeError(
        "leaf variable has been moved into the graph interior: the tensor that this gradient is "
        f"for, {variable.dtype} {list(variable.array.shape)}, was a leaf when it was used and has "
        "been changed by a recorded in-place operation since. Change a clone()"
    )


def run_post_accumulate_hooks(variable: Tensor) -> None:
    """Call the hooks of a leaf whose sink has run, with or without a gradient."""
    cold = variable.cold
    if cold is not None and cold.post_hooks:
        for hook in list(cold.post_hooks.values()):
            if call_user(hook, variable) is not None:
                raise RuntimeError("post accumulate grad hooks should return None")


def _add_into(old: Any, new: Any) -> None:
    """Add to a gradient, which is of another shape if the leaf has got other data since."""
    try:
        old += new
    except ValueError:
        raise RuntimeError(
            f"The size of the gradient, {list(new.shape)}, must match the size of the .grad that "
            f"it is added to, {list(old.shape)}: `.data` has given the leaf another shape in "
            "between. Set .grad to None when the shape changes"
        ) from None


def _copy_in_layout(array: Any, like: Any) -> Any:
    """A copy of `array` with the memory order of `like` where that is dense, else C order."""
    if like.flags.c_contiguous or like.ndim < 2 or 0 in like.strides or like.ndim != array.ndim:
        return array.copy("C")
    order = sorted(range(like.ndim), key=lambda i: (-like.strides[i], i))
    ordered = array.transpose(order).copy("C")
    return ordered.transpose(sorted(range(like.ndim), key=order.__getitem__))


def renew_locks() -> None:
    """In a forked child: locks that the parent's other threads held would never be released."""
    global _sink_lock
    _sink_lock = allocate_lock()
    for i in range(len(_gradient_locks)):
        _gradient_locks[i] = allocate_lock()


def accumulator_of(t: Tensor) -> Node:
    """The leaf's sink; the graph keeps it alive, the leaf only remembers it."""
    known = t.accumulator
    if known is not None:
        node = known if isinstance(known, AccumulateGrad) else known()
        if node is not None:
            return node
    with _sink_lock:  # two threads that meet a leaf at once must not make two sinks
        known = t.accumulator
        node = None if known is None or isinstance(known, AccumulateGrad) else known()
        if node is None:
            node = AccumulateGrad(t)
            t.accumulator = weakref.ref(node)
    return node


def reset_accumulator(t: Tensor, renewed: bool) -> None:
    """Note the new data of a leaf: its sink takes on the new shape, or is a new one if `renewed`.

    Graphs that are recorded already know the sink, which for another dtype is not the same.
    """
    known = t.accumulator
    if known is None:
        return
    node = known if isinstance(known, AccumulateGrad) else known()
    if renewed or node is None:
        t.accumulator = None
    else:
        node.out_shape = t.array.shape


def edges(node: Node) -> tuple:
    """The nodes that the input gradients go to; a leaf's sink is made when first asked for."""
    if node.unresolved:
        nodes = []
        for target in node.next_nodes:
            nodes.append(accumulator_of(target) if isinstance(target, Tensor) else target)
        node.next_nodes = tuple(nodes)
        node.unresolved = False
    return node.next_nodes


def edge_target(t: Tensor) -> Any:
    """What a new node stores for an input that requires grad: its node, or the leaf itself."""
    node = t.node if t.view_meta is None else node_of(t)
    if node is not None:
        return node
    return t if t.needs_grad else None


def edge_node(t: Tensor) -> Any:
    """Where a gradient of `t` is sent: its node, a leaf's sink, or None."""
    node = t.node if t.view_meta is None else node_of(t)
    if node is not None:
        return node
    return accumulator_of(t) if t.needs_grad else None
