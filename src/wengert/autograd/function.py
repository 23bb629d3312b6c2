"""Custom differentiable functions: `Function` and what belongs to it."""

from __future__ import annotations

import functools
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..core.state import thread_state
from ..core.tensor import Tensor, set_fields
from ..tape.plans import custom_plan
from .function_call import apply
from .function_node import Error, FunctionNode, no_backward, no_setup_context, no_vmap
from .function_node import user_backward as _user_backward
from .grad_mode import no_grad

__all__ = [
    "FunctionCtx",
    "BackwardCFunction",
    "FunctionMeta",
    "Function",
    "once_differentiable",
    "traceable",
    "InplaceFunction",
    "NestedIOFunction",
]

_function_ids = itertools.count()


class FunctionCtx:
    """What `forward` and `setup_context` tell about their call; `ctx` is one of these."""

    def save_for_backward(self, *tensors: Tensor) -> None:
        """Keep tensors (or None) for `backward`, which reads them as ``ctx.saved_tensors``.

        Call it at most once. What is kept is checked for in-place changes, passes saved-tensor
        hooks and is freed with the graph. Other values are kept as attributes of ctx.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor) -> None:
        """Keep tensors (or None) for `jvp`, which reads them as ``ctx.saved_tensors``."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors, but got "
                    f"{type(tensor).__name__}; keep other values as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Declare inputs that `forward` changes in place; all of them must be returned."""
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Does nothing; kept for old programs."""
        warnings.warn(
            "`mark_shared_storage` is deprecated. Tensors that share memory are tracked without "
            "it.",
            FutureWarning,
            stacklevel=2,
        )

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Declare outputs that have no gradient, such as indices."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` and `jvp` get zeros in place of missing gradients; True at first."""
        self.materialize_grads = value


class BackwardCFunction(FunctionNode, FunctionCtx):
    """The base of the classes of nodes; each Function has one, named after it."""

    _forward_cls: Any

    def apply(self, *args: Any) -> Any:
        """What the Function's `backward` makes of gradients of the outputs."""
        backward = _user_backward(self._forward_cls)
        return backward(self, list(args)) if self.boxes_grads else backward(self, *args)

    def apply_boxed(self, *args: Any) -> Any:
        """What `backward` makes of gradients that come in one list, see `boxed_grads_call`."""
        return _user_backward(self._forward_cls)(self, *args)

    def apply_jvp(self, *args: Any) -> Any:
        """What the Function's `jvp` makes of tangents of the inputs."""
        return self._forward_cls.jvp(self, *args)


