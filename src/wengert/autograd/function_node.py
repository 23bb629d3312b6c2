"""The node of a call of a custom Function, which is also its ``ctx``."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..backends.allocation import zeros_for
from ..backends.placement import of_array
from ..core.classes import COMPILED, classes
from ..core.collector import collector
from ..core.devices import device
from ..core.dtypes import dtype, from_numpy
from ..core.size import Size
from ..core.state import ThreadState, thread_state
from ..core.tensor import Tensor
from ..creation.factories import zeros
from ..tape.copy_slices import CopySlices
from ..tape.cycles import show_graph
from ..tape.inspection import absent_tensor, saved_tensor
from ..tape.node import Node, unpack_saved
from ..tape.plans import GradientPlan
from ..tape.saved import Freed, SavedVariable, save, save_output
from ..tape.tangents import tangent_of

_classes = classes
_collector = collector
_ndarray = np.ndarray

# Types of attributes through which no cycle of references can lead back to their `ctx`.
_ATOMS = frozenset(
    (int, float, complex, bool, str, bytes, type(None), np.ndarray, dtype, device, Size)
)


def no_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
    """Fill `ctx` after a `forward` that takes none; a Function overrides this or not."""
    raise NotImplementedError(
        "setup_context is not implemented. Define it beside a forward that takes no ctx; a forward "
        "that takes one fills it itself"
    )


def no_backward(ctx: Any, *grad_outputs: Any) -> Any:
    """The gradients of the inputs from those of the outputs; a Function overrides this."""
    raise NotImplementedError(
        "You must implement either the backward or vjp method for your custom autograd.Function to "
        "use it with backward mode AD."
    )


def no_vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
    """The operation on batched arguments: the pair of its outputs and their batch dims."""
    raise NotImplementedError(
        "To use autograd.Function with vmap, you must either override the vmap staticmethod or "
        "set generate_vmap_rule=True."
    )


class FunctionNode(Node):
    """The node of one call of a custom Function; the user knows it as ``ctx``."""

    def __init__(self) -> None:
        Node.__init__(self, type(self)._plan, (), None)  # type: ignore[attr-defined]
        self.needs_input_grad: Any = None
        self.to_save: Any = None
        self.saved_for_forward: Any = None
        self.dirty_tensors: Any = None
        self.non_differentiable: Any = None
        self.tensor_flags: tuple | None = None
        self.argument_count = 0
        self.keeps_undefined = False
        self.boxes_grads = False
        self.clears_on_access = False
        self.saved_were_read = False
        self.input_devices: tuple | None = None
        self.output_devices: tuple | None = None

    # Backward --------------------------------------------------------------------------------

    def run(self, grads: Any) -> list:
        backward = user_backward(self._forward_cls)  # type: ignore[attr-defined]
        if self.boxes_grads:
            return self.gradients(backward(self, self._boxed(grads)))
        if self.outputs_meta is not None:
            return self.gradients(backward(self, *self.defined(grads)))
        if grads is None and not self.keeps_undefined:
            grads = self.zeros(0)
        return self.gradients(backward(self, grads))

    def defined(self, grads: Any) -> list:
        """One gradient per output; zeros stand for missing ones unless the user wants None."""
        if self.outputs_meta is None:
            return [self.zeros(0) if grads is None and not self.keeps_undefined else grads]
        arguments = [None] * len(self.outputs_meta) if grads is None else list(grads)
        if not self.keeps_undefined:
            for i in range(len(arguments)):
                if arguments[i] is None and self.outputs_meta[i] is not None:
                    arguments[i] = self.zeros(i)
        return arguments

    def _boxed(self, grads: Any) -> list:
        """The gradients in a list that alone holds them, so that backward can let go of each."""
        arguments = self.defined(grads)
        if type(grads) is list and not (self.cold is not None and self.cold.post_hooks):
            grads.clear()
        return arguments

    def zeros(self, nr: int) -> Tensor:
        """A gradient of output `nr` that nobody computed."""
        if self.outputs_meta is None:
            shape, array_dtype = self.out_shape, self.out_dtype
        else:
            shape, array_dtype = self.outputs_meta[nr]
        if self.output_devices is None:
            return zeros_for(shape, array_dtype, None)
        return zeros(shape, dtype=from_numpy(array_dtype), device=self.output_devices[nr])

    def gradients(self, returned: Any) -> list:
        """What the user's backward returned, checked, as one gradient per edge."""
        values = returned if isinstance(returned, tuple) else (returned,)
        got = len(values)
        if got > self.argument_count:
            while got > self.argument_count and values[got - 1] is None:
                got -= 1
        if got != self.argument_count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected "
                f"{self.argument_count}, got {len(values)}): backward returns one for each "
                "argument of forward, None for those that are no tensors"
            )
        flags = self.tensor_flags
        result: list = []
        for i in range(got):
            value = values[i]
            if value is None:
                if flags is None or flags[i]:
                    result.append(None)
            elif flags is not None and not flags[i]:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position "
                    f"{i + 1}, but the corresponding forward input was not a Variable: only "
                    "tensors have gradients"
                )
            elif not isinstance(value, Tensor):
                raise RuntimeError(
                    f"expected Variable or None (got {type(value).__name__}) as gradient {i + 1} "
                    f"that {self.name()} returned"
                )
            else:
                g = value
                if type(g.array) is not _ndarray or self.input_devices is not None:
                    self._check_device(len(result), g)
                result.append(g)
        return result

    def _check_device(self, edge: int, g: Tensor) -> None:
        found = of_array(g.array).type
        expected = "cpu" if self.input_devices is None else self.input_devices[edge]
        if found != expected and self.next_nodes[edge] is not None:
            raise RuntimeError(
                f"Function {self.name()} returned an invalid gradient at index {edge} - expected "
                f"device {expected} but got {found}"
            )

    def release(self, freed: Freed) -> None:
        self.saved = freed

    # What the user sees in ctx -----------------------------------------------------------------

    @property
    def saved_tensors(self) -> tuple:
        """What was given to `save_for_backward`; in `jvp`, to `save_for_forward`."""
        if not self.saved_were_read and self.saved_for_forward is not None:
            return self.saved_for_forward
        return self._unpacked()

    @property
    def saved_variables(self) -> tuple:
        """The deprecated name of `saved_tensors`."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'",
            DeprecationWarning,
            stacklevel=2,
        )
        return self._unpacked()

    @property
    def _raw_saved_tensors(self) -> tuple:
        """Handles of the saved tensors, on which hooks can be set."""
        if type(self.saved) is Freed:
            unpack_saved(self)
        return tuple(
            [
                absent_tensor(self) if item is None else saved_tensor(self, i)
                for i, item in enumerate(self.saved or ())
            ]
        )

    @property
    def materialize_grads(self) -> bool:
        """Whether zeros stand for gradients that nobody computed."""
        return not self.keeps_undefined

    @materialize_grads.setter
    def materialize_grads(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(
                "set_materialize_grads received an invalid combination of arguments: expected a "
                f"bool, got {type(value).__name__}"
            )
        self.keeps_undefined = not value

    def maybe_clear_saved_tensors(self) -> None:
        """In a backward that does not keep its graph, let go of the saved tensors now."""
        task = thread_state().graph_task
        if task is not None and not task.keep_graph:
            self.release(task.freed)

    def _unpacked(self) -> tuple:
        if self.saved_were_read:
            raise RuntimeError(
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True "
                f"is set on the autograd.Function, and {self.name()} has read them before"
            )
        saved = self.saved
        values = unpack_saved(self)
        running = thread_state().node
        if isinstance(running, CopySlices) and running.inner is self:
            for i, item in enumerate(saved or ()):
                if isinstance(item, SavedVariable) and item.is_output:
                    values[i] = running.view_of_output(values[i], _like_base(running))
        if self.clears_on_access:
            self.saved = None
            self.saved_were_read = True
        return tuple(values)

    def __setattr__(self, name: str, value: Any) -> None:
        _classes.set_attribute(self, name, value)
        if not self.shown and not is_atom(value) and not hasattr(type(self), name):
            show_graph(self)
            if isinstance(value, Tensor):
                show_graph(value)


def is_atom(value: Any) -> bool:
    """Whether no cycle of references can lead through `value`."""
    if type(value) in _ATOMS:
        return True
    if type(value) is not tuple:
        return False
    for item in value:  # noqa: SIM110 - a generator would be made for every attribute
        if type(item) not in _ATOMS:
            return False
    return True


def _like_base(copy: CopySlices) -> Any:
    """Memory in the layout of the base that an in-place change through a view wrote to."""
    ordered = np.empty([copy.out_shape[i] for i in copy.order], copy.out_dtype)
    return ordered.transpose(sorted(range(len(copy.order)), key=copy.order.__getitem__))


class Error(Node):
    """A node that raises when a gradient arrives: a place in the graph that none may pass."""

    def __init__(self, message: str, outputs: tuple, inputs: tuple = ()) -> None:
        Node.__init__(self, _ERROR_PLAN, inputs, None)
        self.message = message
        metas = [None if t is None else (t.array.shape, t.array.dtype) for t in outputs]
        if len(metas) == 1:
            self.out_shape, self.out_dtype = metas[0] or ((), None)
        else:
            self.outputs_meta = metas

    def run(self, grads: Any) -> list:
        raise RuntimeError(self.message)


_ERROR_PLAN = GradientPlan(None, "Error", 0)


def user_backward(function: Any) -> Any:
    """The reverse rule of a Function, under whichever of its two names it was written."""
    backward, vjp = function.backward, function.vjp
    if vjp is no_backward:
        return backward
    if backward is no_backward:
        return vjp
    raise RuntimeError(
        "Implementing both 'backward' and 'vjp' for a custom Function is not allowed: they are two "
        f"names of one rule, and {function.__name__} has both"
    )


def save_tensors(node: FunctionNode, state: ThreadState, outputs: tuple) -> None:
    """Keep the tensors given to `save_for_backward`; a result of the node without the node."""
    if type(node.to_save) is not tuple:
        raise RuntimeError(
            f"to_save attribute is expected to be a tuple but is {type(node.to_save).__name__}; "
            "use save_for_backward()"
        )
    saved: list = []
    for value in node.to_save:
        if value is None:
            saved.append(None)
        elif not isinstance(value, Tensor):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {len(saved)} is of type "
                f"{type(value).__name__}; keep other values as attributes of ctx"
            )
        elif among(value, outputs) and value.node is not None:
            item = save_output(value, state)
            if state.dual_level >= 0:
                item.tangent = tangent_of(value)
            saved.append(item)
        else:
            saved.append(save(value, state))
    node.to_save = None
    node.saved = tuple(saved)
    if not node.shown:
        _collector.hide(node.saved)


def among(value: Any, items: tuple) -> bool:
    """Whether `value` is one of `items`, by identity."""
    for item in items:  # noqa: SIM110 - a generator would be made for every call
        if item is value:
            return True
    return False


if not COMPILED:  # fields of a compiled class begin as None, zero and False by themselves
    for _name in (
        "needs_input_grad", "to_save", "saved_for_forward", "dirty_tensors", "non_differentiable",
        "tensor_flags", "input_devices", "output_devices",
    ):  # fmt: skip
        setattr(FunctionNode, _name, None)
    for _name in ("keeps_undefined", "boxes_grads", "clears_on_access", "saved_were_read"):
        setattr(FunctionNode, _name, False)
    # nothing is hidden from the collector, so nothing needs to be shown
    del FunctionNode.__setattr__  # type: ignore[misc]
