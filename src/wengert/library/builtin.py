"""The operators of the library under PyTorch's names: namespace ``aten``, its overload names."""

from __future__ import annotations

from typing import Any

from .schema import FunctionSchema, function_schema

NAMESPACE = "aten"

# One operator here serves what PyTorch declares several times: for numbers, for tensors, for one
# dimension and for many. It goes by the overload whose arguments it has.
_BY_OVERLOAD = {
    "Tensor": """add sub rsub mul div remainder fmod lerp clamp eq ne lt le gt ge bitwise_and
        bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift fill slice index masked_fill
        searchsorted split add_ sub_ mul_ div_ floor_divide_ remainder_ fmod_ pow_ lerp_ clamp_ eq_
        ne_ lt_ le_ gt_ ge_ bitwise_and_ bitwise_or_ bitwise_xor_ bitwise_left_shift_
        bitwise_right_shift_ fill_ masked_fill_""",
    "Tensor_Tensor": "pow",
    "self": "where",
    "int": "transpose select unbind softmax log_softmax",
    "correction": "var std var_mean std_mean",
    "src": "scatter scatter_",
    "two": "scatter_reduce scatter_reduce_",
    "int_Tensor": "index_fill index_fill_",
}
_OVERLOADS = {name: overload for overload, names in _BY_OVERLOAD.items() for name in names.split()}

# Operators that lie behind functions of `nn.functional` and are declared as those are in PyTorch.
_BEHIND_FUNCTIONS = frozenset((
    "_celu", "_celu_", "_elu", "_elu_", "_gelu", "_hardsigmoid", "_hardsigmoid_", "_hardswish",
    "_hardswish_", "_hardtanh", "_hardtanh_", "_leaky_relu", "_leaky_relu_", "_mish", "_mish_",
    "_one_hot", "_silu", "_silu_", "_softplus", "_softshrink", "_threshold", "_threshold_",
))  # fmt: skip

_schemas: dict[Any, FunctionSchema] = {}


def overload_name(name: str) -> tuple[str, str]:
    """The name of a declared operator and the name of its overload, empty for the default one."""
    name, _, overload = name.partition(".")
    if name in _BEHIND_FUNCTIONS:
        name = name[1:]
    return name, overload or _OVERLOADS.get(name, "")


def builtin_schema(operator: Any) -> FunctionSchema:
    """The schema of an operator of the library, read from its declaration when first asked for."""
    known = _schemas.get(operator)
    if known is None:
        name, overload = overload_name(operator.name)
        full = f"{NAMESPACE}::{name}" + (f".{overload}" if overload else "")
        known = _schemas[operator] = function_schema(operator.schema, full)
    return known
