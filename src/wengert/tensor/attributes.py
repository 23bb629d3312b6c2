"""Tensor's autograd attributes and methods: gradients, leaves, hooks, detaching, versions."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd import backward_from
from ..core.arrays import alive, is_level
from ..core.classes import classes
from ..core.collector import collector
from ..core.dtypes import is_differentiable
from ..core.handles import RemovableHandle
from ..core.state import thread_state
from ..core.tensor import VIEW_MULTI_OUTPUT, Tensor, set_fields, wrap
from ..dispatch.levels import (
    check_hookable,
    check_outside,
    in_transform,
    innermost_trace,
    trace_around,
)
from ..dispatch.rebasing import add_retain_hook
from ..dispatch.torch_function import marked
from ..tape.cycles import show_graph
from ..tape.node import Node, reset_accumulator, seen
from ..tape.tangents import drop_tangent
from ..transforms.memory import alias_of

_ndarray = np.ndarray


def is_leaf(self: Tensor) -> bool:
    """Whether no recorded operation made this tensor."""
    return self.current_node() is None


def grad_fn(self: Tensor) -> Node | None:
    """The node that computes this tensor, None for a leaf."""
    collector.show(self)  # what is hung on the node may lead back here
    return seen(self.current_node())


def requires_grad(self: Tensor) -> bool:
    """Whether operations on this tensor are recorded."""
    return self.requires()


def set_requires_grad(self: Tensor, value: bool) -> None:
    if not isinstance(value, bool):
        raise RuntimeError("requires_grad must be a bool")
    if self.current_node() is not None:
        raise RuntimeError(
            "you can only change requires_grad flags of leaf variables; this tensor was computed "
            f"by {self.node.name()}. Take detach() of it to leave it out of the graph"
        )
    if value and not is_differentiable(self.array.dtype):
        raise RuntimeError(
            "only Tensors of floating point and complex dtype can require gradients; this one is "
            f"{self.dtype}"
        )
    if value and self.inference and not thread_state().inference:
        raise RuntimeError(
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
        )
    set_fields(self, needs_grad=value)


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set whether operations on this leaf are recorded; returns the tensor."""
    check_outside(
        "Tensor.requires_grad_() (or perhaps using wengert.autograd.functional.* APIs)"
    )
    if not isinstance(requires_grad, bool):
        raise TypeError(
            "requires_grad_(): argument 'requires_grad' must be bool, not "
            f"{type(requires_grad).__name__}"
        )
    if requires_grad is not True or self.current_node() is None:
        set_requires_grad(self, requires_grad)
    return self


def grad(self: Tensor) -> Tensor | None:
    """The gradient accumulated by backward."""
    if (
        self.gradient is None
        and self.node is not None
        and not (self.cold is not None and self.cold.retains_grad)
    ):
        warnings.warn(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed: "
            "backward() fills it only after retain_grad(). This one is computed by "
            f"{self.node.name()}.",
            UserWarning,
            stacklevel=2,
        )
    if thread_state().levels:
        trace = trace_around(self)
        if trace is not None:
            return trace.gradient_of(self)
    return self.gradient


def set_grad(self: Tensor, value: Tensor | None) -> None:
    if value is not None:
        _check_grad(self, value)
    if thread_state().levels:
        trace = trace_around(self)
        if trace is not None:
            trace.set_gradient(self, value)
            return
    classes.set_attribute(self, "gradient", value)
    if value is not None:
        show_graph(value)
        show_graph(self)


def _check_grad(self: Tensor, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            "assigned grad expected to be a Tensor or None but got grad of type "
            f"{type(value).__name__}"
        )
    if value is self:
        raise RuntimeError("can't assign Variable as its own grad")
    if value.array.dtype != self.array.dtype:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{value.dtype}' to a tensor with dtype "
            f"'{self.dtype}'; cast it with .to()"
        )
    if value.device != self.device:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{value.device}' to a tensor with "
            f"device type '{self.device}'. Both must be on the same device"
        )
    if value.array.shape != self.array.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(value.array.shape)}' to a tensor of "
            f"size '{list(self.array.shape)}'; their shapes must agree"
        )


def delete_grad(self: Tensor) -> None:
    set_grad(self, None)


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of this non-leaf in its ``.grad``; nothing to do for a leaf."""
    check_outside("Tensor.retain_grad()")
    if not self.requires():
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    check_hookable(self, "retain_grad()")
    node = self.current_node()
    if node is None or (self.cold is not None and self.cold.retains_grad):
        return
    self.make_cold().retains_grad = True
    add_retain_hook(self)


def retains_grad(self: Tensor) -> bool:
    """Whether `retain_grad` was called on this non-leaf."""
    return self.cold is not None and self.cold.retains_grad


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Call ``hook(grad)`` whenever a gradient of this tensor is ready; a result replaces it."""
    if not self.requires():
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    check_hookable(self, "register_hook()")
    hooks = backward_hooks(self)
    if hooks is None:
        hooks = OrderedDict()
        set_backward_hooks(self, hooks)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def backward_hooks(self: Tensor) -> OrderedDict | None:
    """The hooks of this tensor by the numbers of their handles, or None if there never was one."""
    node = self.current_node()
    if node is None:
        return None if self.cold is None else self.cold.hooks
    found = node.cold and node.cold.tensor_hooks
    return found.get(self.output_index) if found else None


def set_backward_hooks(self: Tensor, hooks: OrderedDict | None) -> None:
    if hooks is not None and not isinstance(hooks, dict):
        raise TypeError(
            f"_backward_hooks must be a dictionary of hooks or None, not {type(hooks).__name__}"
        )
    collector.show(self)
    node = self.current_node()
    if node is None:
        self.make_cold().hooks = hooks
        return
    cold = node.make_cold()
    if cold.tensor_hooks is None:
        cold.tensor_hooks = {}
    cold.tensor_hooks[self.output_index] = OrderedDict() if hooks is None else hooks


