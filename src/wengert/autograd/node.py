"""The tape: nodes, their edges, what they save, and the hooks on them.

A node is a record, not a closure: the plan says which rule serves which edge and which saved values
it reads; the engine owns the buffer fields while a backward runs.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..errors import inference_update_error
from ..native import make, native
from ..operators import loops
from ..state import ThreadState, anomaly, call_user, thread_state
from ..tensor import (
    Tensor,
    VersionCounter,
    bump_version,
    counter_of,
    give_defaults,
    node_of,
    requires_of,
    wrap,
    wrap_as,
)
from ..utils.hooks import RemovableHandle
from .blame import already_freed_error, modified_in_place_error, position

_native = native
_hides = native.compiled
_anomaly = anomaly

# The engine's own references to a gradient that nobody else holds, see AccumulateGrad.
SOLE_TENSOR_REFERENCES = 2 if native.compiled else 3
SOLE_ARRAY_REFERENCES = 2
ACCUMULATE_SEQUENCE = 2**62
OUTPUT_SLOT = -1
_fused, _scale, _pass_on, _product = loops.FUSED, loops.SCALE, loops.PASS_ON, loops.PRODUCT


class GradientStep:
    """One edge's gradient: the rule, and where in the saved values its arguments are."""

    def __init__(
        self, edge: int, rule: Callable, indices: tuple, spreads: bool, loop: int
    ) -> None:
        self.edge = edge
        self.rule = rule
        self.indices = indices
        self.reads = len(indices)
        self.spreads = spreads
        self.first: int = indices[0] if indices else -1
        self.loop = loop  # what the rule comes down to, by operators/loops.py, or -1
        self.is_product = loop >= _product


class GradientPlan:
    """What a node of one operator does for one pattern of inputs that require gradients."""

    def __init__(
        self,
        operator: Any,
        name: str,
        edges: int,
        steps: tuple = (),
        slots: tuple = (),
        saved_names: tuple = (),
        conjugates: bool = False,
        several_outputs: bool = False,
        custom_class: type | None = None,
    ) -> None:
        self.operator = operator
        self.name = name
        self.custom = custom_class is not None
        self.node_class = node_class(name) if custom_class is None else custom_class
        self.made_as = self.node_class if _native.compiled or self.custom else Node
        if operator is not None:
            expose_saved(self.node_class, operator)
        self.edges = edges
        self.steps = steps
        self.slots = slots
        self.saves = len(slots)
        self.saved_names = saved_names
        self.conjugates = conjugates
        self.several_outputs = several_outputs
        self.loops = bool(steps) and all(step.loop >= 0 for step in steps)


_node_classes: dict[str, type] = {}


def node_class(name: str) -> type:
    """The class of nodes of one name, such as ``MulBackward0``; all behave alike."""
    if name not in _node_classes:
        _node_classes[name] = type(name, (Node,), {"__slots__": (), "__module__": __name__})
    return _node_classes[name]


def seen(node: Any) -> Any:
    """A node as its user gets it, of the class of its name.

    Uncompiled nodes are made as plain nodes: the interpreter remembers where the fields of a class
    are, but of one class at a time.
    """
    if type(node) is Node:
        node.__class__ = node.plan.node_class
    return node


def expose_saved(cls: type, operator: Any) -> None:
    """Let nodes of a class tell what they save; a class with __getattr__ would be slow to read."""
    for name in saved_names_of(operator):
        for attribute in ("_saved_" + name, "_raw_saved_" + name):
            setattr(cls, attribute, SavedAttribute(attribute))


