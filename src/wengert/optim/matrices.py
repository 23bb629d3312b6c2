"""Optimizers that see matrices as such: Adafactor and Muon."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..core import dtypes
from ..core.tensor import Tensor
from ..operators.affine import addmm
from .optimizer import Group, Optimizer
from .rule import ZEROS, UpdateRule, options, toward

Number = float | Tensor
_ADJUSTMENTS = (None, "original", "match_rms_adamw")


def _check(name: str, value: Any, valid: bool, limit: str = ">= 0") -> None:
    if not valid:
        raise ValueError(f"{name} should be {limit} but is: {value}")


def _check_rate(lr: Number) -> None:
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    _check("Learning rate", lr, bool(lr >= 0.0))


def _root_mean_square(t: Tensor) -> float:
    return t.norm(2).item() / math.sqrt(t.numel())


class Adafactor(UpdateRule):
    """Divides gradients by the root of their average squares, of which it keeps only two vectors.

    For a matrix these are the averages of rows and of columns. Steps are relative to the size of
    the parameter, and no larger than `d` on average.
    """

    def __init__(
        self,
        params: Iterable,
        lr: Number = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        _check_rate(lr)
        _check("beta2_decay", beta2_decay, beta2_decay <= 0.0, "<= 0")
        _check("epsilon1", eps[0], eps[0] is None or eps[0] >= 0.0)
        _check("epsilon2", eps[1], eps[1] >= 0.0)
        _check("Clipping threshold d", d, d >= 1.0, ">= 1")
        _check("weight_decay", weight_decay, weight_decay >= 0.0)
        Optimizer.__init__(self, params, options(locals()))

    def initial_state(self, o: Any) -> dict[str, Any]:
        return {"step": 0.0}

    def _state_of(self, p: Any, initial: dict[str, Any], group: Group) -> dict[str, Any]:
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        state = super()._state_of(p, initial, group)
        if len(state) > len(initial):
            return state
        if p.dim() > 1:
            state["row_var"] = p.grad.new_zeros((*p.shape[:-1], 1))
            state["col_var"] = p.grad.new_zeros((*p.shape[:-2], 1, p.shape[-1]))
        else:
            state["variance"] = p.grad.new_zeros(p.shape)
        return state

    def decayed(self, p: Any, g: Any, o: Any) -> tuple[Any, Any]:
        """Nothing yet: the size of the step is that of the parameter before its decay."""
        return p, g

    def update(self, p: Any, g: Any, s: Any, o: Any) -> Any:
        least, smallest_step = o.eps
        if least is None:
            least = dtypes.finfo(p.dtype).eps
        weight = s.step**o.beta2_decay
        size = max(smallest_step, _root_mean_square(p)) * min(o.lr, 1 / math.sqrt(s.step))
        if p.dim() > 1:
            squares = g * g
            s.row_var = toward(squares.mean(-1, keepdim=True), s.row_var, weight)
            s.col_var = toward(squares.mean(-2, keepdim=True), s.col_var, weight)
            overall = s.row_var.mean(-2, keepdim=True).clamp(min=least)
            variance = (s.row_var @ s.col_var) / overall
        else:
            variance = s.variance = toward(g * g, s.variance, weight)
        change = g * variance.clamp(min=least * least).rsqrt()
        clipped = max(1.0, _root_mean_square(change) / o.d)
        return p * (1 - o.lr * o.weight_decay) - (size / clipped) * change


class Muon(UpdateRule):
    """Replaces the momentum of a matrix by the nearest orthogonal one, in bfloat16.

    It is for the matrices within a network alone; all other parameters need another optimizer.
    """

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        _check_rate(lr)
        _check("momentum", momentum, momentum >= 0.0)
        _check("weight decay", weight_decay, weight_decay >= 0.0)
        if adjust_lr_fn not in _ADJUSTMENTS:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        Optimizer.__init__(self, params, options(locals()))
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: "
                        f"{p.size()}"
                    )

    def initial_state(self, o: Any) -> dict[str, Any]:
        return {"momentum_buffer": ZEROS}

    def _state_of(self, p: Any, initial: dict[str, Any], group: Group) -> dict[str, Any]:
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        return super()._state_of(p, initial, group)

    def decayed(self, p: Any, g: Any, o: Any) -> tuple[Any, Any]:
        """Weight decay is of the parameter itself."""
        return p * (1 - o.lr * o.weight_decay), g

    def update(self, p: Any, g: Any, s: Any, o: Any) -> Any:
        s.momentum_buffer = toward(g, s.momentum_buffer, 1 - o.momentum)
        momentum = toward(s.momentum_buffer, g, o.momentum) if o.nesterov else s.momentum_buffer
        rows, columns = p.shape
        if o.adjust_lr_fn == "match_rms_adamw":
            factor = 0.2 * math.sqrt(max(rows, columns))
        else:
            factor = math.sqrt(max(1, rows / columns))
        change = _orthogonal(momentum, o.ns_coefficients, o.ns_steps, o.eps)
        return p - (o.lr * factor) * change.to(p.dtype)


def _orthogonal(
    matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """The matrix with singular values near one, by iterations of a quintic polynomial."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = matrix.size(0) > matrix.size(1)
    x = matrix.bfloat16()
    x = x.t() if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.t()
        x = addmm(x, addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.t() if tall else x
