"""One call of one operator: layers, then autograd, then the kernel.

`Operator.call1` and `call2` are the short ways for one and two operands, `call` takes all arguments
in schema order. When no layer (mode, transform, forward AD) is active, one integer test is all that
stands before the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np

from .autograd.accumulation import edge_target
from .autograd.node import Node, new_node
from .autograd.plans import GradientPlan, GradientStep
from .autograd.saved import save, save_output
from .backends.numpy import copy_order, quiet
from .binding import bind_arguments, check_operand, signature_text
from .dtypes import from_numpy
from .errors import broadcast_error
from .native import native
from .out import copy_to_out
from .schema import REQUIRED
from .state import ThreadState, thread_state
from .tensor import (
    VIEW_DEFAULT,
    VIEW_INFERENCE,
    VIEW_MULTI_OUTPUT,
    VIEW_NO_GRAD,
    AbstractOperator,
    Tensor,
    ViewMeta,
    counter_of,
    node_of,
    requires_of,
    wrap,
    wrap_as,
)

_native = native
_hides = native.compiled
_ndarray = np.ndarray
_quiet_set, _quiet_reset, _quiet_ignore = quiet.set, quiet.reset, quiet.ignore
_SHAPE_SLOT = 1000
_OUT_SLOT = -1
# Between the look at the user's frame and that frame: Native.caller, new_node, record_small, call1
# or call2, and the method or function that the user called.
_FRAMES = 5


_call_layers: Any = None
_run_below: Any = None


def bind_layers(call_layers: Callable, run_below: Callable) -> None:
    """Give operators the two functions of `layers.py`, which is imported after this module."""
    global _call_layers, _run_below
    _call_layers, _run_below = call_layers, run_below


_override_operator: Any = None
_override_operands: Any = None
_PLAIN: Any = None


def bind_overrides(override_operator: Callable, override_operands: Callable, plain: Any) -> None:
    """Give operators what `function_overrides.py` has; `plain` is its answer if none overrides."""
    global _override_operator, _override_operands, _PLAIN
    _override_operator, _override_operands, _PLAIN = override_operator, override_operands, plain


class Operator(AbstractOperator):
    """A declared operator: everything known about it, and how to call it."""

    def __init__(self, name: str, schema: Any, family: str, kernel: Callable) -> None:
        self.name = name
        _native.name_function(self, name)
        self.schema = schema
        self.family = family
        self.kernel = kernel
        self.ufunc: Any = None
        self.dtype_rule: Any = None
        self.native_code = -1
        self.outputs = len(schema.returns)
        self.broadcasts = False
        self.is_view = False
        self.mutates = False
        self.widens = False
        arguments = schema.arguments
        self.arity = len(arguments)
        self.tensor_positions = tuple(
            i for i, a in enumerate(arguments) if a.type in ("Tensor", "Tensor?")
        )
        self.list_positions = tuple(
            i for i, a in enumerate(arguments) if a.type in ("Tensor[]", "Tensor?[]")
        )
        self.operands = len(self.tensor_positions)
        self.tail_has_defaults = self.tensor_positions == tuple(range(self.operands)) and all(
            a.default is not REQUIRED for a in arguments[self.operands :]
        )
        self.tail = tuple(a.default for a in arguments[len(self.tensor_positions) :])
        self.grad_positions: tuple[int, ...] = ()
        self.nondifferentiable_outputs: tuple[int, ...] = ()
        self.rules: dict[str, Any] = {}
        self.loops: dict[str, int] = {}
        self.jvp_rule: Any = None
        self.meta_rule: Any = None
        self.batch_rule: Any = None
        self.batches_by_loop = False
        self.plans: dict = {}
        self.small_plans: list = [None] * 4
        self.node_name = name.title().replace("_", "") + "Backward0"
        self.namer: Any = None
        self.refuses = ""
        self.guarded = True
        self.doc = ""
        self.aliases: dict[str, str] = {}

    # The calls -----------------------------------------------------------------------------

    def call1(self, x: Any) -> Any:
        """One tensor operand, further arguments at their defaults."""
        state = thread_state()
        if state.layers or not isinstance(x, Tensor) or self.is_view or self.outputs != 1:
            return self.call((x, *self.tail))
        tensor = x
        code = self.native_code
        out = _native.unary(code, tensor.array) if code >= 0 else None
        if out is None:
            if type(tensor.array) is not _ndarray:
                return self.call((x, *self.tail))
            out = self.run_kernel((tensor.array, *self.tail))
        result = wrap_as(out, state.inference)
        if (
            state.grad_enabled
            and not state.inference
            and self.grad_positions
            and requires_of(tensor)
        ):
            self.record_small(state, x, None, 1, result)
        return result

    def call2(self, x: Any, y: Any) -> Any:
        """Two operands, one of them possibly a number, further arguments at their defaults."""
        state = thread_state()
        if state.layers or self.outputs != 1:
            a, b = x, y
            if not isinstance(x, Tensor):
                x = check_operand(self, x, y)
            if not isinstance(y, Tensor):
                y = check_operand(self, y, x)
            if x is NotImplemented or y is NotImplemented:
                return _override_operands(self, a, b)
            return self.call((x, y, *self.tail))
        mask = 0
        if isinstance(x, Tensor):
            tensor = x
            a = tensor.array
            if tensor.needs_grad or tensor.view_meta is not None and requires_of(tensor):
                mask = 1
        else:
            a = x
            x = check_operand(self, x, y)
            if x is NotImplemented:
                return _override_operands(self, a, y)
            a = x.array if isinstance(x, Tensor) else x
        if isinstance(y, Tensor):
            tensor = y
            b = tensor.array
            if tensor.needs_grad or tensor.view_meta is not None and requires_of(tensor):
                mask |= 2
        elif type(y) is float or type(y) is int:
            b = y
        else:
            b = y
            y = check_operand(self, y, x)
            if y is NotImplemented:
                return _override_operands(self, x, b)
            b = y.array if isinstance(y, Tensor) else y
        code = self.native_code
        out = _native.binary(code, a, b) if code >= 0 else None
        if out is None:
            if is_foreign(a) or is_foreign(b):
                return self.call((x, y, *self.tail))
            out = self.run_kernel((a, b, *self.tail))
        result = wrap_as(out, state.inference)
        if mask and state.grad_enabled and not state.inference and self.grad_positions:
            self.record_small(state, x, y, mask, result)
        return result

    def call(self, args: tuple) -> Any:
        """All arguments, in schema order."""
        state = thread_state()
        if state.layers or any_foreign(args):
            return _call_layers(self, args)
        return self.finish(state, args, self.run_kernel(arrays_of(args)))

    def call_recorded(self, state: ThreadState, args: tuple) -> Any:
        """Record a call whose result comes from the layers below autograd."""
        out = _run_below(self, args)
        return None if out is None else self.finish(state, args, out)

    def finish(self, state: ThreadState, args: tuple, out: Any) -> Any:
        """Wrap what the kernel returned, record the call, relate views to their base."""
        outs = (
            (fresh(out),)
            if type(out) is not tuple and type(out) is not list
            else tuple([fresh(o) for o in out])
        )
        if (
            state.recording()
            and self.grad_positions
            and any_requires(args, self.grad_positions)
            and outs
        ):
            node = self.record(state, args, outs[0].array)
            if len(outs) > 1 or self.outputs != 1:
                node.outputs_meta = []
            index = 0
            for i, t in enumerate(outs):
                if i in self.nondifferentiable_outputs:
                    continue
                if node.outputs_meta is not None:
                    node.outputs_meta.append((_native.shape_of(t.array), t.array.dtype))
                if _native.is_differentiable(t.array):
                    t.node = node
                    t.output_index = index
                    t.needs_grad = True
                    if node.shown:
                        _native.show(t)
                index += 1
            self.fill_saved(node, args, outs)
        if self.is_view:
            self.set_view(state, args, outs)
        return outs[0] if self.outputs == 1 and type(out) is not list else outs

    # Kernels -------------------------------------------------------------------------------

    def run_kernel(self, args: tuple) -> Any:
        """The kernel on arrays, with promotion, quiet floating point and array results."""
        for position in self.tensor_positions:
            value = args[position]
            if type(value) is not _ndarray and isinstance(value, _ndarray):
                return self._run_elsewhere(args)
        if self.is_view:
            return self.kernel(np, *args)
        if not self.guarded:
            return np.asanyarray(self.kernel(np, *args))
        token = _quiet_set(_quiet_ignore)
        try:
            if self.dtype_rule is not None:
                if not alike_floats(args, self.operands):
                    args = self.dtype_rule(args, self.operands)
                    if self.refuses:
                        self._refuse(args)
                    if _has_half(args):
                        return _narrow(self.kernel(np, *_widen(args)), args)
            elif self.widens and _only_halves(args):
                return _narrow(self.kernel(np, *_widen(args)), args)
            if self.ufunc is not None:
                out = self.ufunc(*args)
            else:
                out = self.kernel(np, *args)
        except ValueError as error:
            if self.broadcasts:
                raise broadcast_error(self.name, args, error) from None
            raise
        finally:
            _quiet_reset(token)
        if isinstance(out, _ndarray):
            return out
        if type(out) is tuple:
            return tuple([np.asanyarray(o) for o in out])
        return out if type(out) is list else np.asarray(out)

    def _refuse(self, args: tuple) -> None:
        """Raise for dtypes that the operator is not defined for."""
        dtype = next(a.dtype for a in args if isinstance(a, _ndarray))
        if dtype.kind in self.refuses:
            raise NotImplementedError(
                f"\"{self.name}_cpu\" not implemented for '{from_numpy(dtype).scalar_name}': "
                f"{self.name}() is not supported for {dtype} tensors"
            )

    def _run_elsewhere(self, args: tuple) -> Any:
        """The same for arrays that are not NumPy's: meta now, CUDA where CuPy is installed."""
        from .backends import meta

        arrays = [a for a in args if isinstance(a, np.ndarray)]
        if not all(isinstance(a, meta.MetaArray) or a.ndim == 0 for a in arrays):
            raise RuntimeError(
                f"{self.name}(): Expected all tensors to be on the same device, but found at least "
                "two devices, meta and cpu!"
            )
        if self.meta_rule is not None:
            return self.meta_rule(*args)
        if self.is_view:
            return self.kernel(np, *args)
        token = _quiet_set(_quiet_ignore)
        try:
            if self.dtype_rule is not None:
                return meta.elementwise(self._promoted_kernel, args)
            return meta.general(self.kernel, args)
        finally:
            _quiet_reset(token)

    def _promoted_kernel(self, xp: Any, *args: Any) -> Any:
        return self.kernel(xp, *self.dtype_rule(args, len(self.tensor_positions)))

    # Recording -----------------------------------------------------------------------------

    def record_small(self, state: ThreadState, x: Any, y: Any, mask: int, result: Tensor) -> None:
        """Record a call of one or two operands, all of them differentiable, without lists."""
        plan = self.small_plans[mask]
        if plan is None:
            if self.namer is None:
                plan = self.plan_for(mask, self.node_name)
                self.small_plans[mask] = plan
            else:
                plan = self.named_plan(mask, (x, *self.tail) if y is None else (x, y, *self.tail))
        first = second = None
        nr = other_nr = 0
        from_leaf = False
        if mask & 1:
            t = x
            first = t.node if t.view_meta is None else node_of(t)
            if first is None and t.needs_grad:
                first = t
                from_leaf = True
            else:
                nr = t.output_index
        if mask & 2:
            t = y
            second = t.node if t.view_meta is None else node_of(t)
            if second is None and t.needs_grad:
                second = t
                from_leaf = True
            else:
                other_nr = t.output_index
        if plan.edges == 1:
            if first is None:
                first = second
                nr = other_nr
            nodes = (first,)
            nrs = (nr,) if nr else None
        else:
            nodes = (first, second)  # type: ignore[assignment]
            nrs = (nr, other_nr) if nr or other_nr else None  # type: ignore[assignment]
        node = new_node(plan, state, result.array, nodes, nrs, _FRAMES)
        node.unresolved = from_leaf
        result.node = node
        result.needs_grad = True
        count = plan.saves
        if count == 1:
            node.saved = (self.saved_value(state, plan.slots[0], x, y, result),)
        elif count == 2:
            slots = plan.slots
            node.saved = (
                self.saved_value(state, slots[0], x, y, result),
                self.saved_value(state, slots[1], x, y, result),
            )
        elif count:
            node.saved = tuple([self.saved_value(state, s, x, y, result) for s in plan.slots])
        if _hides:
            if node.shown:
                _native.show(result)
            elif count:
                _native.hide(node.saved)

    def saved_value(self, state: ThreadState, slot: int, x: Any, y: Any, result: Tensor) -> Any:
        """What `record_small` keeps for one slot of the plan."""
        if slot < 0:
            return save_output(result, state)
        if slot < self.operands:
            value = y if slot else x
            if type(value) is Tensor and not state.saved_hooks:
                t = value
                counter = t.counter
                if (counter is None or counter.value == 0) and not t.inference:
                    t.watched = True
                    if counter is not None:
                        counter.watched = True
                    return t
            return save(value, state)
        if slot >= _SHAPE_SLOT:
            return (x if slot == _SHAPE_SLOT else y).array.shape
        return self.tail[slot - self.operands]

    def record(self, state: ThreadState, args: tuple, out_array: Any) -> Node:
        """A node with its edges; which inputs require gradients selects the plan."""
        mask = 0
        bit = 1
        nodes = []
        nrs = None
        for position in self.grad_positions:
            value = args[position]
            if isinstance(value, Tensor):
                t = value
                if requires_of(t):
                    mask |= bit
                    nodes.append(edge_target(t))
                    nr = t.output_index
                    if nr:
                        if nrs is None:
                            nrs = [0] * (len(nodes) - 1)
                        nrs.append(nr)
                    elif nrs is not None:
                        nrs.append(0)
                else:
                    nodes.append(None)
                    if nrs is not None:
                        nrs.append(0)
            elif type(value) is list or type(value) is tuple:
                nrs = []
                for t in value:
                    if t is not None and requires_of(t):
                        mask |= bit
                        nodes.append(edge_target(t))
                        nrs.append(t.output_index)
                    else:
                        nodes.append(None)
                        nrs.append(0)
            elif value is None or self.namer is None:
                nodes.append(None)
                if nrs is not None:
                    nrs.append(0)
            bit <<= 1
        plan = self.plans.get(mask) if self.namer is None else self.named_plan(mask, args)
        if plan is None:
            plan = self.plan_for(mask, self.node_name)
        return new_node(
            plan, state, out_array, tuple(nodes), None if nrs is None else tuple(nrs), _FRAMES - 1
        )

    def fill_saved(self, node: Node, args: tuple, outs: tuple) -> None:
        """Save exactly what the plan's rules read."""
        slots = node.plan.slots
        if not slots:
            return
        state = thread_state()
        saved = []
        for index in slots:
            if index >= _SHAPE_SLOT:
                saved.append(args[index - _SHAPE_SLOT].array.shape)
            elif index >= 0:
                saved.append(save(args[index], state))
            else:
                saved.append(save_output(outs[_OUT_SLOT - index], state))
        node.saved = tuple(saved)
        if not node.shown:
            _native.hide(node.saved)

    def named_plan(self, mask: int, args: tuple) -> GradientPlan:
        """The plan of an operator whose node's name depends on its arguments."""
        name = self.namer(*args)
        return self.plans.get((mask, name)) or self.plan_for(mask, name, args)

    def plan_for(self, mask: int, name: str, args: tuple | None = None) -> GradientPlan:
        """The plan for one pattern of inputs that require gradients, made once.

        A number among the `args` that have named the plan has no edge.
        """
        slots: list[int] = []
        steps = []
        edge = -1
        for i, position in enumerate(self.grad_positions):
            value = None if args is None else args[position]
            if value is not None and not isinstance(value, (Tensor, list, tuple)):
                continue
            edge += 1
            if not mask >> i & 1:
                continue
            argument = self.schema.arguments[position]
            rule = self.rules.get(argument.name)
            if rule is None:
                continue
            indices = []
            for read in rule_reads(rule):
                slot = self._slot(read)
                if slot not in slots:
                    slots.append(slot)
                indices.append(slots.index(slot))
            steps.append(
                GradientStep(
                    edge,
                    rule,
                    tuple(indices),
                    position in self.list_positions,
                    self.loops.get(argument.name, -1),
                )
            )
        plan = GradientPlan(
            self,
            name,
            edge + 1,
            tuple(steps),
            tuple(slots),
            tuple(self._slot_name(slot) for slot in slots),
            conjugates=self.family == "elementwise",
            several_outputs=self.outputs != 1,
        )
        self.plans[mask if self.namer is None else (mask, name)] = plan
        return plan

    def all_reads(self) -> set[str]:
        """What any of the reverse rules reads."""
        return {read for rule in self.rules.values() if rule for read in rule_reads(rule)}

    def _slot(self, name: str) -> int:
        """Where a rule's parameter comes from: an argument, its shape, or an output."""
        names = [a.name for a in self.schema.arguments]
        if name in names:
            return names.index(name)
        if name.startswith("out") and (name == "out" or name[3:].isdigit()):
            return _OUT_SLOT - int(name[3:] or 0)
        if name.endswith("_shape") and name[:-6] in names:
            return _SHAPE_SLOT + names.index(name[:-6])
        raise TypeError(
            f"{self.name}: a gradient rule reads '{name}', which is no argument or output"
        )

    def _slot_name(self, slot: int) -> str:
        if slot >= _SHAPE_SLOT:
            return self.schema.arguments[slot - _SHAPE_SLOT].name + "_sym_sizes"
        if slot >= 0:
            return self.schema.arguments[slot].name
        return "result" if self.outputs == 1 else f"result{_OUT_SLOT - slot}"

    def set_view(self, state: ThreadState, args: tuple, outs: tuple) -> None:
        """Make `outs` views of the first argument: shared version, base, way to be re-made."""
        x = args[0]
        for t in outs:
            t.inference = x.inference
        if x.inference:
            return
        meta = x.view_meta
        creation = VIEW_DEFAULT
        if not state.grad_enabled:
            creation = VIEW_NO_GRAD
        elif len(outs) > 1 or self.outputs != 1:
            creation = VIEW_MULTI_OUTPUT
        if state.inference:
            creation = VIEW_INFERENCE
        base = x
        steps = (None, self, args[1:])
        if meta is not None:
            base = meta.base
            steps = (meta.steps, self, args[1:])
            if meta.creation != VIEW_DEFAULT and creation == VIEW_DEFAULT:
                creation = meta.creation
        counter = counter_of(x)
        for t in outs:
            t.counter = counter
            t.view_meta = ViewMeta(base, steps, creation, counter.value)

    # As a Python function and as a method ----------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and self.tail_has_defaults and only_tensors(args, self.operands):
            if self.operands == 1:
                return self.call1(args[0])
            if self.operands == 2:
                return self.call2(args[0], args[1])
            return self.call(args + self.tail)
        if _native.overriding:
            result = _override_operator(self, args, kwargs)
            if result is not _PLAIN:
                return result
        out = kwargs.pop("out", None)
        try:
            bound = bind_arguments(self, args, kwargs)
        except TypeError:
            result = _override_operator(self, args, kwargs)
            if result is not _PLAIN:
                return result
            raise
        result = self.call(bound)
        if out is None:
            return result
        return copy_to_out(self.name, result, out, bound if self.broadcasts else ())

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        return function_attribute(self, name)

    def __repr__(self) -> str:
        return f"<operator {self.name}{signature_text(self.schema)}>"

    def __reduce__(self) -> tuple:
        return (operator_named, (self.name,))


