"""The length and damping of a pendulum, found by differentiating through its simulation."""

import math
import time
from dataclasses import dataclass

from tqdm import tqdm

import wengert
from wengert import Generator, Tensor
from wengert.demo.adam import Adam
from wengert.viz.recorded import RecordedGraph, record_graph

TARGET_ERROR = 0.01
GRAVITY = 9.81
START_ANGLE = 2.2


@dataclass(frozen=True)
class Settings:
    length: float = 1.30
    damping: float = 0.35
    first_length: float = 1.05
    first_damping: float = 0.80
    noise: float = 0.025
    time_step: float = 0.03
    steps: int = 300
    descent_steps: int = 40
    newton_steps: int = 3
    rate: float = 0.03
    landscape: int = 48
    seed: int = 11

    @classmethod
    def quick(cls) -> "Settings":
        return cls(
            noise=0.01, time_step=0.04, steps=90, descent_steps=30, rate=0.05, landscape=16
        )


@dataclass(frozen=True)
class Visit:
    """The parameters at one point of the search and the loss there."""

    length: float
    damping: float
    loss: float


@dataclass(frozen=True)
class Landscape:
    """The loss over a grid of parameters; one row for each damping."""

    lengths: list[float]
    dampings: list[float]
    losses: list[list[float]]


@dataclass(frozen=True)
class Result:
    settings: Settings
    visits: list[Visit]
    length: float
    damping: float
    length_deviation: float
    damping_deviation: float
    observed: list[float]
    true_angles: list[float]
    first_angles: list[float]
    fitted_angles: list[float]
    landscape: Landscape
    nodes: int
    gradients: int
    gradient_seconds: float
    step_graph: RecordedGraph
    seconds: float

    @property
    def length_error(self) -> float:
        return abs(self.length / self.settings.length - 1)

    @property
    def damping_error(self) -> float:
        return abs(self.damping / self.settings.damping - 1)

    @property
    def passed(self) -> bool:
        return max(self.length_error, self.damping_error) <= TARGET_ERROR


def acceleration(angle: Tensor, speed: Tensor, pull: Tensor, damping: Tensor) -> Tensor:
    """theta'' = -(g / L) sin(theta) - c theta', where pull is -g / L and damping is c."""
    return pull * angle.sin() - damping * speed


def runge_kutta_step(
    angle: Tensor, speed: Tensor, pull: Tensor, damping: Tensor, h: float
) -> tuple[Tensor, Tensor]:
    """The classical fourth-order step from t to t + h."""
    v1, a1 = speed, acceleration(angle, speed, pull, damping)
    v2 = speed + h / 2 * a1
    a2 = acceleration(angle + h / 2 * v1, v2, pull, damping)
    v3 = speed + h / 2 * a2
    a3 = acceleration(angle + h / 2 * v2, v3, pull, damping)
    v4 = speed + h * a3
    a4 = acceleration(angle + h * v3, v4, pull, damping)
    angle = angle + h / 6 * (v1 + 2 * (v2 + v3) + v4)
    speed = speed + h / 6 * (a1 + 2 * (a2 + a3) + a4)
    return angle, speed


def simulate(length: Tensor, damping: Tensor, settings: Settings) -> Tensor:
    """The angle after each step, along the first dimension; parameters may be batches."""
    pull = -GRAVITY / length
    angle, speed = wengert.full_like(length, START_ANGLE), wengert.zeros_like(length)
    angles = []
    for _ in range(settings.steps):
        angle, speed = runge_kutta_step(angle, speed, pull, damping, settings.time_step)
        angles.append(angle)
    return wengert.stack(angles)


def misfit(parameters: Tensor, observed: Tensor, settings: Settings) -> Tensor:
    """The mean squared distance to the observations; parameters are logarithms, so positive."""
    length, damping = parameters.exp()
    return ((simulate(length, damping, settings) - observed) ** 2).mean()


def hessian_of(gradient: Tensor, parameters: Tensor) -> Tensor:
    rows = [
        wengert.autograd.grad(component, parameters, retain_graph=True)[0]
        for component in gradient
    ]
    return wengert.stack(rows)


def newton_update(gradient: Tensor, hessian: Tensor) -> Tensor:
    """The step to the minimum of the local quadratic model, by Cramer's rule in two dimensions."""
    (a, b), (_, d) = hessian
    determinant = a * d - b * b
    g0, g1 = gradient
    return wengert.stack([b * g1 - d * g0, b * g0 - a * g1]) / determinant


