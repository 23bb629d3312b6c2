"""The tape: nodes, the sinks of leaves, and the edges between them.

A node is a record, not a closure: the plan says which rule serves which edge and which saved values
it reads; the engine owns the buffer fields while a backward runs. A leaf is an edge itself; its
sink is made when a backward or a look at the graph asks for it.
"""

from __future__ import annotations

import weakref
from _thread import allocate_lock
from collections import OrderedDict
from collections.abc import Callable
from os import register_at_fork
from typing import Any

import numpy as np

from ..backends import loop_codes
from ..backends.allocation import zeros_for
from ..backends.loops import loops
from ..backends.matrices import matrices
from ..core.classes import COMPILED, classes, make
from ..core.collector import collector
from ..core.frames import frames
from ..core.handles import RemovableHandle
from ..core.loading import load
from ..core.ndarrays import ndarrays
from ..core.reuse import keep_nodes
from ..core.state import ThreadState, anomaly, thread_state
from ..core.tensor import Tensor, give_defaults, node_of, wrap_as
from .accumulation import add_gradient
from .blame import already_freed_error
from .cycles import show_graph
from .plans import GradientPlan, GradientStep
from .saved import Freed, SavedVariable, holds_tensors, unpack_item

_classes = classes
_collector = collector
_frames = frames
_loops = loops
_matrices = matrices
_ndarrays = ndarrays
_hides = COMPILED
_anomaly = anomaly
_fused, _mul, _pass_on = loop_codes.FUSED, loop_codes.MUL, loop_codes.PASS_ON
_scale, _spread, _vector = loop_codes.SCALE, loop_codes.SPREAD, loop_codes.VECTOR
_ndarray: Any = np.ndarray

ACCUMULATE_SEQUENCE = 2**62
_ACCUMULATE_PLAN = GradientPlan(None, "AccumulateGrad", 0)
_sink_lock = allocate_lock()


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
    if plan.is_missing:
        node.sequence = ACCUMULATE_SEQUENCE  # it raises as soon as it is reached
    else:
        sequence = state.sequence
        node.sequence = sequence
        state.sequence = sequence + 1
    node.out_shape = _ndarrays.shape_of(out_array)
    node.out_dtype = _ndarrays.dtype_of(out_array)
    node.outputs_meta = None
    node.cold = None
    node.code = _frames.caller(inside)
    node.lasti = _frames.lasti
    node.claim = None
    if _anomaly.enabled:
        node.shown = True
        note_forward_call(node)
    elif not _hides or state.saved_hooks or _any_shown(next_nodes):
        node.shown = True
    else:
        _collector.hide(node)
        _collector.hide(next_nodes)
    return node


def _any_shown(next_nodes: tuple) -> bool:
    """Whether the collector looks at one of the nodes a new node follows, and must look at it."""
    for node in next_nodes:
        # Leaves, which are plain tensors as a rule, are told apart without a look at base classes.
        if type(node) is not Tensor and isinstance(node, Node):
            if node.shown:
                return True
        elif node is not None:
            leaf: Tensor = node
            cold = leaf.cold
            if cold is not None and (
                cold.hooks is not None or cold.post_hooks is not None or cold.attributes is not None
            ):
                return True
    return False


class Node:
    """One recorded operation. `run` maps the gradients of its outputs to those of its inputs."""

    def __init__(self, plan: GradientPlan, next_nodes: tuple, next_nrs: tuple | None) -> None:
        self.start(plan, next_nodes, next_nrs)
        self.code: Any = _frames.caller()
        self.lasti = _frames.lasti

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

    def _defined(self, grads: list) -> list | None:
        """The gradients of several outputs, zeros for those without one; None if none has one."""
        for g in grads:
            if g is None:
                break
        else:
            return grads
        beside = next((g.array for g in grads if g is not None), None)
        if beside is None:
            return None
        return [
            zeros_for(shape, dtype, beside) if g is None else g
            for g, (shape, dtype) in zip(grads, self.outputs_meta, strict=True)
        ]

    def release(self, freed: Freed) -> None:
        """Drop the saved tensors; later use reports `freed`. Numbers and shapes may stay."""
        if self.plan.saves_tensors:
            for item in kept_items(self):
                if (
                    isinstance(item, Tensor)
                    or type(item) is SavedVariable
                    or (type(item) is tuple and holds_tensors(item))
                ):
                    self.saved = freed
                    break

    def show_itself(self) -> list:
        """Let the collector see this node; returns what it was computed from, if that is new."""
        if self.shown:
            return []
        self.shown = True
        _collector.show(self)
        _collector.show(self.next_nodes)
        items = kept_items(self)
        if items is self.saved:
            _collector.show(items)
        return [*self.next_nodes, *items]

    # Graph surface ---------------------------------------------------------------------------

    def name(self) -> str:
        """PyTorch's name of the operation, such as ``MulBackward0``."""
        return self.plan.name

    @property
    def next_functions(self) -> tuple:
        """Pairs (node or None, output number), one per input."""
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
        return load("tape.inspection").input_metadata(self)

    def _sequence_nr(self) -> int:
        return self.sequence

    def _set_sequence_nr(self, sequence_nr: int) -> None:
        self.sequence = sequence_nr

    def make_cold(self) -> NodeCold:
        if self.cold is None:
            self.cold = NodeCold()
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
        return load("tape.inspection").saved_attribute(self, name)

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

    Until then it is a plain node, which is made and freed faster than one of a class that is made
    at run time; uncompiled, the interpreter knows where the fields of one class are at a time.
    """
    if type(node) is Node:
        _classes.change_class(node, node.plan.node_class)
    return node


def note_forward_call(node: Node) -> None:
    """Under anomaly detection: keep with a node where it was made, and by which node's backward."""
    node.cold = NodeCold()
    node.cold.metadata = {"traceback_": load("tape.anomaly").forward_stack()}
    parent = thread_state().node
    if parent is not None:
        node.cold.metadata["parent_"] = seen(parent)


