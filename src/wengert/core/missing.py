"""Names of PyTorch that are not here: what each is, why it is missing, and what is nearest.

The text is made when somebody reads the error: programs ask for names only to see whether they are
there.
"""

from __future__ import annotations

import sys

_DENSE = "not planned because tensors are dense arrays"
_LATER = "not there yet"

#: Reason, and the nearest thing that is here, by the name below the package.
REASONS: dict[str, tuple[str, str]] = {
    "_dynamo": ("not planned because `compile` traces calls, not bytecode", "compile"),
    "_inductor": ("not planned because `compile` has its own passes", "compile"),
    "ao": ("not planned because NumPy has no quantized types", "Tensor.to"),
    "classes": ("not planned because there is no C++ to load", "library"),
    "export": ("not planned because there is no other runtime to export to", "compile"),
    "fx": ("not planned because graphs are those of the compiler", "compiler"),
    "hub": ("not planned because it runs code from the network", "load"),
    "load_library": ("not planned because there is no C++ to load", "library"),
    "mps": ("not planned because there are no Metal devices", 'device("cpu")'),
    "multiprocessing": ("not planned because memory is not shared between processes",
                        "Python's multiprocessing"),
    "onnx": ("not planned because there is no other runtime to export to", "save"),
    "package": ("not planned", "save"),
    "profiler": (_LATER, "autograd.profiler"),
    "quantization": ("not planned because NumPy has no quantized types", "Tensor.to"),
    "sparse": (_DENSE, "scatter_add, index_add"),
    "xpu": ("not planned because there are no such devices", 'device("cpu")'),
    "nn.DataParallel": ("not planned because there is one device", "the module itself"),
    "nn.parallel": ("not planned because there is one device", "the module itself"),
    "nn.quantized": ("not planned because NumPy has no quantized types", "nn"),
    "nn.qat": ("not planned because NumPy has no quantized types", "nn"),
    "nn.intrinsic": ("not planned because NumPy has no quantized types", "nn"),
    "optim.SparseAdam": ("not planned because there are no sparse tensors", "Adam"),
    "utils.cpp_extension": ("not planned because there is no C++ to load", "library.custom_op"),
    "utils.tensorboard": ("not planned because it writes another program's files", "print"),
    "utils.mobile_optimizer": ("not planned because there is no TorchScript", "compile"),
    "utils.bottleneck": ("not planned", "autograd.profiler"),
    "utils.data.distributed": (_LATER, "utils.data.RandomSampler"),
    "utils.data.DistributedSampler": (_LATER, "utils.data.RandomSampler"),
    "utils.data.datapipes": ("not planned, as PyTorch gives them up", "utils.data.IterableDataset"),
    "utils.swap_tensors": ("not planned because what holds a tensor holds its record",
                           "Tensor.set_, Tensor.data"),
    "testing._internal": ("not planned because it is PyTorch's own test suite", "testing"),
}  # fmt: skip

#: Parts of modules whose names share one reason, by the module below the package.
_FAMILIES: dict[str, tuple[tuple[str, str], str]] = {
    "distributed": ((_LATER + ": one process computes", "utils.data with worker processes"), ""),
    "jit": (("not planned because there is no TorchScript", "compile"), ""),
    "utils.data": (
        ("not planned, as PyTorch gives data pipes up", "utils.data.IterableDataset"),
        """
        DFIterDataPipe DataChunk IterDataPipe MapDataPipe argument_validation functional_datapipe
        guaranteed_datapipes_determinism non_deterministic runtime_validation
        runtime_validation_disabled
        """,
    ),
    "nn.functional": (
        ("not planned because it multiplies 8-bit floats and ragged groups on accelerators",
         "matmul, bmm"),
        "ScalingType SwizzleType grouped_mm scaled_grouped_mm scaled_mm",
    ),
    "nn.attention": (
        ("not planned because attention is computed in one way",
         "nn.functional.scaled_dot_product_attention"),
        "SDPAParams activate_flash_attention_impl can_use_efficient_attention "
        "can_use_flash_attention flex_attention register_flash_attention_impl varlen",
    ),
    "utils": (
        ("not planned because it is about the build or the C++ of PyTorch", ""),
        """
        ThroughputBenchmark cmake_prefix_path generate_methods_for_privateuse1_backend
        get_cpp_backtrace rename_privateuse1_backend
        """,
    ),
    "compiler": (
        ("not planned because `compile` traces calls and keeps no state beside its functions",
         "compile"),
        """
        assume_constant_result config keep_portable_guards_unsafe keep_tensor_guards_unsafe
        load_cache_artifacts load_compiled_function nested_compile_region reset
        save_cache_artifacts set_enable_guard_collectives set_stance skip_all_guards_unsafe
        skip_guard_on_all_nn_modules_unsafe skip_guard_on_globals_unsafe
        skip_guard_on_inbuilt_nn_modules_unsafe substitute_in_graph wrap_numpy get_default_backend
        set_default_backend
        """,
    ),
    "serialization": (
        ("not planned because it steers how PyTorch's own code writes and places storages",
         "save, load and its map_location"),
        """
        LoadEndianness SourceChangeWarning StorageType check_module_version_greater_or_equal
        default_restore_location get_crc32_options get_default_load_endianness location_tag mkdtemp
        normalize_storage_type register_package set_crc32_options set_default_load_endianness
        skip_data storage_to_tensor_type validate_cuda_device validate_hpu_device
        """,
    ),
    "testing": (("not planned because it reads TorchScript's graphs", ""), "FileCheck"),
}  # fmt: skip


def reason_of(path: str) -> tuple[str, str]:
    """Why a name below the package is missing, and what is nearest; empty where nobody knows."""
    below, _, name = path.rpartition(".")
    if path in REASONS:
        return REASONS[path]
    reason, names = _FAMILIES.get(below, (("", ""), ""))
    return reason if not names or name in names.split() else ("", "")


def explanation(module: str, name: str) -> str:
    """What a name is that a module of the package does not have."""
    below = module.partition(".")[2]
    text = f"{module} has no attribute {name!r}"
    reason, nearest = reason_of(f"{below}.{name}" if below else name)
    if not reason:
        found = _similar(module, name)
        return f"{text}; nearest: {found}" if found else text
    return f"{text}: {reason}" + (f"; nearest: {nearest}" if nearest else "")


def _similar(module: str, name: str) -> str:
    """Names of the module that are spelled like the missing one."""
    from difflib import get_close_matches

    there = sys.modules.get(module)
    names = [each for each in dir(there) if not each.startswith("_")] if there else []
    return ", ".join(get_close_matches(name, names))


class Explanation:
    """The text of an error about a missing name, made when it is read."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __str__(self) -> str:
        return explanation(self.module, self.name)

    __repr__ = __str__


def missing(module: str, name: str) -> AttributeError:
    """The error that a module of the package has no such name."""
    return AttributeError(Explanation(module, name), name=name)
