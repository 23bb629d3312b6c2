"""One call of one operator: layers, then autograd, then the kernel.

`Operator.call1` and `call2` are the short ways for one and two operands, `call` takes all arguments
in schema order. When no layer (mode, transform, forward AD) is active, one integer test is all that
stands before the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends.backend import BY_CLASS
from ..core.errors import argument_error
from ..core.native import native
from ..core.registry import operator_named
from ..core.state import ThreadState, thread_state
from ..core.tensor import Tensor, requires_of, wrap, wrap_as
from .binding import bind_arguments, check_operand, signature_text
from .declaration import Declaration
from .out import bound_for_out, casts_to_out, copy_to_out
from .recording import fill_saved, record, record_small, set_view

_native = native
_ndarray = np.ndarray
_classes = BY_CLASS


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
    """Give operators what `torch_function.py` has; `plain` is its answer if none overrides."""
    global _override_operator, _override_operands, _PLAIN
    _override_operator, _override_operands, _PLAIN = override_operator, override_operands, plain


class Operator(Declaration):
    """A declared operator: how to call it, in Python and from within."""

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
            record_small(self, state, x, None, 1, result)
        return result

    def call2(self, x: Any, y: Any) -> Any:
        """Two operands, one of them possibly a number, further arguments at their defaults."""
        state = thread_state()
        if state.layers or self.outputs != 1:
            a, b = x, y
            if not isinstance(x, Tensor):
                x = check_operand(x)
            if not isinstance(y, Tensor):
                y = check_operand(y)
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
            x = check_operand(x)
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
            y = check_operand(y)
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
            record_small(self, state, x, y, mask, result)
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
            and not (self.is_view and args[0].inference)
        ):
            node = record(self, state, args, outs[0].array)
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
            fill_saved(node, args, outs)
        if self.is_view:
            set_view(self, state, args, outs)
        return outs[0] if self.outputs == 1 and type(out) is not list else outs

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
        if out is not None:
            bound = bound_for_out(self, bound, out)
        try:
            result = self.call(bound)
        except AttributeError as error:
            parameters = tuple(["input" if n == "self" else n for n in self.schema.names])
            raise argument_error(error, self.name, parameters, bound, {}) from None
        if out is None:
            return result
        operands = bound if self.broadcasts else ()
        return copy_to_out(self.name, result, out, operands, not casts_to_out(self, bound))

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else _native.method(self, instance)

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
        from ..library.builtin import builtin_schema

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
    return type(array) is not _ndarray and (
        isinstance(array, _ndarray) or type(array) in _classes
    )


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

