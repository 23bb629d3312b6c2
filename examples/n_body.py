"""Planets: forces are the gradient of an energy, and an orbit is found through the simulation.

The equations of motion come from the energy by `grad`. The derivative of where a probe ends, in how
it was thrown, goes back through all steps of the simulation, and Newton's method aims with it.
"""

from __future__ import annotations

import math

from tqdm import trange

import wengert as torch
from wengert import Tensor
from wengert.func import grad, jacrev

#: A sun, two planets and a probe.
MASSES = torch.tensor([1.0, 1e-3, 3e-4, 1e-9], dtype=torch.float64)
#: Half a turn around the ellipse from the inner orbit to the outer one.
TIME = math.pi * 1.5**1.5


def potential(places: Tensor) -> Tensor:
    """The energy of gravitation of all pairs."""
    i, j = torch.triu_indices(len(places), len(places), 1)
    distances = (places[i] - places[j]).square().sum(-1).sqrt()
    return -(MASSES[i] * MASSES[j] / distances).sum()


def energy(places: Tensor, speeds: Tensor) -> Tensor:
    """The energy of all motion and gravitation."""
    return (MASSES * speeds.square().sum(-1)).sum() / 2 + potential(places)


def leapfrog(places: Tensor, speeds: Tensor, h: float, count: int) -> tuple[Tensor, Tensor]:
    """Places at all times, and the last speeds, by a method that keeps the energy."""
    force = grad(potential)
    found = [places]
    speeds = speeds - h / 2 * force(places) / MASSES[:, None]
    for step in range(count):
        found.append(found[-1] + h * speeds)
        last = step == count - 1
        speeds = speeds - (h / 2 if last else h) * force(found[-1]) / MASSES[:, None]
    return torch.stack(found), speeds


def circling(radius: float, angle: float) -> tuple[list[float], list[float]]:
    """Place and speed of a planet on a circle."""
    speed, cos, sin = radius**-0.5, math.cos(angle), math.sin(angle)
    return [radius * cos, radius * sin], [-speed * sin, speed * cos]


def system(throw: Tensor) -> tuple[Tensor, Tensor]:
    """The sun and the planets, and the probe on the inner orbit with the given speed."""
    inner, outer = circling(1.0, math.pi), circling(2.0, math.pi - TIME * 2**-1.5)
    places = torch.tensor([[0.0, 0.0], inner[0], outer[0], [1.0, 0.0]], dtype=torch.float64)
    rest = torch.tensor([[0.0, 0.0], inner[1], outer[1]], dtype=torch.float64)
    return places, torch.cat([rest, throw[None]])


def miss(throw: Tensor, count: int = 80) -> Tensor:
    """Where the probe ends, seen from the outer planet."""
    places, _ = leapfrog(*system(throw), TIME / count, count)
    return places[-1, 3] - places[-1, 2]


def aim(steps: int = 6) -> tuple[Tensor, list[float]]:
    """A speed with which the probe meets the outer planet, and how far it misses on the way."""
    throw = torch.tensor([0.1, 1.1], dtype=torch.float64)
    misses = [miss(throw).norm().item()]
    bar = trange(steps)
    for _ in bar:
        change = torch.linalg.solve(jacrev(miss)(throw), miss(throw))
        for _ in range(5):
            if miss(throw - change).norm() < misses[-1]:
                break
            change = change / 2
        throw = throw - change
        misses.append(miss(throw).norm().item())
        bar.set_postfix(miss=f"{misses[-1]:.1e}")
    return throw, misses


def main(steps: int = 6) -> None:
    throw, misses = aim(steps)
    print(f"the probe misses the outer planet by {misses[0]:.2f}, then by {misses[-1]:.1e}")
    alone = (4 / 3) ** 0.5
    print(f"thrown with a speed of {throw.norm():.4f}; without planets it would be {alone:.4f}")
    start = system(throw)
    places, speeds = leapfrog(*start, 0.05, 200)
    drift = energy(places[-1], speeds) / energy(*start) - 1
    print(f"energy changes by {abs(drift.item()):.1e} of itself in ten units of time")


if __name__ == "__main__":
    main()
