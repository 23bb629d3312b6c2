"""What stands before a plain call when something is active: so far forward-mode duals."""

from __future__ import annotations

from typing import Any

from .autograd.forward_ad import call_with_tangents
from .state import thread_state


def call_layers(operator: Any, args: tuple) -> Any:
    """Call an operator through the active layers, innermost first."""
    state = thread_state()
    layers, state.layers = state.layers, 0
    try:
        return call_with_tangents(operator, args)
    finally:
        state.layers = layers
