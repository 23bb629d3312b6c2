"""The charts of the report: inline SVG whose colours are the CSS variables of the page."""

import io
import re
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wengert.demo import derivatives, pendulum, spirals

# Matplotlib wants real colours. These stand for a variable each and are replaced on writing, so
# that one drawing serves the light and the dark page.
INK, MUTED, GRID, PANEL = "#010101", "#020202", "#030303", "#040404"
BLUE, ORANGE, GREEN, VIOLET, ROSE = "#050505", "#060606", "#070707", "#080808", "#090909"
VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    PANEL: "--panel",
    BLUE: "--blue",
    ORANGE: "--orange",
    GREEN: "--green",
    VIOLET: "--violet",
    ROSE: "--rose",
}
# Pixels of an image cannot follow the page: mid-tones that show on light and on dark.
BLUE_PIXEL, ORANGE_PIXEL = (59, 130, 246), (249, 115, 22)

STYLE: Any = {
    "svg.fonttype": "none",
    "font.size": 11,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
}


class Chart:
    """Axes, one below the other; leaving the ``with`` block turns them into SVG text."""

    def __init__(
        self,
        name: str,
        label: str,
        width: float = 6.4,
        height: float = 4.0,
        rows: tuple[float, ...] = (1.0,),
    ) -> None:
        self.name = name
        self.label = label
        self.svg = Markup()
        self._style = matplotlib.rc_context({**STYLE, "svg.hashsalt": name})
        self._size = (width, height)
        self._rows = rows

    def __enter__(self) -> "Chart":
        self._style.__enter__()
        self.figure = Figure(figsize=self._size, layout="constrained")
        grid = self.figure.subplots(
            len(self._rows), height_ratios=self._rows, sharex=True, squeeze=False
        )
        self.all_axes: list[Axes] = list(grid[:, 0])
        self.axes = self.all_axes[0]
        return self

    def __exit__(self, kind, error, traceback) -> None:
        try:
            if error is None:
                self.svg = self._written()
        finally:
            self._style.__exit__(kind, error, traceback)

    def _written(self) -> Markup:
        buffer = io.StringIO()
        metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
        self.figure.savefig(buffer, format="svg", transparent=True, dpi=110, metadata=metadata)
        return inline(buffer.getvalue(), self.name, self.label)


