"""Draws the pictures of the examples into docs/gallery/: run it after changing one.

    PYTHONPATH=src python tools/gallery.py [name ...]
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")

from matplotlib import pyplot

import wengert as torch

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "gallery"
#: Colours that can be told apart, on light and on dark pages.
BLUE, ORANGE, GREEN, GREY = "#4477cc", "#ee8833", "#33aa77", "#888888"

sys.path.insert(0, str(ROOT / "examples"))

Drawer = Callable[[Any], None]
DRAWERS: dict[str, Drawer] = {}


def draws(function: Drawer) -> Drawer:
    """Decorates what draws the example of its name into one figure."""
    DRAWERS[function.__name__] = function
    return function


def example(name: str) -> Any:
    return importlib.import_module(name)


@draws
def bundle_adjustment(figure: Any) -> None:
    source = example("bundle_adjustment")
    truth = source.scene()
    first = source.perturbed(truth)
    found, _ = source.adjust(first)
    axes = figure.subplots()
    for guess, colour, label in ((first, ORANGE, "first guess"), (found, BLUE, "adjusted")):
        seen = (source.residuals(guess) + guess.seen)[1]
        axes.plot(*seen.T, "o", ms=4, color=colour, label=label)
    axes.plot(*truth.seen[1].T, "+", ms=10, color=GREY, label="what a camera sees")
    axes.legend()


@draws
def digits(figure: Any) -> None:
    source = example("digits")
    model, _ = source.train()
    images, _ = source.pictures(24, seed=12345)
    with torch.no_grad():
        answers = model.eval()(images).argmax(1)
    for axes, image, answer in zip(figure.subplots(3, 8).flat, images, answers, strict=True):
        axes.imshow(image[0].numpy(), cmap="gray")
        axes.set_title(str(answer.item()), pad=2)
        axes.set_axis_off()


@draws
def ensembling(figure: Any) -> None:
    source = example("ensembling")
    x, y = source.examples()
    ensemble = source.Ensemble(20)
    ensemble.train(x, y, 300)
    at = torch.linspace(-3, 3, 200)
    axes = figure.subplots()
    axes.plot(at, ensemble.predict(at).detach().T, color=BLUE, lw=0.6)
    axes.plot(x, y, ".", color=ORANGE, label="examples")
    axes.legend()


@draws
def gaussian_process(figure: Any) -> None:
    process, _ = example("gaussian_process").fit()
    at = torch.linspace(-1, 9, 200, dtype=torch.float64)
    mean, deviation = process.predict(at)
    axes = figure.subplots()
    axes.fill_between(at, mean - 2 * deviation, mean + 2 * deviation, color=BLUE, alpha=0.25)
    axes.plot(at, mean, color=BLUE, label="mean, two deviations")
    axes.plot(process.x, process.y, ".", color=ORANGE, label="data")
    axes.legend()


@draws
def heat(figure: Any) -> None:
    source = example("heat")
    model, _ = source.train()
    x = torch.linspace(0, 1, 100, dtype=torch.float64)
    axes = figure.subplots()
    for time in (0.0, 0.01, 0.03, 0.06, 0.1):
        t = torch.full_like(x, time)
        (line,) = axes.plot(x, model(x, t).detach(), label=f"t = {time}")
        axes.plot(x[::5], source.exact(x, t)[::5], "o", ms=3, color=line.get_color())
    axes.plot([], [], "o", ms=3, color=GREY, label="exact")
    axes.legend()


@draws
def hmc(figure: Any) -> None:
    source = example("hmc")
    torch.manual_seed(0)
    x, y, weights = source.data()
    start = torch.randn(16, 3, dtype=torch.float64)
    states, _ = source.sample(source.posterior(x, y), start, 150)
    flat = states[50::3].flatten(0, 1)
    axes = figure.subplots()
    axes.set(xlim=(0, 3), ylim=(-2, 0))
    axes.plot(*flat[:, :2].T, ".", ms=3, color=BLUE, alpha=0.5, label="samples")
    axes.plot(*states[:12, 0, :2].T, color=ORANGE, label="one chain's start")
    axes.plot(weights[0], weights[1], "+", ms=14, mew=2, color=GREEN, label="what made the data")
    axes.legend()


@draws
def kalman(figure: Any) -> None:
    source = example("kalman")
    positions, seen = source.measurements()
    logs, _, _ = source.estimate(seen, 6)
    _, means = source.kalman_filter(logs, seen)
    axes = figure.subplots()
    axes.plot(seen, ".", color=GREY, label="measured")
    axes.plot(positions, color=GREEN, label="true")
    axes.plot(means, color=BLUE, label="filtered")
    axes.legend()


@draws
def maml(figure: Any) -> None:
    source = example("maml")
    learner = source.Learner()
    torch.manual_seed(1)
    learner.train(400)
    x, y, _, _ = (each[0] for each in source.tasks(1))
    at = torch.linspace(-3, 3, 100)[:, None]
    axes = figure.subplots()
    for steps, colour in ((0, GREY), (1, ORANGE), (5, BLUE)):
        weights = learner.adapted(learner.weights, x, y, steps)
        curve = torch.func.functional_call(learner.model, weights, (at,))
        axes.plot(at, curve.detach(), color=colour, label=f"after {steps} steps")
    axes.plot(x, y, "o", color=GREEN, label="ten points of a new wave")
    axes.legend()


@draws
def n_body(figure: Any) -> None:
    source = example("n_body")
    throw, _ = source.aim()
    axes = figure.subplots()
    for first, style in ((torch.tensor([0.1, 1.1], dtype=torch.float64), ":"), (throw, "-")):
        places, _ = source.leapfrog(*source.system(first), source.TIME / 80, 80)
        for body, colour in ((1, GREY), (2, BLUE), (3, ORANGE)):
            axes.plot(*places[:, body].T, style, color=colour)
    axes.plot(*places[-1, 2], "o", color=BLUE, label="outer planet")
    axes.plot([], [], color=ORANGE, label="probe, aimed (dotted: first throw)")
    axes.plot(0, 0, "*", ms=12, color="#ddaa00")
    axes.set_aspect("equal")
    figure.legend(loc="outside lower center", ncols=2)


@draws
def neural_ode(figure: Any) -> None:
    source = example("neural_ode")
    model, _ = source.train()
    truth = source.spiral()
    with torch.no_grad():
        whole = source.solve(model, truth[0], len(truth) - 1, 0.1)
    axes = figure.subplots()
    axes.plot(*truth[:, 0].T, "o", ms=4, color=ORANGE, label="points")
    axes.plot(*whole[:, 0].T, color=BLUE, label="solution of what was learnt")
    axes.legend()


@draws
def vae(figure: Any) -> None:
    source = example("vae")
    model, _ = source.train()
    axes = figure.subplots()
    axes.imshow(source.sheet(model, 8).numpy(), cmap="magma")
    axes.set_axis_off()


def main(names: list[str]) -> None:
    """Draw the examples of these names, or all."""
    FOLDER.mkdir(exist_ok=True)
    matplotlib.rcParams.update({
        "svg.hashsalt": "wengert", "svg.fonttype": "none", "font.size": 9, "text.color": GREY,
        "legend.frameon": False, "axes.edgecolor": GREY, "xtick.color": GREY, "ytick.color": GREY,
        "axes.spines.top": False, "axes.spines.right": False,
    })  # fmt: skip
    for name in names or sorted(DRAWERS):
        figure = pyplot.figure(figsize=(4.6, 3), layout="constrained")
        DRAWERS[name](figure)
        path = FOLDER / f"{name}.svg"
        figure.savefig(path, transparent=True, metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
        print(f"written: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main(sys.argv[1:])