class Freed:
    """Stands in a node for the saved values that a backward has freed; knows which one."""

    def __init__(self, code: Any, lasti: int) -> None:
        self.code = code
        self.lasti = lasti


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

    def unpack(self, node: Node) -> Tensor:
        """The saved tensor, after checking that it is unchanged."""
        if self.hooks is not None:
            unpacked = call_user(self.hooks[1], self.packed)
            if not isinstance(unpacked, Tensor):
                raise TypeError(
                    "Output of saved tensor unpack_hook expected to be a Tensor but got result of "
                    f"type {type(unpacked).__name__}"
                )
            t = unpacked
            return self._as_output(_alias_of(t), node) if self.is_output else self._with_history(t)
        if not self.is_output:
            check_attached(self.tensor, node)
        self.check_version(node)
        if not self.is_output:
            return self.tensor
        kept = self.tensor
        return self._as_output(wrap(self.array) if kept is None else _alias_of(kept), node)

    def check_version(self, node: Node) -> None:
        """Raise if the tensor was changed in place since it was saved."""
        current = self.counter.value if self.is_output else self.tensor.version()
        if current != self.version:
            raise modified_in_place_error(self, node, current)

    def _as_output(self, t: Tensor, node: Node) -> Tensor:
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
        alias = _alias_of(t)
        if original is not None:
            alias.needs_grad = True
            if original.node is None:
                alias.accumulator = accumulator_of(original)
            else:
                alias.node = original.node
                alias.output_index = original.output_index
        self._give_tangent(alias)
        return alias

    def _give_tangent(self, t: Tensor) -> None:
        if self.tangent is not None and thread_state().dual_level >= 0:
            from .forward_ad import set_tangent

            set_tangent(t, self.tangent)


def _alias_of(t: Tensor) -> Tensor:
    """The same memory as a new tensor without history."""
    if type(t) is Tensor:
        return wrap(t.array)
    from ..inside import alias_of

    return alias_of(t)


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
        saved.tensor = _alias_of(t)
    saved.counter = counter
    saved.version = counter.value
    saved.output_nr = t.output_index
    saved.is_output = True
    saved.needs_grad = t.needs_grad
    saved.hooks = None
    return saved