def loss_landscape(observed: Tensor, settings: Settings, visits: list[Visit]) -> Landscape:
    """The loss on a grid that covers the search; the whole grid is one batched simulation."""

    def axis(values: list[float], truth: float) -> Tensor:
        low, high = min([*values, truth]), max([*values, truth])
        margin = 0.35 * (high - low)
        return wengert.linspace(max(0.02, low - margin), high + margin, settings.landscape)

    lengths = axis([visit.length for visit in visits], settings.length).double()
    dampings = axis([visit.damping for visit in visits], settings.damping).double()
    count = settings.landscape
    with wengert.no_grad():
        angles = simulate(
            lengths.unsqueeze(0).expand(count, count),
            dampings.unsqueeze(1).expand(count, count),
            settings,
        )
        losses = ((angles - observed.reshape(-1, 1, 1)) ** 2).mean(dim=0)
    return Landscape(lengths.tolist(), dampings.tolist(), losses.tolist())


def graph_of_one_step() -> RecordedGraph:
    """The graph that a single Runge-Kutta step leaves behind."""
    names = ("angle", "speed", "pull", "damping")
    inputs = {name: wengert.tensor(1.0, requires_grad=True) for name in names}
    angle, speed, pull, damping = inputs.values()
    angle, speed = runge_kutta_step(angle, speed, pull, damping, h=0.03)
    return record_graph((angle + speed).grad_fn, inputs)


def run(settings: Settings) -> Result:
    """Observes a pendulum with noise, then searches for its constants from a wrong guess."""
    started = time.perf_counter()
    generator = Generator().manual_seed(settings.seed)

    def constant(value: float) -> Tensor:
        return wengert.tensor(value, dtype=wengert.float64)

    with wengert.no_grad():
        truth = simulate(constant(settings.length), constant(settings.damping), settings)
        noise = wengert.randn(settings.steps, generator=generator, dtype=wengert.float64)
        observed = truth + settings.noise * noise

    first_guess = [math.log(settings.first_length), math.log(settings.first_damping)]
    parameters = wengert.tensor(first_guess, dtype=wengert.float64, requires_grad=True)
    optimizer = Adam([parameters], settings.rate)
    visits: list[Visit] = []
    gradient_seconds = 0.0

    def note_visit(loss: Tensor, bar: tqdm) -> None:
        length, damping = (math.exp(value) for value in parameters.tolist())
        visits.append(Visit(length, damping, loss.item()))
        bar.set_postfix_str(f"length {length:.3f} damping {damping:.3f}", refresh=False)
        bar.update()

    total = settings.descent_steps + settings.newton_steps
    with tqdm(total=total, desc="pendulum   ", unit="step") as bar:
        for _ in range(settings.descent_steps):
            clock = time.perf_counter()
            loss = misfit(parameters, observed, settings)
            gradients = wengert.autograd.grad(loss, [parameters])
            gradient_seconds += time.perf_counter() - clock
            note_visit(loss, bar)
            optimizer.step(gradients)
        for _ in range(settings.newton_steps):
            loss = misfit(parameters, observed, settings)
            (gradient,) = wengert.autograd.grad(loss, [parameters], create_graph=True)
            hessian = hessian_of(gradient, parameters)
            note_visit(loss, bar)
            with wengert.no_grad():
                parameters.add_(newton_update(gradient.detach(), hessian))

    loss = misfit(parameters, observed, settings)
    nodes = record_graph(loss.grad_fn, {}).node_count
    length, damping = (math.exp(value) for value in parameters.tolist())
    visits.append(Visit(length, damping, loss.item()))
    deviations = standard_deviations(hessian, loss.item(), settings.steps)

    with wengert.no_grad():
        first = simulate(
            constant(settings.first_length), constant(settings.first_damping), settings
        )
        fitted = simulate(constant(length), constant(damping), settings)
    return Result(
        settings=settings,
        visits=visits,
        length=length,
        damping=damping,
        length_deviation=length * deviations[0],
        damping_deviation=damping * deviations[1],
        observed=observed.tolist(),
        true_angles=truth.tolist(),
        first_angles=first.tolist(),
        fitted_angles=fitted.tolist(),
        landscape=loss_landscape(observed, settings, visits),
        nodes=nodes,
        gradients=settings.descent_steps,
        gradient_seconds=gradient_seconds,
        step_graph=graph_of_one_step(),
        seconds=time.perf_counter() - started,
    )


def standard_deviations(hessian: Tensor, noise_variance: float, count: int) -> list[float]:
    """Of the fitted logarithms: the inverse Hessian at the minimum measures the spread."""
    (a, b), (_, d) = hessian.tolist()
    scale = 2 * noise_variance / count / (a * d - b * b)
    return [math.sqrt(max(0.0, scale * d)), math.sqrt(max(0.0, scale * a))]
