"""Compiled programs beside PyTorch's (eager and torch.compile) and JAX's, in turns in one run.

    python benchmarks/compile.py [names] [--seconds 2] [--no-torch-compile] [--check] [--json FILE]

Prints milliseconds per call, the fastest of all turns, the ratio to the best of the others, and
what first calls took where code is made. A library that is not installed is left out. Programs are
functions of plain tensors that return new values, so that all libraries run the same thing.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from harness import fastest  # isort: skip - it sets what NumPy reads
import numpy as np


def numbers(*shape: int, seed: int = 0, scale: float = 1.0) -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype("float32")


# Programs, written once for the libraries that share an API ---------------------------------------


def elementwise(lib: Any) -> tuple[Callable, list]:
    def loss(x: Any, w: Any) -> Any:
        y = ((x * w).tanh() + (x * 0.5).exp() * 0.1).sigmoid() * x.sin()
        return y.square().sum()

    return lib.func.grad_and_value(loss, (0, 1)), [numbers(4_000_000), numbers(4_000_000, seed=1)]


def sgd_mlp(lib: Any) -> tuple[Callable, list]:
    functional = lib.nn.functional

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        for i in range(0, 6, 2):
            x = functional.linear(x, parameters[i], parameters[i + 1])
            x = functional.relu(x) if i < 4 else x
        return functional.cross_entropy(x, y)

    def step(x: Any, y: Any, *parameters: Any) -> Any:
        grads, value = lib.func.grad_and_value(loss)(parameters, x, y)
        return value, [p - 0.1 * g for p, g in zip(parameters, grads, strict=True)]

    return step, [numbers(128, 784), np.arange(128) % 10, *mlp_weights((784, 256, 256, 10))]


def mlp_weights(sizes: tuple[int, ...]) -> list:
    pairs = zip(sizes, sizes[1:], strict=False)
    return [
        array
        for i, (a, b) in enumerate(pairs)
        for array in (numbers(b, a, seed=i, scale=a**-0.5), np.zeros(b, "float32"))
    ]


def adam(grads: Any, parameters: Any, first: Any, second: Any) -> tuple[list, list, list]:
    """One step of Adam on lists of parameters and moments."""
    moments = [0.9 * m + 0.1 * g for m, g in zip(first, grads, strict=True)]
    squares = [0.999 * v + 0.001 * g * g for v, g in zip(second, grads, strict=True)]
    new = [
        p - 1e-3 * m / (v**0.5 + 1e-8)
        for p, m, v in zip(parameters, moments, squares, strict=True)
    ]
    return new, moments, squares


def adam_mlp(lib: Any) -> tuple[Callable, list]:
    def loss(parameters: Any, x: Any, y: Any) -> Any:
        for i in range(0, 6, 2):
            x = x @ parameters[i].T + parameters[i + 1]
            x = lib.tanh(x) if i < 4 else x
        return ((x - y) ** 2).mean()

    def step(x: Any, y: Any, *state: Any) -> Any:
        grads, value = lib.func.grad_and_value(loss)(state[:6], x, y)
        return value, adam(grads, state[:6], state[6:12], state[12:])

    weights = mlp_weights((2, 16, 16, 1))
    zeros = [np.zeros_like(w) for w in weights]
    return step, [numbers(16, 2), numbers(16, 1, seed=3), *weights, *zeros, *zeros]


def lstm(lib: Any) -> tuple[Callable, list]:
    def loss(weights: Any, x: Any) -> Any:
        w, u, b = weights
        h = c = x[0, :, :32] * 0
        for t in range(100):
            gates = x[t] @ w + h @ u + b
            i, f, g, o = (gates[:, 32 * k : 32 * (k + 1)] for k in range(4))
            c = lib.sigmoid(f) * c + lib.sigmoid(i) * lib.tanh(g)
            h = lib.sigmoid(o) * lib.tanh(c)
        return (h * h).mean()

    def gradient(x: Any, *weights: Any) -> Any:
        return lib.func.grad_and_value(loss)(weights, x)

    return gradient, [
        numbers(100, 16, 32), numbers(32, 128, seed=1, scale=0.1),
        numbers(32, 128, seed=2, scale=0.1), np.zeros(128, "float32"),
    ]  # fmt: skip


def neural_ode(lib: Any) -> tuple[Callable, list]:
    def loss(weights: Any, y: Any) -> Any:
        w, b, v = weights

        def slope(y: Any) -> Any:
            return lib.tanh(w @ y + b) @ v

        for _ in range(200):
            a = slope(y)
            b2 = slope(y + 0.005 * a)
            c = slope(y + 0.005 * b2)
            d = slope(y + 0.01 * c)
            y = y + 0.01 / 6 * (a + 2 * b2 + 2 * c + d)
        return (y * y).sum()

    def gradient(y: Any, *weights: Any) -> Any:
        return lib.func.grad_and_value(loss)(weights, y)

    return gradient, [
        numbers(2), numbers(16, 2, seed=1), numbers(16, seed=2), numbers(16, 2, seed=3, scale=0.3)
    ]  # fmt: skip


WIDTH, HEADS, LAYERS, LENGTH, LETTERS = 128, 4, 4, 64, 65


def gpt(lib: Any) -> tuple[Callable, list]:
    functional = lib.nn.functional

    def block(x: Any, p: Any, mask: Any) -> Any:
        def heads(y: Any) -> Any:
            return y.reshape(*y.shape[:2], HEADS, -1).swapaxes(1, 2)

        h = functional.linear(functional.layer_norm(x, (WIDTH,), p[0], p[1]), p[2], p[3])
        q, k, v = (heads(h[..., WIDTH * i : WIDTH * (i + 1)]) for i in range(3))
        scores = (q @ k.swapaxes(-1, -2)) * (WIDTH // HEADS) ** -0.5 + mask
        mixed = functional.softmax(scores, -1) @ v
        x = x + functional.linear(mixed.swapaxes(1, 2).reshape(x.shape), p[4], p[5])
        h = functional.linear(functional.layer_norm(x, (WIDTH,), p[6], p[7]), p[8], p[9])
        return x + functional.linear(functional.gelu(h), p[10], p[11])

    def loss(parameters: Any, letters: Any, targets: Any, mask: Any) -> Any:
        table, places, *rest = parameters
        x = functional.embedding(letters, table) + places
        for i in range(LAYERS):
            x = block(x, rest[12 * i : 12 * i + 12], mask)
        x = functional.layer_norm(x, (WIDTH,), rest[-2], rest[-1])
        return functional.cross_entropy((x @ table.T).reshape(-1, LETTERS), targets)

    def step(letters: Any, targets: Any, mask: Any, *state: Any) -> Any:
        count = len(state) // 3
        parameters = state[:count]
        grads, value = lib.func.grad_and_value(loss)(parameters, letters, targets, mask)
        decayed = [p * (1 - 1e-5) for p in parameters]
        return value, adam(grads, decayed, state[count : 2 * count], state[2 * count :])

    shapes = [(LETTERS, WIDTH), (LENGTH, WIDTH)]
    for _ in range(LAYERS):
        shapes += [(WIDTH,), (WIDTH,), (3 * WIDTH, WIDTH), (3 * WIDTH,), (WIDTH, WIDTH), (WIDTH,)]
        shapes += [(WIDTH,), (WIDTH,), (4 * WIDTH, WIDTH), (4 * WIDTH,), (WIDTH, 4 * WIDTH)]
        shapes += [(WIDTH,)]
    weights = [numbers(*s, seed=i, scale=0.02) for i, s in enumerate([*shapes, (WIDTH,), (WIDTH,)])]
    zeros = [np.zeros_like(w) for w in weights]
    letters = np.random.default_rng(0).integers(0, LETTERS, (8, LENGTH))
    mask = np.triu(np.full((LENGTH, LENGTH), -1e9, "float32"), 1)
    return step, [letters, np.roll(letters, 1).reshape(-1), mask, *weights, *zeros, *zeros]


def _rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def rosenbrock_hvp(lib: Any) -> tuple[Callable, list]:
    def product(x: Any, v: Any) -> Any:
        return lib.func.grad(lambda x: (lib.func.grad(_rosenbrock)(x) * v).sum())(x)

    return product, [numbers(1000), numbers(1000, seed=1)]


def rosenbrock_hessian(lib: Any) -> tuple[Callable, list]:
    return lib.func.jacrev(lib.func.grad(_rosenbrock)), [numbers(50)]


PROGRAMS: dict[str, Callable[[Any], tuple[Callable, list]]] = {
    "elementwise": elementwise,
    "mlp 784-256-256-10, SGD": sgd_mlp,
    "gpt, 4 layers, AdamW": gpt,
    "mlp 2-16-16-1, Adam": adam_mlp,
    "lstm, 100 steps": lstm,
    "neural ode, 200 steps": neural_ode,
    "rosenbrock 1000, hvp": rosenbrock_hvp,
    "rosenbrock 50, hessian": rosenbrock_hessian,
}
#: The largest ratio to the best of the others that is asked for.
TARGETS = {
    "elementwise": 0.5, "mlp 784-256-256-10, SGD": 0.8, "mlp 2-16-16-1, Adam": 0.3,
    "gpt, 4 layers, AdamW": 1.0, "lstm, 100 steps": 0.7, "neural ode, 200 steps": 0.6,
    "rosenbrock 1000, hvp": 0.6, "rosenbrock 50, hessian": 0.6,
}  # fmt: skip

#: Libraries whose first call makes code.
MAKERS = {"wengert", "torch.compile", "jax.jit"}


# JAX, with what it calls otherwise ----------------------------------------------------------------


class JaxLibrary:
    """As much of the shared API as the programs use, by JAX's functions."""

    def __init__(self, jax: Any) -> None:
        numpy = jax.numpy
        self.tanh, self.sigmoid = numpy.tanh, jax.nn.sigmoid
        self.func = self
        self.nn = self.functional = self
        self.relu, self.grad, self.jacrev = jax.nn.relu, jax.grad, jax.jacrev
        self._jax = jax

    def grad_and_value(self, function: Callable, argnums: Any = 0) -> Callable:
        derived = self._jax.value_and_grad(function, argnums)

        def call(*args: Any) -> Any:
            value, grads = derived(*args)
            return grads, value

        return call

    def layer_norm(self, x: Any, _: Any, w: Any, b: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        return centred / self._jax.numpy.sqrt(variance + 1e-5) * w + b

    def embedding(self, indices: Any, table: Any) -> Any:
        return table[indices]

    def gelu(self, x: Any) -> Any:
        return self._jax.nn.gelu(x, approximate=False)

    def softmax(self, x: Any, dim: int) -> Any:
        return self._jax.nn.softmax(x, dim)

    def linear(self, x: Any, w: Any, b: Any) -> Any:
        return x @ w.T + b

    def cross_entropy(self, x: Any, y: Any) -> Any:
        rows = self._jax.numpy.arange(x.shape[0])
        return -self._jax.nn.log_softmax(x)[rows, y].mean()


def jax_elementwise(jax: Any) -> Callable:
    def loss(x: Any, w: Any) -> Any:
        numpy = jax.numpy
        y = jax.nn.sigmoid(numpy.tanh(x * w) + numpy.exp(x * 0.5) * 0.1) * numpy.sin(x)
        return (y * y).sum()

    return jax.value_and_grad(loss, (0, 1))


def jax_lstm(jax: Any) -> Callable:
    def loss(weights: Any, x: Any) -> Any:
        w, u, b = weights
        numpy, sigmoid = jax.numpy, jax.nn.sigmoid

        def turn(carry: Any, row: Any) -> Any:
            h, c = carry
            i, f, g, o = numpy.split(row @ w + h @ u + b, 4, 1)
            c = sigmoid(f) * c + sigmoid(i) * numpy.tanh(g)
            h = sigmoid(o) * numpy.tanh(c)
            return (h, c), None

        zero = numpy.zeros((16, 32), "float32")
        (h, _), _ = jax.lax.scan(turn, (zero, zero), x)
        return (h * h).mean()

    return lambda x, *weights: jax.value_and_grad(loss)(weights, x)


def jax_neural_ode(jax: Any) -> Callable:
    def loss(weights: Any, y: Any) -> Any:
        w, b, v = weights

        def slope(y: Any) -> Any:
            return jax.numpy.tanh(w @ y + b) @ v

        def turn(y: Any, _: Any) -> Any:
            a = slope(y)
            b2 = slope(y + 0.005 * a)
            c = slope(y + 0.005 * b2)
            d = slope(y + 0.01 * c)
            return y + 0.01 / 6 * (a + 2 * b2 + 2 * c + d), None

        y, _ = jax.lax.scan(turn, y, None, length=200)
        return (y * y).sum()

    return lambda y, *weights: jax.value_and_grad(loss)(weights, y)


OF_JAX = {
    "elementwise": jax_elementwise,
    "lstm, 100 steps": jax_lstm,
    "neural ode, 200 steps": jax_neural_ode,
}


# Running them -------------------------------------------------------------------------------------


def optional(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def runners(name: str, with_torch_compile: bool) -> dict[str, tuple[Callable[[], Any], float]]:
    """For each library a call without arguments, and the seconds that the first one took."""
    wengert, torch, jax = (optional(m) for m in ("wengert", "torch", "jax"))
    build = PROGRAMS[name]
    found: dict[str, Callable[[], Any]] = {}
    function, arrays = build(wengert)
    tensors = [wengert.tensor(a) for a in arrays]
    compiled = wengert.compile(function)
    found["wengert"] = lambda: compiled(*tensors)
    found["wengert eager"] = lambda: function(*tensors)
    if torch is not None:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        theirs, _ = build(torch)
        given = [torch.tensor(a) for a in arrays]
        found["torch eager"] = lambda: theirs(*given)
        if with_torch_compile:
            fused = torch.compile(theirs)
            found["torch.compile"] = lambda: fused(*given)
    if jax is not None:
        program = OF_JAX[name](jax) if name in OF_JAX else build(JaxLibrary(jax))[0]
        jitted = jax.jit(program)
        on_device = [jax.numpy.asarray(a) for a in arrays]
        found["jax.jit"] = lambda: jax.block_until_ready(jitted(*on_device))
    ready = {}
    for library, run in found.items():
        begin = perf_counter()
        try:
            run()
        except Exception as error:
            reason = str(error).partition("\n")[0]
            print(f"  {library}: {type(error).__name__}: {reason}", file=sys.stderr)
            continue
        ready[library] = (run, perf_counter() - begin)
    return ready


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of the names of programs")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each library and program")
    parser.add_argument("--no-torch-compile", action="store_true")
    parser.add_argument("--check", action="store_true", help="fail where a target is missed")
    parser.add_argument("--json", help="a file for all figures")
    given = parser.parse_args()
    figures: dict[str, dict[str, Any]] = {}
    for name in PROGRAMS:
        if given.names and not any(part in name for part in given.names):
            continue
        ready = runners(name, not given.no_torch_compile)
        best = dict.fromkeys(ready, float("inf"))
        for _ in range(5):
            for library, (run, _) in ready.items():
                best[library] = min(best[library], fastest(run, given.seconds / 5))
        others = [t for library, t in best.items() if not library.startswith("wengert")]
        ratio = best["wengert"] / min(others) if others else float("nan")
        times = ", ".join(f"{library} {1e3 * t:.4g} ms" for library, t in best.items())
        first = {each: taken for each, (_, taken) in ready.items() if each in MAKERS}
        figures[name] = {"ratio": ratio, "seconds": best, "first_call": first}
        calls = ", ".join(f"{each} {taken:.2f} s" for each, taken in first.items())
        print(f"{name}: {ratio:.2f} (target {TARGETS[name]}); {times}; first call {calls}")
    if given.json:
        Path(given.json).write_text(json.dumps(figures, indent=1))
    judged = [(name, f["ratio"]) for name, f in figures.items() if f["ratio"] == f["ratio"]]
    if given.check:
        sys.exit(2 if not judged else int(any(ratio > TARGETS[name] for name, ratio in judged)))


if __name__ == "__main__":
    main()
