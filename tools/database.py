"""Compares every operator of PyTorch's database of operators with ours, on its sample inputs.

    python tools/database.py                  all operators
    python tools/database.py softmax linalg   those whose names contain one of the words

For each operator and type it compares values, types, shapes, strides and, in double precision,
gradients. What differs for a reason stands in `EXPLAINED`; the exit status is 1 if something else
does. Making the samples takes minutes, so no test does this.
"""

from __future__ import annotations

import argparse
import collections
import sys
import types
import unittest
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import wengert

TYPES = ("float64", "float32", "complex128", "int64", "bool", "bfloat16")
TOLERANCES = {"float64": 1e-9, "complex128": 1e-9, "bfloat16": 4e-2}
SAMPLES = 8

INSIDE = "a step of another function's computation in PyTorch"
RANDOM_MEMORY = "the elements have no particular values"
TIES = "which of equal elements is named is not determined"
ROUNDING = "sums and casts are rounded at another place"
PHASE = "eigenvectors and singular vectors are determined up to a factor"
#: Operators that differ, by the reason; an asterisk at the end stands for any continuation.
EXPLAINED = {
    "tensors are dense": "sparse.* to_sparse",
    INSIDE: """
        _softmax_backward_data native_group_norm native_batch_norm _native_batch_norm_legit
        _batch_norm_with_update _upsample_bilinear2d_aa max_pool2d_with_indices_backward
        torch._scaled_mm* torch.ops.aten.* grid_sampler_2d grid_sampler_3d hash_tensor
        native_dropout_backward slice _segment_reduce* _unsafe_masked_index* _chunk_cat jiterator_*
    """,
    RANDOM_MEMORY: "empty* new_empty*",
    TIES: "kthvalue topk mode sort argsort",
    ROUNDING: """
        addbmm nn.functional.conv_transpose* nn.functional.scaled_dot_product_attention
        div.trunc_rounding nn.functional.max_unpool2d.grad cfloat
    """,
    PHASE: "linalg.eig linalg.eigh svd_lowrank pca_lowrank",
    "the gradient is that of the triangle which is read, or Hermitian":
        "cholesky* linalg.cholesky*",
    "memory is laid out otherwise": """
        unsafe_chunk linalg.solve linalg.solve_ex linalg.lstsq*
        lu_solve triangular_solve argwhere linalg.ldl_factor* linalg.inv*
    """,
    "PyTorch's gradient forgets where memory begins": "as_strided_scatter",
    "samples are views of memory that is not copied": "as_strided.partial_views",
    "draws have no derivative, PyTorch's is zero": "normal* bernoulli",
    "SciPy's values are more exact": "special.airy_ai special.bessel_*",
    "PyTorch's slope is a sixth in single precision": "nn.functional.hardsigmoid",
    "numbers near 1e14 agree to eight digits": "matrix_exp",
    "a sample holds a module of PyTorch's": "nn.functional.triplet_margin_with_distance_loss",
    "32-bit complex numbers are not stored": "chalf",
    "quotients of whole numbers are rounded down": "nn.functional.avg_pool*",
    "an empty batch keeps its shape": "nn.functional.batch_norm",
    "logarithms of sums are floating": "masked.log*",
    "a name that division had in Python 2": "__rdiv__",
    "a gradient that is always zero is not recorded": "linalg.householder_product",
}  # fmt: skip


def operators() -> list[Any]:
    """PyTorch's database, which asks for a package that it does not need here."""
    stand_in = types.ModuleType("expecttest")
    stand_in.TestCase = unittest.TestCase  # type: ignore[attr-defined]
    sys.modules.setdefault("expecttest", stand_in)
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


def explanation(name: str) -> str:
    """The reason for the differences of an operator; empty if there is none."""
    for reason, names in EXPLAINED.items():
        for each in names.split():
            if name.startswith(each[:-1]) if each.endswith("*") else name == each:
                return reason
    return ""


# The same call in both libraries ------------------------------------------------------------------


def named(library: Any, path: str) -> Any:
    """What a library has under a path, or None."""
    for part in path.split("."):
        library = getattr(library, part, None)
    return library


