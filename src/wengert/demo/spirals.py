"""A multilayer perceptron learns to tell two interleaved spirals apart."""

import math
import time
from dataclasses import dataclass

from tqdm import tqdm

import wengert
from wengert import Generator, Tensor
from wengert.demo.adam import Adam
from wengert.viz.recorded import RecordedGraph, record_graph

TARGET_ACCURACY = 0.97
EXTENT = 1.25
SNAPSHOT_FRACTIONS = (0.0, 0.05, 0.15, 0.4, 1.0)


@dataclass(frozen=True)
class Settings:
    points: int = 800
    turns: float = 1.75
    noise: float = 0.018
    hidden: int = 32
    steps: int = 1200
    rate: float = 0.01
    resolution: int = 160
    seed: int = 7

    @classmethod
    def quick(cls) -> "Settings":
        return cls(points=300, turns=1.0, hidden=16, steps=300, rate=0.02, resolution=60)


@dataclass(frozen=True)
class Snapshot:
    """The probability of the second class over the plane after some number of steps."""

    step: int
    accuracy: float
    probability: list[list[float]]


@dataclass(frozen=True)
class Result:
    settings: Settings
    losses: list[float]
    test_losses: list[tuple[int, float]]
    accuracy: float
    snapshots: list[Snapshot]
    points: list[list[float]]
    labels: list[int]
    parameters: int
    graph: RecordedGraph
    seconds: float

    @property
    def passed(self) -> bool:
        return self.accuracy >= TARGET_ACCURACY


def make_spirals(settings: Settings, generator: Generator) -> tuple[Tensor, Tensor]:
    """Points on two noisy spirals, half a turn apart, and the spiral that each belongs to."""
    count = settings.points
    labels = wengert.arange(count) % 2
    # The square root spreads the points evenly along the arc instead of crowding the centre.
    along = wengert.rand(count, generator=generator).sqrt()
    angle = along * (2 * math.pi * settings.turns) + labels * math.pi
    radius = 0.1 + 0.9 * along
    points = wengert.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return points + settings.noise * wengert.randn(count, 2, generator=generator), labels


def make_network(settings: Settings, generator: Generator) -> dict[str, Tensor]:
    """Weights and biases of two hidden layers, scaled to keep the activations' variance."""
    sizes = [2, settings.hidden, settings.hidden, 2]
    network = {}
    for layer, (inputs, outputs) in enumerate(zip(sizes, sizes[1:]), start=1):
        # The plane is only two units wide: steep first-layer features resolve the narrow arms.
        scale = 3.0 if layer == 1 else 1 / math.sqrt(inputs)
        network[f"W{layer}"] = scale * wengert.randn(inputs, outputs, generator=generator)
        network[f"b{layer}"] = wengert.zeros(outputs)
    return {name: tensor.requires_grad_() for name, tensor in network.items()}


def classify(network: dict[str, Tensor], points: Tensor) -> Tensor:
    hidden = (points @ network["W1"] + network["b1"]).tanh()
    hidden = (hidden @ network["W2"] + network["b2"]).tanh()
    return hidden @ network["W3"] + network["b3"]


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return -logits.log_softmax(dim=1).gather(1, labels.unsqueeze(1)).mean()


def accuracy_of(network: dict[str, Tensor], points: Tensor, labels: Tensor) -> float:
    with wengert.no_grad():
        chosen = classify(network, points).argmax(dim=1)
        return (chosen == labels).sum().item() / len(labels)


def probability_map(network: dict[str, Tensor], resolution: int) -> list[list[float]]:
    """The probability of the second class on a square grid; rows run upwards."""
    with wengert.no_grad():
        axis = wengert.linspace(-EXTENT, EXTENT, resolution)
        x = axis.unsqueeze(0).expand(resolution, resolution).reshape(-1)
        y = axis.unsqueeze(1).expand(resolution, resolution).reshape(-1)
        probability = classify(network, wengert.stack([x, y], dim=1)).softmax(dim=1)[:, 1]
        return probability.reshape(resolution, resolution).tolist()


def train_step(
    network: dict[str, Tensor], optimizer: Adam, points: Tensor, labels: Tensor
) -> Tensor:
    loss = cross_entropy(classify(network, points), labels)
    optimizer.step(wengert.autograd.grad(loss, optimizer.parameters))
    return loss


def run(settings: Settings) -> Result:
    """Trains on fresh spirals and judges the network on spirals that it has not seen."""
    started = time.perf_counter()
    generator = Generator().manual_seed(settings.seed)
    points, labels = make_spirals(settings, generator)
    test_points, test_labels = make_spirals(settings, generator)
    network = make_network(settings, generator)
    optimizer = Adam(list(network.values()), settings.rate)
    graph = record_graph(cross_entropy(classify(network, points), labels).grad_fn, network)

    snapshot_steps = {round(fraction * settings.steps) for fraction in SNAPSHOT_FRACTIONS}
    losses: list[float] = []
    test_losses: list[tuple[int, float]] = []
    snapshots: list[Snapshot] = []

    def look_at(step: int) -> None:
        with wengert.no_grad():
            loss = cross_entropy(classify(network, test_points), test_labels).item()
        test_losses.append((step, loss))
        if step in snapshot_steps:
            accuracy = accuracy_of(network, test_points, test_labels)
            plane = probability_map(network, settings.resolution)
            snapshots.append(Snapshot(step, accuracy, plane))

    look_every = max(1, settings.steps // 100)
    with tqdm(total=settings.steps, desc="two spirals", unit="step") as bar:
        for step in range(settings.steps):
            if step % look_every == 0 or step in snapshot_steps:
                look_at(step)
                bar.set_postfix_str(f"test loss {test_losses[-1][1]:.4f}", refresh=False)
            losses.append(train_step(network, optimizer, points, labels).item())
            bar.update()
        look_at(settings.steps)
        accuracy = accuracy_of(network, test_points, test_labels)
        bar.set_postfix_str(f"test accuracy {accuracy:.1%}")

    return Result(
        settings=settings,
        losses=losses,
        test_losses=test_losses,
        accuracy=accuracy,
        snapshots=snapshots,
        points=test_points.tolist(),
        labels=test_labels.tolist(),
        parameters=sum(tensor.numel() for tensor in network.values()),
        graph=graph,
        seconds=time.perf_counter() - started,
    )
