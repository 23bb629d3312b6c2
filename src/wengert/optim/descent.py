"""Plain descent: SGD with momentum, averaged SGD, and Rprop, which only looks at signs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.tensor import Tensor
from ..operators.selection import where
from .rule import ZEROS, Filled, UpdateRule, options

Number = float | Tensor


class SGD(UpdateRule):
    """Steps against the gradient, or against a decaying sum of gradients: the momentum.

    The sum begins with the first gradient itself, without `dampening`. `nesterov` steps along the
    gradient and the momentum that will be.
    """

    def __init__(
        self,
        params: Iterable,
        lr: Number = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Number = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, options(locals()))

    def initial_state(self, o: Any) -> dict[str, Any]:
        return {"momentum_buffer": None} if o.momentum != 0 else {}

    def update(self, p: Any, g: Any, s: Any, o: Any) -> Any:
        if o.momentum != 0:
            if s.momentum_buffer is None:
                s.momentum_buffer = g
            else:
                s.momentum_buffer = s.momentum_buffer * o.momentum + (1 - o.dampening) * g
            g = g + o.momentum * s.momentum_buffer if o.nesterov else s.momentum_buffer
        return p - o.lr * g


class ASGD(UpdateRule):
    """SGD of decreasing steps that keeps the average of parameters since step `t0` in `ax`."""

    def __init__(
        self,
        params: Iterable,
        lr: Number = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

    def initial_state(self, o: Any) -> dict[str, Any]:
        return {"step": 0.0, "eta": o.lr, "mu": 1.0, "ax": ZEROS}

    def update(self, p: Any, g: Any, s: Any, o: Any) -> Any:
        eta, mu = s.eta.item(), s.mu.item()
        p = p * (1 - o.lambd * eta) - eta * g
        s.ax = p if mu == 1 else s.ax + (p - s.ax) * mu
        s.eta = o.lr / (1 + o.lambd * o.lr * s.step) ** o.alpha
        s.mu = 1 / max(1, s.step - o.t0)
        return p


class Rprop(UpdateRule):
    """Steps by the sign of the gradient, each element with a step size of its own.

    The size grows by the second of `etas` while the sign stays, and shrinks by the first when it
    changes, in which case the element waits for one step.
    """

    def __init__(
        self,
        params: Iterable,
        lr: Number = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, options(locals()))

    def initial_state(self, o: Any) -> dict[str, Any]:
        return {"step": 0.0, "prev": ZEROS, "step_size": Filled(o.lr)}

    def update(self, p: Any, g: Any, s: Any, o: Any) -> Any:
        agreement = (g * s.prev).sign()
        # Where nothing is known yet the agreement is 0, and the size stays.
        factor = where(agreement < 0, o.etas[0], agreement + 1)
        factor = where(agreement > 0, o.etas[1], factor)
        s.step_size = (s.step_size * factor).clamp(*o.step_sizes)
        s.prev = g.masked_fill(agreement < 0, 0)
        return p - s.prev.sign() * s.step_size
