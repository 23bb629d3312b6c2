"""Results that go into a tensor given as ``out=``."""

from __future__ import annotations

import warnings
from typing import Any

from .dtypes import can_cast
from .errors import inference_update_error
from .levels import LevelArray
from .marks import SubclassArray, WrapperArray, unmarked
from .overlap import check_not_overlapping, check_sources
from .state import thread_state
from .tensor import Tensor, set_fields


def copy_to_out(name: str, result: Any, out: Any, operands: tuple | list = ()) -> Any:
    """Write a result into what the caller gave as ``out=``.

    An operand may be the very tensor that is written, but not another part of its memory.
    """
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"{name}(): argument 'out' must be a tuple of {len(result)} Tensors")
        return type(result)(*[copy_to_out(name, r, o) for r, o in zip(result, out)])
    check_out(name, out, result.requires_grad)
    state = thread_state()
    if state.dual_level >= 0:
        _refuse_tangents(name, result, out)
    if not can_cast(result.dtype, out.dtype):
        raise RuntimeError(
            f"result type {result.dtype.scalar_name} can't be cast to the desired output type "
            f"{out.dtype.scalar_name}"
        )
    target, source = unmarked(out.array), unmarked(result.array)
    layered = (
        state.layers
        or type(out.array) in (LevelArray, WrapperArray, SubclassArray)
        or type(source) in (LevelArray, WrapperArray)
    )
    if not layered and type(target) is not type(source):
        raise RuntimeError(
            f"{name}(): Expected out tensor to be on the device of the result, {result.device}, "
            f"but it is on {out.device}"
        )
    if out.array.shape != result.array.shape:
        resize_out(out, result.array.shape, 5)
    elif not layered:
        check_sources(name, out.array, [x.array for x in operands if isinstance(x, Tensor)])
        check_not_overlapping(name, out.array)
    if layered:
        from .dispatch import operator_named

        return operator_named("copy_").call((out, result, False))
    out.array[...] = source
    out.bump(name)
    return out


def _refuse_tangents(name: str, *tensors: Tensor) -> None:
    from .autograd.forward_ad import tangent_of

    if any(tangent_of(t) is not None for t in tensors):
        raise NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an "
            "out= function"
        )


def check_out(name: str, out: Any, recorded: bool = False) -> None:
    """Refuse a target that is no tensor, or that has or would get a history."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    state = thread_state()
    if recorded or out.requires() and state.grad_enabled:
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, "
            "but one of the arguments requires grad."
        )
    if out.inference and not state.inference:
        raise inference_update_error()


def resize_out(out: Tensor, shape: tuple[int, ...], stacklevel: int) -> None:
    """Give `out` new memory of another shape, with a warning unless it had no elements."""
    from .devices import of_array
    from .factory import new_array
    from .subclasses import marked

    if out.array.size:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape "
            f"{list(out.array.shape)}, which does not match the required output shape "
            f"{list(shape)}. Views of it keep the old memory; give a tensor of that shape, or one "
            "without elements",
            UserWarning,
            stacklevel=stacklevel,
        )
    array = new_array(shape, out.dtype, of_array(out.array))
    set_fields(out, array=marked(type(out), array))
