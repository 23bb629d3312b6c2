"""Every public name that programs import is here with PyTorch's signature, or says why it is not.

The names are read from PyTorch; what differs on purpose is declared below with its reason.
"""

import importlib
import inspect

import pytest

# Both forms of the package have the same Python here: the compiled run suffices.
pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")

_MODULES = """
    nn nn.attention nn.functional nn.init nn.modules nn.parameter nn.utils nn.utils.clip_grad
    nn.utils.convert_parameters nn.utils.fusion nn.utils.init nn.utils.memory_format
    nn.utils.parametrizations nn.utils.parametrize nn.utils.prune nn.utils.rnn nn.utils.stateless
    optim optim.lr_scheduler optim.optimizer optim.swa_utils utils.data distributions
    distributions.constraints distributions.kl distributions.transforms distributions.utils
    amp func autograd.functional autograd.forward_ad linalg fft special signal.windows
    serialization testing utils
"""
MODULES = [*_MODULES.split()]

#: What PyTorch's modules have for their own use.
INSIDE = {
    "nn.functional": """
        BroadcastingList1 BroadcastingList2 BroadcastingList3 GRID_SAMPLE_INTERPOLATION_MODES
        GRID_SAMPLE_PADDING_MODES assert_int_or_pair boolean_dispatch native_channel_shuffle
        reproducibility_notes sparse_support_notes tf32_notes handle_torch_function
        has_torch_function has_torch_function_unary has_torch_function_variadic
    """,
    "linalg": "common_notes",
    "fft": "common_args factory_common_args",
    "special": "common_args multi_dim_common",
    "optim.swa_utils": "PARAM_LIST",
    "nn.utils.rnn": "PackedSequence_ bind copy_method_params",
    "nn.utils.stateless": "NamedMemberAccessor",
    "nn.utils.parametrize": """
        OpaqueBase get_swap_module_params_on_conversion is_opaque_reference_type
        is_traceable_wrapper_subclass
    """,
    "utils": "set_module",
    "optim.lr_scheduler": "EPOCH_DEPRECATION_WARNING",
    "optim.optimizer": "GlobalOptimizerPostHook GlobalOptimizerPreHook ParamsT StateDict",
}
#: Methods that PyTorch's classes have for their own use.
INSIDE_OF_CLASSES = {
    "Module": {"T_destination"},
    "Optimizer": {"OptimizerPostHook", "OptimizerPreHook", "profile_hook_step"},
    "Adagrad": {"share_memory"},
}
#: Where a signature says more or less than PyTorch's, by the reason.
OTHER_SIGNATURES = {
    "all arguments by name, where PyTorch takes any and passes them on": """
        LogSigmoid NLLLoss2d RNN Sigmoid Softmax2d Softsign Tanh Tanhshrink adaptive_max_pool1d
        adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d
        max_pool1d max_pool2d max_pool3d
    """,
    "one method for all pruning methods, which take arguments of their own": """
        CustomFromMask.apply Identity.apply L1Unstructured.apply LnStructured.apply
        RandomStructured.apply RandomUnstructured.apply PruningContainer
    """,
    "lazy layers pass on what a call has besides": "LazyLinear.initialize_parameters",
}
DECLARED = {name for names in OTHER_SIGNATURES.values() for name in names.split()}


def modules_of(name):
    return importlib.import_module(f"wengert.{name}"), importlib.import_module(f"torch.{name}")


def public_names(name):
    """The names that a module of PyTorch exports, or defines where it does not say."""
    _, theirs = modules_of(name)
    exported = getattr(theirs, "__all__", None)
    for each in sorted(exported if exported is not None else vars(theirs)):
        value = getattr(theirs, each)
        home = str(getattr(value, "__module__", None) or type(value).__module__)
        own = exported is not None or (home.startswith("torch") and value is not torch.Tensor)
        inside = each[0] == "_" or each in INSIDE.get(name, "").split()
        if own and not inside and not inspect.ismodule(value):
            yield each


def parameters(value):
    """Names and defaults of arguments; None where Python cannot tell."""
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return None
    return [(p.name, comparable(p.default)) for p in found]


def comparable(default):
    if callable(default) and default is not inspect.Parameter.empty:
        return getattr(default, "__name__", type(default).__name__)
    if isinstance(default, (bool, int, float, str, tuple, list, type(None))):
        return default
    return default if default is inspect.Parameter.empty else type(default).__name__


def differs(label, ours, theirs):
    expected = parameters(theirs)
    found = parameters(ours)
    return expected is not None and label not in DECLARED and found != expected


@pytest.mark.parametrize("module", MODULES)
def test_names_and_signatures(module):
    ours, theirs = modules_of(module)
    unexplained, different = [], []
    for name in public_names(module):
        expected = getattr(theirs, name)
        if not hasattr(ours, name):
            with pytest.raises(AttributeError) as caught:
                getattr(ours, name)
            if "not planned" not in str(caught.value) and "not there yet" not in str(caught.value):
                unexplained.append(name)
            continue
        found = getattr(ours, name)
        if not callable(expected):
            continue
        if differs(name, found, expected):
            different.append((name, parameters(found), parameters(expected)))
        for method, label in methods(expected):
            pair = getattr(found, method, None), getattr(expected, method)
            if pair[0] is None:
                unexplained.append(label)
            elif callable(pair[1]) and differs(label, *pair):
                different.append((label, *map(parameters, pair)))
    assert not unexplained
    assert not different


def methods(cls):
    """The public methods and attributes that a class of PyTorch defines itself."""
    if not inspect.isclass(cls) or hasattr(cls, "__members__"):
        return
    if not cls.__module__.startswith("torch.") or issubclass(cls, Warning):
        return
    for name, value in vars(cls).items():
        plain = callable(value) or isinstance(value, (property, classmethod, staticmethod))
        if name[0] != "_" and plain and name not in INSIDE_OF_CLASSES.get(cls.__name__, ()):
            yield name, f"{cls.__name__}.{name}"


def test_what_is_declared_is_different():
    """A signature that has become PyTorch's leaves the list."""
    found = set()
    for module in MODULES:
        ours, theirs = modules_of(module)
        for label in DECLARED:
            name, _, method = label.partition(".")
            if hasattr(ours, name) and hasattr(theirs, name):
                pair = [getattr(ours, name), getattr(theirs, name)]
                if method:
                    pair = [getattr(each, method) for each in pair if hasattr(each, method)]
                if len(pair) == 2 and parameters(pair[0]) != parameters(pair[1]):
                    found.add(label)
    assert found == DECLARED


def test_what_star_imports_bring():
    """`from torch.nn import *` brings every layer, and `dir` lists what is there."""
    for module in ("nn", "optim", "utils.data", "distributions", "nn.functional", "nn.init"):
        ours, _ = modules_of(module)
        missing = [n for n in public_names(module) if hasattr(ours, n) and n not in dir(ours)]
        exported = getattr(ours, "__all__", None)
        if exported is not None:
            missing += [n for n in public_names(module) if hasattr(ours, n) and n not in exported]
        assert not missing, module
