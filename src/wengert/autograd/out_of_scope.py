"""The names of PyTorch's autograd that have no meaning here, with the reason for each.

Each exists under its own name and with its parameters, in the module where PyTorch has it, and
raises NotImplementedError with the reason when it is called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

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


class Entry(NamedTuple):
    """One name: why it is not here, in which modules PyTorch has it, and its parameters."""

    name: str
    reason: str
    modules: tuple[str, ...]
    parameters: Callable | None  # None for a class that takes none


_AUTOGRAD, _GRAPH, _PROFILER = ("autograd",), ("autograd.graph",), ("autograd.profiler",)
_BOTH = _AUTOGRAD + _PROFILER
_TABLE = (
    Entry("set_warn_on_accumulate_grad_stream_mismatch", CUDA_STREAMS, _GRAPH, lambda enabled: 0),
    Entry("set_override_stale_capture_stream", CUDA_STREAMS, _GRAPH, lambda enabled: 0),
    Entry("region_activation_memory_budget", COMPILER, _GRAPH, lambda budget: 0),
    Entry("load_nvprof", NVIDIA_TOOLS, _PROFILER, lambda path: 0),
    Entry("parse_nvprof_trace", NVIDIA_TOOLS, _PROFILER, lambda path: 0),
    Entry("_add_metadata_json", KINETO, _AUTOGRAD, lambda key, value: 0),
    Entry("_prepare_profiler", KINETO, _BOTH, lambda config, activities, scopes=(): 0),
    Entry("_enable_profiler", KINETO, _BOTH, lambda config, activities, scopes=(): 0),
    Entry("_disable_profiler", KINETO, _BOTH, lambda: 0),
    Entry("_kineto_step", KINETO, _BOTH, lambda: 0),
    Entry("_set_empty_test_observer", KINETO, _AUTOGRAD, lambda is_global, sampling_prob: 0),
    Entry("_enable_profiler_legacy", LEGACY, _AUTOGRAD, lambda config: 0),
    Entry("_disable_profiler_legacy", LEGACY, _AUTOGRAD, lambda: 0),
    Entry(
        "_register_py_tensor_class_for_device", CLASS_PER_DEVICE, _AUTOGRAD, lambda device, cls: 0
    ),
)
_CLASSES = (
    Entry(
        "emit_itt", INTEL_TOOLS, _PROFILER, lambda self, enabled=True, record_shapes=False: None
    ),
    Entry(
        "emit_nvtx", NVIDIA_TOOLS, _PROFILER, lambda self, enabled=True, record_shapes=False: None
    ),
    Entry("ProfilerConfig", KINETO, _BOTH, None),
    Entry("ProfilerEvent", KINETO, _AUTOGRAD, None),
    Entry("ProfilerState", KINETO, _BOTH, None),
    Entry("_KinetoEvent", KINETO, _AUTOGRAD, None),
    Entry("_ProfilerResult", KINETO, _BOTH, None),
    Entry(
        "profile",
        LEGACY,
        ("autograd.profiler_legacy",),
        lambda self, enabled=True, *, use_cuda=False, record_shapes=False, with_flops=False,
        profile_memory=False, with_stack=False, with_modules=False: None,
    ),
)  # fmt: skip

#: Reasons by module and name.
OUT_OF_SCOPE: dict[tuple[str, str], str] = {
    (module, entry.name): entry.reason for entry in _TABLE + _CLASSES for module in entry.modules
}


def _refusal(entry: Entry) -> Callable[..., Any]:
    """A function with the parameters of an entry that says why it cannot be called."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"wengert.{entry.modules[0]}.{entry.name} is out of scope: {entry.reason}"
        )

    refuse = functools.wraps(entry.parameters or object.__init__)(refuse)
    refuse.__name__ = refuse.__qualname__ = entry.name
    refuse.__module__, refuse.__doc__ = f"wengert.{entry.modules[0]}", _doc(entry)
    return refuse


def _refusing_class(entry: Entry) -> type:
    members = {
        "__init__": _refusal(entry),
        "__module__": f"wengert.{entry.modules[0]}",
        "__doc__": _doc(entry),
    }
    return type(entry.name, (), members)


def _doc(entry: Entry) -> str:
    return f"Out of scope: {entry.reason}."


_FOUND: dict[tuple[str, str], Any] = {}
for _make, _entries in ((_refusal, _TABLE), (_refusing_class, _CLASSES)):
    for _entry in _entries:
        _stand_in = _make(_entry)
        _FOUND.update({(module, _entry.name): _stand_in for module in _entry.modules})


def look_up(module: str, name: str) -> Any:
    """The stand-in for a name of `module`, for the ``__getattr__`` of that module."""
    key = (module.partition(".")[2], name)
    if key not in _FOUND:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return _FOUND[key]
