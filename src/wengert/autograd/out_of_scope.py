"""The names of PyTorch's autograd that have no meaning here, with the reason for each.

Each exists under its own name and signature, in the module where PyTorch has it, and raises
NotImplementedError with the reason when it is called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

CUDA_STREAMS = "it steers streams of CUDA kernels, and gradients here are computed in order"
COMPILER = "it annotates a region of a program for the compiler, and this program is not compiled"
KINETO = (
    "it belongs to the tracing library that PyTorch's profiler is built on; "
    "autograd.profiler.profile records by itself"
)
NVIDIA_TOOLS = "it works with NVIDIA's profiling tools; autograd.profiler.profile needs none"
INTEL_TOOLS = "it works with Intel's profiling tools; autograd.profiler.profile needs none"
LEGACY = "it is PyTorch's old profiler, kept there for its tests; use autograd.profiler.profile"
CLASS_PER_DEVICE = "tensors of all devices have one class"

# Reasons by module and name; the names themselves in _FOUND.
OUT_OF_SCOPE: dict[tuple[str, str], str] = {}
_FOUND: dict[tuple[str, str], Any] = {}


def look_up(module: str, name: str) -> Any:
    """The stand-in for a name of `module`, for the ``__getattr__`` of that module."""
    key = (module.partition(".")[2], name)
    if key not in _FOUND:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return _FOUND[key]


def out_of_scope(reason: str, *modules: str) -> Callable[[Any], Any]:
    """Make a function or class refuse to be called, and list it with its reason."""

    def enlist(declared: Any) -> Any:
        name = declared.__name__
        text = f"wengert.{modules[0]}.{name} is out of scope: {reason}"

        def refuse(*args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError(text)

        if isinstance(declared, type):
            declared.__init__ = functools.wraps(declared.__init__)(refuse)  # type: ignore[misc]
            stand_in: Any = declared
        else:
            stand_in = functools.wraps(declared)(refuse)
        stand_in.__doc__ = f"Out of scope: {reason}."
        stand_in.__module__ = f"wengert.{modules[0]}"
        for module in modules:
            OUT_OF_SCOPE[module, name] = reason
            _FOUND[module, name] = stand_in
        return stand_in

    return enlist


# autograd.graph -----------------------------------------------------------------------------------


@out_of_scope(CUDA_STREAMS, "autograd.graph")
def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None: ...


@out_of_scope(CUDA_STREAMS, "autograd.graph")
def set_override_stale_capture_stream(enabled: bool) -> None: ...


@out_of_scope(COMPILER, "autograd.graph")
def region_activation_memory_budget(budget: float) -> Any: ...


# autograd.profiler --------------------------------------------------------------------------------


@out_of_scope(INTEL_TOOLS, "autograd.profiler")
class emit_itt:
    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None: ...


@out_of_scope(NVIDIA_TOOLS, "autograd.profiler")
class emit_nvtx:
    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None: ...


@out_of_scope(NVIDIA_TOOLS, "autograd.profiler")
def load_nvprof(path: str) -> Any: ...


@out_of_scope(NVIDIA_TOOLS, "autograd.profiler")
def parse_nvprof_trace(path: str) -> Any: ...


# autograd: what PyTorch's profiler is built on ----------------------------------------------------


@out_of_scope(KINETO, "autograd", "autograd.profiler")
class ProfilerConfig: ...


@out_of_scope(KINETO, "autograd")
class ProfilerEvent: ...


@out_of_scope(KINETO, "autograd", "autograd.profiler")
class ProfilerState: ...


@out_of_scope(KINETO, "autograd")
class _KinetoEvent: ...


@out_of_scope(KINETO, "autograd", "autograd.profiler")
class _ProfilerResult: ...


@out_of_scope(KINETO, "autograd")
def _add_metadata_json(key: str, value: str) -> None: ...


@out_of_scope(KINETO, "autograd", "autograd.profiler")
def _prepare_profiler(config: Any, activities: Any, scopes: Any = ()) -> None: ...


@out_of_scope(KINETO, "autograd", "autograd.profiler")
def _enable_profiler(config: Any, activities: Any, scopes: Any = ()) -> None: ...


@out_of_scope(KINETO, "autograd", "autograd.profiler")
def _disable_profiler() -> Any: ...


@out_of_scope(KINETO, "autograd", "autograd.profiler")
def _kineto_step() -> None: ...


@out_of_scope(KINETO, "autograd")
def _set_empty_test_observer(is_global: bool, sampling_prob: float) -> None: ...


@out_of_scope(LEGACY, "autograd")
def _enable_profiler_legacy(config: Any) -> None: ...


@out_of_scope(LEGACY, "autograd")
def _disable_profiler_legacy() -> Any: ...


@out_of_scope(LEGACY, "autograd.profiler_legacy")
class profile:
    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
    ) -> None: ...


@out_of_scope(CLASS_PER_DEVICE, "autograd")
def _register_py_tensor_class_for_device(device: Any, cls: type) -> None: ...
