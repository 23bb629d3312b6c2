"""Gradients divided by a measure of their own size: Adagrad, Adadelta, RMSprop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.tensor import Tensor
from .rule import ZEROS, Filled, UpdateRule, options, toward

Number = float | Tensor


class Adagrad(UpdateRule):
    """Divides gradients by the root of the sum of all squares so far."""

    def __init__(
        self,
        params: Iterable,
        lr: Number = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, options(locals()))
        self._begin()

    def initial_state(self, o: Any) -> dict[str, Any]:
        # The sum begins with the default even in a group that says otherwise, as in PyTorch.
        return {"step": 0.0, "sum": Filled(self.defaults["initial_accumulator_value"])}

    def update(self, p: Any, g: Any, s: Any, o: Any) -> Any:
        s.sum = s.sum + g * g
        size = o.lr / (1 + (s.step - 1) * o.lr_decay)
        return p - size * (g / (s.sum.sqrt() + o.eps))


class Adadelta(UpdateRule):
    """Scales gradients by the ratio of the average sizes of past changes and of gradients."""

    def __init__(
        self,
        params: Iterable,
        lr: Number = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, options(locals()))

    def initial_state(self, o: Any) -> dict[str, Any]:
        return {"step": 0.0, "square_avg": ZEROS, "acc_delta": ZEROS}

    def update(self, p: Any, g: Any, s: Any, o: Any) -> Any:
        s.square_avg = s.square_avg * o.rho + (1 - o.rho) * g * g
        change = (s.acc_delta + o.eps).sqrt() / (s.square_avg + o.eps).sqrt() * g
        s.acc_delta = s.acc_delta * o.rho + (1 - o.rho) * change * change
        return p - o.lr * change


class RMSprop(UpdateRule):
    """Divides gradients by the root of their average square, or variance if `centered`."""

    def __init__(
        self,
        params: Iterable,
        lr: Number = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        if not alpha >= 0.0:
            raise ValueError(f"Invalid alpha value: {alpha}")
        super().__init__(params, options(locals()))

    def initial_state(self, o: Any) -> dict[str, Any]:
        state = {"step": 0.0, "square_avg": ZEROS}
        if o.momentum > 0:
            state["momentum_buffer"] = ZEROS
        if o.centered:
            state["grad_avg"] = ZEROS
        return state

    def update(self, p: Any, g: Any, s: Any, o: Any) -> Any:
        s.square_avg = s.square_avg * o.alpha + (1 - o.alpha) * g * g
        square = s.square_avg
        if o.centered:
            s.grad_avg = toward(g, s.grad_avg, 1 - o.alpha)
            square = square - s.grad_avg * s.grad_avg
        change = g / (square.sqrt() + o.eps)
        if o.momentum > 0:
            change = s.momentum_buffer = s.momentum_buffer * o.momentum + change
        return p - o.lr * change
