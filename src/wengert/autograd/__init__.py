"""The differentiation system: `backward`, `grad` and the modules around them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..backends.allocation import ones_for
from ..backends.placement import of_array
from ..core.arrays import has_class, is_level
from ..core.loading import load
from ..core.scopes import pop_saved_tensors_hooks as _pop_saved_tensors_default_hooks
from ..core.scopes import push_saved_tensors_hooks as _push_saved_tensors_default_hooks
from ..core.size import Size
from ..core.state import overriding, thread_state
from ..core.tensor import Tensor, wrap_as
from ..creation.factories import ones, ones_like, zeros_like
from ..dispatch.levels import in_transform, seen_inside
from ..dispatch.torch_function import PLAIN, override_operator
from ..tape.engine import run_backward
from . import grad_mode as grad_mode
from .grad_mode import _force_original_view_tracking as _force_original_view_tracking
from .grad_mode import _unsafe_preserve_version_counter as _unsafe_preserve_version_counter
from .grad_mode import enable_grad as enable_grad
from .grad_mode import enforce_grad_layout_policy as enforce_grad_layout_policy
from .grad_mode import inference_mode as inference_mode
from .grad_mode import is_multithreading_enabled as is_multithreading_enabled
from .grad_mode import is_view_replay_enabled as is_view_replay_enabled
from .grad_mode import no_grad as no_grad
from .grad_mode import set_grad_enabled as set_grad_enabled
from .grad_mode import set_multithreading_enabled as set_multithreading_enabled
from .gradcheck import gradcheck as gradcheck
from .gradcheck import gradgradcheck as gradgradcheck
from .variable import Variable as Variable
from .variable import checked_edge, is_edge

__all__ = [
    "Function",
    "NestedIOFunction",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]

# Modules that are imported when first asked for, and the names of this one that come from them.
_LAZY_MODULES = (
    "anomaly_mode", "forward_ad", "function", "functional", "graph", "profiler",
    "profiler_legacy", "profiler_util",
)  # fmt: skip
_LAZY_NAMES = {
    "Function": "autograd.function",
    "NestedIOFunction": "autograd.function",
    "SavedTensor": "tape.inspection",
    "detect_anomaly": "autograd.anomaly_mode",
    "set_detect_anomaly": "autograd.anomaly_mode",
    "DeviceType": "autograd.profiler",
    "ProfilerActivity": "autograd.profiler",
    "_enable_record_function": "autograd.profiler",
    "_profiler_enabled": "autograd.profiler",
    "_record_function_with_args_enter": "autograd.profiler",
    "_record_function_with_args_exit": "autograd.profiler",
    "_supported_activities": "autograd.profiler",
    "kineto_available": "autograd.profiler",
}


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` to the ``.grad`` of the leaves, or of `inputs` only.

    `grad_tensors` weights tensors that are not scalars. The saved values are freed unless
    `retain_graph`; with `create_graph` the gradients can be differentiated again.
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`; they mean the same, so give only the first"
            )
        grad_tensors = grad_variables
    state = thread_state()
    if state.levels and in_transform():
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported: the leaves of "
            "a transform have no .grad. Use wengert.func.grad or vjp, or call backward() outside"
        )
    targets = None if inputs is None else _as_tuple(inputs)
    if targets == ():
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    if create_graph:
        _warn_of_cycle()
    if grad_tensors is None and targets is None and type(tensors) is Tensor:
        node, array = tensors.node, tensors.array
        # the usual case: a number that was computed, without anything to check or to ask for
        if (
            node is not None
            and not array.ndim
            and array.dtype.kind == "f"
            and type(array) is np.ndarray
            and tensors.view_meta is None
        ):
            one = array.copy()
            one.fill(1)
            run_backward(
                [(node, tensors.output_index)],
                [wrap_as(one, state.inference)],
                create_graph if retain_graph is None else retain_graph,
                create_graph,
                None,
                True,
            )
            return
    roots = _as_tuple(tensors)
    grads = _make_grads(roots, _grads_tuple(grad_tensors, len(roots)))
    Variable._execution_engine.run_backward(
        roots,
        grads,
        create_graph if retain_graph is None else retain_graph,
        create_graph,
        targets,
        allow_unreachable=True,
        accumulate_grad=True,
    )


def backward_from(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradient of this tensor to the leaves' ``.grad``; see `wengert.autograd.backward`."""
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


backward_from.__name__, backward_from.__qualname__ = "backward", "Tensor.backward"


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple:
    """The gradients of `outputs` with respect to `inputs`, one for each input.

    An input that the outputs do not depend on is an error, or gives None with `allow_unused`, or
    zeros with `materialize_grads`. With `is_grads_batched` the first dimension of each of
    `grad_outputs` counts a batch, and that of the results does too.
    """
    if overriding.possible:
        options = {
            "grad_outputs": grad_outputs, "retain_graph": retain_graph,
            "create_graph": create_graph, "only_inputs": only_inputs, "allow_unused": allow_unused,
            "is_grads_batched": is_grads_batched, "materialize_grads": materialize_grads,
        }  # fmt: skip
        out = override_operator(grad, (outputs, inputs), options)
        if out is not PLAIN:
            return out
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True: unused "
            "inputs get zeros, so they cannot be an error"
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now: grad() never accumulates into "
            "other leaves; autograd.backward does.",
            FutureWarning,
            stacklevel=2,
        )
    roots = seen_inside(_as_tuple(outputs))
    targets = seen_inside(_as_tuple(inputs))
    if not targets:
        raise RuntimeError(
            "`inputs` argument to `grad()` cannot be empty: it names what to differentiate by"
        )
    if is_grads_batched:
        return load("autograd.batched").batched_grad(
            grad,
            roots,
            targets,
            _grads_tuple(grad_outputs, len(roots)),
            retain_graph=retain_graph,
            create_graph=create_graph,
            allow_unused=allow_unused,
            materialize_grads=materialize_grads,
        )
    grads = _make_grads(roots, _grads_tuple(grad_outputs, len(roots)))
    result = Variable._execution_engine.run_backward(
        roots,
        grads,
        create_graph if retain_graph is None else retain_graph,
        create_graph,
        targets,
        allow_unused,
        accumulate_grad=False,
    )
    assert result is not None
    return _materialized(result, targets, create_graph) if materialize_grads else result