def function_attribute(operator: Any, name: str) -> Any:
    """What `inspect` and `functools` look for on a function."""
    if name in ("__name__", "__qualname__"):
        return operator.name
    if name == "__signature__":
        from .binding import signature_of

        return signature_of(operator.schema)
    if name == "_schema":
        from .library.builtin import builtin_schema

        return builtin_schema(operator)
    raise AttributeError(f"operator '{operator.name}' has no attribute '{name}'")


class FunctionAttribute:
    """What `function_attribute` finds, as a descriptor; on the class there is none."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, operator: Any, owner: Any) -> Any:
        if operator is None:
            raise AttributeError(self.name)
        return function_attribute(operator, self.name)


def without_getattr(cls: Any) -> None:
    """Rid an uncompiled class of operators of __getattr__, which would slow all its fields down.

    The names are fields: no class can have them in its body.
    """
    del cls.__getattr__
    for name in ("__signature__", "_schema"):
        setattr(cls, name, FunctionAttribute(name))


if not _native.compiled:
    without_getattr(Operator)


def rule_reads(rule: Callable) -> tuple[str, ...]:
    """Names of the values a gradient rule reads, after the gradient itself."""
    code = rule.__code__
    return code.co_varnames[1 : code.co_argcount]


def only_tensors(args: tuple, count: int) -> bool:
    """Whether `args` are exactly `count` tensors."""
    if len(args) != count:
        return False
    for value in args:  # noqa: SIM110 - a generator would be made for every call
        if not isinstance(value, Tensor):
            return False
    return True


def any_requires(args: tuple, positions: tuple) -> bool:
    """Whether recording concerns any of the arguments at `positions`."""
    for position in positions:
        value = args[position]
        if isinstance(value, Tensor):
            t = value
            if requires_of(t):
                return True
        elif type(value) is list or type(value) is tuple:
            for item in value:
                if isinstance(item, Tensor) and requires_of(item):
                    return True
    return False


def fresh(out: Any) -> Tensor:
    """A tensor for one result: around an array, or the tensor that a layer below has made."""
    return out if isinstance(out, Tensor) else wrap(out)


def is_foreign(array: Any) -> bool:
    """Whether an operand is an array that NumPy's kernels do not serve."""
    return type(array) is not _ndarray and isinstance(array, _ndarray)