def pack(t: Tensor, is_output: bool, hooks: tuple) -> SavedVariable:
    """Save through a pair of saved-tensor hooks; the first sees the tensor itself, unrecorded."""
    from .cycles import show_graph

    state = thread_state()
    saved = SavedVariable()
    saved.hooks = hooks
    saved.is_output = is_output
    saved.output_nr = t.output_index
    saved.needs_grad = requires_of(t)
    if not is_output and saved.needs_grad:
        saved.tensor = _history_of(t)
    if state.dual_level >= 0:
        from .forward_ad import tangent_of

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
    return alias


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
        self.code: Any = _native.caller()
        self.lasti = _native.lasti
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
        from ..creation import zeros_for

        return [
            zeros_for(shape, dtype) if g is None else g
            for g, (shape, dtype) in zip(grads, self.outputs_meta, strict=True)
        ]

    def release(self, freed: Freed) -> None:
        """Drop the saved tensors; later use reports `freed`. Numbers and shapes may stay."""
        saved = self.saved
        if type(saved) is tuple:
            for item in saved:
                if (
                    isinstance(item, Tensor)
                    or type(item) is SavedVariable
                    or (type(item) is tuple and _holds_tensors(item))
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
            value = unpack_item(self.saved[names.index(wanted)], self)
            return tuple(value) if type(value) is list else value
        elif type(self.saved) is Freed or inspection.is_saved_tensor(
            self.saved[names.index(wanted)]
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


def note_forward_call(node: Node) -> None:
    """Under anomaly detection: keep with a node where it was made, and by which node's backward."""
    from .anomaly_mode import forward_stack

    node.cold = NodeCold()
    node.cold.metadata = {"traceback_": forward_stack()}
    parent = thread_state().node
    if parent is not None:
        node.cold.metadata["parent_"] = seen(parent)


def saved_names_of(operator: Any) -> set[str]:
    """What nodes of an operator may save, whichever inputs require gradients."""
    if operator is None:
        return set()
    return {operator._slot_name(operator._slot(read)) for read in operator.all_reads()}


class SavedAttribute:
    """``_saved_self`` and the like as a descriptor: what a node keeps under a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, node: Any, owner: Any) -> Any:
        return self if node is None else node._saved_attribute(self.name)


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
            value = apply_loop(step, grads, values, state.inference, None)
        if value is None:
            value = apply_rule(step, grads, values)
            if conjugate and value is not None:
                value = value.conj()
        result[edge] = value
    return result


def apply_loop(
    step: GradientStep, g: Tensor, values: Any, inference: bool, total: Tensor | None
) -> Tensor | None:
    """What a rule that is a native loop makes of a gradient; None if the operands do not suit it.

    `values` are the saved values, unpacked or not: if unchanged, they are read where they are. A
    product of matrices is added to `total`, if given and suited, which is then the result.
    """
    loop = step.loop
    if loop == _pass_on:
        return g
    value = values[step.first]
    if loop == _scale:
        if value == 1:
            return g
        array = _native.binary(2, g.array, value)
        return None if array is None else wrap_as(array, inference)
    if isinstance(value, Tensor):
        t = value
        if t.counter is not None and t.counter.value != 0:
            return None
        if t.cold is not None and t.cold.detached_at >= 0:
            return None
        value = t.array
    elif type(value) is SavedVariable:
        variable = value
        if variable.array is None or variable.counter.value != variable.version:
            return None
        value = variable.array
    if loop < _fused:
        array = _native.binary(loop, g.array, value)
    elif loop < _scale:
        array = _native.differential(loop - _fused, g.array, value)
    else:
        if step.reads == 2 and values[step.indices[1]] != 1:
            return None
        a, b = (value, g.array) if loop & 1 else (g.array, value)
        if total is not None and _native.product_into(
            total.array, a, b, (loop & 2) != 0, (loop & 4) != 0
        ):
            return total
        array = _native.product(a, b, (loop & 2) != 0, (loop & 4) != 0)
    return None if array is None else wrap_as(array, inference)


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


def edges(node: Node) -> tuple:
    """The nodes that the input gradients go to; a leaf's sink is made when first asked for."""
    if node.unresolved:
        nodes = []
        for target in node.next_nodes:
            nodes.append(accumulator_of(target) if isinstance(target, Tensor) else target)
        node.next_nodes = tuple(nodes)
        node.unresolved = False
    return node.next_nodes


def unpack_saved(node: Node) -> list:
    """The saved values in the plan's order, each checked for in-place changes."""
    saved = node.saved
    if saved is None:
        return []
    if type(saved) is Freed:
        raise already_freed_error(node, saved)
    return [unpack_item(item, node) for item in saved]


def _register(hooks: OrderedDict, fn: Callable) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = fn
    return handle


def unpack_item(item: Any, node: Node) -> Any:
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
        return [unpack_item(part, node) for part in item] if _holds_tensors(item) else item
    return item


def check_attached(t: Tensor, node: Node) -> None:
    """Refuse a saved tensor whose history was taken away after it was saved."""
    if t.cold is not None and t.cold.detached_at > node.sequence:
        raise RuntimeError(
            f"Trying to use a saved tensor that has been detached in-place: {node.name()} saved it "
            f"at {position(node.code, node.lasti)}, and detach_() was called on it later. Use "
            "detach() instead"
        )


def _holds_tensors(items: tuple) -> bool:
    for item in items:
        if isinstance(item, (Tensor, SavedVariable)):
            return True
        if type(item) is tuple and _holds_tensors(item):
            return True
    return False


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


class AccumulateGrad(Node):
    """The sink of a leaf: adds what arrives to the leaf's ``.grad``."""

    def __init__(self, variable: Tensor) -> None:
        Node.__init__(self, _ACCUMULATE_PLAN, (), None)
        self.variable = variable
        _native.show(variable)
        self.sequence = ACCUMULATE_SEQUENCE
        self.out_shape = variable.array.shape
        self.out_dtype = variable.array.dtype
        self.is_accumulator = True
        self.code = None

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
                        raise inference_update_error()
                    if not _native.binary_into(0, old.array, new.array):
                        old.array += new.array
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


def _copy_in_layout(array: Any, like: Any) -> Any:
    """A copy of `array` with the memory order of `like` where that is dense, else C order."""
    if like.flags.c_contiguous or like.ndim < 2 or 0 in like.strides:
        return array.copy("C")
    order = sorted(range(like.ndim), key=lambda i: (-like.strides[i], i))
    ordered = array.transpose(order).copy("C")
    return ordered.transpose(sorted(range(like.ndim), key=order.__getitem__))


_gradient_locks = [threading.Lock() for _ in range(61)]
_sink_lock = threading.Lock()


def renew_locks() -> None:
    """In a forked child: locks that the parent's other threads held would never be released."""
    global _sink_lock
    _sink_lock = threading.Lock()
    for i in range(len(_gradient_locks)):
        _gradient_locks[i] = threading.Lock()


if not _native.compiled:
    give_defaults(
        Node,
        saved=None, out_device=None, outputs_meta=None, cold=None, claim=None, buffer=None,
        shown=True, buffer_owned=False, is_accumulator=False, pending=0, plan=None, next_nodes=None,
        next_nrs=None, unresolved=False, sequence=0, out_shape=None, out_dtype=None, code=None,
        lasti=0,
    )  # fmt: skip
    give_defaults(
        SavedVariable,
        array=None, tensor=None, counter=None, version=0, output_nr=0, is_output=False,
        needs_grad=False, hooks=None, packed=None, tangent=None,
    )  # fmt: skip

_ACCUMULATE_PLAN = GradientPlan(None, "AccumulateGrad", 0)
_COPY_SLICES_PLAN = GradientPlan(None, "CopySlices", 2)


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


class CopySlices(Node):
    """Replaces a base's node after an in-place change through a view of it.

    The gradient of the base flows on, except for the part the view covers, which first passes
    through the in-place operation's own node.
    """

    def __init__(self, base: Tensor, inner: Node, steps: tuple, written: int = 0) -> None:
        nodes = list(edges(inner))
        numbers = list(inner.next_nrs or (0,) * len(nodes))
        nodes[written], numbers[written] = edge_node(base), base.output_index
        Node.__init__(self, _COPY_SLICES_PLAN, tuple(nodes), tuple(numbers))
        self.inner = inner
        self.steps = steps
        self.written = written
        self.out_shape = base.array.shape
        self.out_dtype = base.array.dtype
        strides = base.array.strides
        self.order = tuple(sorted(range(len(strides)), key=lambda i: -strides[i]))

    def run(self, grads: Any) -> list:
        if grads is None:
            return [None] * len(self.next_nodes)
        result = copy_in_order(grads, self.order)
        part = replay(result, self.steps)
        if self.inner.plan.custom:
            through = self.inner.run(part.clone())
        else:
            through = self._run_rules(part.clone(), result.array)
        new = through[self.written]
        if thread_state().levels:  # the change may be batched where the gradient is not
            result = (part if new is None else new).new_zeros(result.array.shape) + result
            result = copy_in_order(result, self.order)
            part = replay(result, self.steps)
        if new is None:
            part.zero_()
        else:
            part.copy_(new)
        through[self.written] = result
        return through

    def _run_rules(self, part: Tensor, base_array: Any) -> list:
        """Pass the gradient of the changed part through the in-place operation's rules."""
        values = unpack_saved(self.inner)
        if thread_state().grad_enabled and OUTPUT_SLOT in self.inner.plan.slots:
            at = self.inner.plan.slots.index(OUTPUT_SLOT)
            values[at] = self.view_of_output(values[at], base_array)
        return apply_rules(self.inner, part, values)

    def view_of_output(self, saved: Tensor, base_array: Any) -> Tensor:
        """The output that the in-place operation saved, as the part of this node's output it is."""
        base = wrap(base_array)
        base.needs_grad = True
        base.node = self
        view = replay(base, self.steps)
        alias = _alias_of(saved)
        alias.needs_grad = True
        alias.node, alias.output_index = view.node, view.output_index
        alias.cold = saved.cold  # its tangent
        return alias

    def release(self, freed: Freed) -> None:
        self.inner.saved = freed


def copy_in_order(g: Tensor, order: tuple) -> Tensor:
    """A copy of `g` with its dimensions in the memory order of the base, as view steps expect."""
    from ..operators.copying import pack

    if order == tuple(range(len(order))):
        return pack.call1(g)
    back = tuple(sorted(range(len(order)), key=order.__getitem__))
    return pack.call1(g.permute(order)).permute(back)


def replay(base: Tensor, steps: tuple | None) -> Tensor:
    """Apply the view operators in `steps`, innermost first, to `base`."""
    calls = []
    while steps is not None:
        steps, operator, args = steps
        calls.append((operator, args))
    for operator, args in reversed(calls):
        base = operator.call((base, *args))
    return base
