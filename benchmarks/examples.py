"""A step of every example, compiled against as it is, in turns.

    python benchmarks/examples.py [names] [--seconds 2] [--check] [--json FILE]

Prints milliseconds per step, the fastest of all turns, their ratio, and how long the first calls
took. A step is what the example repeats: training with its optimizer, a simulation, a Jacobian.
What cannot be compiled, such as a loop until a value is small, runs as it is and must not cost more
for it. The target is a ratio of 1.1.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from harness import fastest  # isort: skip - it sets what NumPy reads
import wengert as torch
from wengert.nn import functional as F

TARGET = 1.1
sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))


def trained(loss: Callable[[], Any], optimizer: Any) -> Callable[[], Any]:
    """A step of training."""

    def step() -> Any:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value

    return step


def bundle_adjustment(example: Any) -> Callable[[], Any]:
    guess = example.perturbed(example.scene())
    return lambda: example.system(guess)


def char_gpt(example: Any) -> Callable[[], Any]:
    corpus = example.Corpus(example.TEXT.read_text(encoding="utf-8"))
    model = example.GPT(len(corpus.alphabet), 48)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
    x, y = corpus.batch(16, 48)

    def step() -> Any:
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step


def compile_training(example: Any, name: str) -> Callable[[], Any]:
    model = next(m for m in example.MODELS if m.name.lower() == name)
    state, batch = example.initial_state(model), model.batch()
    step = example.training_step(model.loss)
    return lambda: step(state, *batch)


def digits(example: Any) -> Callable[[], Any]:
    model = example.network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    images, labels = example.pictures(64)
    return trained(lambda: F.cross_entropy(model(images), labels), optimizer)


def ensembling(example: Any) -> Callable[[], Any]:
    x, y = example.examples()
    ensemble = example.Ensemble(20)

    def loss(parameters: Any) -> Any:
        return ((ensemble._call(parameters, x) - y) ** 2).mean()

    gradients = torch.func.vmap(torch.func.grad(loss))
    parameters = ensemble.parameters
    return lambda: gradients(parameters)


def fixed_point(example: Any) -> Callable[[], Any]:
    z = torch.linspace(-1.0, 1.0, 6, dtype=torch.float64)
    solve = example.fixed_point(example.layer(6))
    return lambda: torch.func.jacrev(solve)(z)


def fixed_point_unrolled(example: Any) -> Callable[[], Any]:
    z = torch.linspace(-1.0, 1.0, 6, dtype=torch.float64)
    solve = example.unrolled(example.layer(6))
    return lambda: torch.func.jacrev(solve)(z)


def gaussian_process(example: Any) -> Callable[[], Any]:
    process = example.Process(*example.data())

    def closure() -> Any:
        process.logs.grad = None
        cost = process.cost()
        cost.backward()
        return cost

    return closure


def heat(example: Any) -> Callable[[], Any]:
    model = example.Heat().double()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    x, t = torch.rand(2, 128, dtype=torch.float64)
    return trained(lambda: example.residual(model, x, t / 10).square().mean(), optimizer)


def hmc(example: Any) -> Callable[[], Any]:
    x, y, _ = example.data()
    density = example.posterior(x, y)
    q, p = torch.randn(2, 16, 3, dtype=torch.float64)
    return lambda: torch.func.vmap(lambda q, p: example.leapfrog(density, q, p, 0.1, 10))(q, p)


def jacobians_and_hessians(example: Any) -> Callable[[], Any]:
    x = torch.linspace(-1.0, 1.0, 5, dtype=torch.float64)
    f, energy = example.network(5, 3), example.network(5, 1)
    return lambda: (example.jacobians(f, x), example.hessians(lambda x: energy(x)[0], x))


def kalman(example: Any) -> Callable[[], Any]:
    _, seen = example.measurements(100)
    logs = torch.zeros(2, dtype=torch.float64)
    return lambda: torch.func.grad(lambda logs: example.kalman_filter(logs, seen)[0])(logs)


def maml(example: Any) -> Callable[[], Any]:
    learner = example.Learner()
    leaves = {name: w.clone().requires_grad_() for name, w in learner.weights.items()}
    optimizer = torch.optim.Adam(leaves.values(), lr=3e-3)
    batch = example.tasks(32)
    return trained(lambda: learner.after(leaves, batch), optimizer)


def n_body(example: Any) -> Callable[[], Any]:
    throw = torch.tensor([0.1, 1.1], dtype=torch.float64)
    return lambda: torch.func.jacrev(example.miss)(throw)


def neural_ode(example: Any) -> Callable[[], Any]:
    truth, model = example.spiral(), example.Network()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    pieces = truth.squeeze(1).unfold(0, 7, 1).permute(2, 0, 1)
    return trained(
        lambda: (example.solve(model, pieces[0], 6, 0.1) - pieces).abs().mean(), optimizer
    )


def optimum(example: Any) -> Callable[[], Any]:
    task = example.Regression()
    penalties = torch.full((8,), -3.0, dtype=torch.float64)
    return lambda: torch.func.grad(task.validation)(penalties)


def per_sample_gradients(example: Any) -> Callable[[], Any]:
    x, labels = example.two_rings(128)
    parameters = example.initial_parameters()
    return lambda: example.clipped_mean(
        example.per_sample_gradients(parameters, x, labels), 0.5
    )


def pictures(example: Any) -> Callable[[], Any]:
    model = example.GPT()
    batch = [torch.randint(0, example.WORDS, (4, example.LENGTH)) for _ in range(2)]
    return trained(lambda: model(*batch), torch.optim.SGD(model.parameters(), lr=0.01))


def vae(example: Any) -> Callable[[], Any]:
    model = example.VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    x = example.discs(64)[0]
    return trained(lambda: model.bound(x).mean(), optimizer)


STEPS: dict[str, tuple[str, Callable[[Any], Callable[[], Any]]]] = {
    make.__name__: (make.__name__, make)
    for make in (
        bundle_adjustment, char_gpt, digits, ensembling, fixed_point, gaussian_process, heat, hmc,
        jacobians_and_hessians, kalman, maml, n_body, neural_ode, optimum, per_sample_gradients,
        pictures, vae,
    )
} | {
    "fixed_point, unrolled": ("fixed_point", fixed_point_unrolled),
    "compile_training, mlp": ("compile_training", lambda e: compile_training(e, "mlp")),
    "compile_training, lstm": ("compile_training", lambda e: compile_training(e, "lstm")),
    "compile_training, gpt": ("compile_training", lambda e: compile_training(e, "gpt")),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of the names of examples")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each example")
    parser.add_argument("--check", action="store_true", help="fail where a step is slower")
    parser.add_argument("--json", help="a file for all figures")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    figures: dict[str, dict[str, float]] = {}
    for name, (module, make) in STEPS.items():
        if given.names and not any(part in name for part in given.names):
            continue
        example = importlib.import_module(module)
        torch.manual_seed(0)
        eager, subject = make(example), make(example)
        compiled = torch.compile(subject)
        begin = perf_counter()
        for _ in range(3):
            compiled()
        first = perf_counter() - begin
        end = perf_counter() + given.seconds / 2
        for _ in range(200):  # until what cannot be compiled is known to be so
            compiled()
            if perf_counter() > end:
                break
        best = [float("inf"), float("inf")]
        for _ in range(7):
            for i, run in enumerate((eager, compiled)):
                best[i] = min(best[i], fastest(run, given.seconds / 14))
        ratio = best[1] / best[0]
        figures[name] = {"ratio": ratio, "eager": best[0], "compiled": best[1], "first": first}
        kinds = len(compiled.compilations)
        print(
            f"{name}: {ratio:.2f}; eager {1e3 * best[0]:.4g} ms, compiled {1e3 * best[1]:.4g} ms, "
            f"{kinds} compilations; first calls {first:.2f} s",
            flush=True,
        )
    if given.json:
        Path(given.json).write_text(json.dumps(figures, indent=1))
    if given.check:
        sys.exit(any(each["ratio"] > TARGET for each in figures.values()))


if __name__ == "__main__":
    main()