def any_foreign(args: tuple) -> bool:
    """Whether any tensor among the arguments has such an array."""
    for value in args:
        if isinstance(value, Tensor):
            t = value
            if type(t.array) is not _ndarray:
                return True
        elif type(value) is list:
            for item in value:
                if isinstance(item, Tensor):
                    t = item
                    if type(t.array) is not _ndarray:
                        return True
    return False


def alike_floats(arrays: tuple, count: int) -> bool:
    """Whether nothing needs converting: operands of one dtype, float32 or float64, and numbers."""
    dtype = None
    for i in range(count):
        a = arrays[i]
        if type(a) is _ndarray:
            if dtype is None:
                dtype = a.dtype
                if not _native.is_real_float(a):
                    return False
            elif a.dtype is not dtype:
                return False
        elif type(a) is not float and type(a) is not int:
            return False
    return dtype is not None


def arrays_of(args: tuple) -> tuple:
    """The arguments with every tensor replaced by its array, in lists too."""
    out = []
    for a in args:
        if isinstance(a, Tensor):
            t = a
            out.append(t.array)
        elif type(a) is list:
            out.append([i.array if isinstance(i, Tensor) else i for i in a])
        else:
            out.append(a)
    return tuple(out)


def _has_half(args: tuple) -> bool:
    for a in args:  # noqa: SIM110 - a generator would be made for every call
        if type(a) is _ndarray and _native.is_half(a):
            return True
    return False