def post_accumulate_hooks(self: Tensor) -> OrderedDict | None:
    """The hooks that are called after a gradient has been accumulated into this leaf."""
    return None if self.cold is None else self.cold.post_hooks


def register_post_accumulate_grad_hook(
    self: Tensor, hook: Callable[[Tensor], None]
) -> RemovableHandle:
    """Call ``hook(tensor)`` after a gradient has been accumulated into this leaf."""
    if not self.requires():
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.current_node() is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    cold = self.make_cold()
    if cold.post_hooks is None:
        cold.post_hooks = OrderedDict()
    handle = RemovableHandle(cold.post_hooks)
    cold.post_hooks[handle.id] = hook
    return handle


def detach(self: Tensor) -> Tensor:
    """A tensor of this memory outside the graph; in-place changes are seen by both."""
    state = thread_state()
    if state.levels:
        trace = trace_around(self)
        if trace is not None:
            return trace.detached(self)
    array = self.array
    if type(array) is _ndarray and not state.modes:
        out = wrap(array)
    else:
        self = alive(self)
        out = alias_of(self)
    if self.inference:
        return _inference_alias(out, state)
    classes.set_attribute(out, "counter", self.shared_counter())
    classes.set_attribute(out, "inference", False)
    return out


def _inference_alias(out: Tensor, state: Any) -> Tensor:
    """The alias of an inference tensor: one too, which outside that mode counts its versions."""
    set_fields(out, inference=True)
    if not state.inference:
        out.make_cold().counts_versions = True
    return out


def detach_(self: Tensor) -> Tensor:
    """Take this tensor out of the graph it was recorded in."""
    if self.view_meta is not None:
        if self.view_meta.creation == VIEW_MULTI_OUTPUT:
            raise RuntimeError(
                "Can't detach views in-place, least of all one of several that one operator "
                "returned; use detach()"
            )
        raise RuntimeError(
            "Can't detach views in-place: the base would still be in the graph; use detach()"
        )
    if self.watched and self.node is not None:
        self.make_cold().detached_at = thread_state().sequence
    set_fields(self, node=None, output_index=0, needs_grad=False)
    drop_tangent(self)
    return self


def data(self: Tensor) -> Tensor:
    """A tensor of this memory with a version counter of its own: changes are not tracked."""
    state = thread_state()
    self = alive(self)
    if state.levels:
        trace = trace_around(self)
        if trace is not None:
            return trace.data_of(self)
    array = self.array
    if is_level(self):
        out = array.level.untracked(self)
    else:
        out = wrap(array) if type(array) is _ndarray else alias_of(self)
    if self.inference:
        return _inference_alias(out, state)
    set_fields(out, inference=False)
    return out


def set_data(self: Tensor, value: Tensor) -> None:
    if in_transform() and (
        is_level(self)
        or (isinstance(value, Tensor) and is_level(value))
        or any(level.differentiates for level in thread_state().levels)
    ):
        raise RuntimeError(
            "mutating directly with `.data` inside functorch transform is not allowed; use copy_() "
            "under no_grad()"
        )
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if self.requires() and not is_differentiable(value.array.dtype):
        raise RuntimeError(
            "data set to a tensor that requires gradients must be floating point or complex dtype"
        )
    if value.device != self.device and "meta" in (value.device.type, self.device.type):
        raise RuntimeError(
            "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
            f"incompatible tensor type: one is on {self.device}, the other on {value.device}"
        )
    trace = innermost_trace()
    renewed = self.array.dtype != value.array.dtype
    if trace is not None:
        trace.set_data(self, value)
    else:
        if self.needs_grad and self.node is None and self.array.shape != value.array.shape:
            cold = self.make_cold()
            change = (thread_state().sequence, self.array.shape)
            cold.former_shapes = (*(cold.former_shapes or ()), change)
        set_fields(self, array=marked(type(self), value.array))
    set_fields(self, inference=value.inference)
    reset_accumulator(self, renewed)


def delete_data(self: Tensor) -> None:
    raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")


def version_number(self: Tensor) -> int:
    """How many in-place changes this memory has seen."""
    if self.inference and (self.cold is None or not self.cold.counts_versions):
        raise RuntimeError("Inference tensors do not track version counter.")
    return self.version()


def base(self: Tensor) -> Tensor | None:
    """The tensor that this one is a view of."""
    return None if self.view_meta is None else self.view_meta.base


def output_nr(self: Tensor) -> int:
    """Which output of its node this tensor is."""
    self.current_node()
    return self.output_index


def is_view(self: Tensor) -> bool:
    """Whether this tensor is a tracked view of another."""
    return self.view_meta is not None


def is_inference(self: Tensor) -> bool:
    """Whether this tensor was made in inference mode."""
    return self.inference


PROPERTIES = {
    "is_leaf": property(is_leaf),
    "grad_fn": property(grad_fn),
    "requires_grad": property(requires_grad, set_requires_grad),
    "grad": property(grad, set_grad, delete_grad),
    "retains_grad": property(retains_grad),
    "data": property(data, set_data, delete_data),
    "output_nr": property(output_nr),
    "_version": property(version_number),
    "_base": property(base),
    "_backward_hooks": property(backward_hooks, set_backward_hooks),
    "_post_accumulate_grad_hooks": property(post_accumulate_hooks),
}
METHODS = {
    "requires_grad_": requires_grad_,
    "retain_grad": retain_grad,
    "register_hook": register_hook,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
    "backward": backward_from,
    "detach": detach,
    "detach_": detach_,
    "_is_view": is_view,
    "is_view": is_view,
    "is_inference": is_inference,
}
