"""The derivative of a minimiser in a hyperparameter, by products with the Hessian only.

At the minimum w of f(w, t) the gradient is zero. Differentiating that equation gives
H dw = -(d/dt grad_w f) dt. The gradient of a validation loss in t needs one linear system with H,
solved by conjugate gradients, and one mixed derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import wengert as torch
from wengert import Tensor
from wengert.func import grad, jvp, vjp

Objective = Callable[[Tensor, Tensor], Tensor]


def conjugate_gradients(product: Callable[[Tensor], Tensor], b: Tensor) -> Tensor:
    """The solution of a symmetric positive definite system, given by its products."""
    x, residual = torch.zeros_like(b), b
    direction, square = residual, b @ b
    for _ in range(4 * len(b)):
        if float(square) < 1e-24:
            break
        image = product(direction)
        step = square / (direction @ image)
        x, residual = x + step * direction, residual - step * image
        square, before = residual @ residual, square
        direction = residual + square / before * direction
    return x


def hessian_product(f: Callable[[Tensor], Tensor], w: Tensor) -> Callable[[Tensor], Tensor]:
    """Products with the Hessian of `f` at `w`."""
    return lambda v: jvp(grad(f), (w,), (v,))[1]


def newton(f: Callable[[Tensor], Tensor], w: Tensor) -> Tensor:
    """The minimum of a smooth convex function."""
    for _ in range(50):
        slope = grad(f)(w)
        if float(slope.abs().max()) < 1e-12:
            break
        w = w - conjugate_gradients(hessian_product(f, w), slope)
    return w


def minimiser(f: Objective, size: int) -> Callable[[Tensor], Tensor]:
    """argmin over w of f(w, t) as a differentiable function of t."""

    class Minimum(torch.autograd.Function):
        @staticmethod
        def forward(t: Tensor) -> Tensor:
            return newton(lambda w: f(w, t), torch.zeros(size, dtype=t.dtype))

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
            ctx.save_for_backward(inputs[0], output)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            t, w = ctx.saved_tensors
            adjoint = conjugate_gradients(hessian_product(lambda w: f(w, t), w), g)
            _, pull_back = vjp(lambda t: grad(f)(w, t), t)
            return -pull_back(adjoint)[0]

    return Minimum.apply


class Regression:
    """Logistic regression with a penalty for each weight, whose logarithms are to be learned."""

    def __init__(self, size: int = 8, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        options = {"generator": generator, "dtype": torch.float64}
        self.truth = torch.where(torch.arange(size) < 3, 2.0, 0.0).to(torch.float64)
        self.x, self.held_out = torch.randn(40, size, **options), torch.randn(200, size, **options)
        self.y = self.labels(self.x, torch.randn(40, **options))
        self.held_out_y = self.labels(self.held_out, torch.randn(200, **options))
        self.solve = minimiser(self.training, size)

    def labels(self, x: Tensor, noise: Tensor) -> Tensor:
        return torch.where(x @ self.truth + noise > 0, 1.0, -1.0).to(torch.float64)

    def training(self, w: Tensor, log_penalties: Tensor) -> Tensor:
        losses = torch.nn.functional.softplus(-self.y * (self.x @ w))
        return losses.mean() + (log_penalties.exp() * w * w).sum()

    def validation(self, log_penalties: Tensor) -> Tensor:
        """The loss on held-out data of the weights that training finds."""
        w = self.solve(log_penalties)
        return torch.nn.functional.softplus(-self.held_out_y * (self.held_out @ w)).mean()


def main() -> None:
    task = Regression()
    penalties = torch.full((8,), -3.0, dtype=torch.float64)
    validation = grad(task.validation)
    print(f"validation loss with equal penalties {float(task.validation(penalties)):.4f}")
    for _ in range(30):
        penalties = penalties - 10.0 * validation(penalties)
    print(f"after 30 steps in the penalties      {float(task.validation(penalties)):.4f}")
    print("their logarithms, the first three weights matter:")
    print("  ", ", ".join(f"{value:.1f}" for value in penalties.tolist()))


if __name__ == "__main__":
    main()
