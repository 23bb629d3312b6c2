"""The report: one HTML page that holds everything it shows."""

import datetime
import json
import platform
import time
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template

import numpy as np

import wengert
from wengert.demo import charts, derivatives, pendulum, spirals
from wengert.demo.adam import Adam
from wengert.demo.graph_svg import draw
from wengert.demo.highlight import source_of

PAGE = Path(__file__).with_name("page.html")


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
    """What the three parts of the demo found."""

    spirals: spirals.Result
    pendulum: pendulum.Result
    derivatives: derivatives.Result
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
        ]

    def timings(self) -> list[Timing]:
        training, swing = self.spirals, self.pendulum
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
        ]


def write_report(output: Path, results: Results, started: float) -> Path:
    """Writes ``report.html`` into a folder, made if missing, and returns its path."""
    output.mkdir(parents=True, exist_ok=True)
    drawing = time.perf_counter()
    parts = {**summary(results), **spirals_parts(results.spirals)}
    parts |= {**pendulum_parts(results.pendulum), **derivatives_parts(results.derivatives)}
    now = time.perf_counter()
    timings = [*results.timings(), Timing("Charts", now - drawing, "drawn with Matplotlib")]
    parts |= {"timings": timing_rows(timings), "total": f"{now - started:.1f}"}
    report = output / "report.html"
    report.write_text(Template(PAGE.read_text("utf-8")).substitute(parts), "utf-8")
    return report


def summary(results: Results) -> dict[str, str]:
    cards = "".join(
        f'<li class="{"met" if t.met else "missed"}"><span>{escape(t.name)}</span>'
        f"<strong>{escape(t.value)}</strong><small>target: {escape(t.goal)}</small></li>"
        for t in results.targets()
    )
    facts = {
        "wengert": f"{wengert.__version__}, {'compiled' if wengert.__compiled__ else 'uncompiled'}",
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "System": f"{platform.system()} {platform.machine()}",
        "Date": f"{datetime.datetime.now():%Y-%m-%d %H:%M}",
    }
    return {
        "cards": cards,
        "quick": " in quick mode" if results.quick else "",
        "facts": "".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
            for name, value in facts.items()
        ),
    }


def spirals_parts(result: spirals.Result) -> dict[str, str]:
    planes = "".join(
        f"<figure>{charts.decision_plane(result, snapshot)}"
        f"<figcaption><b>{snapshot.step:,} steps</b> {snapshot.accuracy:.1%} right</figcaption>"
        "</figure>"
        for snapshot in result.snapshots
    )
    hidden = result.settings.hidden
    return {
        "planes": planes,
        "network": f"2 – {hidden} – {hidden} – 2",
        "parameters": f"{result.parameters:,}",
        "points": f"{result.settings.points:,}",
        "spirals_loss": charts.losses_of_training(result),
        "spirals_graph": draw(result.graph, "The graph recorded by one evaluation of the loss"),
        "spirals_nodes": str(result.graph.node_count),
        "spirals_code": source_of(
            spirals.classify, spirals.cross_entropy, spirals.train_step, Adam.step
        ),
    }


def pendulum_parts(result: pendulum.Result) -> dict[str, str]:
    settings = result.settings
    motion = {
        "timeStep": settings.time_step,
        "start": pendulum.START_ANGLE,
        "lengths": [settings.first_length, result.length, settings.length],
        "angles": [
            [round(angle, 4) for angle in angles]
            for angles in (result.first_angles, result.fitted_angles, result.observed)
        ],
    }
    return {
        "motion": json.dumps(motion, separators=(",", ":")),
        "rk_steps": str(settings.steps),
        "pendulum_nodes": f"{result.nodes:,}",
        "descent_steps": str(settings.descent_steps),
        "newton_steps": str(settings.newton_steps),
        "constants": constant_rows(result),
        "trajectories": charts.trajectories(result),
        "landscape": charts.search_path(result),
        "search_loss": charts.losses_of_search(result),
        "step_graph": draw(
            result.step_graph, "The graph recorded by one Runge-Kutta step", vertical=True
        ),
        "step_nodes": str(result.step_graph.node_count),
        "step_code": source_of(pendulum.acceleration, pendulum.runge_kutta_step),
        "fit_code": source_of(pendulum.simulate, pendulum.misfit, pendulum.hessian_of),
    }


def constant_rows(result: pendulum.Result) -> str:
    settings = result.settings
    rows = [
        ("Length [m]", settings.first_length, result.length, result.length_deviation)
        + (settings.length, result.length_error),
        ("Damping [1/s]", settings.first_damping, result.damping, result.damping_deviation)
        + (settings.damping, result.damping_error),
    ]
    return "".join(
        f"<tr><th>{name}</th><td>{guess:.2f}</td><td>{found:.4f} ± {deviation:.4f}</td>"
        f"<td>{truth:.2f}</td><td>{error:.2%}</td></tr>"
        for name, guess, found, deviation, truth, error in rows
    )


def derivatives_parts(result: derivatives.Result) -> dict[str, str]:
    return {
        "hessian": charts.matrix(
            "hessian", "Hessian of the Rosenbrock function", result.hessian.computed, "z.0f"
        ),
        "hessian_error": f"{result.hessian.error:.1e}",
        "jacobian": charts.matrix(
            "jacobian", "Jacobian of the softmax", result.jacobian.computed, "z.2f"
        ),
        "jacobian_error": f"{result.jacobian.error:.1e}",
        "tower": charts.derivative_tower(result),
        "tower_error": f"{max(result.tower.errors):.1e}",
        "derivatives_code": source_of(
            derivatives.jacobian, derivatives.hessian, derivatives.derivative_tower
        ),
    }


def duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{1e3 * seconds:.1f} ms"


def timing_rows(timings: list[Timing]) -> str:
    longest = max(timing.seconds for timing in timings)
    return "".join(
        f"<tr><th>{escape(t.name)}</th><td>{duration(t.seconds)}</td>"
        f'<td class="bar"><i style="width:{100 * t.seconds / longest:.1f}%"></i>'
        f"<small>{escape(t.detail)}</small></td></tr>"
        for t in timings
    )
