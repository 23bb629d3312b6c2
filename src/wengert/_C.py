"""What programs that define subclasses and modes import from the innards of PyTorch."""

from __future__ import annotations

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
