"""Cameras and points in space from their pictures, by Gauss-Newton steps.

Residuals of one camera and one point depend on nine numbers: `vmap(jacfwd(...))` gives all small
Jacobians at once, from which the large system is put together.
"""

from __future__ import annotations

from typing import NamedTuple

from tqdm import trange

import wengert as torch
from wengert import Tensor
from wengert.func import jacfwd, vmap


class Scene(NamedTuple):
    """Cameras as rotation vectors and places, points, and what each camera sees of each point."""

    cameras: Tensor
    points: Tensor
    seen: Tensor


def rotation(v: Tensor) -> Tensor:
    """The matrix of a rotation around `v` by its length."""
    zero = torch.zeros_like(v[0])
    rows = [torch.stack(r) for r in ((zero, -v[2], v[1]), (v[2], zero, -v[0]), (-v[1], v[0], zero))]
    return torch.linalg.matrix_exp(torch.stack(rows))


def project(camera: Tensor, point: Tensor) -> Tensor:
    """Where a camera sees a point."""
    x, y, z = rotation(camera[:3]) @ point + camera[3:]
    return torch.stack([x / z, y / z])


def scene(cameras: int = 5, points: int = 20, noise: float = 1e-3) -> Scene:
    """Cameras around a cloud of points."""
    generator = torch.Generator().manual_seed(0)
    options = {"generator": generator, "dtype": torch.float64}
    places = torch.tensor([0.0, 0.0, 6.0], dtype=torch.float64)
    turned = 0.3 * torch.randn(cameras, 3, **options)
    moved = places + 0.3 * torch.randn(cameras, 3, **options)
    cloud = torch.randn(points, 3, **options)
    both = torch.cat([turned, moved], 1)
    seen = vmap(vmap(project, (None, 0)), (0, None))(both, cloud)
    return Scene(both, cloud, seen + noise * torch.randn(seen.shape, **options))


def perturbed(truth: Scene, amount: float = 0.1) -> Scene:
    """A first guess. The first camera is known, and so is what the pictures cannot tell: size."""
    generator = torch.Generator().manual_seed(1)
    cameras, points = truth.cameras.clone(), truth.points.clone()
    cameras[1:] += amount * torch.randn(cameras[1:].shape, generator=generator, dtype=points.dtype)
    points += amount * torch.randn(points.shape, generator=generator, dtype=points.dtype)
    return Scene(cameras, points, truth.seen)


def residuals(guess: Scene) -> Tensor:
    """By how much pictures of the guess differ from what is seen."""
    return vmap(vmap(project, (None, 0)), (0, None))(guess.cameras, guess.points) - guess.seen


def system(guess: Scene) -> tuple[Tensor, Tensor]:
    """The Jacobian of all residuals in all unknowns, and the residuals."""
    both = vmap(vmap(jacfwd(project, argnums=(0, 1)), (None, 0)), (0, None))
    by_camera, by_point = both(guess.cameras, guess.points)
    m, n = guess.seen.shape[:2]
    jacobian = guess.points.new_zeros(m, n, 2, 6 * m + 3 * n)
    for i in range(m):
        jacobian[i, :, :, 6 * i : 6 * i + 6] = by_camera[i]
    for j in range(n):
        jacobian[:, j, :, 6 * m + 3 * j : 6 * m + 3 * j + 3] = by_point[:, j]
    return jacobian.view(m * n * 2, -1)[:, 6:], residuals(guess).reshape(-1)


def adjust(guess: Scene, steps: int = 10) -> tuple[Scene, list[float]]:
    """Gauss-Newton steps with a damping that follows their success."""
    damping, costs = 1e-3, [residuals(guess).square().sum().item()]
    bar = trange(steps)
    for _ in bar:
        jacobian, residual = system(guess)
        normal = jacobian.T @ jacobian
        normal = normal + damping * torch.eye(len(normal), dtype=normal.dtype)
        change = torch.linalg.solve(normal, jacobian.T @ residual)
        cameras = guess.cameras.clone()
        split = cameras[1:].numel()
        cameras[1:] -= change[:split].view(-1, 6)
        tried = Scene(cameras, guess.points - change[split:].view(-1, 3), guess.seen)
        cost = residuals(tried).square().sum().item()
        if cost < costs[-1]:
            guess, damping = tried, damping / 10
            costs.append(cost)
        else:
            damping *= 10
        bar.set_postfix(cost=f"{costs[-1]:.2e}")
    return guess, costs


def main(steps: int = 10) -> None:
    truth = scene()
    guess, costs = adjust(perturbed(truth), steps)
    pixels = residuals(guess).square().mean().sqrt().item()
    unknowns = guess.cameras[1:].numel() + guess.points.numel()
    print(f"{unknowns} unknowns, cost {costs[0]:.3f} -> {costs[-1]:.2e}")
    print(f"pictures agree within {1000 * pixels:.2f} pixels of 1000, where the noise is 1")


if __name__ == "__main__":
    main()
