"""In-place operations: the writing itself, and what it does to versions, views and history."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ..backends.numpy import quiet
from ..core.arrays import same_elements
from ..core.dtypes import can_cast, from_numpy
from ..core.errors import inplace_view_error, refuse_inference_update, shape_text
from ..core.native import native
from ..core.registry import operator_named
from ..core.state import ThreadState, thread_state
from ..core.tensor import (
    VIEW_DEFAULT,
    AbstractOperator,
    Tensor,
    bump_version,
    node_of,
    requires_of,
    wrap,
)
from ..tape.accumulation import edge_node, edges
from ..tape.copy_slices import CopySlices, replay, strided_steps
from ..tape.node import Node
from .binding import bind_arguments, check_operand, signature_text
from .operator import (
    Operator,
    any_foreign,
    any_requires,
    arrays_of,
    function_attribute,
    without_getattr,
)
from .overlap import check_not_overlapping, check_sources, same_array
from .recording import fill_saved, record
from .torch_function import PLAIN, override_operands, override_operator

_native = native
_ndarray = np.ndarray
_negative = np.negative
_quiet_set, _quiet_reset, _quiet_ignore = quiet.set, quiet.reset, quiet.ignore


_call_layers: Any = None
_run_below: Any = None


def bind_layers(call_layers: Any, run_below: Any) -> None:
    """Give in-place operators the functions of `layers.py`, which is imported after this module."""
    global _call_layers, _run_below
    _call_layers, _run_below = call_layers, run_below


class InplaceOperator(AbstractOperator):
    """The variant of an operator that writes its result into its first argument."""

    def __init__(self, functional: Operator, schema: Any) -> None:
        self.name = functional.name + "_"
        _native.name_function(self, self.name)
        self.functional = functional
        self.schema = schema
        self.tail = functional.tail
        self.doc = f"In-place form of {functional.name}()."
        self.aliases = functional.aliases
        self.casts_freely = False
        self.uniform = False
        self.mutates = True

    def call2(self, x: Any, y: Any) -> Any:
        if not isinstance(y, Tensor):
            given = y
            y = check_operand(y)
            if y is NotImplemented:
                return override_operands(self, x, given)
        state = thread_state()
        functional = self.functional
        target = x
        if (
            not state.layers
            and not state.grad_enabled
            and functional.native_code >= 0
            and not target.inference
            and _native.binary_into(
                functional.native_code, target.array, y.array if isinstance(y, Tensor) else y
            )
        ):
            bump_version(target, self.name)
            return target
        return self.call((x, y, *self.tail))

    def call(self, args: tuple) -> Any:
        state = thread_state()
        if state.layers or any_foreign(args):
            return _call_layers(self, args)
        functional = self.functional
        target = args[0]
        if (
            not state.grad_enabled
            and functional.native_code == 0
            and len(args) == 3
            and not target.inference
            and type(args[2]) is float
            and isinstance(args[1], Tensor)
            and _native.binary_into(0, target.array, args[1].array, args[2])
        ):
            bump_version(target, self.name)
            return target
        return self.record_around(state, args, False)

    def call_recorded(self, state: ThreadState, args: tuple) -> Any:
        """Record a call whose writing is done by the layers below autograd."""
        return self.record_around(state, args, True)

    def record_around(self, state: ThreadState, args: tuple, layered: bool) -> Any:
        """Check and record a call around the writing itself."""
        functional = self.functional
        target = args[0]
        recording = state.recording() and any_requires(args, functional.grad_positions)
        if recording and self.casts_freely and not self.uniform:
            recording = _native.is_differentiable(target.array)  # a copy may drop the history
        check_inplace(target, recording, state)
        node = None
        if recording:
            saving = args
            node = record(functional, state, args, target.array)
            if 0 in node.plan.slots:
                before = copy_of(target)
                before.needs_grad = requires_of(target)
                before.node = node_of(target)
                before.output_index = target.output_index
                if state.dual_level >= 0:
                    from ..tape.tangents import copy_tangent

                    copy_tangent(target, before)
                saving = (before, *args[1:])
            if -1 not in node.plan.slots:
                fill_saved(node, saving, ())
        if layered:
            version = target.version()
            _run_below(self, args)
            if target.counter is not None:
                target.counter.value = version  # what a handler has counted is one change
        else:
            self.write(target, args)
        bump_version(target, self.name)
        if node is not None:
            if not _native.is_differentiable(target.array):
                return target
            rebase_history(target, node)
            if -1 in node.plan.slots:
                fill_saved(node, saving, (target,))
        return target

    def write(self, target: Tensor, args: tuple) -> None:
        """Write the result into the target's memory."""
        array = target.array
        functional = self.functional
        arrays = arrays_of(args)
        if self.casts_freely and (args[1] is target or same_array(array, arrays[1])):
            return
        if functional.broadcasts and not self.uniform:
            check_sources(self.name, array, arrays[1:])
        if not self.uniform or len(arrays) > 1 and isinstance(arrays[1], _ndarray):
            check_not_overlapping(self.name, array)
        if (
            functional.ufunc is not None
            and _plain_floats(arrays, functional)
            # NumPy's negation of itself reads elements that it has written, for some strides
            and (functional.ufunc is not _negative or array.flags.forc)
        ):
            token = _quiet_set(_quiet_ignore)
            try:
                functional.ufunc(*arrays[: functional.operands], out=array)
                return
            except ValueError:
                pass
            finally:
                _quiet_reset(token)
        result = functional.run_kernel(arrays)
        check_result_shape(result, array)
        if result.dtype != array.dtype and not self.casts_freely:
            source, goal = from_numpy(result.dtype), from_numpy(array.dtype)
            if not can_cast(source, goal):
                raise RuntimeError(
                    f"result type {source.scalar_name} can't be cast to the desired output type "
                    f"{goal.scalar_name}"
                )
        array[...] = result

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        functional = self.functional
        if (
            len(args) == 2
            and not kwargs
            and functional.operands == 2
            and functional.broadcasts
            and functional.tail_has_defaults
            and isinstance(args[0], Tensor)
        ):
            result = self.call2(args[0], args[1])
            if result is not NotImplemented:
                return result
        if _native.overriding:
            result = override_operator(self, args, kwargs)
            if result is not PLAIN:
                return result
        try:
            args = bind_arguments(self, args, kwargs)
        except TypeError:
            result = override_operator(self, args, kwargs)
            if result is not PLAIN:
                return result
            raise
        return self.call(args)

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else _native.method(self, instance)

    def __getattr__(self, name: str) -> Any:
        return function_attribute(self, name)

    def __repr__(self) -> str:
        return f"<operator {self.name}{signature_text(self.schema)}>"

    def __reduce__(self) -> tuple:
        return (operator_named, (self.name,))


