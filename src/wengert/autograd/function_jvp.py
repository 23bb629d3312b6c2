"""Forward mode through a custom Function: its `jvp` gives the results their tangents."""

from __future__ import annotations

from typing import Any

from ..core.ndarrays import ndarrays
from ..core.scopes import DualsAside
from ..core.state import ThreadState
from ..core.tensor import Tensor
from ..creation.factories import zeros_like
from ..tape.tangents import inherit_tangent_base, set_tangent, tangent_base, tangent_of
from .function_node import FunctionNode, among


def push_tangents(
    node: FunctionNode,
    state: ThreadState,
    args: tuple,
    raw: tuple,
    outputs: tuple,
    constant: tuple,
    dirty: tuple,
) -> None:
    """Call `jvp` if an input has a tangent, and give each result what it returned for it."""
    inputs = [a for a in args if isinstance(a, Tensor)]
    tangents = [tangent_of(t) for t in inputs]
    if all(tangent is None for tangent in tangents):
        return
    versions = [-1 if tangent is None else tangent.version() for tangent in tangents]
    returned = _call_jvp(node, state, args, tangents)
    if len(returned) != len(outputs):
        raise RuntimeError(
            "Function's jvp returned an invalid number of forward gradients (expected "
            f"{len(outputs)} but got {len(returned)})"
        )
    for position, (value, out, tangent) in enumerate(zip(raw, outputs, returned, strict=True)):
        if not isinstance(out, Tensor):
            continue
        if among(value, constant) or not ndarrays.is_differentiable(value.array):
            if tangent is not None:
                raise RuntimeError(
                    f"Function's jvp returned a gradient at position {position}, but the "
                    "corresponding forward output is not a differentiable Tensor. Return None "
                    "at that position"
                )
        elif among(value, dirty):
            at = next((i for i, t in enumerate(inputs) if t is value), None)
            if at is None:
                raise RuntimeError(
                    "Only input Tensors should be given to ctx.mark_dirty(): the tensor at "
                    f"position {position} of the results is no input"
                )
            _set_changed(out, tangent, tangents[at], versions[at])
        else:
            _set_fresh(out, tangent, inputs, tangents)


def _call_jvp(node: FunctionNode, state: ThreadState, args: tuple, tangents: list) -> tuple:
    """The tangents that `jvp` returns; forward mode is off inside, recording is not."""
    remaining = iter(tangents)
    given: list[Any] = []
    for a in args:
        tangent = next(remaining) if isinstance(a, Tensor) else None
        if (
            tangent is None
            and isinstance(a, Tensor)
            and not node.keeps_undefined
            and ndarrays.is_differentiable(a.array)
        ):
            tangent = zeros_like(a)
        given.append(tangent)
    with DualsAside(state):
        returned = node._forward_cls.jvp(node, *given)  # type: ignore[attr-defined]
    returned = returned if isinstance(returned, tuple) else (returned,)
    for i, tangent in enumerate(returned):
        if tangent is not None and not isinstance(tangent, Tensor):
            raise RuntimeError(
                f"expected Variable or None (got {type(tangent).__name__}) for grad output {i} of "
                f"the jvp of {node._forward_cls.__name__}"  # type: ignore[attr-defined]
            )
    return returned


def _set_changed(out: Tensor, tangent: Any, before: Any, version: int) -> None:
    """The tangent of an input that was changed in place must have been changed in place too."""
    if before is None:
        if tangent is not None:
            _write_tangent(out, tangent)
        return
    if tangent is None or tangent.version() == version:
        raise RuntimeError(
            "An inplace custom Function is not modifying the forward mode gradients inplace. If "
            "forward changes an input in place, jvp must change the tangent of that input in place"
        )
    if tangent is not before:
        raise RuntimeError(
            "An inplace custom Function is not returning the forward mode gradients as-is. If "
            "forward changes an input in place, jvp must return the tangent it has changed"
        )


def _set_fresh(out: Tensor, tangent: Any, inputs: list, tangents: list) -> None:
    """The tangent of a new result; that of a view of an input must be a view of its tangent."""
    source = None
    if out.view_meta is not None:
        for i, t in enumerate(inputs):
            if _root(t) is out.view_meta.base:
                source = i
                inherit_tangent_base(t, out)
                break
    if source is None:
        if tangent is not None:
            _check_size(out, tangent)
            set_tangent(out, tangent)
        return
    whole = tangents[source]
    if whole is None:
        if tangent is not None:
            _write_tangent(out, tangent)
        return
    if tangent is None or tangent.view_meta is None:
        raise RuntimeError(
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is "
            "not returning a view."
        )
    if tangent.view_meta.base is not _root(whole):
        kind = "the given grad input" if whole.view_meta is None else (
            "the same base as the given grad input"
        )
        raise RuntimeError(
            "A custom Function is returning a view but the jvp is not returning a view of "
            f"{kind}."
        )
    _check_size(out, tangent)
    set_tangent(out, tangent)


def _root(t: Tensor) -> Tensor:
    return t if t.view_meta is None else t.view_meta.base


def _check_size(out: Tensor, tangent: Tensor) -> None:
    if tangent.array.shape != out.array.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(out.array.shape)} while the "
            f"given forward gradient is of size {list(tangent.array.shape)}."
        )


def _write_tangent(out: Tensor, tangent: Tensor) -> None:
    """The first tangent of a tensor that existed before; a view writes it into its base's."""
    _check_size(out, tangent)
    base = tangent_base(out)
    if base is None:
        set_tangent(out, tangent)
        return
    set_tangent(base, zeros_like(base))
    part: Any = tangent_of(out)
    part.copy_(tangent)
