"""What programs that define subclasses and modes import from the innards of PyTorch."""

from __future__ import annotations

from typing import Any

from .dispatch_overrides import DisableTorchDispatch as _DisableTorchDispatch
from .dispatch_overrides import disabled_torch_dispatch_impl as _disabled_torch_dispatch_impl
from .function_overrides import ALL as _ALL
from .function_overrides import DisableTorchFunction as DisableTorchFunction
from .function_overrides import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from .function_overrides import disabled_torch_function_impl as _disabled_torch_function_impl
from .state import thread_state as _thread_state
from .tensor import Tensor as TensorBase

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


class _AutoDispatchBelowAutograd:
    """Inside, operators are neither recorded nor differentiated in forward mode."""

    def __enter__(self) -> None:
        state = _thread_state()
        self.before = state.grad_enabled, state.forward_grad_enabled
        state.grad_enabled = state.forward_grad_enabled = False

    def __exit__(self, *exception: object) -> None:
        state = _thread_state()
        state.grad_enabled, state.forward_grad_enabled = self.before


def __getattr__(name: str) -> Any:
    if name in ("DispatchKeySet", "_after_autograd_keyset"):
        from .library import overloads

        return getattr(overloads, name.removeprefix("_"))
    raise AttributeError(f"module 'wengert._C' has no attribute {name!r}")


def _is_torch_function_enabled() -> bool:
    """Whether the classes of arguments can override functions."""
    return not _thread_state().function_disabled


def _is_torch_function_all_disabled() -> bool:
    """Whether neither classes nor modes can override functions."""
    return _thread_state().function_disabled >= _ALL