def kept_items(node: Node) -> tuple:
    """What a node has saved, in the plan's order, nothing if it was freed."""
    # No method: one that subclasses in Python may override would be looked up in each call.
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
            _collector.hide(items)


def apply_rules(node: Node, grads: Any, values: list) -> list:
    """What the rules of a node make of the gradients of its outputs and its saved values."""
    plan = node.plan
    result = [None] * len(node.next_nodes)
    if grads is None:
        return result
    if plan.several_outputs:
        grads = node._defined(grads)
        if grads is None:
            return result
    conjugate = plan.conjugates and node.out_dtype.kind == "c"
    if conjugate:
        grads = grads.conj()
    state = thread_state()
    needed = state.needed
    saved = None
    loops = not state.grad_enabled and not state.layers and not conjugate
    if loops:
        # What is unpacked is checked already: loops take it even if it has been changed before.
        arrays = [v.array if isinstance(v, Tensor) else v for v in values]
        saved = arrays[0] if plan.saves == 1 else arrays
    if loops and plan.joint is not None and apply_joint(node, grads, saved, state, result):
        return result
    for step in plan.steps:
        edge = step.edge
        if step.spreads:
            if needed is not None and needed.isdisjoint(node.next_nodes[edge:]):
                continue
            value = apply_rule(step, grads, values)
            result[edge : edge + len(value)] = value
            continue
        following = node.next_nodes[edge]
        if following is None or (needed is not None and following not in needed):
            continue
        value = None
        if loops and step.loop >= 0:
            if type(grads) is list:
                value = apply_vector(step, grads, saved, state.inference)
            else:
                value = apply_loop(step, grads, saved, state.inference, None, False)
        if value is None:
            value = apply_rule(step, grads, values)
            if conjugate and value is not None:
                value = value.conj()
        result[edge] = value
    return result


def apply_loop(
    step: GradientStep, g: Tensor, saved: Any, inference: bool, total: Tensor | None, last: bool
) -> Tensor | None:
    """What a rule that is a native loop makes of a gradient; None if the operands do not suit it.

    `saved` is what the node saves, in the form of `Node.saved`, unpacked or not: what is unchanged
    is read where it is. A product of matrices is added to `total`, if given and suited, which is
    then the result. After the `last` use of a gradient the result may take its place in memory.
    """
    loop = step.loop
    if loop == _pass_on:
        return g
    if loop == _vector:
        return apply_vector(step, g, saved, inference)
    value = saved if step.alone else saved[step.first]
    if loop == _spread:
        array = g.array
        if type(array) is not _ndarray or array.ndim:
            return None
        return wrap_as(_ndarray(value, array.dtype, array, 0, (0,) * len(value)), inference)
    if loop == _scale:
        if value == 1:
            return g
        if last and _loops.binary_into(_mul, g.array, value):
            return g
        array = _loops.binary(_mul, g.array, value)
        return None if array is None else wrap_as(array, inference)
    value = read_saved(value)
    if value is None:
        return None
    if loop < _fused:
        if last and _loops.binary_into(loop, g.array, value):
            return g
        array = _loops.binary(loop, g.array, value)
    elif loop < _scale:
        array = _loops.differential(loop - _fused, g.array, value, last)
        if array is g.array:
            return g
        if array is None and step.vector is not None:
            array = step.vector.run((g.array, value))
    else:
        if step.reads == 2 and saved[step.indices[1]] != 1:
            return None
        a, b = (value, g.array) if loop & 1 else (g.array, value)
        if total is not None and _matrices.product_into(
            total.array, a, b, (loop & 2) != 0, (loop & 4) != 0
        ):
            return total
        array = _matrices.product(a, b, (loop & 2) != 0, (loop & 4) != 0)
    return None if array is None else wrap_as(array, inference)


def apply_joint(
    node: Node, grads: Any, saved: Any, state: ThreadState, result: list
) -> bool:
    """Let one kernel compute the gradients of all edges, if all are wanted and values suit it."""
    plan = node.plan
    for step in plan.steps:
        following = node.next_nodes[step.edge]
        if following is None or (state.needed is not None and following not in state.needed):
            return False
    values = vector_values(plan.steps[0], grads, saved)
    if values is None:
        return False
    arrays = plan.joint.run(values)
    if arrays is None:
        return False
    for step, array in zip(plan.steps, arrays, strict=True):
        result[step.edge] = wrap_as(array, state.inference)
    return True