if not _native.compiled:
    without_getattr(InplaceOperator)


def _plain_floats(arrays: tuple, functional: Operator) -> bool:
    """Whether a ufunc may write straight into the first operand: alike arrays, default options."""
    first = arrays[0]
    count = len(functional.tensor_positions)
    if first.dtype.kind != "f" or arrays[count:] != functional.tail or type(first) is not _ndarray:
        return False
    for a in arrays[1:count]:
        if type(a) is _ndarray:
            if a.dtype != first.dtype:
                return False
        elif type(a) is not float and type(a) is not int:
            return False
    return True


def copy_of(t: Tensor) -> Tensor:
    """A copy of the elements as a new tensor without history."""
    if type(t) is Tensor:
        return wrap(t.array.copy())
    state = thread_state()
    enabled, state.grad_enabled = state.grad_enabled, False
    try:
        copy: Tensor = operator_named("clone").call_recorded(state, (t,))
    finally:
        state.grad_enabled = enabled
    return copy


def check_inplace(t: Tensor, recording: bool, state: ThreadState) -> None:
    """Refuse the in-place changes that autograd cannot follow."""
    if t.inference and not state.inference:
        refuse_inference_update(t)
    if not recording:
        return
    meta = t.view_meta
    if meta is not None:
        if meta.creation != VIEW_DEFAULT:
            raise inplace_view_error(t, False)
        if requires_of(t) and meta.base.node is None:
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an in-place "
                "operation."
            )
    if t.needs_grad and node_of(t) is None:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation. "
            "Change it under no_grad(), or work on a clone()."
        )


