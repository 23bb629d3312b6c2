"""The derivative of a fixed point, without differentiating the iteration that found it.

If x = f(x, z), then dx = (1 - A)^-1 B dz with A = df/dx and B = df/dz at the solution. The adjoint
system u = g + A^T u is a fixed point as well, and is solved in the same way, by products with A^T.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import wengert as torch
from wengert import Tensor
from wengert.func import jacfwd, jacrev, jvp, vjp, vmap

Map = Callable[[Tensor, Tensor], Tensor]


def iterate(f: Callable[[Tensor], Tensor], start: Tensor, tolerance: float = 1e-12) -> Tensor:
    """Apply `f` until nothing changes; for a batch, until nothing changes in any example."""
    x = start
    for _ in range(1000):
        new = f(x)
        with torch.no_grad():
            change = (new - x).abs().max()
        x = new
        if float(torch.func.debug_unwrap(change).max()) < tolerance:
            return x
    raise RuntimeError("the iteration does not converge")


def fixed_point(f: Map) -> Callable[[Tensor], Tensor]:
    """The solution x of x = f(x, z) as a differentiable function of z, a vector like x."""

    class Solution(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(z: Tensor) -> Tensor:
            return iterate(lambda x: f(x, z), torch.zeros_like(z))

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
            ctx.save_for_backward(inputs[0], output)
            ctx.save_for_forward(inputs[0], output)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            z, x = ctx.saved_tensors
            _, pull_back = vjp(f, x, z)
            u = iterate(lambda u: g + pull_back(u)[0], g)
            return pull_back(u)[1]

        @staticmethod
        def jvp(ctx: Any, t: Tensor) -> Tensor:
            z, x = ctx.saved_tensors
            _, source = jvp(lambda z: f(x, z), (z,), (t,))
            return iterate(lambda s: jvp(lambda x: f(x, z), (x,), (s,))[1] + source, source)

    return Solution.apply


def layer(size: int, seed: int = 0) -> Map:
    """A contraction: one layer of a network that is applied for ever."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(size, size, generator=generator, dtype=torch.float64)
    weight = 0.6 * weight / (weight**2).sum().sqrt()
    return lambda x, z: (weight @ x + z).tanh()


def unrolled(f: Map, steps: int = 80) -> Callable[[Tensor], Tensor]:
    """The same solution by an iteration that is differentiated step by step."""

    def solve(z: Tensor) -> Tensor:
        x = torch.zeros_like(z)
        for _ in range(steps):
            x = f(x, z)
        return x

    return solve


def main() -> None:
    f = layer(6)
    z = torch.linspace(-1.0, 1.0, 6, dtype=torch.float64)
    solve = fixed_point(f)
    x = solve(z)
    print(f"solved to {float((x - f(x, z)).abs().max()):.1e}")
    expected = jacrev(unrolled(f))(z)
    for name, found in (("reverse", jacrev(solve)(z)), ("forward", jacfwd(solve)(z))):
        error = float((found - expected).abs().max())
        print(f"{name} mode: {error:.1e} from the unrolled Jacobian")
    batch = torch.stack([z, -z, 2 * z])
    print("solutions of a batch:", tuple(vmap(solve)(batch).shape))


if __name__ == "__main__":
    main()
