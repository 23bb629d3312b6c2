"""Every public name of PyTorch's autograd exists here, with the same signature.

The names are those of PyTorch 2.4 to 2.13, also where a later version has dropped them. With
PyTorch installed, the list is checked to be complete and the signatures are compared.
"""

import importlib
import inspect

import pytest

from wengert.autograd.out_of_scope import OUT_OF_SCOPE

NAMES = {
    "autograd": """
        DeviceType Function NestedIOFunction ProfilerActivity ProfilerConfig ProfilerEvent
        ProfilerState SavedTensor Variable anomaly_mode backward detect_anomaly enable_grad
        enforce_grad_layout_policy forward_ad function functional grad grad_mode gradcheck
        gradgradcheck graph inference_mode is_multithreading_enabled is_view_replay_enabled
        kineto_available no_grad profiler profiler_legacy profiler_util set_detect_anomaly
        set_grad_enabled set_multithreading_enabled variable
        _KinetoEvent _ProfilerResult _add_metadata_json _disable_profiler _disable_profiler_legacy
        _enable_profiler _enable_profiler_legacy _enable_record_function
        _force_original_view_tracking _get_sequence_nr _is_checkpoint_valid _kineto_step
        _pop_saved_tensors_default_hooks _prepare_profiler _profiler_enabled
        _push_saved_tensors_default_hooks _record_function_with_args_enter
        _record_function_with_args_exit _register_py_tensor_class_for_device
        _set_empty_test_observer _supported_activities _unsafe_preserve_version_counter
    """,
    "autograd.anomaly_mode": "detect_anomaly set_detect_anomaly",
    "autograd.forward_ad": """
        UnpackedDualTensor dual_level enter_dual_level exit_dual_level make_dual unpack_dual
        _is_fwd_grad_enabled _set_fwd_grad_enabled
    """,
    "autograd.function": """
        BackwardCFunction Function FunctionCtx FunctionMeta InplaceFunction NestedIOFunction
        once_differentiable
    """,
    "autograd.functional": "hessian hvp jacobian jvp vhp vjp",
    "autograd.grad_mode": """
        enable_grad enforce_grad_layout_policy inference_mode no_grad set_grad_enabled
        set_multithreading_enabled _force_original_view_tracking _unsafe_preserve_version_counter
    """,
    "autograd.gradcheck": """
        GradcheckError get_analytical_jacobian get_numerical_jacobian
        get_numerical_jacobian_wrt_specific_input gradcheck gradgradcheck
    """,
    "autograd.graph": """
        GradientEdge Node allow_mutation_on_saved_tensors disable_saved_tensors_hooks
        get_gradient_edge increment_version region_activation_memory_budget
        register_multi_grad_hook save_on_cpu saved_tensors_hooks
        set_override_stale_capture_stream set_warn_on_accumulate_grad_stream_mismatch
    """,
    "autograd.profiler": """
        DeviceType EnforceUnique EventList FunctionEvent KinetoStepTracker MemRecordsAcc
        ProfilerActivity ProfilerConfig ProfilerState emit_itt emit_nvtx kineto_available
        load_nvprof parse_nvprof_trace profile record_function
        _ProfilerResult _disable_profiler _enable_profiler _kineto_step _prepare_profiler
        _supported_activities
    """,
    "autograd.profiler_legacy": "profile",
    "autograd.profiler_util": "EventList FunctionEvent FunctionEventAvg MemRecordsAcc",
    "autograd.variable": "Variable VariableMeta",
}
EVERY_NAME = [(module, name) for module, names in NAMES.items() for name in names.split()]

# Helpers of profiler: only what a profile returns is compared.
PARTIAL = {"autograd.profiler_util"}
# Methods that connect PyTorch's Python classes to its C++ ones, or are not methods of real objects.
INTERNAL_METHODS = {
    ("autograd.graph", "Node"): {"metadata"},  # a dictionary on every node
    ("autograd.profiler", "profile"): {"config", "create_trace_id", "default_trace_id"},
}


def module_of(library, module):
    # gradcheck and variable are also names of functions, which hide the modules
    return importlib.import_module(f"{library}.{module}")


def find(library, module, name):
    return getattr(module_of(library, module), name)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize(("module", "name"), EVERY_NAME)
def test_name_exists(module, name):
    assert hasattr(module_of("wengert", module), name)


@pytest.mark.parametrize("module", sorted(set(NAMES) - PARTIAL))
def test_list_of_names_is_complete(torch, module):
    theirs = module_of("torch", module)
    public = set(getattr(theirs, "__all__", ()))
    public |= {name for name, value in vars(theirs).items() if belongs(module, name, value)}
    assert public <= set(NAMES[module].split())


def belongs(module, name, value):
    """Whether a module of PyTorch has a name as its own, and not as an import for its own use."""
    if name.startswith("_"):
        return False
    if inspect.ismodule(value):
        return value.__name__ == f"torch.{module}.{name}"
    home = getattr(value, "__module__", None)
    bound = module in ("autograd", "autograd.profiler") and home in (
        "torch._C._autograd",
        "torch._C._profiler",
    )
    return callable(value) and (home == f"torch.{module}" or bound)


@pytest.mark.parametrize("module", sorted(set(NAMES) - PARTIAL))
def test_exported_names(torch, module):
    """What ``from ... import *`` brings."""
    ours = set(getattr(module_of("wengert", module), "__all__", ()))
    assert set(getattr(module_of("torch", module), "__all__", ())) <= ours


def parameters(value):
    """Name, kind and default of each parameter; None where Python cannot tell."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    return [(p.name, p.kind, comparable(p.default)) for p in signature.parameters.values()]


def comparable(default):
    if hasattr(type(default), "__members__"):  # an enumeration's member
        return repr(default)
    return default.__qualname__ if callable(default) else default


@pytest.mark.parametrize(("module", "name"), EVERY_NAME)
def test_signature(torch, module, name):
    theirs = getattr(module_of("torch", module), name, None)  # None: dropped by this version
    expected = parameters(theirs) if callable(theirs) else None
    if expected is not None:
        assert parameters(find("wengert", module, name)) == expected


def methods(cls):
    """Public methods and properties that autograd's own classes define."""
    found = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("torch."):
            found |= {k: v for k, v in vars(base).items() if not k.startswith("_")}
    return found


CLASSES = [key for key in EVERY_NAME if key not in OUT_OF_SCOPE]


@pytest.mark.parametrize(("module", "name"), CLASSES)
def test_methods(torch, module, name):
    theirs = getattr(module_of("torch", module), name, None)
    if not isinstance(theirs, type) or theirs.__module__.startswith("torch._C"):
        return
    ours = find("wengert", module, name)
    internal = INTERNAL_METHODS.get((module, name), set())
    for method in sorted(set(methods(theirs)) - internal):
        assert hasattr(ours, method), method
        expected = getattr(theirs, method)
        if callable(expected) and parameters(expected) is not None:
            assert parameters(getattr(ours, method)) == parameters(expected), method


@pytest.mark.parametrize(("module", "name"), OUT_OF_SCOPE)
def test_out_of_scope(module, name):
    assert (module, name) in EVERY_NAME
    value = find("wengert", module, name)
    arguments = {
        p.name: None
        for p in inspect.signature(value).parameters.values()
        if p.kind is p.POSITIONAL_OR_KEYWORD
    }
    with pytest.raises(NotImplementedError) as caught:
        value(**arguments)
    assert f"{name} is out of scope: {OUT_OF_SCOPE[module, name]}" in str(caught.value)


def test_unknown_name():
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        find("wengert", "autograd", "nonsense")