def check_result_shape(result: Any, target: Any) -> None:
    """Refuse to write an array into another one that it would have to enlarge."""
    if result.shape != target.shape:
        raise RuntimeError(
            f"output with shape {shape_text(target.shape)} doesn't match the broadcast shape "
            f"{shape_text(result.shape)}"
        )


def rebase_history(t: Tensor, node: Node, written: int = 0) -> None:
    """Make `node` the node of `t` after an in-place operation; for a view, rewrite its base.

    `written` is the edge of `node` that stands for the changed tensor.
    """
    meta = t.view_meta
    if meta is None:
        move_retained_grad(t, node)
        t.node = node
        t.output_index = 0
        t.needs_grad = True
        return
    base = meta.base
    if not base.needs_grad and meta.version + 1 != t.version():
        _refit_steps(t)
    before = edges(node)
    node.next_nodes = (*before[:written], edge_node(base), *before[written + 1 :])
    copy = CopySlices(base, node, meta.steps, written)
    move_retained_grad(base, copy)
    base.node = copy
    base.output_index = 0
    base.needs_grad = True
    t.needs_grad = True
    regenerate_view(t)


def regenerate_view(t: Tensor) -> None:
    """Give a view of a changed base its new node, by making the view again."""
    meta: Any = t.view_meta
    if meta.creation != VIEW_DEFAULT:
        raise inplace_view_error(t, True)
    state = thread_state()
    enabled = state.grad_enabled
    state.grad_enabled = True
    try:
        fresh = _view_again(t)
    finally:
        state.grad_enabled = enabled
    retained = t.cold is not None and t.cold.retains_grad and t.node is not None
    if retained:
        t.node.cold.retain_hooks.pop(t.output_index, None)
    t.node = fresh.node
    if fresh.node is not None and fresh.node.shown:
        _native.show(t)
    t.output_index = fresh.output_index
    t.needs_grad = fresh.needs_grad
    meta.version = t.version()
    if retained and t.node is not None:
        add_retain_hook(t)


def _view_again(t: Tensor) -> Tensor:
    """The view made anew: by its own steps, or by strides if its base was reshaped in place."""
    meta: Any = t.view_meta
    try:
        fresh = replay(meta.base, meta.steps)
        if same_elements(fresh, t) or t.array.dtype != meta.base.array.dtype:
            return fresh  # strides lead to no numbers of another type
    except (RuntimeError, IndexError, ValueError):
        pass
    meta.steps = strided_steps(t, meta.base)
    return replay(meta.base, meta.steps)


def _refit_steps(t: Tensor) -> None:
    """Make the steps of a view lead to it again, if its base was reshaped without a history."""
    state = thread_state()
    enabled, state.grad_enabled = state.grad_enabled, False
    try:
        _view_again(t)
    finally:
        state.grad_enabled = enabled


def move_retained_grad(t: Tensor, node: Node) -> None:
    """Let `retain_grad` follow the tensor to its new node."""
    if t.cold is None or not t.cold.retains_grad or t.node is None:
        return
    hook = t.node.cold.retain_hooks.pop(t.output_index, None)
    if hook is not None:
        cold = node.make_cold()
        if cold.retain_hooks is None:
            cold.retain_hooks = {}
        cold.retain_hooks[0] = hook


def add_retain_hook(t: Tensor) -> None:
    """Keep the gradient that reaches `t`, a non-leaf, in its ``.grad``."""
    cold = t.node.make_cold()
    if cold.retain_hooks is None:
        cold.retain_hooks = {}
    cold.retain_hooks[t.output_index] = weakref.ref(t)
