"""Adding a gradient that has arrived at a leaf to its ``.grad``."""

from __future__ import annotations

from _thread import allocate_lock
from os import register_at_fork
from typing import Any

from ..backends.kernels import native_loop
from ..backends.layout import copied_in_order, is_dense
from ..backends.loops import loops
from ..backends.numpy import add_into
from ..core.arrays import is_level
from ..core.classes import COMPILED
from ..core.collector import collector
from ..core.errors import refuse_inference_update
from ..core.registry import operator_named
from ..core.state import call_user, overriding, thread_state
from ..core.tensor import Tensor, bump_version, wrap
from .cycles import show_graph

_collector = collector
_loops = loops
_overriding = overriding
_contiguous = native_loop("_contiguous")

# References to a gradient that nobody but the engine holds, where `_first` counts them: the local
# variable of the engine's function and, uncompiled, the arguments of two calls.
SOLE_TENSOR_REFERENCES = 1 if COMPILED else 3
SOLE_ARRAY_REFERENCES = 2

_gradient_locks = [allocate_lock() for _ in range(61)]


def add_gradient(variable: Tensor, new: Tensor | None) -> None:
    """Add `new` to a leaf's gradient: by taking it over, in place, or out of place."""
    if new is not None and variable.node is not None:
        raise moved_leaf_error(variable)
    if new is None or not variable.needs_grad:
        run_post_accumulate_hooks(variable)
        return
    state = thread_state()
    old = variable.gradient
    if state.grad_enabled:
        _add_recorded(variable, new)
    elif _overriding.possible and (
        type(new) is not Tensor or (old is not None and type(old) is not Tensor)
    ):
        _add_by_class(variable, new)
    elif state.levels or state.dual_level >= 0:  # by operators, which levels and tangents see
        if old is None:
            variable.gradient = _clone_in_layout(new, variable)
        else:
            old.add_(new)
    else:
        with _gradient_locks[id(variable) % 61]:
            old = variable.gradient
            if old is None:
                variable.gradient = _first(variable, new)
            else:
                if old.inference and not state.inference:
                    refuse_inference_update(old)
                if not _loops.binary_into(0, old.array, new.array):
                    _add_into(old.array, new.array)
                bump_version(old, "AccumulateGrad")
    if variable.cold is not None:
        run_post_accumulate_hooks(variable)


def _add_by_class(variable: Tensor, new: Tensor) -> None:
    """By operators, which classes of gradients handle; that is user code: no lock is held."""
    if variable.gradient is None:
        sole = _collector.refcount(new) <= SOLE_TENSOR_REFERENCES + 2
        dense = bool(new.array.flags.c_contiguous)
        variable.gradient = new.detach() if sole and dense else new.clone()
    else:
        variable.gradient.add_(new)


def _add_recorded(variable: Tensor, new: Tensor) -> None:
    """Out of place, as part of the graph; user code may run in it, so no lock is held."""
    while True:
        old = variable.gradient
        total = _clone_in_layout(new, variable) if old is None else old + new
        show_graph(total)
        with _gradient_locks[id(variable) % 61]:
            if variable.gradient is old:
                variable.gradient = total
                return


def _first(variable: Tensor, new: Tensor) -> Tensor:
    """What becomes a leaf's first gradient: the array that arrived, if only the engine holds it."""
    array = new.array
    if (
        array.base is None
        and _collector.refcount(new) <= SOLE_TENSOR_REFERENCES
        and _collector.refcount(array) <= SOLE_ARRAY_REFERENCES
        and (array.strides == variable.array.strides or not thread_state().grad_layout)
    ):
        return wrap(array)
    return wrap(_copy_in_layout(array, variable.array))


def moved_leaf_error(variable: Tensor) -> RuntimeError:
    """For a tensor that was a leaf when it was used and has been changed in place since."""
    return RuntimeError(
        "leaf variable has been moved into the graph interior: the tensor that this gradient is "
        f"for, {variable.dtype} {list(variable.array.shape)}, was a leaf when it was used and has "
        "been changed by a recorded in-place operation since. Change a clone()"
    )


def run_post_accumulate_hooks(variable: Tensor) -> None:
    """Call the hooks of a leaf whose sink has run, with or without a gradient."""
    cold = variable.cold
    if cold is not None and cold.post_hooks:
        for hook in list(cold.post_hooks.values()):
            if call_user(hook, variable) is not None:
                raise RuntimeError("post accumulate grad hooks should return None")


def _add_into(old: Any, new: Any) -> None:
    """Add to a gradient; it may be of another shape by now, or the leaf may."""
    try:
        add_into(old, new)
    except ValueError:
        raise RuntimeError(
            f"The size of the gradient, {list(new.shape)}, must match the size of the .grad that "
            f"it is added to: output with shape {list(old.shape)} doesn't match the broadcast "
            "shape. `.data` has given the leaf another shape in between, or .grad was given one in "
            "place. Set .grad to None when a shape changes"
        ) from None


def _copy_in_layout(array: Any, like: Any) -> Any:
    """A copy of `array` with the memory order of `like` where that is dense, else C order."""
    if _is_plain(array, like):
        copy = None if _contiguous is None else _contiguous.run((array,))
        return array.copy("C") if copy is None else copy
    return copied_in_order(array, like.strides)


def _clone_in_layout(new: Tensor, variable: Tensor) -> Tensor:
    """A copy in the layout of a leaf by operators, which levels, tangents and the graph see."""
    array, like = new.array, variable.array
    if is_level(new) or is_level(variable) or array.strides == like.strides:
        return new.clone()
    order = list(range(array.ndim))
    if not _is_plain(array, like):
        order.sort(key=lambda i: (-like.strides[i], i))
    elif array.flags.c_contiguous:
        return new.clone()
    return operator_named("_contiguous_in_order").call((new, tuple(order)))


def _is_plain(array: Any, like: Any) -> bool:
    """Whether a copy of `array` for a leaf that lies in memory as `like` is in C order."""
    return (
        like.flags.c_contiguous
        or like.ndim < 2
        or like.ndim != array.ndim
        or not is_dense(like.shape, like.strides, like.itemsize)
    )


def _renew_locks() -> None:
    """In a forked child: locks that the parent's other threads held would never be released."""
    for i in range(len(_gradient_locks)):
        _gradient_locks[i] = allocate_lock()


register_at_fork(after_in_child=_renew_locks)
