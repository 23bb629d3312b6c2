"""Kernels taken out of their operators, to be called past everything that stands around a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dispatch.binding import bind_overload
from .custom_ops import CustomOpDef
from .keys import ALIAS_KEYS, DispatchKey, DispatchKeySet, after_autograd_keyset
from .libraries import get_known_kernel
from .operator import ANY_DEVICE, CustomOperator
from .overloads import OpOverload, find_overload, split_qualname


class SafeKernelFunction:
    """A kernel of an operator, to be called past everything else."""

    def __init__(self, overload: OpOverload, kernel: Callable[..., Any]) -> None:
        self._overload = overload
        self._kernel = kernel

    def call_boxed(self, keyset: DispatchKeySet, /, *args: Any, **kwargs: Any) -> Any:
        """Call the kernel; `keyset` is what a kernel registered with keyset would be given."""
        if not isinstance(keyset, DispatchKeySet):
            raise TypeError(
                "call_boxed(): incompatible function arguments. Expected a DispatchKeySet, got "
                + type(keyset).__name__
            )
        return self._kernel(*args, **kwargs)

    @property
    def op_handle(self) -> OpOverload:
        """The operator that the kernel belongs to."""
        return self._overload

    def __repr__(self) -> str:
        return f"SafeKernelFunction({self._overload.name()})"


def get_kernel(
    op: str | OpOverload | CustomOpDef, dispatch_key: str | DispatchKey
) -> SafeKernelFunction:
    """The kernel that a call of an operator comes to for a key such as ``CPU``."""
    overload = _overload_of(op)
    key = dispatch_key.value if isinstance(dispatch_key, DispatchKey) else dispatch_key
    if key not in DispatchKey.__members__:
        raise ValueError(
            f"Invalid dispatch key: {key}; the keys are {', '.join(DispatchKey.__members__)}"
        )
    if key in ALIAS_KEYS:
        raise RuntimeError(
            f"Alias keys do not have runtime kernel registrations. {key} stands for several keys: "
            "name one, such as CPU"
        )
    operator = overload.op
    if isinstance(operator, CustomOperator):
        return SafeKernelFunction(overload, _custom_kernel(operator, key))
    return SafeKernelFunction(overload, _own_kernel(overload, key))


def _custom_kernel(operator: CustomOperator, key: str) -> Callable[..., Any]:
    kernel = get_known_kernel(operator, key)
    if kernel is None and key in ("CPU", "CUDA"):
        kernel = operator.kernels.get(ANY_DEVICE) or operator.composite
    if kernel is None:
        raise RuntimeError(f"no kernel for {key} for {operator.name}: none is registered")
    found = kernel

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = bind_overload(operator, args, kwargs)
        return operator.result_types.convert(operator.apply(found, bound))

    return call


def _own_kernel(overload: OpOverload, key: str) -> Callable[..., Any]:
    """A call of an operator of the library below autograd, or at it."""
    if key == "CUDA" or key == "AutogradCUDA":
        raise RuntimeError(f"no kernel for {key} for {overload.name()}: there is no CUDA here")
    if key == "AutogradCPU":
        return overload.op

    def call(*args: Any, **kwargs: Any) -> Any:
        return overload.redispatch(after_autograd_keyset, *args, **kwargs)

    return call


def _overload_of(op: Any) -> OpOverload:
    if isinstance(op, CustomOpDef):
        return op._opoverload
    if isinstance(op, OpOverload):
        return op
    if not isinstance(op, str):
        raise ValueError(f"get_kernel({op}): got unexpected type for op: {type(op)}")
    try:
        namespace, name = split_qualname(op)
        name, _, overload = name.partition(".")
        return find_overload(namespace, name, overload or "default")
    except (AttributeError, ValueError) as cause:
        raise RuntimeError(f"operator {op} does not exist") from cause