def inline(svg: str, name: str, label: str) -> Markup:
    """Makes a stand-alone SVG fit to be pasted into the page beside others."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(id="|url\(#|href="#)', rf"\1{name}-", svg)
    svg = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font: \1 var(--sans)", svg)
    svg = re.sub(r"font-family: [^;\"]*", "font-family: var(--sans)", svg)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    # The size comes from the page; the view box keeps the proportions.
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    opening = f'<svg class="chart" role="img" aria-label="{escape(label)}"'
    return Markup(svg.replace("<svg", opening, 1))


def two_tone(values: np.ndarray, strength: float) -> np.ndarray:
    """Pixels for values from -1 (orange) over 0 (clear) to 1 (blue)."""
    pixels = np.empty((*values.shape, 4), dtype=np.uint8)
    pixels[..., :3] = np.where(values[..., None] > 0, BLUE_PIXEL, ORANGE_PIXEL)
    pixels[..., 3] = np.clip(np.abs(values), 0, 1) * 255 * strength
    return pixels


def losses_of_training(result: spirals.Result) -> Markup:
    label = "Training and test loss, falling over the steps"
    with Chart("spiral-loss", label, height=4.4) as chart:
        axes = chart.axes
        steps, test = zip(*result.test_losses)
        axes.plot(result.losses, color=BLUE, label="training loss")
        axes.plot(steps, test, color=ORANGE, linestyle=(0, (4, 2)), label="test loss")
        axes.set(yscale="log", xlabel="Adam steps", ylabel="cross-entropy")
        axes.legend()
    return chart.svg


def decision_plane(result: spirals.Result, snapshot: spirals.Snapshot) -> Markup:
    label = f"Decision regions after {snapshot.step} steps"
    with Chart(f"plane-{snapshot.step}", label, 3.2, 3.2) as chart:
        axes, extent = chart.axes, spirals.EXTENT
        belief = 1 - 2 * np.array(snapshot.probability)
        box = (-extent, extent, -extent, extent)
        axes.imshow(
            two_tone(belief, 0.38), extent=box, origin="lower", interpolation="bilinear"
        )
        points, labels = np.array(result.points), np.array(result.labels)
        for label_value, colour in ((0, BLUE), (1, ORANGE)):
            x, y = points[labels == label_value].T
            axes.scatter(x, y, s=4, color=colour, linewidths=0)
        axes.set_axis_off()
    return chart.svg


def trajectories(result: pendulum.Result) -> Markup:
    settings = result.settings
    times = settings.time_step * np.arange(1, settings.steps + 1)
    label = "Angle over time: observed, first guess and fit; what is left below"
    with Chart("trajectories", label, height=4.8, rows=(3, 1)) as chart:
        axes, left_over = chart.all_axes
        axes.scatter(
            times, result.observed, s=16, color=MUTED, alpha=0.45, linewidths=0, label="observed"
        )
        axes.plot(
            times, result.first_angles, color=ORANGE, linestyle=(0, (4, 2)), label="first guess"
        )
        axes.plot(times, result.fitted_angles, color=BLUE, linewidth=1.4, label="recovered")
        axes.set(ylabel="angle [rad]", xlim=(0, times[-1]))
        axes.legend(loc="upper right")
        residuals = np.subtract(result.observed, result.fitted_angles)
        left_over.vlines(times, 0, residuals, color=BLUE, linewidth=0.9)
        left_over.set(xlabel="time [s]", ylabel="residual")
    return chart.svg


def losses_of_search(result: pendulum.Result) -> Markup:
    losses = [visit.loss for visit in result.visits]
    descent = result.settings.descent_steps
    with Chart("search-loss", "Misfit over the steps of the search") as chart:
        axes = chart.axes
        axes.plot(range(descent + 1), losses[: descent + 1], color=BLUE, label="Adam")
        axes.plot(
            range(descent, len(losses)),
            losses[descent:],
            color=ROSE,
            marker="o",
            markersize=4,
            label="Newton",
        )
        floor = result.settings.noise**2
        axes.axhline(floor, color=MUTED, linewidth=1, linestyle=(0, (2, 2)))
        axes.annotate(
            "variance of the noise",
            (0, floor),
            xytext=(0, -4),
            textcoords="offset points",
            va="top",
            color=MUTED,
            fontsize=10,
        )
        axes.set(yscale="log", xlabel="steps", ylabel="mean squared misfit")
        axes.set_ylim(bottom=floor / 2)
        axes.legend()
    return chart.svg


def search_path(result: pendulum.Result) -> Markup:
    land, settings = result.landscape, result.settings
    heights = np.log10(np.array(land.losses))
    with Chart("landscape", "Contours of the misfit and the path of the search") as chart:
        axes = chart.axes
        levels = np.linspace(heights.min(), heights.max(), 16)
        axes.contour(
            land.lengths,
            land.dampings,
            heights,
            levels,
            colors=[MUTED],
            linewidths=0.7,
            linestyles="solid",
            alpha=0.6,
        )
        lengths = [visit.length for visit in result.visits]
        dampings = [visit.damping for visit in result.visits]
        descent = settings.descent_steps
        axes.plot(
            lengths[: descent + 1],
            dampings[: descent + 1],
            color=BLUE,
            marker="o",
            markersize=3,
            label="Adam",
        )
        axes.plot(
            lengths[descent:],
            dampings[descent:],
            color=ROSE,
            marker="o",
            markersize=4,
            label="Newton",
        )
        axes.plot(
            *(settings.length, settings.damping),
            color=GREEN,
            marker="*",
            markersize=15,
            linestyle="none",
            label="truth",
        )
        axes.annotate(
            "first guess",
            (lengths[0], dampings[0]),
            xytext=(-4, -16),
            textcoords="offset points",
            color=INK,
        )
        axes.set(xlabel="length [m]", ylabel="damping [1/s]")
        axes.grid(False)
        axes.legend(loc="upper right")
    return chart.svg


def matrix(name: str, label: str, rows: Sequence[Sequence[float]], form: str) -> Markup:
    values = np.array(rows)
    with Chart(name, label, 4.6, 4.6) as chart:
        axes = chart.axes
        scaled = values / np.abs(values).max()
        axes.imshow(two_tone(np.sign(scaled) * np.sqrt(np.abs(scaled)), 0.75))
        for (row, column), value in np.ndenumerate(values):
            if value != 0:
                text = format(value, form)
                axes.text(column, row, text, ha="center", va="center", fontsize=8.5)
        axes.set_axis_off()
    return chart.svg


def derivative_tower(result: derivatives.Result) -> Markup:
    names = ["tanh", "tanh′", "tanh″", "tanh‴", "tanh⁗"]
    colours = [INK, BLUE, ORANGE, GREEN, VIOLET]
    with Chart("tower", "tanh and its first four derivatives", height=6.0) as chart:
        for order, name, colour in zip(result.tower.orders, names, colours):
            chart.axes.plot(result.tower.x, order, color=colour, label=name)
        chart.axes.set(xlabel="x", xlim=(-3, 3))
        chart.axes.legend(ncols=1, loc="upper left")
    return chart.svg
