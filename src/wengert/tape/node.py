"""The tape: nodes, their edges and what users see of them.

A node is a record, not a closure: the plan says which rule serves which edge and which saved values
it reads; the engine owns the buffer fields while a backward runs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..core.handles import RemovableHandle
from ..core.native import make, native
from ..core.state import ThreadState, anomaly, thread_state
from ..core.tensor import Tensor, give_defaults
from .blame import already_freed_error
from .plans import GradientPlan, apply_loop, apply_rule, saved_names_of
from .saved import Freed, SavedVariable, holds_tensors, unpack_item

_native = native
_hides = native.compiled
_anomaly = anomaly


class NodeCold:
    """Hooks and user metadata of the few nodes that have any."""

    def __init__(self) -> None:
        self.post_hooks: Any = None
        self.pre_hooks: Any = None
        self.tensor_hooks: Any = None
        self.retain_hooks: Any = None
        self.metadata: dict | None = None


def new_node(
    plan: GradientPlan,
    state: ThreadState,
    out_array: Any,
    next_nodes: tuple,
    next_nrs: tuple | None,
    inside: int = 3,
) -> Node:
    """A node for one recorded call; `out_array` is its first output.

    `inside` counts the frames from `Native.caller` outward that are this package's for certain.
    """
    node: Any = make(plan.made_as)
    node.plan = plan
    node.next_nodes = next_nodes
    node.next_nrs = next_nrs
    node.unresolved = True
    node.saved = None
    sequence = state.sequence
    node.sequence = sequence
    state.sequence = sequence + 1
    node.out_shape = _native.shape_of(out_array)
    node.out_dtype = out_array.dtype
    node.outputs_meta = None
    node.cold = None
    node.code = _native.caller(inside)
    node.lasti = _native.lasti
    node.claim = None
    if _anomaly.enabled:
        node.shown = True
        note_forward_call(node)
    elif not _hides or state.saved_hooks or _any_shown(next_nodes):
        node.shown = True
    else:
        _native.hide(node)
        _native.hide(next_nodes)
    return node


def _any_shown(next_nodes: tuple) -> bool:
    """Whether the collector looks at one of the nodes a new node follows, and must look at it."""
    for node in next_nodes:  # noqa: SIM110 - a generator would be made for every node
        if isinstance(node, Node) and node.shown:
            return True
    return False


class Node:
    """One recorded operation. `run` maps the gradients of its outputs to those of its inputs."""

    def __init__(self, plan: GradientPlan, next_nodes: tuple, next_nrs: tuple | None) -> None:
        self.start(plan, next_nodes, next_nrs)
        self.code: Any = _native.caller()
        self.lasti = _native.lasti

    def start(self, plan: GradientPlan, next_nodes: tuple, next_nrs: tuple | None) -> None:
        """Fill the fields, but for the place in the user's program."""
        state = thread_state()
        self.plan = plan
        self.next_nodes = next_nodes
        self.next_nrs = next_nrs
        self.unresolved = True
        self.shown = True
        self.saved: Any = None
        self.sequence = state.sequence
        state.sequence += 1
        self.out_shape: tuple = ()
        self.out_dtype: Any = None
        self.out_device: Any = None
        self.outputs_meta: Any = None
        self.cold: Any = None
        self.code = None
        self.lasti = -1
        self.claim: Any = None
        self.buffer: Any = None
        self.pending = 0
        self.buffer_owned = False
        self.is_accumulator = False
        if _anomaly.enabled:
            note_forward_call(self)

    # The work ------------------------------------------------------------------------------

    def run(self, grads: Any) -> list:
        """Gradients per edge; `grads` is the one output's gradient, or a list for several."""
        return apply_rules(self, grads, unpack_saved(self))

    def _defined(self, grads: list) -> list:
        """The gradients of several outputs, zeros for those that nobody asked for."""
        for g in grads:
            if g is None:
                break
        else:
            return grads
        from ..backends.allocation import zeros_for

        beside = next((g.array for g in grads if g is not None), None)
        return [
            zeros_for(shape, dtype, beside) if g is None else g
            for g, (shape, dtype) in zip(grads, self.outputs_meta, strict=True)
        ]

    def release(self, freed: Freed) -> None:
        """Drop the saved tensors; later use reports `freed`. Numbers and shapes may stay."""
        for item in saved_items(self):
            if (
                isinstance(item, Tensor)
                or type(item) is SavedVariable
                or (type(item) is tuple and holds_tensors(item))
            ):
                self.saved = freed
                break

    # Graph surface ---------------------------------------------------------------------------

    def name(self) -> str:
        """PyTorch's name of the operation, such as ``MulBackward0``."""
        return self.plan.name

    @property
    def next_functions(self) -> tuple:
        """Pairs (node or None, output number), one per input."""
        from .accumulation import edges

        nodes = [seen(node) for node in edges(self)]
        return tuple(zip(nodes, self.next_nrs or (0,) * len(nodes), strict=True))

    @property
    def metadata(self) -> dict:
        """A dictionary that belongs to the user."""
        cold = self.make_cold()
        if cold.metadata is None:
            cold.metadata = {}
        return cold.metadata

    @property
    def requires_grad(self) -> bool:
        """True: only what requires gradients is recorded."""
        return True

    @property
    def _input_metadata(self) -> tuple:
        from .inspection import input_metadata

        return input_metadata(self)

    def _sequence_nr(self) -> int:
        return self.sequence

    def _set_sequence_nr(self, sequence_nr: int) -> None:
        self.sequence = sequence_nr

    def make_cold(self) -> NodeCold:
        if self.cold is None:
            self.cold = NodeCold()
            from .cycles import show_graph

            show_graph(self)
        return self.cold

    def register_hook(self, fn: Callable) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` after the node; a result replaces grad_inputs."""
        cold = self.make_cold()
        if cold.post_hooks is None:
            cold.post_hooks = OrderedDict()
        return _register(cold.post_hooks, fn)

    def register_prehook(self, fn: Callable) -> RemovableHandle:
        """Call ``fn(grad_outputs)`` before this node runs; a result replaces grad_outputs."""
        cold = self.make_cold()
        if cold.pre_hooks is None:
            cold.pre_hooks = OrderedDict()
        return _register(cold.pre_hooks, fn)

    def __call__(self, *grads: Any) -> Any:
        """Apply the node by hand: gradients of the outputs in, gradients of the inputs out."""
        count = 1 if self.outputs_meta is None else len(self.outputs_meta)
        if len(grads) != count:
            raise TypeError(f"{self.name()}: expected {count} arguments, got {len(grads)} instead")
        result = self.run(grads[0] if self.outputs_meta is None else list(grads))
        return result[0] if len(result) == 1 else tuple(result)

    def _saved_attribute(self, name: str) -> Any:
        from . import inspection

        raw = name.startswith("_raw_saved_")
        wanted = name[11:] if raw else name[7:]
        names = self.plan.saved_names
        if wanted not in names:
            if wanted in saved_names_of(self.plan.operator):
                return inspection.absent_tensor(self) if raw else None
        elif not raw:
            if type(self.saved) is Freed:
                raise already_freed_error(self, self.saved)
            value = unpack_item(saved_items(self)[names.index(wanted)], self)
            return tuple(value) if type(value) is list else value
        elif type(self.saved) is Freed or inspection.is_saved_tensor(
            saved_items(self)[names.index(wanted)]
        ):
            return inspection.saved_tensor(self, names.index(wanted))
        raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")

    def __dir__(self) -> list:
        saved = self.plan.saved_names
        return [
            *(name for name in object.__dir__(self) if not name.startswith(("_saved_", "_raw_"))),
            *("_saved_" + name for name in saved),
            *("_raw_saved_" + name for name in saved if hasattr(self, "_raw_saved_" + name)),
        ]

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle '{self.name()}' object: a graph does not leave its process")


def seen(node: Any) -> Any:
    """A node as its user gets it, of the class of its name.

    Uncompiled nodes are made as plain nodes: the interpreter remembers where the fields of a class
    are, but of one class at a time.
    """
    if type(node) is Node:
        node.__class__ = node.plan.node_class
    return node


def note_forward_call(node: Node) -> None:
    """Under anomaly detection: keep with a node where it was made, and by which node's backward."""
    from .anomaly import forward_stack

    node.cold = NodeCold()
    node.cold.metadata = {"traceback_": forward_stack()}
    parent = thread_state().node
    if parent is not None:
        node.cold.metadata["parent_"] = seen(parent)


def apply_rules(node: Node, grads: Any, values: list) -> list:
    """What the rules of a node make of the gradients of its outputs and its saved values."""
    plan = node.plan
    result = [None] * len(node.next_nodes)
    if grads is None:
        return result
    if plan.several_outputs:
        grads = node._defined(grads)
    conjugate = plan.conjugates and node.out_dtype.kind == "c"
    if conjugate:
        grads = grads.conj()
    state = thread_state()
    needed = state.needed
    saved = values[0] if plan.saves == 1 else values
    loops = not state.grad_enabled and not state.layers and not conjugate
    for step in plan.steps:
        edge = step.edge
        if step.spreads:
            value = apply_rule(step, grads, values)
            result[edge : edge + len(value)] = value
            continue
        following = node.next_nodes[edge]
        if following is None or (needed is not None and following not in needed):
            continue
        value = None
        if loops and step.loop >= 0:
            value = apply_loop(step, grads, saved, state.inference, None)
        if value is None:
            value = apply_rule(step, grads, values)
            if conjugate and value is not None:
                value = value.conj()
        result[edge] = value
    return result


def saved_items(node: Node) -> tuple:
    """What a node saves, in the plan's order, none if it was freed."""
    saved = node.saved
    if type(saved) is Freed:
        return ()
    if node.plan.saves == 1:
        return (saved,)
    return () if saved is None else saved


def keep_items(node: Node, items: tuple) -> None:
    """Let a node save `items`; a single one is kept as it is, to save the memory of a tuple."""
    if node.plan.saves == 1:
        node.saved = items[0]
    else:
        node.saved = items
        if not node.shown:
            _native.hide(items)


def unpack_saved(node: Node) -> list:
    """The saved values in the plan's order, each checked for in-place changes."""
    saved = node.saved
    if type(saved) is Freed:
        raise already_freed_error(node, saved)
    if node.plan.saves == 1:
        return [unpack_item(saved, node)]
    if saved is None:
        return []
    return [unpack_item(item, node) for item in saved]


def _register(hooks: OrderedDict, fn: Callable) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = fn
    return handle


if not _native.compiled:
    give_defaults(
        Node,
        saved=None, out_device=None, outputs_meta=None, cold=None, claim=None, buffer=None,
        shown=True, buffer_owned=False, is_accumulator=False, pending=0, plan=None, next_nodes=None,
        next_nrs=None, unresolved=False, sequence=0, out_shape=None, out_dtype=None, code=None,
        lasti=0,
    )  # fmt: skip