def rebuilt(function: Any) -> Any:
    """A function of the database with our package in the place of PyTorch; None if it is none."""
    home = getattr(function, "__module__", None) or ""
    if not isinstance(function, types.FunctionType) or not home.startswith("torch.testing"):
        return None
    cells = tuple(types.CellType(counterpart(cell.cell_contents))
                  for cell in function.__closure__ or ())  # fmt: skip
    made = types.FunctionType(
        function.__code__,
        {**function.__globals__, "torch": wengert},
        function.__name__,
        function.__defaults__,
        cells or None,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def counterpart(value: Any) -> Any:
    """Our function for one of PyTorch's; any other value itself."""
    if not callable(value):
        return value
    name = getattr(value, "__name__", "")
    for place in ("nn.functional.", "", "linalg.", "special.", "fft.", "Tensor."):
        if name and named(torch, place + name) is value:
            return named(wengert, place + name)
    return rebuilt(value) or value


def ours(operator: Any) -> Any:
    """What an operator of the database is here."""
    made = rebuilt(operator.op)
    if made is not None:
        return made
    last = operator.name.rpartition(".")[2]
    if named(torch.Tensor, last) is operator.op:
        return named(wengert.Tensor, last)
    return named(wengert, operator.name) or named(wengert.Tensor, last)


def converted(value: Any, memories: dict[Any, Any] | None = None) -> Any:
    """An argument of PyTorch's as one of ours; tensors keep their strides.

    With a dictionary for `memories`, tensors that share memory share it afterwards as well.
    """
    if isinstance(value, torch.Tensor):
        if value.device.type == "meta":
            return wengert.empty(tuple(value.shape), dtype=converted(value.dtype), device="meta")
        if memories is None:
            return converted_tensor(value)
        if id(value) not in memories:
            memories[id(value)] = shared_tensor(value, memories)
        return memories[id(value)]
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return getattr(wengert, str(value).split(".")[1])
    if isinstance(value, torch.device):
        return wengert.device(str(value))
    if isinstance(value, torch.Size):
        return wengert.Size(value)
    if isinstance(value, (tuple, list)):
        items = [converted(each, memories) for each in value]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, dict):
        return {key: converted(each, memories) for key, each in value.items()}
    return value


