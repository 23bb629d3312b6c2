"""One call of one operator: layers, then autograd, then the kernel.

`Operator.call1` and `call2` are the short ways for one and two operands, `call` takes all arguments
in schema order. When no layer (mode, transform, forward AD) is active, one integer test is all that
stands before the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends.loops import loops
from ..core.classes import COMPILED
from ..core.collector import collector
from ..core.ndarrays import ndarrays
from ..core.state import ThreadState, overriding, thread_state
from ..core.tensor import Tensor, any_requires, requires_of, wrap_as, wrapped
from .base_operator import function_attribute, present, without_getattr
from .binding import bind_arguments, check_operand
from .declaration import Declaration, is_foreign, only_tensors, plain_arrays
from .layers import call_layers
from .out import APART, bound_for_out, casts_to_out, copy_to_out
from .presentation import presented
from .recording import fill_saved, record, record_small, set_view
from .torch_function import PLAIN, override_operands, override_operator

_collector = collector
_hides = COMPILED
_loops = loops
_ndarrays = ndarrays
_overriding = overriding
_ndarray = np.ndarray


class Operator(Declaration):
    """A declared operator: how to call it, in Python and from within."""

    # The calls -----------------------------------------------------------------------------

    def call1(self, x: Any) -> Any:
        """One tensor operand, further arguments at their defaults."""
        state = thread_state()
        if state.layers:
            return call_layers(state, self, (x, *self.tail))
        if not isinstance(x, Tensor) or self.is_view or self.outputs != 1:
            return self.call((x, *self.tail))
        tensor = x
        code = self.native_code
        out = _loops.unary(code, tensor.array) if code >= 0 else None
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
                return override_operands(self, a, b)
            args = (x, y, *self.tail)
            return call_layers(state, self, args) if state.layers else self.call(args)
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
                return override_operands(self, a, y)
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
                return override_operands(self, x, b)
            b = y.array if isinstance(y, Tensor) else y
        code = self.native_code
        out = _loops.binary(code, a, b) if code >= 0 else None
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
        arrays = None if state.layers else plain_arrays(args)
        if arrays is None:
            return call_layers(state, self, args)
        return self.finish(state, args, self.run_kernel(arrays))

    def finish(self, state: ThreadState, args: tuple, out: Any) -> Any:
        """Wrap what the kernel returned, record the call, relate views to their base."""
        if self.outputs == 1 and not self.is_view and isinstance(out, _ndarray):
            return self._finish_one(state, args, out)
        outs = (
            (wrapped(out, state.inference),)
            if type(out) is not tuple and type(out) is not list
            else tuple([wrapped(o, state.inference) for o in out])
        )
        if (
            state.grad_enabled
            and not state.inference
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
                    array = t.array
                    node.outputs_meta.append(
                        (_ndarrays.shape_of(array), _ndarrays.dtype_of(array))
                    )
                if _ndarrays.is_differentiable(t.array):
                    t.node = node
                    t.output_index = index
                    t.needs_grad = True
                    if _hides and node.shown:
                        _collector.show(t)
                index += 1
            fill_saved(node, args, outs)
        if self.is_view:
            set_view(self, state, args, outs)
        return outs[0] if self.outputs == 1 and type(out) is not list else outs

    def _finish_one(self, state: ThreadState, args: tuple, out: Any) -> Tensor:
        """What `finish` does for one array that is no view."""
        result = wrap_as(out, state.inference)
        if (
            state.grad_enabled
            and not state.inference
            and self.grad_positions
            and any_requires(args, self.grad_positions)
        ):
            node = record(self, state, args, out)
            if _ndarrays.is_differentiable(out):
                result.node = node
                result.needs_grad = True
                if _hides and node.shown:
                    _collector.show(result)
            fill_saved(node, args, (result,))
        return result

    # As a Python function and as a method ----------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and self.tail_has_defaults and only_tensors(args, self.operands):
            if self.operands == 1:
                return self.call1(args[0])
            if self.operands == 2:
                return self.call2(args[0], args[1])
            return self.call(args + self.tail)
        if kwargs and kwargs.get("out") is not None:
            return self.call_into(args, kwargs)
        return self.call_bound(args, kwargs)

    def bind(self, args: tuple, kwargs: dict[str, Any]) -> tuple:
        """The arguments of a call in schema order; ``out=`` is none of them."""
        if kwargs:
            kwargs.pop("out", None)
        return bind_arguments(self, args, kwargs)

    def call_into(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call whose result goes into the tensor that is given as ``out=``."""
        if _overriding.possible:
            result = override_operator(self, args, kwargs)
            if result is not PLAIN:
                return result
        out = kwargs["out"]
        bound = bound_for_out(self, self.bind(args, kwargs), out)
        result = self.call(bound)
        operands = bound if self.broadcasts or self.name in APART else ()
        return copy_to_out(
            self.name, result, out, operands, not casts_to_out(self, bound), True
        )

    def __getattr__(self, name: str) -> Any:
        return function_attribute(self, name)


present(Operator)
if not COMPILED:
    without_getattr(Operator)


def call_function(operator: Operator, args: tuple, kwargs: dict[str, Any]) -> Any:
    """A call of an operator with some arguments beside its operands, as Python makes it."""
    if kwargs and kwargs.get("out") is not None:
        return operator.call_into(args, kwargs)
    return operator.call_bound(args, kwargs)


def overloaded(whole: Any, along: Any) -> Callable[..., Any]:
    """One function of two operators: `along` dimensions where any are given, else the `whole`."""

    def function(*args: Any, **kwargs: Any) -> Any:
        if len(args) <= 1:
            if not kwargs and args and isinstance(args[0], Tensor):
                return whole.call1(args[0])
            if "dim" not in kwargs and "axis" not in kwargs:
                return whole(*args, **kwargs)
        if isinstance(along, Operator):
            return call_function(along, args, kwargs)
        return along(*args, **kwargs)

    presented(function, whole.name, whole.kernel.__module__, along)
    function.forms = (whole, along)  # type: ignore[attr-defined]
    return function
