"""Dispatch modes: while one is active, every operator call passes through it below autograd."""

from __future__ import annotations

from typing import Any

from ..state import thread_state


class TorchDispatchMode:
    """Base of modes; a subclass overrides `__torch_dispatch__` and is used in a `with` block.

    Inside the handler the mode itself is put aside, so calling `func` runs the operator under the
    modes that were entered before. What the handler returns is what the program sees.
    """

    def __torch_dispatch__(
        self, func: Any, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))

    def __enter__(self) -> TorchDispatchMode:
        state = thread_state()
        state.modes = [*state.modes, self]
        state.layers += 1
        return self

    def __exit__(self, *exception: object) -> None:
        state = thread_state()
        state.modes = state.modes[:-1]
        state.layers -= 1