def shared_tensor(value: torch.Tensor, memories: dict[Any, Any]) -> Any:
    """A tensor of ours that is the same part of the same memory."""
    base = value.detach()
    memory = base.untyped_storage()
    key = memory.data_ptr(), base.dtype
    if not memory.nbytes() or base.is_conj() or base.is_neg():
        return converted_tensor(value)
    if key not in memories:
        flat = base.as_strided((memory.nbytes() // base.itemsize,), (1,), 0)
        memories[key] = wengert.tensor(array_of(flat)).to(converted(base.dtype))
    made = memories[key].as_strided(tuple(base.shape), base.stride(), base.storage_offset())
    return made.requires_grad_() if value.requires_grad else made


def converted_tensor(value: torch.Tensor) -> Any:
    base = value.detach()
    kind = getattr(wengert, str(base.dtype).split(".")[1])
    reach = 1 + sum((n - 1) * s for n, s in zip(base.shape, base.stride(), strict=True))
    shape, stride = tuple(base.shape), tuple(base.stride())
    if not base.numel():
        made = wengert.empty(shape, dtype=kind)
    else:
        flat = torch.zeros(reach, dtype=base.dtype)
        if 0 in stride:  # elements that are seen several times
            shown = tuple(slice(0, 1 if s == 0 else None) for s in stride)
            flat.as_strided([1 if s == 0 else n for n, s in zip(shape, stride, strict=True)],
                            stride).copy_(base[shown])  # fmt: skip
        else:
            flat.as_strided(shape, stride).copy_(base)
        made = wengert.tensor(array_of(flat)).to(kind).as_strided(shape, stride)
    return made.detach().requires_grad_() if value.requires_grad else made


def array_of(value: Any) -> Any:
    """The elements of a tensor of either library; 16-bit floats in single precision."""
    value = value.detach()
    if isinstance(value, torch.Tensor):
        value = value.resolve_conj().resolve_neg()
        if torch._is_zerotensor(value):
            value = torch.zeros(value.shape, dtype=value.dtype)
    narrow = str(value.dtype).endswith(("bfloat16", "float16"))
    return (value.float() if narrow else value).numpy()


def leaves(value: Any) -> list[Any]:
    """What nested containers hold, in order."""
    if isinstance(value, (tuple, list)):
        return [leaf for each in value for leaf in leaves(each)]
    if isinstance(value, dict):
        return leaves(list(value.values()))
    return [value]


# Comparison ---------------------------------------------------------------------------------------


def difference(one: Any, other: Any) -> str:
    """In what a tensor of ours differs from one of PyTorch's; empty if in nothing."""
    kinds = [str(each.dtype).split(".")[1] for each in (one, other)]
    if kinds[0] != kinds[1]:
        return f"type {kinds[0]}, not {kinds[1]}"
    a, b = array_of(one), array_of(other)
    if a.shape != b.shape:
        return f"shape {a.shape}, not {b.shape}"
    if a.dtype.kind in "iub":
        return "" if np.array_equal(a, b) else "values"
    tolerance = TOLERANCES.get(kinds[0], 2e-4)
    return "" if np.allclose(a, b, tolerance, tolerance, equal_nan=True) else "values"


def strides(value: Any) -> list[int]:
    """The strides of dimensions that have more than one place."""
    return [s for s, n in zip(value.stride(), value.shape, strict=True) if n > 1]


def attempt(call: Callable[[], Any]) -> tuple[Any, str]:
    """The result of a call, or the name of its error."""
    try:
        return call(), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {str(error)[:120]}"


def gradients(library: Any, results: list[Any], inputs: list[Any]) -> Any:
    total = sum(
        (t * t).real.sum() + t.abs().square().sum() if t.is_complex() else (t * t + t).sum()
        for t in results
    )
    return library.autograd.grad(total, inputs, allow_unused=True)


def compared(operator: Any, function: Any, sample: Any, with_gradients: bool) -> Iterator[str]:
    """The differences of one call."""
    theirs = (sample.input, sample.args, sample.kwargs)
    given = converted(theirs)
    torch.manual_seed(42)  # which is what functions of the database that draw do
    expected, refused = attempt(lambda: operator.op(sample.input, *sample.args, **sample.kwargs))
    wengert.manual_seed(42)
    found, error = attempt(lambda: function(given[0], *given[1], **given[2]))
    if refused or error:
        if bool(refused) != bool(error):
            yield f"raises {error}" if error else f"does not raise {refused}"
        return
    pairs = list(zip(leaves(found), leaves(expected), strict=False))
    tensors = [pair for pair in pairs if isinstance(pair[1], torch.Tensor)]
    for one, other in tensors:
        differs = difference(one, other)
        if differs:
            yield differs
            return
        if strides(one) != strides(other):
            yield f"strides {strides(one)}, not {strides(other)}"
    if not with_gradients:
        return
    results = [[t for t in each if t.requires_grad] for each in zip(*tensors, strict=True)]
    inputs = [
        [t for t in leaves(each) if isinstance(t, kind) and t.requires_grad]
        for each, kind in ((given, wengert.Tensor), (theirs, torch.Tensor))
    ]
    if not results or not inputs[1]:
        return
    if len(results[0]) != len(results[1]):
        yield f"{len(results[0])} results require gradients, not {len(results[1])}"
        return
    slopes, refused = attempt(lambda: gradients(torch, results[1], inputs[1]))
    mine, error = attempt(lambda: gradients(wengert, results[0], inputs[0]))
    if refused or error:
        if error and not refused:
            yield f"gradient raises {error}"
        return
    for one, other in zip(mine, slopes, strict=True):
        if one is None or other is None:
            left = other if one is None else one
            if left is not None and array_of(left).any():
                yield "a gradient is None"
        elif difference(one, other):
            yield f"gradient: {difference(one, other)}"


def differences(operator: Any) -> Iterator[tuple[str, str]]:
    """Types and what differs in them."""
    function = ours(operator)
    if function is None:
        yield "", "is missing"
        return
    for kind in TYPES:
        dtype = getattr(torch, kind)
        if dtype not in operator.dtypes:
            continue
        with_gradients = kind in ("float64", "complex128") and operator.supports_autograd
        torch.manual_seed(0)
        samples, _ = attempt(
            lambda dtype=dtype, recorded=with_gradients: [
                sample
                for _, sample in zip(
                    range(SAMPLES),
                    operator.sample_inputs("cpu", dtype, requires_grad=recorded),
                    strict=False,
                )
            ]
        )
        for sample in samples or ():
            try:
                for text in compared(operator, function, sample, with_gradients):
                    yield kind, text
            except Exception as error:
                yield kind, f"cannot be compared: {type(error).__name__}: {str(error)[:100]}"


def main() -> int:
    """Print what differs, with reasons where there are some."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="parts of names of operators")
    words = parser.parse_args().words
    warnings.simplefilter("ignore")
    unexplained = seen = 0
    for operator in operators():
        name = ".".join(filter(None, (operator.name, operator.variant_test_name)))
        if words and not any(word in name for word in words):
            continue
        seen += 1
        found = collections.Counter(differences(operator))
        if found:
            known = explanation(name) != ""
            unexplained += not known
            print(f"{name}: {'explained' if known else 'NOT EXPLAINED'}", flush=True)
            for (kind, text), count in found.most_common(1 if known else 4):
                print(f"    {kind} {text} ({count})")
    print(f"{seen} operators, {unexplained} with differences that are not explained")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
