"""In-place operations: the writing itself, and what it does to versions, views and history."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.loop_codes import COPY
from ..backends.loops import loops
from ..backends.numpy import cast_into, quiet
from ..core.classes import COMPILED, classes
from ..core.collector import collector
from ..core.dtypes import can_cast, from_numpy
from ..core.ndarrays import ndarrays
from ..core.registry import operator_named
from ..core.state import ThreadState, thread_state
from ..core.tensor import (
    Tensor,
    any_requires,
    bump_version,
    counter_of,
    node_of,
    requires_of,
    wrap,
)
from ..tape.cycles import show_graph
from ..tape.tangents import copy_tangent
from .base_operator import BaseOperator, function_attribute, present, without_getattr
from .binding import check_operand
from .declaration import any_foreign, arrays_of
from .layers import call_layers, run_below
from .operator import Operator
from .overlap import check_not_overlapping, check_sources, same_array
from .rebasing import check_inplace, check_result_shape, rebase_history
from .recording import fill_outputs, record, saved_arguments
from .torch_function import override_operands

_classes = classes
_collector = collector
_loops = loops
_ndarrays = ndarrays
_ndarray = np.ndarray
_negative = np.negative
_copy = COPY
_quiet_set, _quiet_reset, _quiet_ignore = quiet.set, quiet.reset, quiet.ignore


class InplaceOperator(BaseOperator):
    """The variant of an operator that writes its result into its first argument."""

    def __init__(self, functional: Operator, schema: Any) -> None:
        BaseOperator.__init__(self, functional.name + "_", schema)
        _classes.name_function(self, self.name)
        self.functional = functional
        self.tail = functional.tail
        self.doc = f"In-place form of {functional.name}()."
        self.aliases = functional.aliases
        self.facts = _facts_in_place(functional.facts)
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
            and _loops.binary_into(
                functional.native_code, target.array, y.array if isinstance(y, Tensor) else y
            )
        ):
            bump_version(target, self.name)
            return target
        return self.call((x, y, *self.tail))

    def call(self, args: tuple) -> Any:
        state = thread_state()
        if state.layers or any_foreign(args):
            return call_layers(state, self, args)
        functional = self.functional
        target = args[0]
        if (
            not state.grad_enabled
            and functional.native_code == 0
            and len(args) == 3
            and not target.inference
            and type(args[2]) is float
            and isinstance(args[1], Tensor)
            and _loops.binary_into(0, target.array, args[1].array, args[2])
        ):
            bump_version(target, self.name)
            return target
        if (
            not state.grad_enabled
            and functional.native_code == _copy
            and not target.inference
            and isinstance(args[1], Tensor)
            and _loops.binary_into(_copy, target.array, args[1].array)
        ):
            bump_version(target, self.name)
            return target
        return self.record_around(state, args, None)

    def call_recorded(self, state: ThreadState, args: tuple, below: Any) -> Any:
        """Record a call whose writing is done by `below(state, operator, args)`."""
        return self.record_around(state, args, below)

    def record_around(self, state: ThreadState, args: tuple, below: Any) -> Any:
        """Check and record a call around the writing itself, which is `write` without `below`."""
        functional = self.functional
        target = args[0]
        recording = state.recording() and any_requires(args, functional.grad_positions)
        if recording and self.casts_freely and not self.uniform:
            recording = _ndarrays.is_differentiable(target.array)  # a copy may drop the history
        check_inplace(target, recording, state)
        node = None
        saved: list = []
        if recording:
            saving = args
            node = record(functional, state, args, target.array)
            if 0 in node.plan.slots:
                before = copy_of(target)
                before.needs_grad = requires_of(target)
                before.node = node_of(target)
                before.output_index = target.output_index
                if before.node is not None and before.node.shown:
                    _collector.show(before)
                if state.dual_level >= 0:
                    copy_tangent(target, before)
                saving = (before, *args[1:])
            # Before anything is written, since what is saved may be refused, or be written over.
            saved = saved_arguments(node, saving)
        if below is not None:
            version = target.version()
            below(state, self, args)
            if target.counter is not None:
                target.counter.value = version  # what a handler has counted is one change
        else:
            self.write(target, args)
        bump_version(target, self.name)
        if node is not None:
            if not _ndarrays.is_differentiable(target.array):
                return target
            kept = counter_of(target).watched
            rebase_history(target, node)
            fill_outputs(node, saved, (target,))
            if kept:  # by a node that the new one may lead to
                show_graph(node)
                show_graph(target)
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
        if not self.uniform or len(arrays) > 1 and hasattr(arrays[1], "dtype"):
            check_not_overlapping(self.name, array)
        vector = functional.vector_loop
        if vector is not None and vector.run_into(arrays, array):
            return
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
        if functional.broadcasts and functional.operands == 2 and "raises" in functional.facts:
            _check_operand_shape(array, getattr(arrays[1], "shape", ()))
        result = functional.run_kernel(arrays)
        check_result_shape(result.shape, array)
        if result.dtype != array.dtype and not self.casts_freely:
            source, goal = from_numpy(result.dtype), from_numpy(array.dtype)
            if not can_cast(source, goal):
                raise RuntimeError(
                    f"result type {source.scalar_name} can't be cast to the desired output type "
                    f"{goal.scalar_name}"
                )
        if result.dtype == array.dtype:
            array[...] = result
        else:
            cast_into(array, result)

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
        return self.call_bound(args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return function_attribute(self, name)


present(InplaceOperator)
if not COMPILED:
    without_getattr(InplaceOperator)


def _check_operand_shape(array: Any, shape: tuple) -> None:
    """Refuse what would enlarge the target, before an operator can refuse values."""
    if shape and shape != array.shape:
        try:
            whole = np.broadcast_shapes(array.shape, shape)
        except ValueError:
            return  # the operator says so
        check_result_shape(whole, array)


def _facts_in_place(facts: dict[str, Any]) -> dict[str, Any]:
    """What the declaration of an operator says of its in-place form."""
    found: dict[str, Any] = {}
    for key in ("aten", "overridden_as"):
        if key in facts:
            found[key] = facts[key] + "_"
    overload = facts.get("inplace_overload", facts.get("overload"))
    if overload is not None:
        found["overload"] = overload
    return found


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
        clone = operator_named("clone")
        copy: Tensor = clone.finish(state, (t,), run_below(state, clone, (t,)))
    finally:
        state.grad_enabled = enabled
    return copy
