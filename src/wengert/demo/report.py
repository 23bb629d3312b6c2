"""The report: one HTML page that holds everything it shows."""

import datetime
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

import wengert
from wengert.autograd.profiler_util import format_memory
from wengert.demo import charts, derivatives, pendulum, spirals, tools
from wengert.demo.adam import Adam
from wengert.demo.highlight import source_of
from wengert.demo.templates import render
from wengert.viz.pages import asset
from wengert.viz.svg import draw


@dataclass(frozen=True)
class Target:
    """One result, the goal it had, and whether it met it."""

    name: str
    value: str
    goal: str
    met: bool


@dataclass(frozen=True)
class Timing:
    name: str
    seconds: float
    detail: str


@dataclass(frozen=True)
class Results:
    """What the parts of the demo found."""

    spirals: spirals.Result
    pendulum: pendulum.Result
    derivatives: derivatives.Result
    tools: tools.Result
    quick: bool

    def targets(self) -> list[Target]:
        swing, curves = self.pendulum, self.derivatives
        within = f"within {pendulum.TARGET_ERROR:.0%}"
        return [
            Target(
                "Test accuracy on two spirals",
                f"{self.spirals.accuracy:.1%}",
                f"at least {spirals.TARGET_ACCURACY:.0%}",
                self.spirals.passed,
            ),
            Target(
                "Pendulum length",
                f"{swing.length:.4f} m",
                f"{swing.settings.length:.2f} m {within}",
                swing.length_error <= pendulum.TARGET_ERROR,
            ),
            Target(
                "Pendulum damping",
                f"{swing.damping:.4f} /s",
                f"{swing.settings.damping:.2f} /s {within}",
                swing.damping_error <= pendulum.TARGET_ERROR,
            ),
            Target(
                "Largest error of a derivative",
                f"{curves.largest_error:.1e}",
                f"at most {derivatives.TARGET_ERROR:.0e}",
                curves.passed,
            ),
            Target(
                "Compiled gradients, off by",
                f"{self.tools.difference:.1e}",
                f"at most {tools.TARGET_DIFFERENCE:.0e}",
                self.tools.passed,
            ),
        ]

    def timings(self) -> list[Timing]:
        training, swing, made = self.spirals, self.pendulum, self.tools
        steps = training.settings.steps
        per_step = 1e3 * training.seconds / steps
        per_gradient = swing.gradient_seconds / swing.gradients
        per_node = 1e6 * per_gradient / swing.nodes
        return [
            Timing(
                "Two spirals",
                training.seconds,
                f"{steps:,} training steps of {per_step:.2f} ms, including evaluation",
            ),
            Timing(
                "Pendulum",
                swing.seconds,
                f"{1e3 * per_gradient:.0f} ms for a gradient through {swing.nodes:,} recorded "
                f"nodes: {per_node:.1f} µs a node, forward and backward",
            ),
            Timing("Derivatives", self.derivatives.seconds, "a Hessian, a Jacobian, five orders"),
            Timing(
                "Compiling and drawing",
                made.seconds,
                f"a gradient of the network takes {1e3 * made.eager:.2f} ms recorded and "
                f"{1e3 * made.compiled:.2f} ms compiled, after {made.first_call:.2f} s once; "
                f"recorded it holds {format_memory(made.footprint.total)} for backward",
            ),
        ]


def write_report(output: Path, results: Results, started: float) -> Path:
    """Writes ``report.html`` into a folder, made if missing, and returns its path."""
    output.mkdir(parents=True, exist_ok=True)
    report = output / "report.html"
    report.write_text(render("page.html", **contents(results, started)), "utf-8")
    return report


def contents(results: Results, started: float) -> dict[str, Any]:
    """What the page tells. Charts are drawn here, so that the page can tell the time they took."""
    drawing = time.perf_counter()
    parts = {**drawings(results), "code": sources(), "motion": motion(results.pendulum)}
    now = time.perf_counter()
    timings = [*results.timings(), Timing("Charts", now - drawing, "by Matplotlib and Graphviz")]
    return {
        **parts,
        "results": results,
        "spirals": results.spirals,
        "pendulum": results.pendulum,
        "derivatives": results.derivatives,
        "constants": constants(results.pendulum),
        "timings": timings,
        "longest": max(timing.seconds for timing in timings),
        "total": now - started,
        "facts": facts(),
    }


def drawings(results: Results) -> dict[str, Any]:
    trained, swing, curves = results.spirals, results.pendulum, results.derivatives
    return {
        "planes": [(each, charts.decision_plane(trained, each)) for each in trained.snapshots],
        "training_losses": charts.losses_of_training(trained),
        "colours": Markup(asset("colours.css")),
        "graph_style": Markup(asset("picture.css")),
        "training_graph": Markup(
            draw(trained.graph, "The graph recorded by one evaluation of the loss")
        ),
        "trajectories": charts.trajectories(swing),
        "search_path": charts.search_path(swing),
        "search_losses": charts.losses_of_search(swing),
        "step_graph": Markup(
            draw(swing.step_graph, "The graph of one Runge-Kutta step", vertical=True)
        ),
        "hessian": charts.matrix(
            "hessian", "Hessian of the Rosenbrock function", curves.hessian.computed, "z.0f"
        ),
        "jacobian": charts.matrix(
            "jacobian", "Jacobian of the softmax", curves.jacobian.computed, "z.2f"
        ),
        "tower": charts.derivative_tower(curves),
    }


def sources() -> dict[str, Markup]:
    return {
        "training": source_of(
            spirals.classify, spirals.cross_entropy, spirals.train_step, Adam.step
        ),
        "step": source_of(pendulum.acceleration, pendulum.runge_kutta_step),
        "fit": source_of(pendulum.simulate, pendulum.misfit, pendulum.hessian_of),
        "derivatives": source_of(
            derivatives.jacobian, derivatives.hessian, derivatives.derivative_tower
        ),
    }


def motion(result: pendulum.Result) -> dict[str, Any]:
    """What the script of the page animates."""
    settings = result.settings
    return {
        "timeStep": settings.time_step,
        "start": pendulum.START_ANGLE,
        "lengths": [settings.first_length, result.length, settings.length],
        "angles": [
            [round(angle, 4) for angle in angles]
            for angles in (result.first_angles, result.fitted_angles, result.observed)
        ],
    }


@dataclass(frozen=True)
class Constant:
    """A constant of the pendulum: what the search began with and found, and what is true."""

    name: str
    guess: float
    found: float
    deviation: float
    truth: float
    error: float


def constants(result: pendulum.Result) -> list[Constant]:
    settings = result.settings
    return [
        Constant(
            "Length [m]", settings.first_length, result.length, result.length_deviation,
            settings.length, result.length_error,
        ),
        Constant(
            "Damping [1/s]", settings.first_damping, result.damping, result.damping_deviation,
            settings.damping, result.damping_error,
        ),
    ]  # fmt: skip


def facts() -> dict[str, str]:
    return {
        "wengert": f"{wengert.__version__}, {'compiled' if wengert.__compiled__ else 'uncompiled'}",
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "System": f"{platform.system()} {platform.machine()}",
        "Date": f"{datetime.datetime.now():%Y-%m-%d %H:%M}",
    }