def apply_vector(
    step: GradientStep, g: Any, saved: Any, inference: bool
) -> Tensor | None:
    """What a rule's own loop in C makes of a gradient and all that the rule reads, or None."""
    values = vector_values(step, g, saved)
    if values is None:
        return None
    array = step.vector.run(values)
    return None if array is None else wrap_as(array, inference)


def vector_values(step: GradientStep, g: Any, saved: Any) -> tuple | None:
    """The arrays of a gradient and of what a rule reads; None if something has changed."""
    values = []
    if type(g) is list:
        for t in g:
            if t is None:
                return None
            values.append(t.array)
    else:
        t = g
        values.append(t.array)
    for i in step.indices:
        item = saved if step.alone else saved[i]
        if (type(item) is tuple or type(item) is list) and holds_tensors(tuple(item)):
            found = []
            for each in item:
                value = read_saved(each)
                if value is None and each is not None:
                    return None
                found.append(value)
            item = found
        elif item is not None and type(item) is not str:
            item = read_saved(item)
            if item is None:
                return None
        values.append(item)
    return tuple(values)


def read_saved(value: Any) -> Any:
    """The array of a saved tensor that nobody has changed, else None; other values as they are."""
    if isinstance(value, Tensor):
        t = value
        if t.counter is not None and t.counter.value != 0:
            return None
        if t.cold is not None and t.cold.detached_at >= 0:
            return None
        return t.array
    if type(value) is SavedVariable:
        variable = value
        if variable.is_output or variable.hooks is not None:
            if variable.array is None or variable.counter.value != variable.version:
                return None
            return variable.array
        # what was changed before it was saved, as parameters are by optimizers
        t = variable.tensor
        if t.counter is None or t.counter.value != variable.version:
            return None
        return None if t.cold is not None and t.cold.detached_at >= 0 else t.array
    return value


def apply_rule(step: GradientStep, grads: Any, values: list) -> Any:
    """What one rule makes of the gradients and the saved values it reads."""
    rule = step.rule
    indices = step.indices
    count = step.reads
    if count == 1:
        return rule(grads, values[indices[0]])
    if count == 0:
        return rule(grads)
    if count == 2:
        return rule(grads, values[indices[0]], values[indices[1]])
    return rule(grads, *[values[i] for i in indices])


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


# Sinks and edges ---------------------------------------------------------------------------------


class AccumulateGrad(Node):
    """The sink of a leaf: adds what arrives to the leaf's ``.grad``."""

    def __init__(self, variable: Tensor) -> None:
        self.start(_ACCUMULATE_PLAN, (), None)
        self.unresolved = False
        self.variable = variable
        if _hides:
            _collector.show(variable)
        self.sequence = ACCUMULATE_SEQUENCE
        self.out_shape = variable.array.shape
        self.out_dtype = _ndarrays.dtype_of(variable.array)
        self.is_accumulator = True

    def make_cold(self) -> NodeCold:
        """Hooks on a leaf's sink live as long as the leaf, which from now on holds the sink."""
        self.variable.accumulator = self
        if self.cold is None:
            self.cold = NodeCold()
        return self.cold

    def run(self, grads: Any) -> list:
        add_gradient(self.variable, grads)
        return []


def accumulator_of(t: Tensor) -> Node:
    """The leaf's sink; the graph keeps it alive, the leaf only remembers it."""
    node = _known_sink(t)
    if node is not None:
        return node
    with _sink_lock:  # two threads that meet a leaf at once must not make two sinks
        node = _known_sink(t)
        if node is None:
            node = AccumulateGrad(t)
            t.accumulator = weakref.ref(node)
    return node


def _known_sink(t: Tensor) -> Any:
    """The sink that a leaf holds, remembers, or shares with another leaf that it stands for."""
    known = t.accumulator
    if known is None or isinstance(known, AccumulateGrad):
        return known
    return accumulator_of(known) if isinstance(known, Tensor) else known()


def reset_accumulator(t: Tensor, renewed: bool) -> None:
    """Note the new data of a leaf: its sink takes on the new shape, or is a new one if `renewed`.

    Graphs that are recorded already know the sink, which for another dtype is not the same.
    """
    node = _known_sink(t)
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


def _renew_lock() -> None:
    """In a forked child: a lock that one of the parent's threads held is never released."""
    global _sink_lock
    _sink_lock = allocate_lock()


register_at_fork(after_in_child=_renew_lock)


def _register(hooks: OrderedDict, fn: Callable) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = fn
    return handle


keep_nodes(Node)
if not COMPILED:
    give_defaults(
        Node,
        saved=None, out_device=None, outputs_meta=None, cold=None, claim=None, buffer=None,
        shown=True, buffer_owned=False, is_accumulator=False, pending=0, plan=None, next_nodes=None,
        next_nrs=None, unresolved=False, sequence=0, out_shape=None, out_dtype=None, code=None,
        lasti=0,
    )  # fmt: skip
