"""Adam and its relatives: running averages of gradients and of their squares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.tensor import Tensor
from .rule import ZEROS, UpdateRule, counted, options, toward

Number = float | Tensor
Pair = tuple[Number, Number]


def _averaged(g: Any, s: Any, o: Any) -> None:
    """Move the averages of gradients and of their squares."""
    s.exp_avg = toward(g, s.exp_avg, 1 - o.betas[0])
    s.exp_avg_sq = s.exp_avg_sq * o.betas[1] + (1 - o.betas[1]) * g * g


class Adam(UpdateRule):
    """Steps along the average gradient, divided by the root of the average square.

    Both averages are corrected for their beginning at zero. `amsgrad` divides by the largest
    average square so far; `decoupled_weight_decay` shrinks the parameter instead of adding to its
    gradient.
    """

    def __init__(
        self,
        params: Iterable,
        lr: Number = 1e-3,
        betas: Pair = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        _check_tensors(lr, betas, foreach, capturable)
        super().__init__(params, options(locals()))

    def initial_state(self, o: Any) -> dict[str, Any]:
        largest = {"max_exp_avg_sq": ZEROS} if o.amsgrad else {}
        return {"step": 0.0, "exp_avg": ZEROS, "exp_avg_sq": ZEROS} | largest

    def update(self, p: Any, g: Any, s: Any, o: Any) -> Any:
        _averaged(g, s, o)
        square = s.exp_avg_sq
        if o.amsgrad:
            square = s.max_exp_avg_sq = s.max_exp_avg_sq.maximum(square)
        size = o.lr / (1 - o.betas[0] ** s.step)
        root = square.sqrt() / (1 - o.betas[1] ** s.step) ** 0.5
        return p - size * (s.exp_avg / (root + o.eps))


def _check_tensors(lr: Any, betas: Any, foreach: bool | None, capturable: bool) -> None:
    """Check options of Adam that may be tensors, in all or in none of the betas."""
    if len({isinstance(beta, Tensor) for beta in betas}) != 1 or not all(
        isinstance(beta, (float, Tensor)) for beta in betas
    ):
        raise ValueError("betas must be either both floats or both Tensors")
    given = {"lr": lr, "betas[0]": betas[0], "betas[1]": betas[1]}
    for name, value in given.items():
        if isinstance(value, Tensor):
            if foreach and not capturable:
                raise ValueError(
                    f"{name} as a Tensor is not supported for capturable=False and foreach=True"
                )
            if value.numel() != 1:
                raise ValueError(f"Tensor {name} must be 1-element")


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters and does not enter the averages."""

    def __init__(
        self,
        params: Iterable,
        lr: Number = 1e-3,
        betas: Pair = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(**options(locals()), params=params, decoupled_weight_decay=True)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


class Adamax(UpdateRule):
    """Adam with the largest gradient, of decreasing weight, in the place of the average square."""

    def __init__(
        self,
        params: Iterable,
        lr: Number = 2e-3,
        betas: Pair = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

    def initial_state(self, o: Any) -> dict[str, Any]:
        return {"step": 0.0, "exp_avg": ZEROS, "exp_inf": ZEROS}

    def update(self, p: Any, g: Any, s: Any, o: Any) -> Any:
        s.exp_avg = toward(g, s.exp_avg, 1 - o.betas[0])
        s.exp_inf = (s.exp_inf * o.betas[1]).maximum(g.abs() + o.eps)
        size = o.lr / (1 - o.betas[0] ** s.step)
        return p - size * (s.exp_avg / s.exp_inf)


class NAdam(UpdateRule):
    """Adam with Nesterov's momentum, which grows with the steps as `momentum_decay` says."""

    def __init__(
        self,
        params: Iterable,
        lr: Number = 2e-3,
        betas: Pair = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

    def initial_state(self, o: Any) -> dict[str, Any]:
        return {"step": 0.0, "mu_product": 1.0, "exp_avg": ZEROS, "exp_avg_sq": ZEROS}

    def update(self, p: Any, g: Any, s: Any, o: Any) -> Any:
        _averaged(g, s, o)
        root = (s.exp_avg_sq / (1 - o.betas[1] ** s.step)).sqrt() + o.eps
        mu, mu_next = (
            o.betas[0] * (1 - 0.5 * 0.96 ** (step * o.momentum_decay))
            for step in (s.step, s.step + 1)
        )
        # Rounded as the state is, also where `mu` is a tensor, and read back.
        s.mu_product = (s.mu_product * mu).to(s.mu_product.dtype)
        product = counted(s.mu_product)
        gradient = o.lr * (1 - mu) / (1 - product) * (g / root)
        average = o.lr * mu_next / (1 - product * mu_next) * (s.exp_avg / root)
        return p - gradient - average


class RAdam(UpdateRule):
    """Adam that divides by the average square only once enough steps have told its variance."""

    def __init__(
        self,
        params: Iterable,
        lr: Number = 1e-3,
        betas: Pair = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

    def initial_state(self, o: Any) -> dict[str, Any]:
        return {"step": 0.0, "exp_avg": ZEROS, "exp_avg_sq": ZEROS}

    def update(self, p: Any, g: Any, s: Any, o: Any) -> Any:
        _averaged(g, s, o)
        change = o.lr * (s.exp_avg / (1 - o.betas[0] ** s.step))
        power = o.betas[1] ** s.step
        longest = 2 / (1 - o.betas[1]) - 1
        length = longest - 2 * s.step * power / (1 - power)
        if length > 5:
            rectified = (length - 4) * (length - 2) * longest
            rectified = (rectified / ((longest - 4) * (longest - 2) * length)) ** 0.5
            change = change * (rectified * (1 - power) ** 0.5 / (s.exp_avg_sq.sqrt() + o.eps))
        return p - change