class FunctionMeta(type):
    """Makes with each Function the class of its nodes, `_backward_cls`."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        node_name = name + "Backward"
        node_class: Any = type(node_name, (BackwardCFunction,), {"_forward_cls": cls})
        node_class._autograd_function_id = next(_function_ids)
        node_class._plan = custom_plan(node_name, node_class)
        cls._backward_cls = node_class
        cls._plan = node_class._plan
        inherited = getattr(cls, "_refers_to_results", False)
        cls._refers_to_results = inherited or _refers_to_results(cls)
        super().__init__(name, bases, attrs)


def _refers_to_results(function: type) -> bool:
    """Whether methods of a class may refer to what it computes: to variables of a function around
    them, or to names that do not last as those of a module do."""
    for value in vars(function).values():
        method = getattr(value, "__func__", value)
        method = getattr(method, "__wrapped__", method)
        names = getattr(method, "__globals__", None)
        if getattr(method, "__closure__", None) or not (names is None or _are_of_a_module(names)):
            return True
    return False


def _are_of_a_module(names: dict) -> bool:
    module = sys.modules.get(names.get("__name__", ""))
    return module is not None and vars(module) is names


class Function(FunctionNode, FunctionCtx, metaclass=FunctionMeta):
    """An operation with a derivative of its own; subclass it and call `apply`.

    >>> import wengert
    >>> class Exp(wengert.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         out = x.exp()
    ...         ctx.save_for_backward(out)
    ...         return out
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         (out,) = ctx.saved_tensors
    ...         return grad_output * out
    >>> x = wengert.zeros(2, requires_grad=True)
    >>> Exp.apply(x).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """

    _backward_cls: Any
    _plan: Any
    _parameters: Any = None

    #: Whether a batching rule is to be derived from `forward`, `backward` and `jvp`.
    generate_vmap_rule = False
    #: Whether reading `saved_tensors` lets go of them; they can then be read once.
    clear_saved_tensors_on_access = False
    #: Whether `backward` gets the gradients in one list, from which it may remove them.
    boxed_grads_call = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        FunctionNode.__init__(self)
        warnings.warn(
            f"{type(self)} should not be instantiated. Its methods are static: call "
            f"{type(self).__name__}.apply(...)",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Write a static "
            f"forward and call {type(self).__name__}.apply(...)"
        )

    apply = classmethod(apply)

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The operation itself: ``forward(ctx, *args)``, or ``forward(*args)`` if the class has
        `setup_context`. It runs without recording."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    setup_context = staticmethod(no_setup_context)
    backward = staticmethod(no_backward)
    vjp = staticmethod(no_backward)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the outputs from those of the inputs."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    vmap = staticmethod(no_vmap)

    @classmethod
    def _derived_vmap(cls) -> Callable:
        """The batching rule that is derived from the other methods."""
        # it is a Function itself, which few programs need
        from .function_batching import derived_rule

        return derived_rule(cls)


def once_differentiable(fn: Callable) -> Callable:
    """Decorates a `backward` that is not made of differentiable operations.

    It runs without recording, and differentiating its results raises.
    """

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with no_grad():
            outputs = fn(ctx, *args, **kwargs)
        several = isinstance(outputs, tuple)
        guarded = once_only(outputs if several else (outputs,), args)
        return guarded if several else guarded[0]

    wrapper.once_differentiable = True  # type: ignore[attr-defined]
    return wrapper


def once_only(outputs: Sequence, grads: Sequence) -> Sequence:
    """Values that cannot be differentiated: if they are made of gradients that are recorded, they
    get a history that raises when a gradient gets there."""
    if not thread_state().grad_enabled:
        return outputs
    if not any(isinstance(g, Tensor) and g.requires() for g in grads):
        return outputs
    # Leaves that only this node knows stand for its inputs, as a recorded call on them would show.
    inputs = [None if value is None else value.detach().requires_grad_() for value in outputs]
    node = Error(
        "trying to differentiate twice a function that was marked with @once_differentiable",
        tuple(outputs),
        tuple(inputs),
    )
    guarded = []
    for nr, value in enumerate(outputs):
        if value is not None:
            value = value.detach()
            set_fields(value, node=node, output_index=nr, needs_grad=True)
        guarded.append(value)
    return tuple(guarded)


def traceable(fn_cls: type) -> type:
    """Marked a Function for a tracer that is gone; kept for old programs."""
    warnings.warn(
        "traceable is deprecated and has no effect: remove the decorator",
        FutureWarning,
        stacklevel=2,
    )
    return fn_cls


class InplaceFunction(Function):
    """Kept for old programs; use `Function`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Kept for old programs; its methods flatten nested lists and tuples of tensors."""

    _nested_input: Any

    def __call__(self, *input: Any) -> Any:
        raise RuntimeError(
            "NestedIOFunction can no longer be called: legacy functions with a non-static forward "
            "are gone. Use Function.apply with flat arguments"
        )

    def forward(self, *args: Any) -> Any:  # type: ignore[override]
        """Run `forward_extended` on the nested inputs; the tensors of its result, flat."""
        result = self.forward_extended(*_data_of(self._nested_input))
        del self._nested_input
        self._nested_output = result
        return tuple(_tensors_in(result))

    def backward(self, *gradients: Any) -> Any:  # type: ignore[override]
        """Run `backward_extended` on gradients nested like the outputs; its result, flat."""
        nested, _ = _nest(list(gradients), self._nested_output)
        return tuple(_tensors_in(self.backward_extended(*nested), keep_none=True))

    def save_for_backward(self, *args: Any) -> None:
        """As in `FunctionCtx`, for nested arguments."""
        self.to_save = tuple(_tensors_in(args))
        self._to_save_nested = args

    @property
    def saved_tensors(self) -> Any:
        """As in `FunctionCtx`, nested as they were given."""
        nested, _ = _nest(list(super().saved_tensors), self._to_save_nested)
        return nested

    def mark_dirty(self, *args: Any, **kwargs: Any) -> None:
        """As in `FunctionCtx`, for nested arguments."""
        self.dirty_tensors = tuple(_tensors_in((args, kwargs)))

    def mark_non_differentiable(self, *args: Any, **kwargs: Any) -> None:
        """As in `FunctionCtx`, for nested arguments."""
        self.non_differentiable = tuple(_tensors_in((args, kwargs)))

    def forward_extended(self, *input: Any) -> Any:
        """The operation on nested inputs; a subclass overrides this."""
        raise NotImplementedError(
            f"{type(self).__name__} has no forward_extended. Define it, or derive from Function "
            "and define static methods forward and backward"
        )

    def backward_extended(self, *grad_output: Any) -> Any:
        """The gradients for nested inputs; a subclass overrides this."""
        raise NotImplementedError(
            f"{type(self).__name__} has no backward_extended. Define it, or derive from Function "
            "and define static methods forward and backward"
        )


def _refused(value: Any) -> ValueError:
    return ValueError(
        "Auto nesting doesn't know how to process an input object of type "
        f"{type(value).__name__}. Accepted types: Tensors, or lists/tuples of them"
    )


def _tensors_in(value: Any, keep_none: bool = False) -> Iterator[Any]:
    """The tensors in nested lists, tuples and values of dictionaries, in order."""
    if isinstance(value, Tensor) or value is None:
        if value is not None or keep_none:
            yield value
    elif isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors_in(item, keep_none)
    else:
        raise _refused(value)


def _data_of(value: Any) -> Any:
    """Nested tensors, each without its history."""
    if value is None:
        return None
    if isinstance(value, Tensor):
        return value.data
    if isinstance(value, dict):
        return {key: _data_of(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return _like(value, [_data_of(item) for item in value])
    raise _refused(value)


def _nest(flat: list, pattern: Any) -> tuple[Any, list]:
    """The values of `flat` nested as in `pattern`, and those that are left over."""
    if not isinstance(pattern, (list, tuple)):
        return flat[0], flat[1:]
    nested = []
    for item in pattern:
        if item is not None:
            item, flat = _nest(flat, item)
        nested.append(item)
    return _like(pattern, nested), flat


def _like(pattern: Any, items: list) -> Any:
    return type(pattern)(*items) if hasattr(pattern, "_fields") else type(pattern)(items)
