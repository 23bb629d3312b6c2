"""Gradients by fused loops on arrays, where nothing is recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..backends.numpy import quiet
from ..core.state import thread_state
from ..core.tensor import Tensor, wrap_as


def unrecorded(loop: Callable, *values: Any) -> Tensor | None:
    """What a loop makes of the arrays of tensors; None where a rule in operators is needed.

    It is needed if the call is recorded, seen by a mode or transform, or does not suit the loop.
    """
    state = thread_state()
    if state.layers:
        return None
    arrays = []
    for value in values:
        if isinstance(value, Tensor):
            if state.grad_enabled and value.requires():
                return None
            value = value.array
        arrays.append(value)
    token = quiet.set(quiet.ignore)
    try:
        out = loop(*arrays)
    finally:
        quiet.reset(token)
    return None if out is None else wrap_as(out, state.inference)