def gradients_of(
    outputs: tuple, inputs: tuple, grads: tuple | None, keep_graph: bool, create_graph: bool
) -> tuple:
    """The gradients of a transform's tensors, as `grad` computes them; None for an unused input."""
    if overriding.possible:
        return grad(outputs, inputs, grads, keep_graph, create_graph, allow_unused=True)
    if grads is None:
        grads = tuple([_implicit_grad(t, t.array.shape, t.array.dtype) for t in outputs])
    else:
        grads = _make_grads(outputs, grads)
    result = Variable._execution_engine.run_backward(
        outputs, grads, keep_graph, create_graph, inputs, allow_unreachable=True
    )
    assert result is not None
    return result


_cycle_warned = False


def _warn_of_cycle() -> None:
    global _cycle_warned
    if not _cycle_warned:
        _cycle_warned = True
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle: a leaf holds "
            "its .grad, whose graph holds the leaf, until the garbage collector runs. "
            "autograd.grad makes no cycle.",
            UserWarning,
            stacklevel=3,
        )


def _materialized(result: tuple, targets: tuple, create_graph: bool) -> tuple:
    if any(g is None and not isinstance(t, Tensor) for g, t in zip(result, targets, strict=True)):
        raise RuntimeError(
            "materialize_grads cannot be used when the given input is a GradientEdge"
        )
    return tuple(
        zeros_like(t, requires_grad=create_graph) if g is None else g
        for g, t in zip(result, targets, strict=True)
    )


def _is_one(value: Any) -> bool:
    return isinstance(value, Tensor) or is_edge(value)


def _as_tuple(value: Any) -> tuple:
    return (value,) if _is_one(value) else tuple(value)


def _grads_tuple(grads: Any, length: int) -> tuple:
    if grads is None:
        return (None,) * length
    return (grads,) if isinstance(grads, Tensor) else tuple(grads)


def _make_grads(outputs: tuple, grads: Sequence[Tensor | None]) -> tuple:
    """One gradient per output: those given, checked, and ones for scalars."""
    made: list[Tensor | None] = []
    for i in range(min(len(outputs), len(grads))):
        out, g = outputs[i], grads[i]
        shape, dtype, differentiable = _root_facts(out)
        if g is None:
            made.append(_implicit_grad(out, shape, dtype) if differentiable else None)
            continue
        if not isinstance(g, Tensor):
            raise TypeError(
                f"gradients can be either Tensors or None, but got {type(g).__name__}"
            )
        if g.array.shape != shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and "
                f"output[{i}] has a shape of {Size(shape)}."
            )
        if (g.array.dtype.kind == "c") != (dtype.kind == "c"):
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same "
                f"dtype. Mismatch in dtype: grad_output[{i}] is {g.array.dtype} and output[{i}] is "
                f"{dtype}"
            )
        made.append(g)
    made.extend(grads[len(made) :])
    return tuple(made)


def _root_facts(out: Any) -> tuple:
    if isinstance(out, Tensor):
        return out.array.shape, out.array.dtype, out.requires()
    if is_edge(out):
        node, nr = checked_edge(out)
        meta = node.outputs_meta
        return (node.out_shape, node.out_dtype, True) if meta is None else (*meta[nr], True)
    raise TypeError(f"backward() and grad() differentiate Tensors, but got {type(out).__name__}")


def _implicit_grad(out: Any, shape: tuple, dtype: Any) -> Tensor:
    size = 1
    for n in shape:
        size *= n
    if size != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if dtype.kind == "c":
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {dtype}"
        )
    if type(out) is not Tensor and isinstance(out, Tensor):
        made = ones_like.handled_by_class(out)
        if made is not NotImplemented:
            return made
    if isinstance(out, Tensor) and is_level(out) and has_class(out):
        return ones_like(out)
    return ones_for(shape, dtype, out.array if isinstance(out, Tensor) else None)


def variable(*args: Any, **kwargs: Any) -> None:
    """Removed long ago; says what to use instead."""
    raise RuntimeError("autograd.variable(...) is deprecated, use wengert.tensor(...) instead")


variable.Variable = Variable  # type: ignore[attr-defined] # as the module of that name has it


def _is_checkpoint_valid() -> bool:
    return Variable._execution_engine.is_checkpoint_valid()


def _get_sequence_nr() -> int:
    """The number that the next node recorded on this thread will have."""
    return thread_state().sequence


def __dir__() -> list[str]:
    private = {name for name in globals() if name.startswith("_")}
    unlisted = ("is_multithreading_enabled", "is_view_replay_enabled")
    return sorted({*private, *__all__, *unlisted, *_LAZY_MODULES, *_LAZY_NAMES})


def __getattr__(name: str) -> Any:
    if name in _LAZY_MODULES:
        return load("autograd." + name)
    if name in _LAZY_NAMES:
        return getattr(load(_LAZY_NAMES[name]), name)
    return load("autograd.out_of_scope").look_up(__name__, name)
