"""The tools around gradients, used on the network of the spirals: a graph compiled and drawn."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

import wengert
from wengert import Generator, Tensor, viz
from wengert.demo.spirals import Settings, classify, cross_entropy, make_network, make_spirals

TARGET_DIFFERENCE = 1e-4


@dataclass(frozen=True)
class Result:
    """A gradient in eager mode and compiled: seconds of each, and how far apart they are."""

    eager: float
    compiled: float
    first_call: float
    difference: float
    footprint: viz.Footprint
    pictures: list[Path]
    seconds: float

    @property
    def passed(self) -> bool:
        return self.difference <= TARGET_DIFFERENCE


def loss_and_gradients(
    network: dict[str, Tensor], points: Tensor, labels: Tensor
) -> tuple[Tensor, ...]:
    loss = cross_entropy(classify(network, points), labels)
    return (loss, *wengert.autograd.grad(loss, list(network.values())))


def shortest(function: Callable[[], object], tries: int) -> float:
    """The seconds of the fastest of some calls."""
    times = []
    for _ in range(tries):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times)


def run(settings: Settings, output: Path, tries: int = 30) -> Result:
    """Compiles loss and gradients into one graph, and draws the loss and what it remembers."""
    started = time.perf_counter()
    generator = Generator().manual_seed(settings.seed)
    points, labels = make_spirals(settings, generator)
    network = make_network(settings, generator)
    with tqdm(total=4, desc="compile and draw", unit="part") as bar:
        compiled = wengert.compile(loss_and_gradients)
        before = time.perf_counter()
        found = compiled(network, points, labels)
        first_call = time.perf_counter() - before
        bar.update()

        expected = loss_and_gradients(network, points, labels)
        difference = max((a - b).abs().max().item() for a, b in zip(found, expected))
        eager = shortest(lambda: loss_and_gradients(network, points, labels), tries)
        fast = shortest(lambda: compiled(network, points, labels), tries)
        bar.update()

        output.mkdir(parents=True, exist_ok=True)
        loss = recorded_loss(network, points, labels)
        picture = viz.graph(loss, names=network, title="Two spirals")
        pictures = [picture.save(output / "graph.html")]
        bar.update()

        footprint = viz.memory(
            recorded_loss, (network, points, labels), title="Two spirals", peak=True
        )
        pictures.append(footprint.save(output / "memory.html"))
        bar.update()
    return Result(
        eager, fast, first_call, difference, footprint, pictures, time.perf_counter() - started
    )


def recorded_loss(network: dict[str, Tensor], points: Tensor, labels: Tensor) -> Tensor:
    return cross_entropy(classify(network, points), labels)
