"""Jacobians, Hessians and Laplacians of a small network, each in more than one way."""

from __future__ import annotations

from collections.abc import Callable

import wengert as torch
from wengert import Tensor
from wengert.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

Function = Callable[[Tensor], Tensor]


def network(inputs: int, outputs: int, hidden: int = 24, seed: int = 0) -> Function:
    """A random network with one hidden layer, in double precision."""
    generator = torch.Generator().manual_seed(seed)
    options = {"generator": generator, "dtype": torch.float64}
    w1, b1 = torch.randn(hidden, inputs, **options), torch.randn(hidden, **options)
    w2 = torch.randn(outputs, hidden, **options) * hidden**-0.5
    return lambda x: w2 @ (w1 @ x + b1).tanh()


def jacobians(f: Function, x: Tensor) -> dict[str, Tensor]:
    """The Jacobian of `f`: by rows, by columns, by single products."""
    value, pull_back = vjp(f, x)
    _, push_forward = linearize(f, x)
    rows = torch.eye(len(value), dtype=x.dtype)
    columns = torch.eye(len(x), dtype=x.dtype)
    return {
        "jacrev": jacrev(f)(x),
        "jacrev in chunks": jacrev(f, chunk_size=2)(x),
        "jacfwd": jacfwd(f)(x),
        "vmap of vjp": vmap(lambda v: pull_back(v)[0])(rows),
        "vmap of a linearization": vmap(push_forward, out_dims=1)(columns),
    }


def hessians(f: Function, x: Tensor) -> dict[str, Tensor]:
    """The Hessian of a scalar function by all pairs of modes."""
    return {
        "hessian": hessian(f)(x),
        "reverse over reverse": jacrev(grad(f))(x),
        "forward over forward": jacfwd(jacfwd(f))(x),
        "reverse over forward": jacrev(jacfwd(f))(x),
    }


def hessian_product(f: Function, x: Tensor, v: Tensor) -> Tensor:
    """The Hessian times a vector, without the Hessian."""
    return jvp(grad(f), (x,), (v,))[1]


def laplacian(f: Function) -> Function:
    """The sum of the second derivatives of a scalar function."""

    def trace(x: Tensor) -> Tensor:
        basis = torch.eye(len(x), dtype=x.dtype)
        return vmap(lambda v: v @ hessian_product(f, x, v))(basis).sum()

    return trace


def spread(found: dict[str, Tensor]) -> float:
    """The largest difference between ways that ought to agree."""
    first, *others = found.values()
    return max(float((first - other).abs().max()) for other in others)


def main() -> None:
    x = torch.linspace(-1.0, 1.0, 5, dtype=torch.float64)
    found = jacobians(network(5, 3), x)
    print(f"Jacobian of shape {tuple(found['jacrev'].shape)}, {len(found)} ways, ", end="")
    print(f"largest difference {spread(found):.1e}")
    energy = network(5, 1)
    seconds = hessians(lambda x: energy(x)[0], x)
    print(f"Hessian, {len(seconds)} ways, largest difference {spread(seconds):.1e}")
    points = torch.linspace(0.1, 2.0, 300, dtype=torch.float64).reshape(100, 3)
    source = vmap(laplacian(lambda x: 1 / (x * x).sum().sqrt()))(points)
    print(f"Laplacian of 1/r at 100 points: at most {float(source.abs().max()):.1e}")


if __name__ == "__main__":
    main()
