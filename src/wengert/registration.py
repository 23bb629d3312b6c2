"""Gathers the declared operators into the functions of the package and the methods of Tensor."""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Any

from . import attributes, creation, methods, numpy_protocol
from .autograd import engine
from .dispatch import Operator, operators, regenerate_view
from .native import native
from .operators import copying, pointwise, reduce, views
from .tensor import Tensor, bind_operators

import importlib

def _maybe(name):
    import os
    if os.path.exists(os.path.join(os.path.dirname(__file__), "operators", name + ".py")):
        try:
            return importlib.import_module("wengert.operators." + name)
        except Exception as e:
            print("registration: skipping", name, repr(e))
    return ModuleType(name)

names = "extrema softmax norms scan sorting joining arranging diagonals strides inplace_views complex matmul affine contraction indexing scatter nn getitem".split()
mods = {n: _maybe(n) for n in names}
getitem, matmul, complex = mods["getitem"], mods["matmul"], mods["complex"]
OPERATOR_MODULES: tuple[ModuleType, ...] = (
    pointwise, copying, reduce, views, *[mods[n] for n in names if n != "getitem"],
)  # fmt: skip

# Helpers of the operator modules, and names that exist as methods or as functions only.
_NOT_PUBLIC = {
    "normal_dims", "restore_dims", "sum_dtype", "real_part", "reduce_gradient", "cast", "pack",
    "to_device", "zeros_like", "copy", "copy_", "zero", "zero_", "fill_",
    "strided", "tensor_list", "elementwise", "linear", "primitive", "nondifferentiable", "promote", "promote_float", "keep",
}  # fmt: skip
_NOT_METHODS = {"where_", "meshgrid", "cat", "stack", "einsum", "broadcast_tensors"}


def public_functions() -> dict[str, Any]:
    """The operators and composites that are functions of the package, by name."""
    found: dict[str, Any] = {}
    for module in OPERATOR_MODULES:
        for name, value in vars(module).items():
            if name.startswith("_") or name in _NOT_PUBLIC or name.endswith("_"):
                continue
            if isinstance(value, Operator):
                if not value.name.startswith("_"):
                    found[name] = value
            elif isinstance(value, FunctionType) and value.__module__ == module.__name__:
                found[name] = value
    return found


def attach_methods(functions: dict[str, Any]) -> None:
    """Make Tensor methods of the functions, the in-place variants and the hand-written ones."""
    for name, function in functions.items():
        if name not in _NOT_METHODS:
            native.attach(Tensor, name, function)
    for name, operator in operators().items():
        if name.endswith("_") and not name.startswith("_"):
            native.attach(Tensor, name, operator)
    for table in (attributes, methods):
        for name, value in (table.PROPERTIES | table.METHODS).items():
            native.attach(Tensor, name, value)
    for name in ("new_tensor", "new_zeros", "new_ones", "new_full", "new_empty"):
        native.attach(Tensor, name, getattr(creation, name))
    from .operators import complex as complex_operators

    for name, function in {
        "T": functions["reverse_dims"],
        "mT": functions["matrix_transpose"],
        "H": functions["matrix_adjoint"],
        "mH": functions["batch_adjoint"],
    }.items():
        native.attach(Tensor, name, property(function))
    native.attach(Tensor, "real", property(complex_operators.real, methods.set_real))
    native.attach(Tensor, "imag", property(complex_operators.imag, methods.set_imag))
    for name, value in numpy_protocol.METHODS.items():
        native.attach(Tensor, name, value)


def bind() -> dict[str, Any]:
    """Complete Tensor and the engine; returns the package's functions."""
    functions = public_functions()
    attach_methods(functions)
    table: dict[str, Any] = dict(operators())
    table["matmul"] = getattr(matmul, "matmul", table["mul"])
    table["getitem"], table["setitem"] = getattr(getitem, "getitem", None), getattr(getitem, "setitem", None)
    table["regenerate_view"] = regenerate_view
    bind_operators(table)
    engine.bind_operators(table["add"], copying.reduce_gradient)
    return functions
