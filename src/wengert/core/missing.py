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
    "__future__": ("not planned because conversions of modules change the data of their parameters",
                   "nn.Module.to"),
    "_dynamo": ("not planned because `compile` traces calls, not bytecode", "compile"),
    "_inductor": ("not planned because `compile` has its own passes", "compile"),
    "ao": ("not planned because NumPy has no quantized types", "Tensor.to"),
    "classes": ("not planned because there is no C++ to load", "library"),
    "distributed": (_LATER + ": one process computes", "utils.data with worker processes"),
    "export": ("not planned because there is no other runtime to export to", "compile"),
    "fx": ("not planned because graphs are those of the compiler", "compiler"),
    "hub": ("not planned because it runs code from the network", "load"),
    "jit": ("not planned because there is no TorchScript", "compile"),
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
    "optim.swap_in_optimizer_params_and_state": (_LATER, ""),
    "utils.cpp_extension": ("not planned because there is no C++ to load", "library.custom_op"),
    "utils.tensorboard": ("not planned because it writes another program's files", "print"),
    "utils.mobile_optimizer": ("not planned because there is no TorchScript", "compile"),
    "utils.bottleneck": ("not planned", "autograd.profiler"),
    "utils.data.distributed": (_LATER, "utils.data.RandomSampler"),
    "utils.data.DistributedSampler": (_LATER, "utils.data.RandomSampler"),
    "utils.data.datapipes": ("not planned, as PyTorch gives them up", "utils.data.IterableDataset"),
    "testing._internal": ("not planned because it is PyTorch's own test suite", "testing"),
}  # fmt: skip


def explanation(module: str, name: str) -> str:
    """What a name is that a module of the package does not have."""
    below = module.partition(".")[2]
    text = f"{module} has no attribute {name!r}"
    reason, nearest = REASONS.get(f"{below}.{name}" if below else name, ("", ""))
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
