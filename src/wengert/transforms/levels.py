"""The levels of `grad`, `jvp` and `vmap`: what each does to what a function calls, makes and draws.

With "different" randomness a draw inside `vmap` has the batch sizes of the levels in front of its
shape and becomes a batched tensor; with the "same" it is one draw that all examples share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.arrays import LevelArray
from ..core.scopes import set_duals
from ..core.state import ThreadState
from ..core.tensor import Tensor
from ..dispatch.levels import Level, check_same_parameters, lifted, unwrapped
from .batching.moving import unbatched_target
from .batching.rules import fallback
from .batching.writing import write_batched

HOOKS_REFUSED = (
    "wengert.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks: what a "
    "transform saves belongs to its level and cannot be packed. Use the hooks with "
    "autograd.grad or backward(), or leave the `with` block before the transform"
)


class GradLevel(Level):
    """Reverse mode: a graph of its own is recorded inside."""

    __slots__ = ("differentiating", "pushes_forward", "records_alone")
    kind = "grad"
    differentiates = records = True
    restores_grad_mode = True

    def __init__(self) -> None:
        self.number = 0
        self.differentiating = False
        self.pushes_forward = False
        self.records_alone = False

    def check_entry(self, state: ThreadState) -> None:
        if state.saved_hooks:
            raise RuntimeError(HOOKS_REFUSED)

    def switch_on(self, state: ThreadState) -> None:
        state.grad_enabled = True
        state.inference = False
        state.saved_hooks_disabled = HOOKS_REFUSED


class JvpLevel(Level):
    """Forward mode: tensors inside have tangents of this level."""

    __slots__ = ()
    kind = "jvp"
    differentiates = True

    def switch_on(self, state: ThreadState) -> None:
        state.forward_grad_enabled = True
        set_duals(state, 0, [], False)

    def switch_off(self, state: ThreadState) -> None:
        state.forward_grad_enabled = self.forward_grad_enabled
        set_duals(state, self.dual_level, self.duals, self.tangents_aside)

    def set_modes_below(self, state: ThreadState) -> None:
        state.forward_grad_enabled = self.forward_grad_enabled and state.forward_grad_enabled
        set_duals(state, self.dual_level, self.duals, self.tangents_aside)


class VmapLevel(Level):
    """A batch: tensors inside may have a dimension that the function does not see."""

    __slots__ = ("batch_size", "randomness", "of_derivatives")
    kind, participle = "vmap", "vmapped"

    def __init__(
        self, batch_size: int, randomness: str = "error", *, of_derivatives: bool = False
    ) -> None:
        self.number = 0
        self.batch_size = batch_size
        self.randomness = randomness
        # A batch that autograd made: nobody could choose the randomness.
        self.of_derivatives = of_derivatives

    # Operators -------------------------------------------------------------------------------

    def call_batched(self, operator: Any, values: tuple, dims: tuple) -> tuple[Any, Any]:
        if operator.mutates:
            write_batched(operator, values, dims)
            return None, None
        rule = operator.batch_rule or fallback
        return rule(operator, values, dims)

    def check_captured_target(self, name: str) -> None:
        raise unbatched_target(name)

    def check_outer_change(self, name: str) -> None:
        """Nothing to refuse: the change is the same for all examples."""

    # What a function makes, draws and reads --------------------------------------------------

    def made(self, t: Tensor) -> Tensor:
        """What is made inside has no batch dimension and stays as it is."""
        return t

    def made_like(
        self, make: Callable[..., Tensor], like: Tensor, shape: tuple[int, ...] | None = None
    ) -> Tensor:
        value, dim = unwrapped(like, self)
        if dim is not None and shape is not None:
            shape, dim = (value.array.shape[dim], *shape), 0
        with self.below():
            out = make(value) if shape is None else make(value, shape)
        return out if dim is None else lifted(out, self, dim)

    def check_drawing_into(self) -> None:
        raise RuntimeError(
            "vmap: We do not support calling out variants of random operations inside of vmap: "
            "all examples would share `out`"
        )

    def sizes_drawn(self) -> tuple[int, ...]:
        self.check_drawing()
        return (self.batch_size,) if self.randomness == "different" else ()

    def drawn(self, t: Tensor) -> Tensor:
        return lifted(t, self, 0) if self.randomness == "different" else t

    def drawn_like(self, draw: Callable[..., Tensor], like: Tensor) -> Tensor:
        self.check_drawing()
        value, dim = unwrapped(like, self)
        with self.below():
            if self.randomness == "same":
                return draw(value if dim is None else value.select(dim, 0))
            if dim is None:
                value, dim = value.expand((self.batch_size, *value.array.shape)), 0
            return lifted(draw(value), self, dim)

    def drawn_by_rows(self, draw: Callable[..., Tensor], weights: Tensor) -> Tensor:
        self.check_drawing()
        check_same_parameters(weights)
        value, dim = unwrapped(weights, self)
        with self.below():
            if self.randomness == "same":
                return draw(value)
            if dim is None:
                value = value.expand((self.batch_size, *value.array.shape))
            else:
                value = value.movedim(dim, 0)
            rows = value.reshape((-1, value.array.shape[-1]))
            return lifted(draw(rows).reshape((*value.array.shape[:-1], -1)), self, 0)

    def check_parameters(self, t: Tensor) -> None:
        if t.array.dim is not None and self.randomness == "same":
            raise RuntimeError(
                "Vmap does not currently support same randomness with a batched tensor input: "
                "examples whose distributions differ have no draw in common. Draw from a "
                "standard distribution and apply the parameters to it, or use "
                "randomness='different'"
            )

    def fill(self, value: Tensor, dim: int | None, fill: Callable[[Tensor], None]) -> None:
        self.check_drawing()
        if dim is None and self.randomness == "different":
            raise RuntimeError(
                "vmap: Cannot ask for different inplace randomness on an unbatched tensor, which "
                "all examples share. Use an out-of-place function, or a tensor made from a batched "
                "one"
            )
        with self.below():
            if dim is None or self.randomness == "different":
                fill(value)
            else:
                one = value.select(dim, 0).clone()
                fill(one)
                value.copy_(one.unsqueeze(dim))

    def check_captured_draw(self, name: str) -> None:
        """Nothing to refuse: `fill` knows whether the examples share the numbers."""

    def check_drawing(self) -> None:
        """Refuse random numbers unless it was said whether the examples share them."""
        if self.of_derivatives:
            raise RuntimeError(
                "vmap: We do not yet support calling random operations inside of vmap: derivatives "
                "for a batch of gradients or tangents are computed at once, and nothing says "
                "whether its members share random numbers. Draw them in the forward pass, or "
                "compute one at a time"
            )
        if self.randomness == "error":
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Say with "
                "vmap(..., randomness='same') or 'different' whether examples share random "
                "numbers, or draw them outside"
            )

    def value_to_read(self, array: LevelArray, action: str) -> Tensor:
        if array.dim is not None:
            raise RuntimeError(
                f"vmap: It looks like you're calling {action} on a Tensor, or attempting to use a "
                "Tensor in some data-dependent control flow. It has a value for each example and "
                "no single one: use where() and other operators instead"
            )
        return array.value

    def untracked(self, t: Tensor) -> Tensor:
        raise RuntimeError(
            "accessing `data` under vmap transform is not allowed for a tensor that has a value "
            "for each example; use detach() or no_grad()"
        )

    def heading(self, array: LevelArray) -> str:
        return f"BatchedTensor(lvl={self.number or -2}, bdim={array.dim}, value="
