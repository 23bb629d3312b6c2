"""What programs that look below the surface import from the innards of PyTorch."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any as _Any

from ..core.scopes import BelowAutograd as _AutoDispatchBelowAutograd
from ..core.state import thread_state as _thread_state
from ..core.tensor import Tensor as TensorBase
from ..dispatch.torch_dispatch import DisableTorchDispatch as _DisableTorchDispatch
from ..dispatch.torch_dispatch import disabled_torch_dispatch_impl as _disabled_torch_dispatch_impl
from ..dispatch.torch_function import ALL as _ALL
from ..dispatch.torch_function import DisableTorchFunction as DisableTorchFunction
from ..dispatch.torch_function import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from ..dispatch.torch_function import disabled_torch_function_impl as _disabled_torch_function_impl

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TensorBase",
    "_AutoDispatchBelowAutograd",
    "_DisableTorchDispatch",
    "_disabled_torch_dispatch_impl",
    "_disabled_torch_function_impl",
    "_is_torch_function_all_disabled",
    "_is_torch_function_enabled",
]


def _is_torch_function_enabled() -> bool:
    """Whether the classes of arguments can override functions."""
    return not _thread_state().function_disabled


def _is_torch_function_all_disabled() -> bool:
    """Whether neither classes nor modes can override functions."""
    return _thread_state().function_disabled >= _ALL


# Names that belong to other modules, where they are called differently.
_ELSEWHERE = {
    "DispatchKey": ("library.keys", "DispatchKey"),
    "DispatchKeySet": ("library.keys", "DispatchKeySet"),
    "_ImperativeEngine": ("autograd.variable", "ImperativeEngine"),
    "_after_autograd_keyset": ("library.keys", "after_autograd_keyset"),
    "_current_autograd_node": ("tape.tasks", "current_autograd_node"),
    "_current_graph_task_id": ("tape.tasks", "current_graph_task_id"),
    "_increment_version": ("autograd.graph", "increment_version"),
    "_is_fwd_grad_enabled": ("autograd.forward_ad", "_is_fwd_grad_enabled"),
    "_is_multithreading_enabled": ("autograd.grad_mode", "is_multithreading_enabled"),
    "_is_view_replay_enabled": ("autograd.grad_mode", "is_view_replay_enabled"),
    "_set_grad_enabled": ("autograd.grad_mode", "set_grad_enabled"),
    "_set_multithreading_enabled": ("autograd.grad_mode", "set_multithreading_enabled"),
    "_set_view_replay_enabled": ("autograd.grad_mode", "_force_original_view_tracking"),
    "_will_engine_execute_node": ("tape.tasks", "will_engine_execute_node"),
    "is_anomaly_check_nan_enabled": ("autograd.anomaly_mode", "is_anomaly_check_nan_enabled"),
    "is_anomaly_enabled": ("autograd.anomaly_mode", "is_anomaly_enabled"),
    "is_grad_enabled": ("autograd.grad_mode", "is_grad_enabled"),
    "is_inference_mode_enabled": ("autograd.grad_mode", "is_inference_mode_enabled"),
    "set_anomaly_enabled": ("autograd.anomaly_mode", "set_detect_anomaly"),
}


def __getattr__(name: str) -> _Any:
    if name in ("_autograd", "_functions"):
        return _import_module("." + name, __name__)
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, own = _ELSEWHERE[name]
    return getattr(_import_module("..." + module, __name__ + "._"), own)
