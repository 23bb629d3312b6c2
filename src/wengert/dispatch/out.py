"""Results that go into a tensor given as ``out=``."""

from __future__ import annotations

import warnings
from typing import Any

from ..backends.allocation import new_array
from ..backends.geometry import memory_as, strided
from ..backends.numpy import cast_into, dense_strides
from ..backends.placement import of_array
from ..core import dtypes
from ..core.arrays import LevelArray, SubclassArray, WrapperArray, alive, unmarked
from ..core.dtypes import can_cast
from ..core.errors import c_name, refuse_inference_update
from ..core.registry import operator_named
from ..core.state import thread_state
from ..core.tensor import Tensor, set_fields
from ..tape.tangents import tangent_of
from .overlap import check_not_overlapping, check_sources
from .torch_function import marked


def bound_for_out(operator: Any, args: tuple, out: Any) -> tuple:
    """The arguments of a call with ``out=``, with the type of `out` if that decides."""
    if not isinstance(out, Tensor):
        return args
    if operator.facts.get("out") == "flags" and out.dtype not in (dtypes.bool, dtypes.uint8):
        raise RuntimeError(
            f"{operator.name} only supports bool tensor for result, got: {out.dtype.scalar_name}"
        )
    if operator.facts.get("out") in ("typed", "typed as floats"):
        position = operator.schema.names["dtype"]
        if args[position] is None:
            _refuse_whole(operator, args[0], out)
            return (*args[:position], out.dtype, *args[position + 1 :])
    return args


def _refuse_whole(operator: Any, x: Any, out: Tensor) -> None:
    """Refuse fractions that would be added up in a type that has none, where that is a rule."""
    if operator.facts["out"] != "typed as floats" or not x.is_floating_point():
        return
    if not out.is_floating_point():
        raise NotImplementedError(
            f"\"{operator.name}_cpu\" not implemented for '{out.dtype.scalar_name}': out= of "
            f"{operator.name}() is to have a floating-point type, as the input has"
        )


def casts_to_out(operator: Any, args: tuple) -> bool:
    """Whether the result of a call may be written into a tensor of another type."""
    position = operator.schema.names.get("dtype")
    if position is not None and args[position] is not None:
        return False
    rule = operator.facts.get("out")
    if rule is None:
        return operator.broadcasts and operator.family in ("elementwise", "nondifferentiable")
    return rule in ("casts", "flags")


#: What joins tensors says by another error that the type of `out` does not fit.
_JOINING = frozenset(("stack", "hstack", "vstack", "dstack", "column_stack"))

#: What must not write into memory that it reads, not even into the very tensor it reads.
APART = frozenset(("cat", "gather", "index_select", "masked_select", "stack", "take"))

#: Nor must these, which give values along a dimension with their indices. Where they take all
#: elements they name no operands here: the largest may go into one of those it is chosen from.
APART_PAIRS = frozenset(("kthvalue", "max", "median", "min", "mode", "nanmedian"))

#: What says in other words that `out` has to have the type of the result.
_TYPE_WORDS = {
    "complex": "Expected object of scalar type {result} but got scalar type {out} for argument "
    "'out'",
    **dict.fromkeys(("amax", "amin"), "Expected the dtype for input and out to match, but got "
    "{result} for input's dtype and {out} for out's dtype."),
    "multinomial": "multinomial expects {result} tensor out, got: {out}",
}  # fmt: skip


def copy_to_out(
    name: str, result: Any, out: Any, operands: tuple | list = (), exact: bool = False,
    in_order: bool = False,
) -> Any:
    """Write a result into what the caller gave as ``out=``, of its own type if `exact`.

    An operand may be the very tensor that is written, but not another part of its memory, unless
    the two have to be apart. A target of another shape is resized, and gets the memory order of the
    result if `in_order`.
    """
    apart = name in APART or name in APART_PAIRS
    if apart and operands and isinstance(operands[0], list):
        operands = operands[0]
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"{name}(): argument 'out' must be a tuple of {len(result)} Tensors")
        return type(result)(
            *[copy_to_out(name, r, o, operands, exact, in_order) for r, o in zip(result, out)]
        )
    check_out(name, out, result.requires_grad)
    state = thread_state()
    if state.dual_level >= 0:
        _refuse_tangents(name, result, out)
    if exact and result.dtype is not out.dtype:
        raise wrong_out_type(name, result.dtype, out.dtype)
    if not can_cast(result.dtype, out.dtype):
        kind = TypeError if name in _JOINING else RuntimeError
        raise kind(
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
    if not layered:
        check_not_overlapping(name, out.array)
        if apart:
            check_sources(name, out.array, arrays_read(operands), True)
    resized = out.array.shape != result.array.shape
    if resized:
        resize_out(out, result.array.shape, 5)
        if in_order and not layered:
            _reorder(out, source)
    if not layered and operands and (not resized or apart):
        check_sources(name, out.array, arrays_read(operands), apart)
    if layered:
        return operator_named("copy_").call((out, result, False))
    cast_into(out.array, source)
    out.bump(name)
    return out


def arrays_read(operands: tuple | list) -> list:
    """The arrays of those operands that are tensors."""
    return [alive(x).array for x in operands if isinstance(x, Tensor)]


def wrong_out_type(name: str, result: dtypes.dtype, out: dtypes.dtype) -> RuntimeError:
    """For a result that may be written into a tensor of its own type only."""
    words = _TYPE_WORDS.get(name)
    if words is None:
        words = f"Expected out tensor to have dtype {c_name(result)}, but got {c_name(out)} instead"
    text = words.format(result=result.scalar_name, out=out.scalar_name)
    return RuntimeError(f"{text}: {name}() gives {result}")


def _reorder(out: Tensor, source: Any) -> None:
    """Give a resized target the memory order of an array of its shape, if that has no gaps."""
    array, size = unmarked(out.array), source.dtype.itemsize
    if source.flags.c_contiguous or dense_strides(source.shape, source.strides, size) != (
        source.strides
    ):
        return
    steps = tuple([step // size * array.dtype.itemsize for step in source.strides])
    set_fields(out, array=marked(type(out), strided(array, source.shape, steps)))


def _refuse_tangents(name: str, *tensors: Tensor) -> None:
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
    if state.grad_enabled and (recorded or out.requires()):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, "
            "but one of the arguments requires grad."
        )
    if out.inference and not state.inference:
        refuse_inference_update(out)


def resize_out(out: Tensor, shape: tuple[int, ...], stacklevel: int | None) -> None:
    """Give `out` another shape, with a warning unless it had no elements or no level is given.

    Its elements follow each other from its first one on, in new memory if there are too many.
    """
    if out.array.size and stacklevel is not None:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape "
            f"{list(out.array.shape)}, which does not match the required output shape "
            f"{list(shape)}. Where its memory is too small it gets new one, and views of it keep "
            "the old; give a tensor of that shape, or one without elements",
            UserWarning,
            stacklevel=stacklevel,
        )
    array = memory_as(unmarked(out.array), shape)
    if array is None:
        array = new_array(shape, out.dtype, of_array(out.array))
    set_fields(out, array=marked(type(out), array))
