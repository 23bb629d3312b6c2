"""Forward-mode differentiation: dual tensors carry a tangent through every operation.

There is one level at a time. Reverse mode composes with it: primal and tangent are both ordinary
recorded computations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.dtypes import is_differentiable
from ..core.registry import operator_named
from ..core.scopes import DualsAside, enter_dual_level, exit_dual_level
from ..core.state import thread_state
from ..core.tensor import Tensor
from ..tape.tangents import (
    _ITSELF,
    laid_out,
    set_tangent,
    tangent_of,
)
from .grad_mode import _Flag, dual_level

__all__ = [
    "UnpackedDualTensor",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
    "dual_level",
]


class UnpackedDualTensor(NamedTuple):
    """The two parts of a dual tensor; the tangent is None where there is none."""

    primal: Tensor
    tangent: Tensor | None


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of `tensor` that carries `tangent`."""
    state = thread_state()
    if state.dual_level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists: use it inside "
            "`with dual_level()`"
        )
    if level is not None and level != state.dual_level:
        raise RuntimeError(
            f"Invalid level given to make_dual: {level}, while level {state.dual_level} is open"
        )
    check_tangent(tensor, tangent)
    if tangent_of(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            "same level is not supported; take the primal that unpack_dual() returns"
        )
    if tangent_of(tangent) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level is not "
            "supported; take the primal that unpack_dual() returns"
        )
    with DualsAside(state):
        dual = tensor.view_as(tensor)
        tangent = laid_out(dual, tangent)
    dual.make_cold().tangent_base = _ITSELF
    set_tangent(dual, tangent)
    return dual


def check_tangent(tensor: Any, tangent: Any) -> None:
    """Refuse a tangent that does not fit its primal."""
    for value, what in ((tensor, "primal"), (tangent, "tangent")):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"make_dual(): expected {what} to be a Tensor, not {type(value).__name__}"
            )
        if not is_differentiable(value.array.dtype):
            raise ValueError(
                f"Expected {what} to be floating point or complex, but got: {value.dtype}"
            )
    if tensor.array.shape != tangent.array.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor: {list(tangent.array.shape)} for {list(tensor.array.shape)}"
        )
    if tensor.array.dtype != tangent.array.dtype:
        raise RuntimeError(
            f"Expected the tangent to have the dtype of the primal, {tensor.dtype}, but got "
            f"{tangent.dtype}"
        )


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal without tangent, and the tangent or None; `level` can only be the open one."""
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"unpack_dual(): argument 'tensor' must be Tensor, not {type(tensor).__name__}"
        )
    state = thread_state()
    if state.dual_level < 0 or (level is not None and level != state.dual_level):
        return UnpackedDualTensor(tensor, None)
    tangent = tangent_of(tensor)
    with DualsAside(state):
        primal = operator_named("_primal").call((tensor,))
    primal.make_cold().tangent_base = _ITSELF
    return UnpackedDualTensor(primal, tangent)


def _is_fwd_grad_enabled() -> bool:
    return thread_state().forward_grad_enabled


class _set_fwd_grad_enabled(_Flag):
    """Switch forward mode on or off, at once and for a `with` block."""

    flag = "forward_grad_enabled"