def _only_halves(args: tuple) -> bool:
    """Whether the floats among the operands are 16-bit ones; other mixtures are the kernel's."""
    found = False
    for a in args:
        if type(a) is _ndarray:
            if _native.is_half(a):
                found = True
            elif _native.is_real_float(a):
                return False
    return found


def _widen(args: tuple) -> list:
    """The 16-bit floats as float32, in which the kernels compute."""
    return [[_widened(i) for i in a] if type(a) is list else _widened(a) for a in args]


def _widened(a: Any) -> Any:
    if type(a) is _ndarray and _native.is_half(a):
        return a.astype(np.float32, copy_order(a))
    return a


def _narrow(out: Any, args: tuple) -> Any:
    """Results back to the type of the first 16-bit operand."""
    half = next(a.dtype for a in args if type(a) is _ndarray and _native.is_half(a))
    if type(out) is tuple:
        return tuple([_narrow(o, args) for o in out])
    out = np.asarray(out)
    return out.astype(half) if out.dtype == np.float32 else out


_OPERATORS: dict[str, AbstractOperator] = {}


def register(operator: Any) -> None:
    """Make an operator known by its name."""
    if operator.name in _OPERATORS:
        raise ValueError(f"operator {operator.name} is declared twice")
    _OPERATORS[operator.name] = operator


def operator_named(name: str) -> Any:
    return _OPERATORS[name]


def operators() -> dict[str, AbstractOperator]:
    """All declared operators by name, in-place variants included."""
    return _OPERATORS
