"""Gradients of every example of a batch, and training with each of them clipped.

An ordinary backward gives the sum of the examples' gradients. Training with differential privacy,
importance sampling and the search for outliers need them one by one: `vmap` over `grad` computes
all of them in one pass.
"""

from __future__ import annotations

from tqdm import trange

import wengert as torch
from wengert import Tensor
from wengert.func import grad, vmap

Parameters = dict[str, Tensor]


def network(parameters: Parameters, x: Tensor) -> Tensor:
    """The score of one point: a network with one hidden layer."""
    hidden = (parameters["w1"] @ x + parameters["b1"]).tanh()
    return parameters["w2"] @ hidden + parameters["b2"]


def loss(parameters: Parameters, x: Tensor, label: Tensor) -> Tensor:
    """The logistic loss of one point, whose label is 1 or -1."""
    return torch.nn.functional.softplus(-label * network(parameters, x))


per_sample_gradients = vmap(grad(loss), in_dims=(None, 0, 0))


def norms(gradients: Parameters) -> Tensor:
    """The length of each example's gradient over all parameters."""
    squares = [(g.reshape(len(g), -1) ** 2).sum(1) for g in gradients.values()]
    return torch.stack(squares).sum(0).sqrt()


def clipped_mean(gradients: Parameters, longest: float) -> Parameters:
    """The mean of the examples' gradients, none of them longer than `longest`."""
    factors = (longest / norms(gradients)).clamp(max=1.0)
    return {
        name: torch.einsum("i,i...->...", factors, g) / len(factors)
        for name, g in gradients.items()
    }


def two_rings(points: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Points on two rings, and the ring of each."""
    generator = torch.Generator().manual_seed(seed)
    angles = torch.rand(points, generator=generator) * 6.2832
    labels = torch.where(torch.arange(points) % 2 == 0, 1.0, -1.0)
    radii = 1.5 + 0.5 * labels + 0.1 * torch.randn(points, generator=generator)
    return torch.stack([radii * angles.cos(), radii * angles.sin()], 1), labels


def initial_parameters(seed: int = 1) -> Parameters:
    generator = torch.Generator().manual_seed(seed)
    return {
        "w1": torch.randn(16, 2, generator=generator),
        "b1": torch.randn(16, generator=generator),
        "w2": torch.randn(16, generator=generator) * 0.25,
        "b2": torch.zeros(()),
    }


def train(steps: int = 200, rate: float = 2.0, longest: float = 0.5) -> tuple[Parameters, float]:
    """Parameters after descent along clipped gradients, and the share of points they get right."""
    x, labels = two_rings(128)
    parameters = initial_parameters()
    for _ in trange(steps, desc="clipped descent", unit="step"):
        step = clipped_mean(per_sample_gradients(parameters, x, labels), longest)
        parameters = {name: p - rate * step[name] for name, p in parameters.items()}
    scores = vmap(network, in_dims=(None, 0))(parameters, x)
    return parameters, float((scores * labels > 0).float().mean())


def main(steps: int = 200) -> None:
    x, labels = two_rings(128)
    gradients = per_sample_gradients(initial_parameters(), x, labels)
    print("gradients of all examples:", {name: tuple(g.shape) for name, g in gradients.items()})
    lengths = norms(gradients)
    print(f"their lengths: {lengths.min():.3f} to {lengths.max():.3f}")
    _, right = train(steps)
    print(f"trained with clipped gradients: {right:.1%} of the points are right")


if __name__ == "__main__":
    main()
